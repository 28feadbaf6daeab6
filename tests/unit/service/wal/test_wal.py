"""The journal gives back what was appended, in order, under its numbers, over restarts and forgetting."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from querycloak.errors import DataError, Refused, UsageError
from querycloak.service.wal import frames as layout
from querycloak.service.wal.wal import WriteAheadLog
from tests.unit.service.wal.logs import SECRET, contents, files, numbered, opened, written

GROUPS = [[b"one"], [b"two", b"", b"four"], [b"five" * 100]]


def test_a_new_journal_is_empty(tmp_path):
    with opened(tmp_path / "j") as journal:
        assert (journal.last_number, journal.size(), list(journal.read_after(0))) == (0, 0, [])
        assert journal.append([]) == 0


def test_appended_frames_are_numbered_from_one_and_read_back(tmp_path):
    with opened(tmp_path / "j") as journal:
        assert [journal.append(group) for group in GROUPS] == [1, 4, 5]
        assert list(journal.read_after(0)) == numbered(GROUPS)
        assert list(journal.read_after(3)) == numbered(GROUPS)[3:]
        assert journal.size() == sum(path.stat().st_size for path in files(tmp_path / "j"))
    assert contents(tmp_path / "j") == numbered(GROUPS)


def test_numbers_go_on_after_a_restart(tmp_path):
    written(tmp_path / "j", GROUPS)
    with opened(tmp_path / "j") as journal:
        assert journal.last_number == 5
        assert journal.append([b"six"]) == 6
    assert contents(tmp_path / "j", after=4) == [(5, b"five" * 100), (6, b"six")]


def test_one_append_is_one_write_and_one_sync(tmp_path, monkeypatch):
    with opened(tmp_path / "j") as journal:
        journal.append([b"the file is there now"])
        calls, write, sync = [], os.pwrite, os.fdatasync
        monkeypatch.setattr(os, "pwrite", lambda *a: calls.append(("write", len(a[1]))) or write(*a))
        monkeypatch.setattr(os, "fdatasync", lambda *a: calls.append(("sync", 0)) or sync(*a))
        journal.append([bytes(10_000)] * 1000)
        mark = ("write", layout.FRAME_BYTES)
        assert calls == [("write", 1000 * (10_000 + layout.FRAME_BYTES)), ("sync", 0), mark]


def test_a_full_file_is_followed_by_another(tmp_path):
    paths = written(tmp_path / "j", [[bytes(60)]] * 10, segment_bytes=200)
    assert len(paths) > 3
    assert [path.name for path in paths] == sorted(path.name for path in paths)
    assert contents(tmp_path / "j") == numbered([[bytes(60)]] * 10)


def test_forgetting_removes_whole_files_and_keeps_the_rest(tmp_path):
    with opened(tmp_path / "j", segment_bytes=200) as journal:
        for _ in range(10):
            journal.append([bytes(60)])
        before = journal.size()
        journal.truncate(5)
        assert journal.size() < before
        assert [number for number, _ in journal.read_after(5)] == [6, 7, 8, 9, 10]
        with pytest.raises(DataError, match="frames after 0 are needed"):
            journal.read_after(0)


def test_forgetting_all_leaves_no_old_byte_and_keeps_the_numbers(tmp_path):
    with opened(tmp_path / "j") as journal:
        journal.append([SECRET])
        journal.truncate(1)
        assert not any(SECRET in path.read_bytes() for path in (tmp_path / "j").iterdir())
        journal.truncate(1)
    with opened(tmp_path / "j") as journal:
        assert (journal.last_number, list(journal.read_after(1))) == (1, [])
        assert journal.append([b"next"]) == 2
    assert contents(tmp_path / "j", after=1) == [(2, b"next")]


def test_after_a_cut_all_that_came_before_can_be_forgotten_while_more_comes(tmp_path):
    with opened(tmp_path / "j") as journal:
        journal.append([b"old", SECRET])
        journal.start_new_segment()
        journal.start_new_segment()
        journal.append([b"new"])
        journal.truncate(2)
        assert not any(SECRET in path.read_bytes() for path in (tmp_path / "j").iterdir())
        assert journal.append([b"newer"]) == 4
        assert len(files(tmp_path / "j")) == 1  # one cut begins one file
    assert contents(tmp_path / "j", after=2) == [(3, b"new"), (4, b"newer")]


def test_a_cut_of_an_empty_journal_makes_no_file(tmp_path):
    with opened(tmp_path / "j") as journal:
        journal.start_new_segment()
        assert files(tmp_path / "j") == []
        journal.append([b"one"])
        journal.truncate(1)
        journal.start_new_segment()
        journal.append([b"two"])
        assert len(files(tmp_path / "j")) == 1


def test_what_is_not_there_cannot_be_forgotten_or_read(tmp_path):
    with opened(tmp_path / "j") as journal:
        journal.append([b"one"])
        with pytest.raises(UsageError, match="frame 2 cannot be removed: the last one is 1"):
            journal.truncate(2)
        with pytest.raises(DataError, match="frames after 2 are needed, it has 1 to 1"):
            journal.read_after(2)


def test_only_the_owner_can_read_it(tmp_path):
    folder = tmp_path / "state" / "journal"
    old = os.umask(0)
    try:
        written(folder, GROUPS, segment_bytes=100)
    finally:
        os.umask(old)
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (folder, folder.parent)} == {0o700}


def test_a_second_writer_is_refused(tmp_path):
    with opened(tmp_path / "j") as journal:
        second = WriteAheadLog(tmp_path / "j")
        with pytest.raises(Refused, match="another process has the write-ahead log"):
            second.open()
        with pytest.raises(UsageError, match="open already"):
            journal.open()
        journal.append([b"still mine"])
    assert contents(tmp_path / "j") == [(1, b"still mine")]


def test_a_journal_that_is_not_open_takes_nothing(tmp_path):
    with pytest.raises(UsageError, match="not open"):
        WriteAheadLog(tmp_path / "j").append([b"x"])


def test_a_frame_that_is_too_large_is_refused_and_nothing_is_written(tmp_path):
    most = layout.LARGEST_PAYLOAD
    with opened(tmp_path / "j") as journal:
        with pytest.raises(UsageError, match=f"payload 1 has {most + 1} bytes; a frame holds 512 MiB"):
            journal.append([b"fits", bytes(most + 1)])
        assert journal.append([b"goes on"]) == 1


def test_a_frame_that_is_larger_than_a_file_fits_and_the_next_file_goes_on(tmp_path):
    groups = [[b"before"], [bytes(100 << 20)], [b"after"]]
    assert len(written(tmp_path / "j", groups)) == 2
    assert contents(tmp_path / "j") == numbered(groups)


class AgainstAList(RuleBasedStateMachine):
    """Whatever is done to it, the journal holds what a list would."""

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.journal = WriteAheadLog(Path(self.place.name) / "j", segment_bytes=300)
        self.journal.open()
        self.kept: list[bytes] = []
        self.forgotten = 0

    @rule(payloads=st.lists(st.binary(max_size=120), max_size=5))
    def append(self, payloads):
        self.kept += payloads
        assert self.journal.append(payloads) == len(self.kept)

    @precondition(lambda self: self.kept)
    @rule(data=st.data())
    def forget(self, data):
        self.forgotten = max(self.forgotten, data.draw(st.integers(0, len(self.kept))))
        self.journal.truncate(self.forgotten)

    @rule()
    def cut(self):
        self.journal.start_new_segment()

    @rule()
    def reopen(self):
        self.journal.close()
        self.journal.open()

    @invariant()
    def holds_the_same(self):
        assert self.journal.last_number == len(self.kept)
        found = list(self.journal.read_after(self.forgotten))
        assert found == list(enumerate(self.kept, start=1))[self.forgotten :]

    def teardown(self):
        self.journal.close()
        self.place.cleanup()


TestAgainstAList = AgainstAList.TestCase
TestAgainstAList.settings = settings(max_examples=20, stateful_step_count=25)
