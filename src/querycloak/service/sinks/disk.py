"""Files that only their owner reads, written so that a full disk is told from a broken one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from querycloak.errors import DataError, DiskFull
from querycloak.service.wal.disk import is_full, sync_folder


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn the system's refusals into ours: no room, which may pass, or anything else, which will not."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise DiskFull(
                f"no room to write `{path}`: {error.strerror}", hint="make room; it goes on by itself"
            ) from None
        raise DataError(f"`{path}` cannot be written: {error.strerror}") from None


def opened(path: Path, *, new: bool = False) -> int:
    """Open a file to read and write it, mode 0600; a new one must not be there yet."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if new else 0), 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        if new:
            sync_folder(path.parent)
    except OSError:
        os.close(descriptor)
        if new:
            path.unlink()
        raise
    return descriptor


def force(descriptor: int, path: Path) -> None:
    """Force a file to disk. A failure is final: a second try may succeed without writing what was lost."""
    try:
        os.fdatasync(descriptor)
    except OSError as error:
        raise DataError(
            f"`{path}` could not be forced to disk: {error.strerror}",
            hint="start again when the disk works: what is missing will be written again",
        ) from None
