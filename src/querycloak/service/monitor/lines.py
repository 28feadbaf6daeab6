"""Reads released lines back from the log: the audit looks at the very bytes that everybody gets."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from typing import Final

import polars as pl

from querycloak.errors import Gone
from querycloak.service.sinks.released_log import ReleasedLog

_SCHEMA: Final = {
    "offset": pl.Int64,
    "user": pl.String,
    "query": pl.String,
    "time": pl.String,
    "rank": pl.Int64,
    "url": pl.String,
    "category": pl.String,
}
_AT_ONCE: Final = 50_000


def pieces(log: ReleasedLog, first: int, last: int) -> Iterator[tuple[bytes, int]]:
    """Give the lines from `first` to `last`, some at a time, and how many they are."""
    after = first - 1
    while after < last:
        lines = log.read(after, min(_AT_ONCE, last - after))
        if not lines:
            return
        count = lines.count(b"\n")
        yield lines, count
        after += count


def parsed(log: ReleasedLog, first: int, last: int) -> pl.DataFrame:
    """Give released records as a table with `released_row`, their offset."""
    whole = b"".join(lines for lines, _ in pieces(log, first, last))
    rows = pl.read_ndjson(io.BytesIO(whole), schema=_SCHEMA) if whole else pl.DataFrame(schema=_SCHEMA)
    when = pl.col("time").str.to_datetime(time_unit="us", time_zone="UTC", strict=False)
    return rows.with_columns(when).rename({"offset": "released_row"})


class Digest:
    """The SHA-256 of all lines from `first` on, taken while they are there."""

    def __init__(self, log: ReleasedLog, first: int) -> None:
        self._log = log
        self.begin(first)

    def begin(self, first: int) -> None:
        """Begin anew with this line."""
        self.first, self.last, self._hash = first, first - 1, hashlib.sha256()

    def advance(self, upto: int) -> None:
        """Take in lines up to one; if some are no longer kept, begin with the first that is."""
        try:
            for lines, count in pieces(self._log, self.last + 1, min(upto, self._log.last)):
                self._hash.update(lines)
                self.last += count
        except Gone:
            self.begin(self._log.first)

    def hex(self) -> str:
        """Give the SHA-256 of the lines from `first` to `last`."""
        return self._hash.hexdigest()
