"""Temporary files with records of a log: private, locked while their process lives, gone after any end of it.

Their owner removes them at a normal end, a thread at once after SIGTERM (`remove_at_signals`), and the next
run after kill -9 (`remove_leftovers`): the lock of a process ends with it.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

from querycloak.files import FolderLock

#: Names of temporary folders, and of outputs that are not finished.
_NAMES: Final = re.compile(r"querycloak-spool-[0-9a-f]{16}|\..+\.[0-9a-f]{8}\.unfinished")
_LOCK: Final = "lock"
#: Attempts at removing a folder in which another process still writes, and the seconds between two.
_ATTEMPTS, _PAUSE = 200, 0.02
#: Seconds that the main thread has to stop before its files are removed.
_STOP: Final = 0.5
#: What is removed at a signal, and what is called before: it ends processes that write there.
_registered: Final = set[Path]()
before_removal: Final = list[Callable[[], None]]()


def default_folder() -> Path:
    """Return the folder for temporary files: TMPDIR, else /var/tmp, which is on a disk, else the system's."""
    for name in (os.environ.get("TMPDIR"), "/var/tmp"):  # noqa: S108 - our names are random, our modes 0700
        if name and os.access(name, os.W_OK | os.X_OK):
            return Path(name).absolute()
    return Path(tempfile.gettempdir())


class TemporaryPath:
    """A private file or folder, until `remove`, or until `rename` gives it to its final owner.

    Use `new_folder` and `new_unfinished`, which take its lock; a folder contains the file `lock`.
    """

    def __init__(self, path: Path, lock: FolderLock | None) -> None:
        self.path, self._lock = path, lock
        self._at_end = weakref.finalize(self, _remove_own, path, lock, os.getpid())

    def file(self, name: str) -> Path:
        """Create an empty file of mode 0600 in the folder."""
        os.close(os.open(self.path / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        return self.path / name

    def rename(self, target: Path) -> None:
        """Rename the file or folder; it is no temporary one any more."""
        if self.path.is_dir():
            (self.path / _LOCK).unlink(missing_ok=True)
        self.path.replace(target)
        self._at_end.detach()
        _release(self.path, self._lock)

    def remove(self) -> None:
        """Remove the file or folder; a second call does nothing."""
        self._at_end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *about: object) -> None:
        self.remove()


def new_folder(parent: Path | None = None) -> TemporaryPath:
    """Create a folder of mode 0700 for records of a log, in `parent` or the folder for temporary files."""
    place = parent or default_folder()
    remove_leftovers(place)
    return _new(lambda: place / f"querycloak-spool-{secrets.token_hex(8)}", Path.mkdir, 0o700)


def new_unfinished(target: Path, *, folder: bool = False) -> TemporaryPath:
    """Create a hidden file of mode 0600 beside the target, or a folder of mode 0700."""
    remove_leftovers(target.parent)
    make = Path.mkdir if folder else _make_file
    return _new(
        lambda: target.with_name(f".{target.name}.{secrets.token_hex(4)}.unfinished"),
        make,
        0o700 if folder else 0o600,
    )


def _make_file(path: Path, mode: int) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))


def _new(name: Callable[[], Path], make: Callable[[Path, int], None], mode: int) -> TemporaryPath:
    """Create and lock a path; take another name if another process has removed it as a leftover."""
    while True:
        path = name()
        _registered.add(path)  # before it exists: a signal can come at any time
        try:
            make(path, mode)
        except BaseException:
            _registered.discard(path)
            raise
        with suppress(BlockingIOError):
            return TemporaryPath(path, _lock(path))
        _registered.discard(path)


def _lock(path: Path) -> FolderLock | None:
    """Take the lock of a path; None if its file system has no locks. Raise BlockingIOError."""
    file = path / _LOCK if path.is_dir() else path
    try:
        lock = FolderLock(file)
    except (BlockingIOError, FileNotFoundError):
        raise BlockingIOError from None
    except OSError:
        return None
    if not file.exists():
        lock.release()
        raise BlockingIOError
    return lock


def _remove_own(path: Path, lock: FolderLock | None, process: int) -> None:
    if process == os.getpid():  # not in a copy of it
        _remove(path)
        _release(path, lock)


def _release(path: Path, lock: FolderLock | None) -> None:
    _registered.discard(path)
    if lock is not None:
        lock.release()


def _remove(path: Path) -> None:
    for _ in range(_ATTEMPTS):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        if not os.path.lexists(path):
            return
        time.sleep(_PAUSE)


@contextmanager
def removed_at_signals(path: Path) -> Iterator[None]:
    """Have a path removed if a signal ends the process meanwhile."""
    _registered.add(path)
    try:
        yield
    finally:
        _registered.discard(path)


def leftovers(parent: Path) -> list[Path]:
    """Return what processes that were killed have left in a folder."""
    return list(_unlocked(parent))


def remove_leftovers(parent: Path) -> list[Path]:
    """Remove what processes that were killed have left in a folder, and return its names."""
    removed = []
    for path in _unlocked(parent):
        _remove(path)
        removed.append(path)
    return removed


def _unlocked(parent: Path) -> Iterator[Path]:
    """Yield temporary files of this user whose process has ended; each is locked meanwhile."""
    try:
        entries = [one for one in os.scandir(parent) if _NAMES.fullmatch(one.name)]
    except OSError:
        return
    for entry in sorted(entries, key=lambda one: one.name):
        try:
            if entry.is_symlink() or entry.stat(follow_symlinks=False).st_uid != os.getuid():
                continue
        except OSError:
            continue
        path = Path(entry.path)
        with suppress(BlockingIOError):
            lock = _lock(path)
            if lock is not None:
                with lock:
                    yield path


def remove_at_signals() -> None:
    """Remove all temporary files as soon as SIGTERM or SIGHUP comes, and exit with 128 + its number.

    Only for a process of our own, from its main thread. A thread does it, since the main thread can be in
    compiled code for long; a signal that is ignored stays ignored.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    stopped = threading.Event()

    def stop(number: int, frame: Any) -> None:
        os.write(writing, bytes([number]))
        stopped.set()
        while True:  # nothing more is written, neither files nor messages
            time.sleep(3600)

    numbers = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, stop)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)  # written at once, whatever the main thread does
    threading.Thread(target=_wait, args=(reading, stopped, numbers), name="signals", daemon=True).start()


def _wait(reading: int, stopped: threading.Event, numbers: list[signal.Signals]) -> None:
    while (number := os.read(reading, 1)[0]) not in numbers:
        pass
    stopped.wait(_STOP)
    for end in before_removal:
        with suppress(Exception):
            end()
    for path in list(_registered):
        _remove(path)
    os._exit(128 + number)
