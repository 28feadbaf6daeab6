"""The released log: whole lines in order for many readers, exact after a crash, a full disk or damage."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.errors import DataError, DiskFull, Gone, Refused
from querycloak.service.sinks import released_log as module
from querycloak.service.sinks.database import Database
from querycloak.service.sinks.released_log import ReleasedLog
from querycloak.service.sinks.sink import check_sinks


def line(number: int) -> bytes:
    return b'{"offset":%d,"user":"p%d","query":"%s"}\n' % (number, number % 7, b"x" * (number % 31))


def lines(first: int, count: int) -> bytes:
    return b"".join(map(line, range(first, first + count)))


def opened(folder: Path, **settings) -> ReleasedLog:
    return ReleasedLog(Database(folder / "service.sqlite"), **settings)


def filled(folder: Path, count: int, batch: int = 50, **settings) -> ReleasedLog:
    log = opened(folder, **settings)
    for first in range(1, count + 1, batch):
        log.append(first, lines(first, min(batch, count + 1 - first)), min(batch, count + 1 - first))
    return log


def test_a_new_log_is_empty_and_private(tmp_path):
    log = opened(tmp_path / "a" / "state")
    assert (log.first, log.last, log.read(0, 10), log.size) == (1, 0, b"", 0)
    log.append(1, lines(1, 3), 3)
    log.sync()
    found = list((tmp_path / "a" / "state").iterdir())
    assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600}
    assert stat.S_IMODE((tmp_path / "a" / "state").stat().st_mode) == 0o700


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 40), st.integers(1, 700)),
        st.tuples(st.just("read"), st.integers(0, 3000), st.integers(1, 1000)),
        st.tuples(st.just("open"), st.just(0), st.just(0)),
        st.tuples(st.just("forget"), st.integers(0, 20_000), st.just(0)),
        st.tuples(st.just("expire"), st.just(0), st.just(0)),
    ),
    max_size=25,
)


@given(steps=steps)
def test_it_returns_what_a_list_would_return(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("log")
    log, held = opened(folder), 0
    for step, one, other in steps:
        if step == "append":
            first = max(held + 1 - one, 1)
            log.append(first, lines(first, other), other)
            held = max(held, first + other - 1)
        elif step == "open":
            known = log.first, log.size
            log._database.close()
            log = opened(folder)
            assert (log.first, log.size) == known
        elif step == "forget":
            log.keep(one, 10**9)
            log.forget(0.0)
        elif step == "expire":
            log.keep(10**9, 0)
            log.forget(10.0**12)
            assert log.size == 0
        elif one < held and one + 1 < log.first:
            with pytest.raises(Gone):
                log.read(one, other)
        else:
            assert log.read(one, other) == lines(one + 1, max(min(held - one, other), 0))
        assert log.last == held
    log._database.close()


def test_a_read_spans_batches_and_stops_at_its_limit(tmp_path):
    log = filled(tmp_path, 2000, batch=7)
    for after, limit in ((0, 1), (0, 2000), (1999, 5), (255, 2), (256, 256), (300, 1111), (2000, 3)):
        assert log.read(after, limit) == lines(after + 1, min(limit, 2000 - after))
    again = opened(tmp_path)
    assert again.read(0, 5000) == lines(1, 2000)
    assert (again.size, again.first, again.last) == (len(lines(1, 2000)), 1, 2000)


def test_a_read_stops_after_some_bytes_and_goes_on_from_there(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "READ_BYTES", 20_000)
    log = filled(tmp_path, 4000)
    got, calls = b"", 0
    while piece := log.read(got.count(b"\n"), 4000):
        got, calls = got + piece, calls + 1
        assert len(piece) <= 20_000 + 50 * 70
    assert got == lines(1, 4000)
    assert calls > 5


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


@pytest.mark.parametrize("first", [1, 49, 51, 99, 120])
def test_lines_that_replay_made_otherwise_are_refused(tmp_path, first):
    """A write-ahead log from one backup and released lines from another must not be continued."""
    log = filled(tmp_path, 120)
    log.append(first, lines(first, 130 - first), 130 - first)
    assert (log.last, log.read(0, 999)) == (129, lines(1, 129))
    other = lines(first, 140 - first).replace(b'"p', b'"q', 1)
    with pytest.raises(DataError, match="differ from those of the replay"):
        log.append(first, other, 140 - first)
    assert (log.last, log.read(0, 999)) == (129, lines(1, 129))


@given(
    st.integers(1, 60).flatmap(lambda first: st.tuples(st.just(first), st.integers(1, 61 - first))),
    st.integers(1, 20),
)
def test_lines_that_replay_made_again_are_accepted_however_they_are_grouped(tmp_path_factory, part, batch):
    log = filled(tmp_path_factory.mktemp("log"), 60, batch)
    first, count = part
    log.append(first, lines(first, count), count)
    assert log.read(0, 100) == lines(1, 60)


def test_a_sink_with_more_lines_than_the_stream_has_is_refused(tmp_path):
    log = filled(tmp_path, 20)
    check_sinks(20, [log])
    with pytest.raises(Refused, match="ends with line 20, the write-ahead log with 19"):
        check_sinks(19, [log])


def test_damage_is_found_by_the_checksum(tmp_path):
    filled(tmp_path, 1000)._database.close()
    path = tmp_path / "service.sqlite"
    data = bytearray(path.read_bytes())
    data[data.index(b'"offset":520,') + 20] ^= 1
    path.write_bytes(data)
    log = opened(tmp_path)
    assert log.read(0, 500) == lines(1, 500)
    with pytest.raises(DataError, match="damaged: the lines from 501 on") as caught:
        log.read(0, 1000)
    assert "xxxx" not in str(caught.value)


def test_old_lines_leave_by_size_and_by_age(tmp_path):
    log = filled(tmp_path, 2000, keep_bytes=30_000, keep_seconds=10**9)
    log.forget(0.0)
    assert 25_000 < log.size <= 30_000
    with pytest.raises(Gone, match=f"up to {log.first - 1:,} are no longer kept") as caught:
        log.read(0, 5)
    assert caught.value.http_status == 410
    assert f"after={log.first - 1}" in caught.value.hint
    assert log.read(log.first - 1, 9) == lines(log.first, 9)
    log._database._writer.execute("UPDATE released SET at = at - 1000 WHERE last < 1900")
    log.keep(10**9, 500)
    log.forget(now(log))
    assert log.first == 1851
    log.keep(0, 500)
    log.forget(now(log))
    assert (log.first, log.read(1950, 99)) == (1951, lines(1951, 50))


def now(log: ReleasedLog) -> float:
    ((found,),) = log._database.read("SELECT max(at) FROM released")
    return found + 1


def test_the_newest_lines_leave_by_age_too_and_numbers_go_on(tmp_path):
    log = filled(tmp_path, 3, keep_seconds=80)
    log.forget(now(log) + 78)
    assert log.read(0, 9) == lines(1, 3)
    log.forget(now(log) + 80)
    assert (log.first, log.last, log.size, log.read(3, 9)) == (4, 3, 0, b"")
    with pytest.raises(Gone, match="up to 3 are"):
        log.read(0, 9)
    log.forget(10.0**12)
    log._database.close()
    again = opened(tmp_path, keep_seconds=80)
    assert (again.first, again.last) == (4, 3)
    again.append(3, lines(3, 3), 3)
    assert again.read(3, 9) == lines(4, 2)


def test_forgotten_lines_make_the_file_smaller(tmp_path):
    log = filled(tmp_path, 40_000, batch=1000, keep_bytes=0)
    log._database._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    before = (tmp_path / "service.sqlite").stat().st_size
    log.forget(0.0)
    log._database._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert (tmp_path / "service.sqlite").stat().st_size < before / 4


def test_a_full_disk_takes_nothing_and_the_same_lines_can_come_again(tmp_path):
    log = filled(tmp_path, 10)
    ((pages,),) = log._database._writer.execute("PRAGMA page_count")
    log._database._writer.execute(f"PRAGMA max_page_count={pages}")
    for _ in range(2):
        with pytest.raises(DiskFull) as caught:
            log.append(11, lines(11, 5000), 5000)
        assert caught.value.http_status == 503
        assert (log.last, log.read(0, 99)) == (10, lines(1, 10))
    log._database._writer.execute("PRAGMA max_page_count=1000000")
    log.append(11, lines(11, 5000), 5000)
    assert log.read(0, 9999) == lines(1, 5010)


def test_sync_reaches_the_log_of_sqlite_and_a_failure_is_final(tmp_path, monkeypatch):
    log, synced = filled(tmp_path, 10), []
    right = os.fsync

    def note(descriptor):
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        right(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    log.sync()
    assert synced == [str(tmp_path / "service.sqlite-wal")]

    def fail(descriptor):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(DataError, match="forced to disk"):
        log.sync()


def test_all_that_was_synced_is_in_a_copy_of_the_files(tmp_path):
    """What a power cut leaves at least: the file and SQLite's log as they were synced."""
    log = filled(tmp_path / "state", 500)
    log.sync()
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("service.sqlite", "service.sqlite-wal"):
        (copy / name).write_bytes((tmp_path / "state" / name).read_bytes())
    assert opened(copy).read(0, 999) == lines(1, 500)


def follow(log: ReleasedLog, total: int, limit: int, ended: threading.Event, faults: list) -> None:
    after = 0
    try:
        while after < total and not faults:
            done = ended.is_set()
            try:
                data = log.read(after, limit)
            except Gone as gone:
                after = int(gone.hint.partition("after=")[2].strip("`"))
                continue
            count = data.count(b"\n")
            assert data == lines(after + 1, count)
            after += count
            assert count or not done
    except BaseException as error:
        faults.append(error)


def test_a_read_has_no_gap_if_lines_are_removed_meanwhile(tmp_path, monkeypatch):
    log = opened(tmp_path)
    for first in range(1, 1001, 10):
        log.append(first, lines(first, 10), 10)
    real, queries = log._database.read, []

    def read(query, values=()):
        rows = real(query, values)
        queries.append(query)
        if len(queries) == 1:  # the first batch is read; now it and the next ones go
            log.keep(len(lines(501, 500)), 1e9)
            log.forget(0.0)
        return rows

    monkeypatch.setattr(log._database, "read", read)
    found = log.read(0, 10_000)
    assert log.first > 100, "or else this test could not fail"
    assert found == lines(1, 10)


def test_readers_see_whole_lines_in_order_while_lines_are_added_and_forgotten(tmp_path):
    log = opened(tmp_path, keep_bytes=150_000)
    total, faults, ended = 20_000, [], threading.Event()
    readers = [
        threading.Thread(target=follow, args=(log, total, limit, ended, faults)) for limit in (1000, 77, 9999)
    ]
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


CHILD = """
import sys, threading
from pathlib import Path
from tests.unit.service.sinks.test_released_log import follow, opened
faults, ended = [], threading.Event()
log = opened(Path(sys.argv[1]))
print("open", flush=True)
follow(log, int(sys.argv[2]), 500, ended, faults)
print(faults or "all", flush=True)
"""


def test_a_reader_in_another_process_follows(tmp_path):
    log, total = filled(tmp_path, 50, keep_bytes=100_000), 8000
    command = [sys.executable, "-c", CHILD, str(tmp_path), str(total)]
    root = Path(__file__).parents[4]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root)
    assert child.stdout is not None
    assert child.stdout.readline() == "open\n"
    for number, first in enumerate(range(51, total + 1, 50)):
        log.append(first, lines(first, 50), 50)
        if number % 20 == 0:
            log.forget(0.0)
    assert child.stdout.readline() == "all\n"
    assert child.wait(30) == 0
    child.stdout.close()


def test_a_copy_can_be_made_while_lines_are_added(tmp_path):
    log = filled(tmp_path, 1000)
    with sqlite3.connect(tmp_path / "service.sqlite") as source, sqlite3.connect(tmp_path / "copy") as copy:
        source.backup(copy)
    log.append(1001, lines(1001, 10), 10)
    assert ReleasedLog(Database(tmp_path / "copy")).read(0, 9999) == lines(1, 1000)
