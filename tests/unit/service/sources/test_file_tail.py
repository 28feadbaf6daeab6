"""Following a file: whole lines once each, over rotation, restarts and files that are emptied in place."""

from __future__ import annotations

import os
import tempfile
import time
from concurrent.futures import Future

import polars as pl
import pytest

pytestmark = pytest.mark.service
pytest.importorskip("msgspec")

from querycloak.errors import Unavailable  # noqa: E402
from querycloak.service.ingest.parse import to_columns  # noqa: E402
from querycloak.service.sources import file_lines as lines  # noqa: E402
from querycloak.service.sources import file_tail as tails  # noqa: E402
from querycloak.service.sources.file_lines import FileTailSource  # noqa: E402
from querycloak.service.sources.file_tail import FileTail  # noqa: E402
from tests.unit.service.test_service import service, settle  # noqa: E402


def everything(tail):
    found = b""
    while (piece := tail.chunk()) is not None:
        found += piece.data
        tail.place = piece.end
    return found


def test_only_whole_lines_are_read(tmp_path):
    path = tmp_path / "log"
    tail = FileTail(path, {}, grace=0)
    assert tail.chunk() is None
    path.write_bytes(b"one\ntw")
    assert everything(tail) == b"one\n"
    with path.open("ab") as file:
        file.write(b"o\nthree\n")
    assert everything(tail) == b"two\nthree\n"


def test_a_renamed_file_is_read_to_its_end_first(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    tail = FileTail(path, {}, grace=0)
    assert everything(tail) == b"one\n"
    with path.open("ab") as file:
        path.rename(tmp_path / "log.1")
        path.write_bytes(b"three\n")
        file.write(b"two\n")
        file.flush()
        assert everything(tail) == b"two\nthree\n"


def test_a_writer_may_go_on_in_the_renamed_file_for_a_while(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    tail = FileTail(path, {}, grace=0.2)
    assert everything(tail) == b"one\n"
    with path.open("ab") as file:
        path.rename(tmp_path / "log.1")
        path.write_bytes(b"three\n")
        assert everything(tail) == b""
        file.write(b"two\n")
    assert everything(tail) == b"two\n"
    assert everything(tail) == b""
    time.sleep(0.25)
    assert everything(tail) == b"three\n"


def test_after_a_restart_it_goes_on_where_it_stood_even_if_the_file_was_renamed(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo\n")
    first = FileTail(path, {}, grace=0)
    read = first.chunk().end.as_read()
    first.close()
    with path.open("ab") as file:
        file.write(b"three\n")
    path.rename(tmp_path / "log.1")
    path.write_bytes(b"four\n")
    assert everything(FileTail(path, read, grace=0)) == b"three\nfour\n"


def test_a_file_that_was_emptied_is_read_from_its_start(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo\n")
    tail = FileTail(path, {}, grace=0)
    everything(tail)
    os.truncate(path, 0)
    path.write_bytes(b"new\n")
    assert everything(tail) == b"new\n"
    assert tail.truncated == 1


def stood(path):
    """Read a file to its end; give what is made durable of that."""
    tail = FileTail(path, {}, grace=0)
    read = tail.chunk().end.as_read()
    tail.close()
    return read


@pytest.mark.parametrize("names", [("log.1", "log.2"), ("log-20260102", "log-20260101")])
@pytest.mark.parametrize("apart", [0, 1], ids=["same time", "later"])
def test_files_that_came_and_went_while_nobody_read_are_not_left_out(tmp_path, names, apart):
    path, newer, older = tmp_path / "log", tmp_path / names[0], tmp_path / names[1]
    (tmp_path / "log.3").write_bytes(b"before\n")
    os.utime(tmp_path / "log.3", (1000, 1000))
    (tmp_path / "log.lock").write_bytes(b"none of its files\n")
    path.write_bytes(b"one\n")
    os.utime(path, (2000, 2000))
    read = stood(path)
    with path.open("ab") as file:
        file.write(b"two\n")
    path.rename(older)
    os.utime(older, (2000 + apart, 2000 + apart))
    newer.write_bytes(b"three\n")
    os.utime(newer, (2000 + 2 * apart, 2000 + 2 * apart))
    path.write_bytes(b"four\n")
    assert everything(FileTail(path, read, grace=0)) == b"two\nthree\nfour\n"


def test_the_next_file_is_found_when_the_one_it_stood_in_was_removed(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    os.utime(path, (2000, 2000))
    read = stood(path)
    path.unlink()
    (tmp_path / "log.1").write_bytes(b"two\n")
    (tmp_path / "log.2").write_bytes(b"zero\n")
    os.utime(tmp_path / "log.2", (1000, 1000))
    path.write_bytes(b"three\n")
    assert everything(FileTail(path, read, grace=0)) == b"two\nthree\n"


def test_another_file_with_the_same_inode_is_read_from_its_start(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    read = stood(path)
    path.write_bytes(b"other\nlines\n")  # in place: the inode stays
    assert os.stat(path).st_ino == read["tail inode"]
    assert everything(FileTail(path, read, grace=0)) == b"other\nlines\n"


def test_a_file_that_was_emptied_and_is_long_again_is_read_from_its_start(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    tail = FileTail(path, {}, grace=0)
    everything(tail)
    path.write_bytes(b"other\nlines\n")
    assert everything(tail) == b"other\nlines\n"


def test_a_file_that_was_copied_away_is_read_on_in_its_copy(tmp_path):
    path, start = tmp_path / "log", b"x" * 300 + b"\n"
    path.write_bytes(start)
    read = stood(path)
    (tmp_path / "log.1").write_bytes(start + b"two\n")
    path.write_bytes(b"three\n")
    assert everything(FileTail(path, read, grace=0)) == b"two\nthree\n"


class Door:
    """Takes what a feeder hands on, as the door does; each request is a list of records."""

    def __init__(self):
        self.requests, self.read, self.busy = [], {}, 0

    def submit(self, request):
        if self.busy:
            self.busy -= 1
            raise Unavailable("not now")
        answer = Future()
        try:
            found = to_columns([request.body], 0)
        except Exception as error:
            answer.set_exception(error)
            return answer
        self.requests.append(found.frame.select("user", "query", "rank").rows())
        self.read = request.facts["read"]
        answer.set_result({"accepted": found.accepted[0], "skipped": found.skipped[0]})
        return answer

    @property
    def records(self):
        return [row for request in self.requests for row in request]


def fed(path, until, door=None, grace=0.0, seconds=20):
    """Let a feeder run until something holds; its thread must be alive then."""
    door = door or Door()
    feeder = FileTailSource(path, grace=grace)
    feeder.start(door.submit, door.read)
    deadline = time.monotonic() + seconds
    while not until(door, feeder):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert feeder._thread.is_alive()
    feeder.stop()
    return door, feeder


def row(user, query="q", rank=1, at="2026-01-01T00:00:00Z"):
    return b'{"user": "%s", "query": "%s", "time": "%s", "rank": %d}\n' % (
        user.encode(),
        query.encode(),
        at.encode(),
        rank,
    )


def test_a_line_that_nothing_is_prepared_for_stops_the_source_with_a_message(tmp_path, monkeypatch):
    def panic(body, *, lines):
        raise pl.exceptions.PanicException("alice-secret")

    monkeypatch.setattr(lines, "parse", panic)
    path = tmp_path / "log"
    path.write_bytes(row("a"))
    door, feeder = fed(path, lambda door, feeder: feeder.health())
    assert feeder.health() == "the file to follow could not be read (PanicException)"
    assert not door.records


def test_a_year_that_is_none_costs_no_other_line(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(row("a", at="0000-01-01T00:00:00Z") + row("b"))
    _, feeder = fed(path, lambda door, feeder: [r[0] for r in door.records] == ["b"])
    assert feeder.skipped.total() == 1


@pytest.mark.parametrize("first", [b"name\twhat\n", b""], ids=["other columns", "no header"])
def test_a_file_that_is_no_log_is_told_without_its_cells_and_may_be_mended(tmp_path, capfd, first):
    path = tmp_path / "log"
    path.write_bytes(first + b"alice-secret\tplanted query\n")
    door, told = Door(), []

    def until(door, feeder):
        if feeder.health() and not told:
            told.append(feeder.health())
            other = tmp_path / "other"
            other.write_bytes(b"user\tquery\nbob\tq\n")
            other.rename(path)
        return door.records and not feeder.health()

    fed(path, until, door)
    assert told == ["the first line of the file to follow does not name the columns of a log"]
    assert door.records == [("bob", "q", None)]
    assert "secret" not in "".join(capfd.readouterr())


def test_trouble_that_is_nobody_s_fault_is_told_and_nothing_is_lost(tmp_path, monkeypatch):
    path, faults = tmp_path / "log", []
    path.write_bytes(row("a") + row("b"))
    right = FileTail.header

    def header(self):
        if len(faults) < 3:
            faults.append(1)
            raise ZeroDivisionError("alice-secret")
        return right(self)

    monkeypatch.setattr(FileTail, "header", header)
    seen = set()

    def until(door, feeder):
        seen.add(feeder.health())
        return len(door.records) == 2 and not feeder.health()

    _, feeder = fed(path, until)
    assert "the file to follow could not be read (ZeroDivisionError)" in seen
    assert feeder.skipped.total() == 0


def test_a_door_that_is_closed_for_a_while_loses_nothing(tmp_path):
    path, door = tmp_path / "log", Door()
    path.write_bytes(row("a") + row("b"))
    door.busy = 2
    _, feeder = fed(path, lambda door, feeder: len(door.records) == 2, door)
    assert ([record[0] for record in door.records], feeder.skipped.total()) == (["a", "b"], 0)


@pytest.mark.parametrize("form", ["excite", "tsv", "csv", "jsonl"])
def test_each_form_is_read_once_however_it_grows(tmp_path, monkeypatch, form):
    monkeypatch.setattr("querycloak.service.sources.file_lines.PIECE", 64)
    path, count = tmp_path / "log", 40
    header = {"tsv": b"user\ttime\tquery\n", "csv": b"user,time,query\n"}.get(form, b"")

    def line(n):
        at = (
            b"97091610%02d%02d" % divmod(n, 60)
            if form == "excite"
            else b"2026-01-01 10:%02d:%02d" % divmod(n, 60)
        )
        if form == "jsonl":
            return b'{"user": "u%d", "query": "q", "time": "%s"}\n' % (n, at)
        return (b"," if form == "csv" else b"\t").join([b"u%d" % n, at, b"q\n"])

    written = [0]

    def until(door, feeder):
        if written[0] < count and len(door.records) >= written[0] - 1:
            with path.open("ab") as file:
                some = range(written[0], written[0] + 10)
                file.write((header if not written[0] else b"") + b"".join(map(line, some)))
            written[0] += 10
        return len(door.records) >= count

    door, feeder = fed(path, until, grace=0.3)
    assert [record[0] for record in door.records] == [f"u{n}" for n in range(count)]
    assert (feeder.skipped.total(), feeder.health()) == (0, "")


def test_lines_are_read_in_memory(tmp_path, monkeypatch):
    """A temporary file would stay behind after a kill, with raw ids and queries."""

    def refused(*_, **__):
        raise AssertionError("a temporary file")

    for name in ("NamedTemporaryFile", "TemporaryFile", "mkstemp", "mkdtemp", "SpooledTemporaryFile"):
        monkeypatch.setattr(tempfile, name, refused)
    monkeypatch.setattr("querycloak.formats.source.open_bytes", refused)
    path = tmp_path / "log"
    path.write_bytes(b"user\tquery\na\tq\n")
    fed(path, lambda door, feeder: door.records == [("a", "q", None)])


def test_the_first_line_of_excite_is_a_record(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"u1\t970916105432\tfirst\n")
    door, _ = fed(path, lambda door, feeder: door.records)
    assert door.records == [("u1", "first", None)]


@pytest.mark.parametrize("piece", [100, 300, 1000, 1 << 20])
def test_the_rows_of_a_search_stay_in_one_request(tmp_path, monkeypatch, piece):
    monkeypatch.setattr("querycloak.service.sources.file_lines.PIECE", piece)
    path = tmp_path / "log"
    searches = [("a", 3), ("b", 1), ("a", 4), ("c", 9), ("d", 2)]
    rows = [row(user, f"q{n}", rank) for n, (user, size) in enumerate(searches) for rank in range(size)]
    path.write_bytes(b"".join(rows))
    door, _ = fed(path, lambda door, feeder: len(door.records) == len(rows), grace=0.2)
    homes = {}
    for number, request in enumerate(door.requests):
        for _, query, _ in request:
            homes.setdefault(query, set()).add(number)
    assert all(len(numbers) == 1 for numbers in homes.values())
    assert [(r[0], r[2]) for r in door.records] == [(u, k) for u, size in searches for k in range(size)]


def test_the_last_search_waits_for_more_rows_until_the_file_is_quiet(tmp_path):
    path, door, more = tmp_path / "log", Door(), []
    path.write_bytes(row("a") + row("b", "x", 1))

    def until(door, feeder):
        if door.requests and not more:
            assert [r[0] for r in door.records] == ["a"]
            more.append(1)
            with path.open("ab") as file:
                file.write(row("b", "x", 2))
        return len(door.records) == 3

    fed(path, until, door, grace=1.0)
    assert door.requests[1:] == [[("b", "x", 1), ("b", "x", 2)]]


def test_a_search_that_is_longer_than_the_longest_line_is_handed_on_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("querycloak.service.sources.file_lines.PIECE", 100)
    monkeypatch.setattr("querycloak.service.sources.file_lines.LONGEST", 400)
    monkeypatch.setattr(tails, "LONGEST", 400)
    path = tmp_path / "log"
    path.write_bytes(b"".join(row("a", rank=rank) for rank in range(50)))
    door, _ = fed(path, lambda door, feeder: len(door.records) == 50)
    assert [r[2] for r in door.records] == list(range(50))


@pytest.mark.parametrize("kind", ["jsonl", "tsv"])
def test_a_service_follows_a_file_over_restarts_and_rotation(tmp_path, kind):
    path = tmp_path / "searches.log"
    header = b"AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n" if kind == "tsv" else b""

    def line(n):
        if kind == "tsv":
            return b"u%d\tquery %d\t2026-01-01 00:00:%02d\t\t\n" % (n % 7, n, n % 60)
        return b'{"user": "u%d", "query": "query %d"}\n' % (n % 7, n)

    def write(start, end):
        with path.open("ab") as file:
            file.write((header if not path.stat().st_size else b"") + b"".join(map(line, range(start, end))))

    def wait_for(one, count):
        deadline = time.monotonic() + 30
        while one.state().status()["accepted"] < count and time.monotonic() < deadline:
            time.sleep(0.02)
        settle(one)
        assert one.state().status()["accepted"] == count

    path.touch()
    write(0, 50)
    source = {"source": f"file-tail:{path}", "sink": f"file:{tmp_path / 'out.ndjson'}"}
    one = service(tmp_path / "state", **source)
    wait_for(one, 50)
    write(50, 80)
    wait_for(one, 80)
    one.stop()
    write(80, 90)
    path.rename(tmp_path / "searches.log.1")
    path.touch()
    write(90, 120)
    two = service(tmp_path / "state", **source)
    wait_for(two, 120)
    two.stop()
    lines = (tmp_path / "out.ndjson").read_bytes().splitlines()
    assert len(lines) == two.state().counts.released > 100
    assert len(set(lines)) == len(lines)


def test_the_format_is_detected_once_for_each_file(tmp_path, monkeypatch):
    """Each detection reads up to 1 MiB from the start of the file."""
    path, calls, right = tmp_path / "log", [], FileTail.header

    def header(self):
        calls.append(1)
        return right(self)

    monkeypatch.setattr(FileTail, "header", header)
    monkeypatch.setattr("querycloak.service.sources.file_lines.PIECE", 400)
    path.write_bytes(b"".join(row(f"user-{number}") for number in range(200)))
    door, _ = fed(path, lambda door, _: len(door.records) == 200)
    assert len(door.requests) > 5
    assert len(calls) == 1
