"""A snapshot is there whole or not at all; a damaged one is told."""

from __future__ import annotations

import os
import stat

import pytest

from querycloak.errors import DataError, JournalFull, UsageError
from querycloak.service.wal import snapshots
from querycloak.service.wal.snapshots import Snapshots
from tests.unit.service.wal.logs import SECRET, flipping


def test_there_is_none_at_first(tmp_path):
    assert Snapshots(tmp_path / "absent").newest() is None


@pytest.mark.parametrize("state", [b"", b"state", bytes(range(256)) * 400])
def test_the_newest_is_given_back_and_older_ones_are_gone(tmp_path, state):
    kept = Snapshots(tmp_path / "s")
    kept.save(0, b"at the start")
    assert kept.newest() == (0, b"at the start")
    kept.save(12, b"older")
    kept.save(12, b"of the same place")
    kept.save(900, state)
    assert Snapshots(tmp_path / "s").newest() == (900, state)
    assert [path.name for path in (tmp_path / "s").iterdir()] == ["00000000000000000900.snapshot"]


def test_a_large_state_is_kept_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshots, "_PIECE_BYTES", 10)
    Snapshots(tmp_path).save(3, b"0123456789" * 2 + b"the rest")
    assert Snapshots(tmp_path).newest() == (3, b"0123456789" * 2 + b"the rest")


def test_only_the_owner_can_read_it(tmp_path):
    Snapshots(tmp_path / "s").save(1, b"state")
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "s").iterdir()} == {0o600}


def test_a_snapshot_does_not_go_back(tmp_path):
    Snapshots(tmp_path).save(5, b"state")
    with pytest.raises(UsageError, match="later than 4"):
        Snapshots(tmp_path).save(4, b"earlier")


def test_every_flipped_bit_and_every_cut_is_told(tmp_path):
    Snapshots(tmp_path).save(5, SECRET)
    path = next(tmp_path.glob("*.snapshot"))
    for _ in flipping(path):
        with pytest.raises(DataError, match=r"\.snapshot, byte \d+: ") as told:
            Snapshots(tmp_path).newest()
        assert "zwieback" not in str(told.value)
    for size in reversed(range(path.stat().st_size)):
        os.truncate(path, size)
        with pytest.raises(DataError, match=r"\.snapshot, byte \d+: "):
            Snapshots(tmp_path).newest()


def test_files_that_are_not_what_their_name_says_are_told(tmp_path):
    Snapshots(tmp_path).save(5, b"state")
    path = next(tmp_path.glob("*.snapshot"))
    other = path.rename(path.with_name("00000000000000000006.snapshot"))
    with pytest.raises(DataError, match="the file is of place 5; its name says otherwise"):
        Snapshots(tmp_path).newest()
    other.rename(path.with_name("notes.snapshot"))
    with pytest.raises(DataError, match="not the name of a snapshot"):
        Snapshots(tmp_path).save(7, b"state")


@pytest.mark.parametrize(
    ("call", "good"), [("pwrite", 0), ("pwrite", 1), ("pwrite", 2), ("fsync", 0), ("replace", 0)]
)
def test_a_full_disk_leaves_the_older_one(tmp_path, monkeypatch, call, good):
    Snapshots(tmp_path).save(5, b"state")
    real, answers = getattr(os, call), iter([True] * good)

    def full(*arguments: object) -> object:
        if next(answers, False):
            return real(*arguments)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(JournalFull, match="No space left"):
            Snapshots(tmp_path).save(6, SECRET)
    assert Snapshots(tmp_path).newest() == (5, b"state")
    assert not any(SECRET in path.read_bytes() for path in tmp_path.iterdir())


def test_what_a_crash_left_unfinished_is_removed_by_the_next(tmp_path):
    left = tmp_path / "00000000000000000009.snapshot.new"
    left.write_bytes(SECRET)
    assert Snapshots(tmp_path).newest() is None
    Snapshots(tmp_path).save(2, b"state")
    assert not left.exists()
