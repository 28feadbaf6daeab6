"""The released log: numbered lines, appended by one thread, read by any number of threads and processes."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from typing import Final

from querycloak.errors import DataError, Gone
from querycloak.service.sinks.database import Database
from querycloak.service.sinks.sink import Sink, line_count, new_lines, start_of

#: Bytes that one read returns, about: the memory of readers is bounded.
READ_BYTES: Final = 8 << 20
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS released (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, at REAL NOT NULL,
    size INTEGER NOT NULL, checksum INTEGER NOT NULL, lines BLOB NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS released_size ON released (last, at, size);
"""
#: The batch that holds a line, and those after it.
_NEXT: Final = """SELECT first, last, checksum, lines FROM released WHERE first >=
    coalesce((SELECT max(first) FROM released WHERE first <= ?), 0) AND last >= ? ORDER BY first LIMIT ?"""
#: Batches that one query returns, at most.
_MOST_BATCHES: Final = 256
#: Bytes of one row, about: a read of a few lines reads a whole row.
_ROW_BYTES: Final = 64 << 10


class ReleasedLog(Sink):
    """All released lines that are still kept; line n has the offset n. A row holds a batch of lines."""

    def __init__(
        self, database: Database, keep_bytes: int = 4 << 30, keep_seconds: float = 7 * 86400
    ) -> None:
        self._database = database
        self._keep_bytes, self._keep_seconds = keep_bytes, keep_seconds
        database.create(_TABLE)
        ((first, last, size),) = database.read(
            "SELECT (SELECT min(first) FROM released), max(last), sum(size) FROM released"
        )
        #: Numbers of the first and the last line that can be read (1 and 0 without any), and their bytes.
        self.first, self.last, self.size = first or 1, last or 0, size or 0

    def append(self, first: int, lines: bytes, count: int) -> None:
        """Add lines `first` and following. Raise DataError if those already there differ, or at a gap."""
        if first <= self.last and count:
            self._compare(first, lines, count)
        lines, count = new_lines(first, lines, count, self.last, self._database.path)
        if count:
            rows = _rows(self.last + 1, lines, time.time())
            with self._database.transaction() as connection:
                connection.executemany("INSERT OR REPLACE INTO released VALUES (?, ?, ?, ?, ?, ?)", rows)
            self.last, self.size = self.last + count, self.size + len(lines)

    def _compare(self, first: int, lines: bytes, count: int) -> None:
        """Compare the lines that are there already with those that replay has made."""
        low = max(first, self.first)
        for row_first, data in self._batches(low):
            start = max(row_first, low)
            if start >= first + count:
                return
            begin = start_of(lines, start - first)
            present = data[start_of(data, start - row_first) :]
            size = min(len(present), len(lines) - begin)
            if lines[begin : begin + size] != present[:size]:
                raise DataError(
                    f"`{self._database.path}`: the lines from {start:,} on differ from those of the replay",
                    hint="restore the state folder from one backup",
                )

    def read(self, after: int, limit: int) -> bytes:
        """Return up to `limit` lines after an offset, about 8 MiB at most; empty if there is none yet."""
        parts: list[bytes] = []
        size, left, expected = 0, limit, after + 1
        for first, data in self._batches(after + 1):
            if first > expected and parts:  # `forget` has removed the lines between two queries
                break
            if first > expected:
                raise Gone(
                    f"released lines up to {first - 1:,} are no longer kept",
                    hint=f"read on with `after={first - 1}`",
                )
            lines = data[start_of(data, max(0, after + 1 - first)) :]
            count = line_count(lines)
            parts.append(lines if count <= left else lines[: start_of(lines, left)])
            size, left, expected = size + len(lines), left - count, expected + count
            if size >= READ_BYTES or left <= 0:
                break
        return b"".join(parts)

    def _batches(self, number: int) -> Iterator[tuple[int, bytes]]:
        """Yield the batches that hold a line or later ones; raise DataError at one that is damaged."""
        many = 1
        while rows := self._database.read(_NEXT, (number, number, many)):
            for first, last, checksum, lines in rows:
                if zlib.crc32(lines) != checksum:
                    raise DataError(f"`{self._database.path}` is damaged: the lines from {first:,} on")
                yield first, lines
                number = last + 1
            small = sum(len(row[-1]) for row in rows) < READ_BYTES // 8
            many = min(2 * many, _MOST_BATCHES) if small else max(many // 2, 1)

    def forget(self, now: float) -> None:
        """Remove the oldest batches while the log is too large, and those that are too old.

        If the newest one goes, an empty row stores the number of the last line; the next batch replaces it.
        """
        upto, removed = self._too_old(now - self._keep_seconds)
        if upto:
            with self._database.transaction() as connection:
                connection.execute("DELETE FROM released WHERE last <= ?", (upto,))
                if upto == self.last:
                    empty = (upto + 1, upto, now, 0, 0, b"")
                    connection.execute("INSERT INTO released VALUES (?, ?, ?, ?, ?, ?)", empty)
            self.first, self.size = upto + 1, self.size - removed
            self._database.vacuum()

    def _too_old(self, oldest: float) -> tuple[int, int]:
        """Return up to which line batches are to be removed, and their bytes."""
        upto = removed = 0
        query = "SELECT last, at, size FROM released WHERE last > ? AND size > 0 ORDER BY last LIMIT ?"
        while rows := self._database.read(query, (upto, _MOST_BATCHES)):
            for last, at, size in rows:
                too_large = self.size - removed > self._keep_bytes and last < self.last
                if not too_large and at >= oldest:
                    return upto, removed
                upto, removed = last, removed + size
        return upto, removed

    def keep(self, keep_bytes: int, keep_seconds: float) -> None:
        """Change how much `forget` keeps."""
        self._keep_bytes, self._keep_seconds = keep_bytes, keep_seconds

    def sync(self) -> None:
        """Return when all lines are durable."""
        self._database.sync()


def _rows(first: int, lines: bytes, now: float) -> Iterator[tuple[int, int, float, int, int, bytes]]:
    begin = 0
    while begin < len(lines):
        end = lines.find(b"\n", begin + _ROW_BYTES) + 1 or len(lines)
        part = lines[begin:end]
        last = first + line_count(part) - 1
        yield first, last, now, len(part), zlib.crc32(part), part
        first, begin = last + 1, end
