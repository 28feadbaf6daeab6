"""Locks on files, so that one process at a time uses what they stand for."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Self


class FolderLock:
    """The exclusive lock of a folder, or of one thing in it, until `release` or the end of the process.

    `path` is the lock's file. Raise BlockingIOError if another holder has it, or wait for it with `wait`.
    """

    def __init__(self, path: Path, *, wait: bool = False) -> None:
        self._descriptor: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *about: object) -> None:
        self.release()
