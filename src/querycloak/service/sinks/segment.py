"""One file of the released log; once it is complete, its name says what it must hold."""

from __future__ import annotations

import os
import re
import weakref
from bisect import bisect_right
from pathlib import Path
from threading import Lock

from querycloak.errors import DataError
from querycloak.service.sinks import disk
from querycloak.service.sinks.lines import STRIDE, Scan, last_number, number_of, scan, start_of
from querycloak.service.wal.disk import sync_folder, write_all

_NAME = re.compile(r"(\d{20})(?:-(\d{20})-([0-9a-f]{8}))?\.ndjson")


class Segment:
    """Lines `first` to `last`: appended by one thread, read by many at the same time.

    An open segment is called `FIRST.ndjson`, a complete one `FIRST-LAST-CHECKSUM.ndjson`. Only `end` tells
    readers how far they may read, and it changes in one step, after the bytes are written.
    """

    def __init__(self, path: Path) -> None:
        named = _NAME.fullmatch(path.name)
        if not named:
            raise DataError(f"`{path}` is not a part of a released log")
        self.path = path
        self.first = int(named[1])
        self.sealed = named[2] is not None
        self.end = (
            int(named[2]) if named[2] else self.first - 1,
            0,
        )  # the last line, and its end in the file
        self.begun = 0.0  # when its first line was, or earlier
        self.written = 0.0  # when its last line was, once it is complete
        self._sum = named[3]
        self._found: Scan | None = None
        self._descriptor = -1
        self._preparing = Lock()

    @classmethod
    def create(cls, folder: Path, first: int) -> Segment:
        """Begin a new one."""
        segment = cls(folder / f"{first:020d}.ndjson")
        segment._hold(disk.opened(segment.path, new=True))
        segment._found = Scan(first)
        return segment

    @property
    def last(self) -> int:
        """Give the number of the last line that can be read."""
        return self.end[0]

    @property
    def size(self) -> int:
        """Count the bytes of its lines."""
        return self.end[1]

    def _hold(self, descriptor: int) -> None:
        # Closed only when nobody holds the segment any more: a number that is closed under a reader's
        # hands may by then belong to another file.
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)

    def check(self) -> None:
        """See at start that the file can be what its name says: cheaply if it is complete, else wholly."""
        if not self.sealed:
            return self._resume()
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            begins = number_of(os.pread(descriptor, 64, 0))
            if begins != self.first or last_number(descriptor) != self.last:
                raise self._damaged()
            status = os.fstat(descriptor)
            self.end, self.written = (self.last, status.st_size), status.st_mtime
        finally:
            os.close(descriptor)

    def _resume(self) -> None:
        """Find out how far the file was written, and cut off a line that was being written."""
        self._hold(disk.opened(self.path))
        self._found = scan(self._descriptor, self.path, self.first)
        os.ftruncate(self._descriptor, self._found.size)
        self.end = (self._found.last, self._found.size)

    def _damaged(self) -> DataError:
        return DataError(
            f"`{self.path}` was changed or is damaged: it is not what its name says",
            hint="put it back from a copy; or remove it and all older ones, which readers will then miss",
        )

    def _prepare(self) -> None:
        """Before the first read of a complete segment: check all of it, and note where its lines are."""
        with self._preparing:
            if self._found is not None:
                return
            if self._descriptor < 0:
                self._hold(os.open(self.path, os.O_RDONLY | os.O_CLOEXEC))
            found = scan(self._descriptor, self.path, self.first)
            if found.torn or found.last != self.last or f"{found.checksum:08x}" != self._sum:
                raise self._damaged()
            self.end = (found.last, found.size)
            self._found = found

    def append(self, lines: bytes, count: int) -> None:
        """Write whole lines at the end; after a failure the segment is as it was before."""
        assert self._found is not None
        try:
            write_all(self._descriptor, lines, self._found.size)
        except OSError:
            os.ftruncate(self._descriptor, self._found.size)
            raise
        if not self._found.count:
            self.begun = os.fstat(self._descriptor).st_mtime
        self._found.take(lines, count)
        self.end = (self._found.last, self._found.size)

    def sync(self) -> None:
        """Force what was appended to disk."""
        disk.force(self._descriptor, self.path)

    def seal(self) -> None:
        """Give the complete segment its final name."""
        assert self._found is not None
        self.sync()
        self._sum = f"{self._found.checksum:08x}"
        path = self.path.with_name(f"{self.first:020d}-{self.last:020d}-{self._sum}.ndjson")
        self.path.rename(path)
        self.path, self.sealed, self.written = path, True, path.stat().st_mtime
        sync_folder(path.parent)

    def read(self, low: int, high: int, most: int) -> tuple[bytes, int]:
        """Give lines `low` to `high`, or fewer when they take more than `most` bytes; and the last given."""
        if self._found is None:
            self._prepare()
        assert self._found is not None
        last, size = self.end
        known = self._found.marks
        block, skip = divmod(low - self.first, STRIDE)
        wanted = (min(high, last) - self.first) // STRIDE + 1
        stop = min(wanted, max(block + 1, bisect_right(known, known[block] + most) - 1))
        beyond = self.first + stop * STRIDE  # the first line of the next block, if that is written
        high = min(high, last, beyond - 1)
        end, surplus = (known[stop], beyond - 1 - high) if beyond <= last else (size, last - high)
        data = self._bytes(known[block], end)
        data = data[start_of(data, skip) : _end_without(data, surplus)]
        if number_of(data) != low:
            raise self._damaged()
        return data, high

    def _bytes(self, begin: int, end: int) -> bytes:
        data = os.pread(self._descriptor, end - begin, begin)
        if len(data) != end - begin:
            raise self._damaged()
        return data


def _end_without(lines: bytes, surplus: int) -> int:
    """Find where the lines end when so many are left out at the end."""
    end = len(lines)
    for _ in range(surplus):
        end = lines.rfind(b"\n", 0, end - 1) + 1
    return end
