"""What the journal holds: numbered entries that, applied in order, make the same release every time."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import msgspec
import polars as pl

from querycloak.errors import DataError
from querycloak.log import CANONICAL

Kind = Literal["records", "queries", "events", "erasure", "epoch", "tick", "setting"]
Schema = dict[str, pl.DataType | type[pl.DataType]]
#: The columns of accepted records; `back` says how many rows before a row its search began.
SCHEMA: Final[Schema] = {
    "user": pl.String,
    "query": pl.String,
    "time": pl.Datetime("us", "UTC"),
    "rank": pl.Int64,
    "url": pl.String,
    "category": pl.String,
    "back": pl.Int32,
}
assert tuple(SCHEMA)[:-1] == CANONICAL
_HEAD = 4


class _Head(msgspec.Struct, array_like=True):
    kind: Kind
    at: int
    keys: list[tuple[bytes, int, bytes]]
    facts: dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One durable step of the stream.

    `at` is the wall clock when it was accepted, in microseconds: it is written down, so that nothing reads
    a clock when the entry is applied again. `keys` are the retry keys of the requests in it: the key's
    hash, when it was seen, and the answer it got.
    """

    kind: Kind
    at: int
    frame: pl.DataFrame | None = None
    keys: tuple[tuple[bytes, int, bytes], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        """Count the records; clicks that wait for their search are none."""
        return 0 if self.frame is None or self.kind == "events" else self.frame.height


def encode(entry: Entry) -> bytes:
    """Write an entry as bytes: a small head, then the records as Arrow columns."""
    head = msgspec.msgpack.encode(_Head(entry.kind, entry.at, list(entry.keys), dict(entry.facts)))
    body = b""
    if entry.frame is not None:
        buffer = io.BytesIO()
        # The plainer form holds the texts of these rows only, not those that were filtered out before.
        entry.frame.write_ipc_stream(buffer, compat_level=pl.CompatLevel.oldest())
        body = buffer.getvalue()
    return len(head).to_bytes(_HEAD, "little") + head + body


def decode(data: bytes) -> Entry:
    """Read an entry back."""
    size = int.from_bytes(data[:_HEAD], "little")
    try:
        head = msgspec.msgpack.decode(data[_HEAD : _HEAD + size], type=_Head)
        body = data[_HEAD + size :]
        frame = pl.read_ipc_stream(body) if body else None
    except (msgspec.MsgspecError, pl.exceptions.PolarsError):
        raise DataError(
            "an entry of the journal cannot be read", hint="was it written by another version?"
        ) from None
    return Entry(head.kind, head.at, frame, tuple(head.keys), head.facts)
