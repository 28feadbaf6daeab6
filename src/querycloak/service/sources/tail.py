"""Follows a growing log file, also when it is rotated; knows after a restart where it stood."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from querycloak.errors import DataError
from querycloak.service.sources.rotation import Place, after, find, head_of

#: How much is read at a time, and the longest line.
PIECE: Final = 1 << 20
LONGEST: Final = 8 << 20
#: How long a renamed file must be quiet before its successor is read: its writer may not know yet.
GRACE: Final = 2.0


@dataclass(frozen=True)
class Piece:
    """Whole lines of a file, and where they stand. `more`: there may be others after them already."""

    data: bytes
    place: Place
    more: bool

    @property
    def end(self) -> Place:
        """The place after its last line."""
        return self.place.later(len(self.data))


class Tail:
    """Reads a file as it grows, then its successor.

    A file is known by its inode and its first bytes: one that was renamed is read to its end first. A file
    that became shorter or begins otherwise was emptied in place, and is read from its start; what was
    written between the last look and then is lost to any reader, so rotate by renaming.
    """

    def __init__(self, path: Path, read: Mapping[str, int], grace: float = GRACE) -> None:
        self._path, self._grace = path, grace
        self._quiet_since: float | None = None
        self._place = Place.of(read)
        self._file: int | None = None
        self.truncated = 0

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def header(self) -> bytes:
        """Give the first line of the file that is being read."""
        assert self._file is not None
        return os.pread(self._file, PIECE, 0).partition(b"\n")[0]

    def piece(self, size: int = PIECE) -> Piece | None:
        """Look at the next whole lines, or give None if there are none yet; `go_on` passes them."""
        while self._found():
            data = self._lines(size)
            if data is not None:
                self._quiet_since = None
                return data
            if not self._moved_on():
                return None
        return None

    def go_on(self, place: Place) -> None:
        """Read on from there."""
        self._place = place

    def give_up(self) -> None:
        """Leave a file that cannot be read if nobody can mend it, since it was removed."""
        if self._file is not None and not os.fstat(self._file).st_nlink:
            self.close()
            self._place = Place(written=self._place.written)

    def _found(self) -> bool:
        """Open the file that reading goes on in, if there is one."""
        if self._file is not None:
            return True
        own = find(self._path, self._place) if self._place.inode else None
        if own is not None:
            return self._opened(own, self._place)
        gone = replace(self._place, inode=0)  # its inode may be another file's now
        return self._opened(after(self._path, gone) or self._path, Place(written=gone.written))

    def _opened(self, path: Path, place: Place) -> bool:
        """Open a file to read it from a place."""
        try:
            file = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise DataError(f"the file to follow cannot be read: {error.strerror}") from None
        self.close()
        state = os.fstat(file)
        written = max(place.written, state.st_mtime_ns) if place.offset == 0 else place.written
        self._file, self._place = file, replace(place, inode=state.st_ino, written=written)
        return True

    def _know(self) -> None:
        """Note what the file can be known by."""
        assert self._file is not None
        head, size = head_of(self._file)
        state = os.fstat(self._file)
        newest = _same(self._path, state)
        written = max(self._place.written, state.st_mtime_ns) if newest else self._place.written
        self._place = replace(self._place, head=head, head_bytes=size, written=written)

    def _lines(self, size: int) -> Piece | None:
        assert self._file is not None
        if self._place.offset and not self._place.is_in(self._file):
            self._place, self.truncated = replace(self._place, offset=0), self.truncated + 1
        self._know()
        while size <= LONGEST:
            data = os.pread(self._file, size, self._place.offset)
            end = data.rfind(b"\n") + 1
            if end:
                return Piece(data[:end], self._place, len(data) == size)
            if len(data) < size:
                return None
            size *= 2
        raise DataError(f"a line of the file to follow is longer than {LONGEST >> 20} MiB")

    def _moved_on(self) -> bool:
        """Go to the successor, if there is one and this file is not the newest any more."""
        assert self._file is not None
        state = os.fstat(self._file)
        successor = None if _same(self._path, state) else after(self._path, self._place)
        if successor is None:
            return False
        if self._quiet_since is None:
            self._quiet_since = time.monotonic()
        if time.monotonic() - self._quiet_since < self._grace:
            return False
        return self._opened(successor, Place(written=max(self._place.written, state.st_mtime_ns)))


def _same(path: Path, state: os.stat_result) -> bool:
    """Say whether the path leads to this very file."""
    try:
        return os.path.samestat(os.stat(path), state)
    except FileNotFoundError:
        return False
