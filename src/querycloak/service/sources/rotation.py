"""Which file comes after which when a log is rotated, told by when they were last written."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

#: How many bytes at a file's start tell it from another that got its inode.
HEAD: Final = 256
_BITS: Final = 62
_ROTATED: Final = re.compile(r"[-_.](?:(?P<count>\d{1,4})|\d[-_.:\dTZ]*|old)")


@dataclass(frozen=True)
class Place:
    """Where reading goes on: a file, known by its inode and its first bytes, and an offset in it.

    `written` is when the file was last written, in nanoseconds, as far as it is the newest or was when it
    was last looked at: whatever was written later comes after it.
    """

    inode: int = 0
    offset: int = 0
    head: int = 0
    head_bytes: int = 0
    written: int = 0

    @classmethod
    def of(cls, read: Mapping[str, int]) -> Place:
        """Find the place among those that were made durable with records."""
        return cls(**{name: read.get(f"tail {name}", 0) for name in cls.__dataclass_fields__})

    def as_read(self) -> dict[str, int]:
        """Give the place as it is made durable with records."""
        return {f"tail {name}": getattr(self, name) for name in self.__dataclass_fields__}

    def later(self, size: int) -> Place:
        """Give the place so many bytes further on."""
        return replace(self, offset=self.offset + size)

    def is_in(self, file: int) -> bool:
        """Say whether an open file still begins as it did, and is long enough."""
        if os.fstat(file).st_size < self.offset:
            return False
        return head_of(file, self.head_bytes) == (self.head, self.head_bytes)


def head_of(file: int, size: int = HEAD) -> tuple[int, int]:
    """Hash a file's first bytes; say also how many there were."""
    data = os.pread(file, size, 0)
    digest = hashlib.blake2b(data, digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> (64 - _BITS)) if data else 0, len(data)


def find(path: Path, place: Place) -> Path | None:
    """Look for the file that a place is in, under its own name or another one beside it.

    A copy of it will do if enough is known of its start: so does `copytruncate` rotate.
    """
    copy = None
    for other in sorted(path.parent.glob(f"{path.name}*")):
        try:
            file = os.open(other, os.O_RDONLY)
        except OSError:
            continue
        try:
            if place.is_in(file):
                if os.fstat(file).st_ino == place.inode:
                    return other
                copy = other if place.head_bytes == HEAD else copy
        finally:
            os.close(file)
    return copy


def after(path: Path, place: Place) -> Path | None:
    """Give the file that follows the one a place is in: a rotated one if there is any, else the newest."""
    beside = (_sibling(other, path) for other in path.parent.glob(f"{path.name}?*"))
    known = [one for one in beside if one is not None]
    own = next((one.order for one in known if one.inode == place.inode), _LAST)
    later = [one for one in known if one.inode != place.inode and one.age > (place.written, own)]
    if later and place.written:
        return min(later, key=lambda one: one.age).path
    return path if _inode(path) not in (None, place.inode) else None


#: Decides where times are too coarse to: files that are counted (the newest is 1), then dated ones.
_Order = tuple[int, int, str]
_LAST: Final[_Order] = (2, 0, "")


@dataclass(frozen=True)
class _Sibling:
    """A rotated file beside the one that is followed."""

    path: Path
    inode: int
    written: int
    order: _Order

    @property
    def age(self) -> tuple[int, _Order]:
        return self.written, self.order


def _sibling(path: Path, newest: Path) -> _Sibling | None:
    named = _ROTATED.fullmatch(path.name.removeprefix(newest.name))
    if named is None:
        return None
    try:
        state = path.stat()
    except OSError:
        return None
    order = (0, -int(named["count"]), "") if named["count"] else (1, 0, path.name)
    return _Sibling(path, state.st_ino, state.st_mtime_ns, order)


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None
