"""The file that a shipper follows: each line once, whatever crash, rotation or full disk comes between."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.errors import DataError, DiskFull
from querycloak.service.sinks.file_sink import FileSink
from tests.unit.service.sinks.test_released_log import line, lines


class FullDisk:
    """Takes so many bytes more, half of what it is given at a time, and then no more."""

    def __init__(self, monkeypatch):
        self.room, self._write = 10**9, os.pwrite
        monkeypatch.setattr(os, "pwrite", self.write)

    def write(self, descriptor, data, position):
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = self._write(descriptor, data[: min(self.room, max(len(data) // 2, 1))], position)
        self.room -= taken
        return taken


def no_room_for_new_files(monkeypatch):
    real = os.open

    def refuse(path, flags, *more, **named):
        if flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", refuse)


def opened(path, **settings) -> FileSink:
    sink = FileSink(path, **settings)
    sink.open()
    return sink


def everything(path) -> bytes:
    """Put the files together, the oldest first."""
    numbers = sorted((int(one.name.rpartition(".")[2]) for one in path.parent.glob("out.*")), reverse=True)
    parts = [path.with_name(f"out.{number}") for number in numbers] + [path] * path.exists()
    return b"".join(part.read_bytes() for part in parts)


def first_kept(data: bytes) -> int:
    return int(data[len(b'{"offset":') : data.index(b",")])


def test_it_writes_lines_and_keeps_them_private(tmp_path):
    sink = opened(tmp_path / "out")
    sink.append(1, lines(1, 5), 5)
    sink.append(3, lines(3, 5), 5)
    sink.append(1, lines(1, 2), 2)
    sink.sync()
    assert (sink.last, sink.path.read_bytes()) == (7, lines(1, 7))
    assert stat.S_IMODE(sink.path.stat().st_mode) == 0o600
    with pytest.raises(DataError, match="ends with line 7, and line 9 is the next"):
        sink.append(9, line(9), 1)
    sink.close()


def test_full_files_move_on_and_only_some_are_kept(tmp_path):
    sink = opened(tmp_path / "out", rotate_bytes=1000, keep=3)
    for first in range(1, 1000, 5):
        sink.append(first, lines(first, 5), 5)
    sink.close()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out", "out.1", "out.2", "out.3"]
    assert all(one.stat().st_size <= 1000 for one in tmp_path.iterdir())
    data = everything(tmp_path / "out")
    first = first_kept(data)
    assert data == lines(first, 1001 - first)
    again = opened(tmp_path / "out", rotate_bytes=1000, keep=1)
    again.append(1001, lines(1001, 40), 40)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out", "out.1"]


class Crash(BaseException):
    """Stands for kill -9: nothing runs after it."""


def crash_at(monkeypatch, step: int):
    """Let so many changes of names happen (new file, rename, removal), and die at the next."""
    left = [step]

    def counted(real):
        def call(*arguments, **named):
            creates = real is not os.open or arguments[1] & os.O_CREAT
            if creates:
                if not left[0]:
                    raise Crash
                left[0] -= 1
            return real(*arguments, **named)

        return call

    for name in ("rename", "unlink", "open"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))


@pytest.mark.parametrize("step", range(7))
@pytest.mark.parametrize("before", [10, 20, 60])
def test_a_crash_at_any_step_of_a_rotation_loses_and_doubles_nothing(tmp_path, monkeypatch, step, before):
    path = tmp_path / "out"
    sink = opened(path, rotate_bytes=300, keep=3)
    for first in range(1, before, 5):
        sink.append(first, lines(first, 5), 5)
    expected_first = None
    with monkeypatch.context() as patch:
        crash_at(patch, step)
        try:
            for first in range(before + 1, before + 6, 5):
                sink.append(first, lines(first, 5), 5)
        except Crash:
            expected_first = first_kept(everything(path))
    again = opened(path, rotate_bytes=300, keep=3)
    assert again.last in {before, before + 5}
    assert (again.last == before) == (expected_first is not None)
    data = everything(path)
    assert data == lines(first_kept(data), again.last + 1 - first_kept(data))
    again.append(before + 1, lines(before + 1, 5), 5)
    data = everything(path)
    assert data == lines(first_kept(data), before + 6 - first_kept(data))
    assert len(list(tmp_path.iterdir())) <= 4


@given(
    batches=st.lists(st.tuples(st.integers(1, 30), st.integers(0, 10), st.booleans()), max_size=20),
    keep=st.integers(1, 3),
)
def test_it_holds_what_a_list_would_hold(tmp_path_factory, batches, keep):
    path = tmp_path_factory.mktemp("sink") / "out"
    sink, held = opened(path, rotate_bytes=700, keep=keep), 0
    for count, overlap, crash in batches:
        first = max(held + 1 - overlap, 1)
        sink.append(first, lines(first, count), count)
        held = max(held, first + count - 1)
        if crash:
            sink = opened(path, rotate_bytes=700, keep=keep)
        assert sink.last == held
        data = everything(path)
        assert data == lines(first_kept(data), held + 1 - first_kept(data))


@pytest.mark.parametrize("cut", range(len(line(4)) + 1))
def test_a_line_that_was_cut_short_is_completed_and_the_file_never_shrinks(tmp_path, cut):
    path = tmp_path / "out"
    path.write_bytes(lines(1, 3) + line(4)[:cut])
    sink = opened(path)
    whole = 4 if cut == len(line(4)) else 3
    assert (sink.last, path.stat().st_size) == (whole, len(lines(1, 3)) + cut)
    sink.append(4, lines(4, 2), 2)
    assert path.read_bytes() == lines(1, 5)
    sink.append(6, line(6), 1)
    assert path.read_bytes() == lines(1, 6)


def test_a_file_with_a_cut_line_is_not_rotated_before_the_line_is_whole(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(lines(1, 3) + line(4)[:9])
    sink = opened(path, rotate_bytes=10)
    sink.append(4, lines(4, 2), 2)
    sink.append(6, lines(6, 1), 1)
    assert (tmp_path / "out.1").read_bytes() == lines(1, 5)
    assert path.read_bytes() == line(6)


@pytest.mark.parametrize("tail", [b'{"offset":4,"user":"somebody else"', b"\0" * 200, line(4)[:12] + b"\0\0"])
def test_a_cut_line_that_comes_back_otherwise_is_replaced(tmp_path, tail):
    path = tmp_path / "out"
    path.write_bytes(lines(1, 3) + tail)
    opened(path).append(4, lines(4, 2), 2)
    assert path.read_bytes() == lines(1, 5)


@pytest.mark.parametrize("room", [0, 1, 30, 100, 500])
def test_a_full_disk_is_told_and_the_same_lines_can_come_again(tmp_path, monkeypatch, room):
    path = tmp_path / "out"
    sink, disk = opened(path), FullDisk(monkeypatch)
    sink.append(1, lines(1, 10), 10)
    disk.room = room
    for _ in range(2):
        with pytest.raises(DiskFull):
            sink.append(11, lines(11, 50), 50)
        size = path.stat().st_size
        assert path.read_bytes() == lines(1, 60)[:size]
    assert opened(path).last == sink.last == path.read_bytes().count(b"\n")
    disk.room = 10**9
    sink.append(11, lines(11, 50), 50)
    assert path.read_bytes() == lines(1, 60)


def test_a_rotation_that_finds_no_room_for_the_new_file_goes_on_later(tmp_path, monkeypatch):
    path = tmp_path / "out"
    sink = opened(path, rotate_bytes=100)
    sink.append(1, lines(1, 4), 4)
    with monkeypatch.context() as patch:
        no_room_for_new_files(patch)
        for _ in range(2):
            with pytest.raises(DiskFull):
                sink.append(5, lines(5, 4), 4)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out.1"]
    sink.append(5, lines(5, 4), 4)
    assert everything(path) == lines(1, 8)
    assert path.read_bytes() == lines(5, 4)


def replaced(path):
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


def truncated(path):
    os.truncate(path, 0)


def longer(path):
    with path.open("ab") as file:
        file.write(b"hello\n")


@pytest.mark.parametrize("change", [replaced, truncated, longer, os.unlink])
def test_a_file_that_someone_else_changes_is_not_written_to(tmp_path, change):
    sink = opened(tmp_path / "out")
    sink.append(1, lines(1, 5), 5)
    change(sink.path)
    with pytest.raises(DataError, match="changed by someone else"):
        sink.append(6, line(6), 1)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("out", lines(1, 3) + b"hello\n", "where line 4 should be"),
        ("out", lines(1, 3) + lines(5, 2), "where line 4 should be"),
        ("out", b"hello\n", "changed or is damaged"),
        ("out.1", lines(1, 3), "does not go on where `out.1` ends"),
        ("out.1", b"hello\n", "does not end with a released line"),
    ],
)
def test_a_file_that_someone_changed_meanwhile_is_refused(tmp_path, name, content, message):
    sink = opened(tmp_path / "out", rotate_bytes=250)
    sink.append(1, lines(1, 6), 6)
    sink.append(7, lines(7, 3), 3)
    sink.close()
    assert (tmp_path / "out.1").exists()
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        opened(tmp_path / "out")


def test_a_foreign_tail_is_refused(tmp_path):
    (tmp_path / "out").write_bytes(lines(1, 3) + b"hello")
    with pytest.raises(DataError, match="no released line"):
        opened(tmp_path / "out").append(4, line(4), 1)


def test_a_missing_piece_of_the_chain_is_refused(tmp_path):
    (tmp_path / "out.2").write_bytes(lines(1, 3))
    with pytest.raises(DataError, match=r"`out.1` is missing"):
        opened(tmp_path / "out")


def test_a_sink_can_be_added_late(tmp_path):
    sink = opened(tmp_path / "out", after=100)
    sink.append(101, lines(101, 2), 2)
    assert opened(tmp_path / "out").last == 102


@pytest.mark.skipif(not shutil.which("tail"), reason="needs tail")
def test_tail_follows_it_over_rotations(tmp_path):
    path, seen = tmp_path / "out", tmp_path / "seen"
    sink = opened(path, rotate_bytes=1500, keep=2)
    with seen.open("wb") as output:
        tail = subprocess.Popen(
            ["tail", "-F", "-s", "0.02", "-n", "+1", path], stdout=output, stderr=subprocess.DEVNULL
        )
    try:
        for first in range(1, 200, 20):
            sink.append(first, lines(first, 20), 20)
            end = time.monotonic() + 60
            while seen.stat().st_size < len(lines(1, first + 19)) and time.monotonic() < end:
                time.sleep(0.01)
    finally:
        tail.kill()
        tail.wait()
    assert (tmp_path / "out.2").exists()
    assert seen.read_bytes() == lines(1, 200)
