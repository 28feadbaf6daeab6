"""A growing log file, followed over rotations; the position survives a restart."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from querycloak.errors import DataError

#: How much is read at a time, and the longest line.
PIECE: Final = 1 << 20
LONGEST: Final = 8 << 20
#: How long a renamed file must be quiet before its successor is read: its writer may not know yet.
GRACE: Final = 2.0
#: How many bytes at a file's start tell it from another that got its inode.
HEAD: Final = 256
_BITS: Final = 62
_ROTATED: Final = re.compile(r"[-_.](?:(?P<count>\d{1,4})|\d[-_.:\dTZ]*|old)")


@dataclass(frozen=True)
class FilePosition:
    """Where reading continues: a file, recognised by its inode and first bytes, and an offset in it.

    `written` is when the file was last written, in nanoseconds, as far as it is the newest or was when it
    was last looked at: whatever was written later comes after it.
    """

    inode: int = 0
    offset: int = 0
    head: int = 0
    head_bytes: int = 0
    written: int = 0

    @classmethod
    def of(cls, read: Mapping[str, int]) -> FilePosition:
        """Return the position that was stored with records."""
        return cls(**{name: read.get(f"tail {name}", 0) for name in cls.__dataclass_fields__})

    def as_read(self) -> dict[str, int]:
        """Return the position as it is stored with records."""
        return {f"tail {name}": getattr(self, name) for name in self.__dataclass_fields__}

    def later(self, size: int) -> FilePosition:
        """Return the position `size` bytes later."""
        return replace(self, offset=self.offset + size)

    def is_in(self, file: int) -> bool:
        """Whether an open file begins with the same bytes and is long enough."""
        if os.fstat(file).st_size < self.offset:
            return False
        return _head_of(file, self.head_bytes) == (self.head, self.head_bytes)


def _head_of(file: int, size: int = HEAD) -> tuple[int, int]:
    """Return a hash of a file's first bytes, and how many there were."""
    data = os.pread(file, size, 0)
    digest = hashlib.blake2b(data, digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> (64 - _BITS)) if data else 0, len(data)


def _find(path: Path, place: FilePosition) -> Path | None:
    """Look for the file that a place is in, under its own name or another one beside it.

    A copy of it will do if enough is known of its start: so does `copytruncate` rotate.
    """
    copy = None
    for other in sorted(path.parent.glob(f"{path.name}*")):
        with contextlib.suppress(OSError), other.open("rb") as file:
            if place.is_in(file.fileno()):
                if os.fstat(file.fileno()).st_ino == place.inode:
                    return other
                copy = other if place.head_bytes == HEAD else copy
    return copy


#: Decides where times are too coarse to: files that are counted (the newest is 1), then dated ones.
_Order = tuple[int, int, str]
_LAST: Final[_Order] = (2, 0, "")


class _Rotated(NamedTuple):
    """A rotated file beside the one that is followed; its age is when it was written, then its order."""

    age: tuple[int, _Order]
    inode: int
    path: Path


def _rotated(newest: Path) -> Iterator[_Rotated]:
    for path in newest.parent.glob(f"{newest.name}?*"):
        named = _ROTATED.fullmatch(path.name.removeprefix(newest.name))
        with contextlib.suppress(OSError):
            if named is not None:
                state = path.stat()
                order = (0, -int(named["count"]), "") if named["count"] else (1, 0, path.name)
                yield _Rotated((state.st_mtime_ns, order), state.st_ino, path)


def _successor(path: Path, place: FilePosition) -> Path | None:
    """Return the file after that of a position: a rotated one if there is any, else the newest."""
    known = list(_rotated(path))
    own = next((one.age[1] for one in known if one.inode == place.inode), _LAST)
    later = [one for one in known if one.inode != place.inode and one.age > (place.written, own)]
    if later and place.written:
        return min(later).path
    with contextlib.suppress(FileNotFoundError):
        return path if path.stat().st_ino != place.inode else None
    return None


@dataclass(frozen=True)
class Chunk:
    """Whole lines of a file, and where they stand. `more`: there may be others after them already."""

    data: bytes
    place: FilePosition
    more: bool

    @property
    def end(self) -> FilePosition:
        """The place after its last line."""
        return self.place.later(len(self.data))


class FileTail:
    """Reads a file as it grows, then its successor.

    A file is known by its inode and its first bytes: one that was renamed is read to its end first. A file
    that became shorter or begins otherwise was emptied in place, and is read from its start; what was
    written between the last look and then is lost to any reader, so rotate by renaming.
    """

    def __init__(self, path: Path, read: Mapping[str, int], grace: float = GRACE) -> None:
        self._path, self._grace = path, grace
        self._quiet_since: float | None = None
        self.place = FilePosition.of(read)
        self._file: int | None = None
        self.truncated = 0

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def header(self) -> bytes:
        """Return the first line of the file that is being read."""
        assert self._file is not None
        return os.pread(self._file, PIECE, 0).partition(b"\n")[0]

    def chunk(self, size: int = PIECE) -> Chunk | None:
        """Return the next whole lines, None if there are none yet; setting `place` to its end passes them."""
        while self._is_open():
            data = self._lines(size)
            if data is not None:
                self._quiet_since = None
                return data
            if not self._moved_on():
                return None
        return None

    def give_up(self) -> None:
        """Leave a file that cannot be read if it was removed, so that nobody can repair it."""
        if self._file is not None and not os.fstat(self._file).st_nlink:
            self.close()
            self.place = FilePosition(written=self.place.written)

    def _is_open(self) -> bool:
        if self._file is not None:
            return True
        own = _find(self._path, self.place) if self.place.inode else None
        if own is not None:
            return self._open(own, self.place)
        gone = replace(self.place, inode=0)  # its inode may be another file's now
        return self._open(_successor(self._path, gone) or self._path, FilePosition(written=gone.written))

    def _open(self, path: Path, place: FilePosition) -> bool:
        try:
            file = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise DataError(f"the file to follow cannot be read: {error.strerror}") from None
        self.close()
        state = os.fstat(file)
        written = max(place.written, state.st_mtime_ns) if place.offset == 0 else place.written
        self._file, self.place = file, replace(place, inode=state.st_ino, written=written)
        return True

    def _identify(self) -> None:
        assert self._file is not None
        head, size = _head_of(self._file)
        state = os.fstat(self._file)
        newest = _same(self._path, state)
        written = max(self.place.written, state.st_mtime_ns) if newest else self.place.written
        self.place = replace(self.place, head=head, head_bytes=size, written=written)

    def _lines(self, size: int) -> Chunk | None:
        assert self._file is not None
        if self.place.offset and not self.place.is_in(self._file):
            self.place, self.truncated = replace(self.place, offset=0), self.truncated + 1
        self._identify()
        while size <= LONGEST:
            data = os.pread(self._file, size, self.place.offset)
            end = data.rfind(b"\n") + 1
            if end:
                return Chunk(data[:end], self.place, len(data) == size)
            if len(data) < size:
                return None
            size *= 2
        raise DataError(f"a line of the file to follow is longer than {LONGEST >> 20} MiB")

    def _moved_on(self) -> bool:
        """Go to the successor, if there is one and this file is not the newest any more."""
        assert self._file is not None
        state = os.fstat(self._file)
        successor = None if _same(self._path, state) else _successor(self._path, self.place)
        if successor is None:
            return False
        if self._quiet_since is None:
            self._quiet_since = time.monotonic()
        if time.monotonic() - self._quiet_since < self._grace:
            return False
        return self._open(successor, FilePosition(written=max(self.place.written, state.st_mtime_ns)))


def _same(path: Path, state: os.stat_result) -> bool:
    """Whether the path leads to this file."""
    try:
        return os.path.samestat(os.stat(path), state)
    except FileNotFoundError:
        return False
