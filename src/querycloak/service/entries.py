"""Entries of the write-ahead log. Applied in order, they always produce the same release."""

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
#: Columns of accepted records; `rows_since_head` is the distance to the first row of the same search.
SCHEMA: Final[Schema] = {
    "user": pl.String,
    "query": pl.String,
    "time": pl.Datetime("us", "UTC"),
    "rank": pl.Int64,
    "url": pl.String,
    "category": pl.String,
    "rows_since_head": pl.Int32,
}
assert tuple(SCHEMA)[:-1] == CANONICAL
#: Columns of UBI searches that are held for their clicks, and of clicks; `query_id` is a keyed hash.
QUERIES: Final[Schema] = {
    **{n: k for n, k in SCHEMA.items() if n != "rows_since_head"},
    "query_id": pl.String,
}
EVENTS: Final[Schema] = {"query_id": pl.String, "rank": pl.Int64, "url": pl.String}
_HEAD = 4


class _Head(msgspec.Struct, array_like=True):
    kind: Kind
    at: int
    keys: list[tuple[bytes, int, bytes]]
    facts: dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One step of the stream.

    `at` is the time of acceptance in microseconds; applying an entry reads no clock. `keys` are the
    idempotency keys of its requests: digest, time and answer.
    """

    kind: Kind
    at: int
    frame: pl.DataFrame | None = None
    keys: tuple[tuple[bytes, int, bytes], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of records; clicks are not records."""
        return 0 if self.frame is None or self.kind == "events" else self.frame.height


def encode(entry: Entry) -> bytes:
    """Return an entry as bytes: a small head, then the records as Arrow columns."""
    head = msgspec.msgpack.encode(_Head(entry.kind, entry.at, list(entry.keys), dict(entry.facts)))
    body = b""
    if entry.frame is not None:
        buffer = io.BytesIO()
        # This form holds the texts of these rows only, not of rows that were filtered out.
        entry.frame.write_ipc_stream(buffer, compat_level=pl.CompatLevel.oldest())
        body = buffer.getvalue()
    return len(head).to_bytes(_HEAD, "little") + head + body


def decode(data: bytes) -> Entry:
    """Parse the bytes of an entry."""
    size = int.from_bytes(data[:_HEAD], "little")
    try:
        head = msgspec.msgpack.decode(data[_HEAD : _HEAD + size], type=_Head)
        body = data[_HEAD + size :]
        frame = pl.read_ipc_stream(body) if body else None
    except (msgspec.MsgspecError, pl.exceptions.PolarsError):
        raise DataError(
            "cannot read an entry of the write-ahead log", hint="was it written by another version?"
        ) from None
    return Entry(head.kind, head.at, frame, tuple(head.keys), head.facts)
