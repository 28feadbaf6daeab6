"""State of a stream as bytes: arrays, tables and plain values, no code; unused texts are removed."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
import polars as pl
import zstandard

from querycloak.dictionary import Dictionaries, Dictionary
from querycloak.errors import DataError
from querycloak.kernels.arrays import distinct
from querycloak.log import MISSING
from querycloak.protector import Protector, State

_LEVEL = 1  # snapshots are taken while records wait


def dump(parts: Mapping[str, Any]) -> bytes:
    """Write named arrays, tables (or None) and plain values as bytes."""
    return zstandard.compress(
        msgspec.msgpack.encode({name: _plain(value) for name, value in parts.items()}), _LEVEL
    )


def load(data: bytes) -> dict[str, Any]:
    """Return what `dump` wrote."""
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


def dump_dictionaries(texts: Dictionaries) -> dict[str, pl.DataFrame]:
    """Return the texts of all codes, in the order of the codes."""
    found = {name: getattr(texts, name).texts() for name in ("user", "query", "url", "category")}
    return {f"texts/{name}": pl.DataFrame({"text": known.cast(pl.String)}) for name, known in found.items()}


def load_dictionaries(texts: Dictionaries, parts: Mapping[str, Any]) -> None:
    """Fill new dictionaries so that every text has the same code again."""
    for name in ("user", "query", "url", "category"):
        known: Dictionary = getattr(texts, name)
        known.encode(parts[f"texts/{name}"]["text"])


def with_prefix(prefix: str, parts: Mapping[str, Any]) -> State:
    """Return the parts whose names start with the prefix, without it."""
    return {name[len(prefix) :]: value for name, value in parts.items() if name.startswith(prefix)}


#: Columns whose texts are forgotten; users are for good, and so are their codes.
_FORGOTTEN = ("query", "url", "category")


def compact_dictionaries(
    state: State, stages: Iterable[Protector], old: Dictionaries, new: Dictionaries
) -> State:
    """Return the snapshot of a pipeline in the codes of `new`, which receives the texts still in use.

    `new` must be empty. The stages say which arrays hold codes (`Traits.coded_state`); a pipeline that is to
    carry on from the result has to be built on `new`, since methods keep what they know by code.
    """
    _take_over(old.user, new.user)
    changed = dict(state)
    column_of = {
        f"{place}/{name}": c
        for place, stage in enumerate(stages)
        for name, c in stage.traits(stage.settings).coded_state.items()
    }
    for column in _FORGOTTEN:
        arrays = {name: state[name] for name in state if column_of.get(name) == column}
        changed |= _moved(arrays, getattr(old, column), getattr(new, column))
    return changed


def is_outgrown(old: Dictionaries, new: Dictionaries, spare: int) -> bool:
    """Whether most texts of a column, and more than `spare` of them, are no longer in use."""
    return any(len(getattr(old, one)) > 2 * len(getattr(new, one)) + spare for one in _FORGOTTEN)


def _take_over(old: Dictionary, new: Dictionary) -> None:
    """Copy all texts of a dictionary, with their codes, to an empty one."""
    codes = new.encode(old.texts())
    if not np.array_equal(codes, np.arange(codes.size)):
        raise ValueError("codes can be taken over by an empty dictionary only")


def _moved(arrays: State, old: Dictionary, new: Dictionary) -> State:
    """Copy the texts of these codes to the new dictionary; return the arrays in its codes."""
    used = distinct(np.concatenate([np.empty(0, np.int64), *arrays.values()]))
    used = used[used >= 0]
    fresh = np.append(new.encode(old.decode(used)), MISSING)
    return {
        name: fresh[np.where(codes >= 0, np.searchsorted(used, codes), used.size)]
        for name, codes in arrays.items()
    }
