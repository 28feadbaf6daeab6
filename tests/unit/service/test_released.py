"""The released log: whole lines in order for many readers, exact after a crash, a full disk or damage."""

from __future__ import annotations

import errno
import os
import stat
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.errors import DataError, DiskFull, Gone
from querycloak.service.sinks import lines as numbered
from querycloak.service.sinks import released as module
from querycloak.service.sinks.released import ReleasedLog


def line(number: int) -> bytes:
    return b'{"offset":%d,"user":"p%d","query":"%s"}\n' % (number, number % 7, b"x" * (number % 31))


def lines(first: int, count: int) -> bytes:
    return b"".join(map(line, range(first, first + count)))


def opened(folder, **settings) -> ReleasedLog:
    log = ReleasedLog(folder, **settings)
    log.open()
    return log


def filled(folder, count: int, batch: int = 50, **settings) -> ReleasedLog:
    log = opened(folder, **settings)
    for first in range(1, count + 1, batch):
        log.append(first, lines(first, min(batch, count + 1 - first)), min(batch, count + 1 - first))
    return log


def files(folder):
    return sorted(folder.glob("*.ndjson"))


def test_a_new_log_is_empty_and_private(tmp_path):
    log = opened(tmp_path / "a" / "released")
    assert (log.first, log.last, log.read(0, 10), log.size()) == (1, 0, b"", 0)
    log.append(1, lines(1, 3), 3)
    log.sync()
    (path,) = files(log.folder)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.folder.stat().st_mode) == 0o700
    assert path.read_bytes() == lines(1, 3)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 40), st.integers(1, 700)),
        st.tuples(st.just("read"), st.integers(0, 3000), st.integers(1, 1000)),
        st.tuples(st.just("crash"), st.integers(0, 50), st.just(0)),
        st.tuples(st.just("forget"), st.integers(0, 20_000), st.just(0)),
    ),
    max_size=25,
)


@given(steps=steps)
def test_it_gives_what_a_list_would_give(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("log")
    log, held = opened(folder, segment_bytes=9000), 0
    for step, one, other in steps:
        if step == "append":
            first = max(held + 1 - one, 1)
            log.append(first, lines(first, other), other)
            held = max(held, first + other - 1)
        elif step == "crash":
            log, held = crashed(log, torn=one)
        elif step == "forget":
            log._keep_bytes = one
            log.forget(0.0)
        elif one + 1 < log.first:
            with pytest.raises(Gone):
                log.read(one, other)
        else:
            assert log.read(one, other) == lines(one + 1, max(min(held - one, other), 0))
        assert log.last == held


def crashed(log: ReleasedLog, torn: int):
    """Open again after the end of the newest file was lost: `torn` bytes of it."""
    if found := files(log.folder):
        newest = found[-1]
        if "-" not in newest.name:
            os.truncate(newest, max(newest.stat().st_size - torn, 0))
    again = opened(log.folder, segment_bytes=9000)
    return again, again.last


@pytest.mark.parametrize("cut", range(len(line(4)) + 1))
def test_a_torn_last_line_is_cut_wherever_it_was_torn(tmp_path, cut):
    filled(tmp_path, 3)
    (path,) = files(tmp_path)
    with path.open("ab") as file:
        file.write(line(4)[:cut])
    log = opened(tmp_path)
    whole = 4 if cut == len(line(4)) else 3
    assert (log.last, path.read_bytes()) == (whole, lines(1, whole))
    log.append(4, lines(4, 2), 2)
    assert log.read(0, 100) == lines(1, 5)


def test_a_read_spans_files_and_stops_at_its_limit(tmp_path):
    log = filled(tmp_path, 2000, segment_bytes=8000)
    assert len(files(tmp_path)) > 5
    for after, limit in ((0, 1), (0, 2000), (1999, 5), (255, 2), (256, 256), (300, 1111), (2000, 3)):
        assert log.read(after, limit) == lines(after + 1, min(limit, 2000 - after))
    again = opened(tmp_path, segment_bytes=8000)
    assert again.read(0, 5000) == lines(1, 2000)
    assert (again.size(), again.first, again.last) == (len(lines(1, 2000)), 1, 2000)


def test_a_read_stops_after_some_bytes_and_goes_on_from_there(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "READ_BYTES", 20_000)
    log = filled(tmp_path, 4000, segment_bytes=100_000)
    got, calls = b"", 0
    while piece := log.read(got.count(b"\n"), 4000):
        got, calls = got + piece, calls + 1
        assert len(piece) <= 20_000 + numbered.STRIDE * 70
    assert got == lines(1, 4000)
    assert calls > 5


def test_a_line_longer_than_a_piece_of_the_scan_is_read(tmp_path):
    long = b'{"offset":1,"query":"%s"}\n' % (b"y" * (5 << 20))
    opened(tmp_path).append(1, long, 1)
    log = opened(tmp_path)
    log.append(2, line(2), 1)
    assert log.read(0, 5) == long + line(2)


@pytest.mark.parametrize(
    ("first", "text", "count"),
    [
        (4, lines(4, 2), 3),
        (4, lines(4, 2)[:-1], 2),
        (4, lines(5, 2), 2),
        (4, line(4) + line(6), 2),
        (4, b"{}\n", 1),
    ],
)
def test_lines_without_the_right_numbers_are_refused(tmp_path, first, text, count):
    log = filled(tmp_path, 3)
    with pytest.raises(DataError, match=r"not .* whole lines with their numbers"):
        log.append(first, text, count)
    assert log.read(0, 9) == lines(1, 3)


def test_a_gap_is_refused(tmp_path):
    log = filled(tmp_path, 3)
    with pytest.raises(DataError, match="ends with line 3, and line 5 is the next"):
        log.append(5, lines(5, 1), 1)


def test_a_missing_file_in_the_middle_is_named(tmp_path):
    filled(tmp_path, 1000, segment_bytes=8000)
    gone = files(tmp_path)[2]
    gone.unlink()
    with pytest.raises(DataError, match=gone.name[:20]):
        opened(tmp_path)


def test_a_file_that_vanishes_later_is_named(tmp_path):
    filled(tmp_path, 1000, segment_bytes=8000)
    log = opened(tmp_path, segment_bytes=8000)
    gone = files(tmp_path)[1]
    gone.unlink()
    with pytest.raises(DataError, match=f"{gone.name}` is missing"):
        log.read(0, 1000)


@pytest.mark.parametrize("where", ["begin", "middle", "end", "shorter", "longer"])
def test_a_damaged_file_is_named(tmp_path, where):
    filled(tmp_path, 1000, segment_bytes=8000)
    path = files(tmp_path)[1]
    data = bytearray(path.read_bytes())
    if where in {"shorter", "longer"}:
        data = data[: data.rfind(b"\n", 0, -1) + 1] if where == "shorter" else data + line(9999)
    else:
        data[{"begin": 2, "middle": len(data) // 2, "end": len(data) - 3}[where]] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match=path.name) as caught:
        opened(tmp_path, segment_bytes=8000).read(0, 1000)
    assert "xxxx" not in str(caught.value)


def test_damage_within_the_newest_file_is_not_taken_for_a_torn_line(tmp_path):
    filled(tmp_path, 20)
    (path,) = files(tmp_path)
    path.write_bytes(lines(1, 9) + b"\0" * 40 + b"\n" + lines(11, 10))
    with pytest.raises(DataError, match="where line 10 should be"):
        opened(tmp_path)
    assert len(path.read_bytes()) > len(lines(1, 19))


def test_a_damaged_file_keeps_no_more_files_open_with_every_read(tmp_path):
    filled(tmp_path, 300, segment_bytes=8000)
    path = files(tmp_path)[0]
    path.write_bytes(path.read_bytes().replace(b"p3", b"p4"))
    log = opened(tmp_path, segment_bytes=8000)
    before = None
    for _ in range(5):
        with pytest.raises(DataError):
            log.read(0, 10)
        now = len(os.listdir("/proc/self/fd"))
        assert now == (before or now)
        before = now


def test_strange_files_are_refused(tmp_path):
    (tmp_path / "notes.ndjson").write_text("{}")
    with pytest.raises(DataError, match="not a part"):
        opened(tmp_path)


def test_two_open_files_are_refused(tmp_path):
    (tmp_path / f"{1:020d}.ndjson").write_bytes(lines(1, 2))
    (tmp_path / f"{3:020d}.ndjson").write_bytes(lines(3, 2))
    with pytest.raises(DataError, match="never completed"):
        opened(tmp_path)


def test_old_files_leave_by_size_and_by_age_but_never_the_newest(tmp_path):
    log = filled(tmp_path, 2000, segment_bytes=8000, keep_bytes=30_000, keep_seconds=100)
    log.forget(0.0)
    assert log.size() <= 30_000
    assert log.first > 1
    with pytest.raises(Gone, match=f"up to {log.first - 1:,} are no longer kept") as caught:
        log.read(0, 5)
    assert caught.value.http_status == 410
    assert f"after={log.first - 1}" in caught.value.hint
    assert log.read(log.first - 1, 9) == lines(log.first, 9)

    young = files(tmp_path)[1]
    for path in files(tmp_path)[:1]:
        os.utime(path, (1000, 1000))
    again = opened(tmp_path, segment_bytes=8000, keep_bytes=10**9, keep_seconds=100)
    again.forget(young.stat().st_mtime + 50)
    assert files(tmp_path)[0] == young
    again.forget(young.stat().st_mtime + 10**6)
    assert len(files(tmp_path)) == 1
    assert again.last == 2000
    assert opened(tmp_path).first == again.first


def test_lines_leave_by_age_when_hardly_anything_or_nothing_more_comes(tmp_path):
    """The file that is written to is closed by age too, and its first line lasts an eighth longer at most."""
    log = filled(tmp_path, 3, keep_seconds=80)
    born = files(tmp_path)[0].stat().st_mtime
    log.forget(born + 9)
    assert (len(files(tmp_path)), log.read(0, 9)) == (1, lines(1, 3))
    log.forget(born + 11)
    log.append(4, line(4), 1)
    assert [path.read_bytes() for path in files(tmp_path)] == [lines(1, 3), line(4)]
    assert log.read(0, 9) == lines(1, 4)
    log.forget(born + 1000)
    assert (log.first, log.last, log.size(), log.read(4, 9)) == (5, 4, 0, b"")
    assert [path.read_bytes() for path in files(tmp_path)] == [b""]
    log.forget(born + 2000)
    with pytest.raises(Gone):
        log.read(3, 9)
    again = opened(tmp_path, keep_seconds=80)
    again.append(5, line(5), 1)
    assert again.read(4, 9) == line(5)


def test_restarts_do_not_keep_lines_longer(tmp_path):
    """How old a file's first line is, the file before it tells; without one, it counts as old."""
    log = filled(tmp_path, 3, keep_seconds=80)
    born = files(tmp_path)[0].stat().st_mtime
    log.close()
    again = opened(tmp_path, keep_seconds=80)
    again.forget(born + 1)
    assert (len(files(tmp_path)), again.read(0, 9)) == (2, lines(1, 3))
    again.append(4, line(4), 1)
    again.close()
    third = opened(tmp_path, keep_seconds=80)
    third.forget(born + 5)
    assert len(files(tmp_path)) == 2
    third.forget(born + 20)
    assert len(files(tmp_path)) == 3
    assert third.read(0, 9) == lines(1, 4)


def test_numbers_go_on_when_all_files_but_an_empty_one_are_forgotten(tmp_path):
    log = filled(tmp_path, 100, segment_bytes=10)
    newest = files(tmp_path)[-1]
    log.close()
    for path in files(tmp_path)[:-1]:
        path.unlink()
    newest.write_bytes(b"")
    again = opened(tmp_path)
    assert (again.first, again.last) == (51, 50)
    again.append(51, lines(51, 1), 1)
    assert again.read(50, 4) == line(51)


def test_a_crash_between_two_files_goes_on_in_a_new_one(tmp_path):
    log = filled(tmp_path, 50)
    log._segments[-1].seal()
    again = opened(tmp_path)
    again.append(51, lines(51, 5), 5)
    assert again.read(0, 99) == lines(1, 55)
    assert len(files(tmp_path)) == 2


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


@pytest.mark.parametrize("room", [0, 1, 30, 100, 500])
def test_a_full_disk_takes_nothing_and_the_same_lines_can_come_again(tmp_path, monkeypatch, room):
    log, disk = filled(tmp_path, 10), FullDisk(monkeypatch)
    disk.room = room
    for _ in range(2):
        with pytest.raises(DiskFull) as caught:
            log.append(11, lines(11, 50), 50)
        assert caught.value.http_status == 503
        assert (log.last, log.read(0, 99)) == (10, lines(1, 10))
        assert opened(tmp_path).last == 10
    disk.room = 10**9
    log.append(11, lines(11, 50), 50)
    assert log.read(0, 99) == lines(1, 60)
    assert opened(tmp_path).read(0, 99) == lines(1, 60)


def test_a_disk_too_full_for_a_new_file_can_be_tried_again(tmp_path, monkeypatch):
    log = filled(tmp_path, 10, segment_bytes=10)
    with monkeypatch.context() as patch:
        no_room_for_new_files(patch)
        for _ in range(2):
            with pytest.raises(DiskFull):
                log.append(11, lines(11, 2), 2)
    log.append(11, lines(11, 2), 2)
    assert log.read(0, 99) == lines(1, 12)
    assert opened(tmp_path).last == 12


def test_a_failed_sync_is_final(tmp_path, monkeypatch):
    def fail(descriptor):
        raise OSError(errno.EIO, "Input/output error")

    log = filled(tmp_path, 10)
    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(DataError, match="forced to disk"):
        log.sync()


def test_readers_see_whole_lines_in_order_while_lines_are_added_and_forgotten(tmp_path):
    log = opened(tmp_path, segment_bytes=50_000, keep_bytes=150_000)
    total, faults, ended = 30_000, [], threading.Event()

    def follow(limit):
        after = 0
        try:
            while after < total and not faults:
                done = ended.is_set()
                try:
                    data = log.read(after, limit)
                except Gone:
                    after = log.first - 1
                    continue
                count = data.count(b"\n")
                assert data == lines(after + 1, count)
                after += count
                assert count or not done
        except BaseException as error:
            faults.append(error)

    readers = [threading.Thread(target=follow, args=(limit,)) for limit in (1000, 77, 300, 10_000)]
    for reader in readers:
        reader.start()
    for number, first in enumerate(range(1, total + 1, 100)):
        log.append(first, lines(first, 100), 100)
        if number % 20 == 0:
            log.forget(0.0)
    ended.set()
    for reader in readers:
        reader.join(60)
    assert not faults
    assert log.first > 1


def test_a_reader_who_is_overtaken_by_forgetting_gets_gone(tmp_path):
    filled(tmp_path, 1000, segment_bytes=8000)
    log = opened(tmp_path, segment_bytes=8000, keep_bytes=0)
    segments = log._segments
    log.forget(0.0)
    with pytest.raises(Gone):
        log._read(segments[0], 1, 5, 1000)


def test_a_reader_keeps_the_file_that_it_reads_while_that_is_forgotten(tmp_path):
    log = filled(tmp_path, 1000, segment_bytes=8000, keep_bytes=0)
    oldest = log._segments[0]
    log.forget(0.0)
    assert not oldest.path.exists()
    assert oldest.read(1, 5, 1000) == (lines(1, 5), 5)
