"""What the operating system does for us: private folders and files, whole writes, names that last."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from querycloak.errors import JournalBroken, JournalFull

#: No space, over quota, or larger than a file may be: space can come back, so the caller may try again.
_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def is_full(error: OSError) -> bool:
    """Say whether a failure means lack of room, and not a bad disk."""
    return error.errno in _FULL


def failure(error: OSError, path: Path) -> JournalFull | JournalBroken:
    """Put a failure to keep something into words."""
    if is_full(error):
        hint = "make room and try again; nothing that was acknowledged is lost"
        return JournalFull(f"no room in {path}: {error.strerror}", hint=hint)
    hint = "look at the disk and at the folder's owner, then open it again"
    return JournalBroken(f"{path} cannot be written: {error.strerror}", hint=hint)


def private_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing, for the owner alone."""
    if not path.is_dir():
        private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def sync_folder(path: Path) -> None:
    """Make names in a folder last: a file's content alone does not bring its name to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes, at: int) -> None:
    """Write everything at a place; the system may take less than it is given."""
    left = memoryview(data)
    while left:
        written = os.pwrite(descriptor, left, at)
        left, at = left[written:], at + written
