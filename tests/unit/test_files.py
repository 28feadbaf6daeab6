"""The lock of a folder: one holder at a time, until it lets go."""

from __future__ import annotations

import stat
import threading

import pytest

from querycloak.files import FolderLock


def test_one_holder_at_a_time(tmp_path):
    path = tmp_path / "lock"
    first = FolderLock(path)
    with pytest.raises(BlockingIOError):
        FolderLock(path)
    first.release()
    first.release()
    with FolderLock(path), pytest.raises(BlockingIOError):
        FolderLock(path)
    FolderLock(path).release()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_waiting_holder_gets_it_next(tmp_path):
    path, got = tmp_path / "lock", threading.Event()

    def wait():
        with FolderLock(path, wait=True):
            got.set()

    with FolderLock(path):
        other = threading.Thread(target=wait)
        other.start()
        assert not got.wait(0.1)
    other.join(30)
    assert got.is_set()
