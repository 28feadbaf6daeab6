"""A stream's state as bytes: arrays, tables and plain values, without any code in them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import polars as pl
import zstandard

from querycloak.dictionary import Dictionary, Texts
from querycloak.errors import DataError
from querycloak.protector import State

_LEVEL = 1  # snapshots are taken while records wait


def freeze(parts: Mapping[str, Any]) -> bytes:
    """Write named arrays, tables (or None) and plain values as bytes."""
    return zstandard.compress(
        msgspec.msgpack.encode({name: _plain(value) for name, value in parts.items()}), _LEVEL
    )


def thaw(data: bytes) -> dict[str, Any]:
    """Read what `freeze` wrote."""
    try:
        parts = msgspec.msgpack.decode(zstandard.decompress(data))
        return {name: _full(value) for name, value in parts.items()}
    except (msgspec.MsgspecError, zstandard.ZstdError, pl.exceptions.PolarsError, ValueError, TypeError):
        raise DataError(
            "a snapshot of the stream cannot be read", hint="was it written by another version?"
        ) from None


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"array": value.dtype.str, "shape": value.shape, "data": np.ascontiguousarray(value).tobytes()}
    if isinstance(value, pl.DataFrame):
        buffer = io.BytesIO()
        value.write_ipc(buffer, compat_level=pl.CompatLevel.oldest())  # newer ones keep texts of erased rows
        return {"table": buffer.getvalue()}
    return {"value": value}


def _full(value: Mapping[str, Any]) -> Any:
    if "array" in value:
        return np.frombuffer(value["data"], np.dtype(value["array"])).reshape(value["shape"]).copy()
    if "table" in value:
        return pl.read_ipc(value["table"], use_pyarrow=False)
    return value["value"]


def dictionaries(texts: Texts) -> dict[str, pl.DataFrame]:
    """Give the texts behind all codes, in the order of the codes."""
    found = {name: getattr(texts, name).texts() for name in ("user", "query", "url", "category")}
    return {f"texts/{name}": pl.DataFrame({"text": known.cast(pl.String)}) for name, known in found.items()}


def fill(texts: Texts, parts: Mapping[str, Any]) -> None:
    """Give fresh dictionaries the same codes again."""
    for name in ("user", "query", "url", "category"):
        known: Dictionary = getattr(texts, name)
        known.encode(parts[f"texts/{name}"]["text"])


def under(prefix: str, parts: Mapping[str, Any]) -> State:
    """Give the parts whose names begin so, without the beginning."""
    return {name[len(prefix) :]: value for name, value in parts.items() if name.startswith(prefix)}
