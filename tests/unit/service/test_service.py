"""The service in one process: what is acknowledged, repeated, refused, and found again after a restart."""

from __future__ import annotations

import json
import shutil
import threading
import time

import pytest

from querycloak.errors import (
    Busy,
    DataError,
    DiskFull,
    Gone,
    JournalFull,
    NotFound,
    QueryCloakError,
    Refused,
    Unavailable,
    UsageError,
)
from querycloak.service import service as service_module
from querycloak.service.ingest.group_commit import PendingRequest
from querycloak.service.ingest.parse import parse, to_columns
from querycloak.service.service import Service
from querycloak.service.settings import setup
from tests.support import logs

CHOSEN = {"k": "3", "shards": "1"}


def made_up(users=15, seed=2):
    frame = logs.made_up(users=users, seed=seed).frame.sort("time", maintain_order=True)
    rows = frame.select("user", "query", "time", "rank", "url").to_dicts()
    return [json.dumps(row, default=lambda t: t.isoformat()).encode() + b"\n" for row in rows]


LINES = made_up()


def service(folder, chosen=CHOSEN, methods=("cohort",), **options):
    flags = {"state": str(folder), "classify": "no", "snapshot_seconds": "1000"} | options
    one = Service(setup(flags, list(methods), chosen, seed=1, environment={}))
    one.open()
    one.start()
    return one


def settle(one):
    while one.state().queued and one.worker.failure is None:
        time.sleep(0.005)
    assert one.worker.failure is None
    one.worker.run_on_worker(lambda: None).result()


def send(one, lines, key=""):
    body = b"".join(lines)
    known = one.keys.digest(key, body) if key else b""
    return one.submit(PendingRequest("records", parse(body, lines=True), key=known)).result()


def test_what_was_acknowledged_is_there_after_a_crash(tmp_path):
    one = service(tmp_path / "a")
    for start in range(0, 200, 20):
        send(one, LINES[start : start + 20])
    shutil.copytree(tmp_path / "a", tmp_path / "b")  # what a crash at this moment would leave
    settle(one)
    two = service(tmp_path / "b")
    assert two.state().status() == one.state().status()
    assert two.released.read(0, 10_000) == one.released.read(0, 10_000)
    for each in (one, two):
        send(each, LINES[200:400])
        settle(each)
    assert two.released.read(0, 10_000) == one.released.read(0, 10_000) != b""
    one.stop()
    two.stop()


def test_after_an_orderly_stop_nothing_is_to_be_done_again(tmp_path):
    one = service(tmp_path)
    send(one, LINES[:100])
    one.stop()
    two = service(tmp_path)
    assert two.state().status()["accepted"] == 100
    assert list(two.wal.read_after(two.wal.last_number)) == []
    assert two.wal.size() < 1000
    two.stop()


def test_a_retry_with_the_same_key_changes_nothing_even_after_a_restart(tmp_path):
    one = service(tmp_path)
    first = send(one, LINES[:10], key="a")
    assert first["accepted"] == 10
    assert send(one, LINES[:10], key="a") == first | {"repeated": True}
    with pytest.raises(Refused, match="another body"):
        send(one, LINES[:11], key="a")
    one.stop()
    two = service(tmp_path)
    assert send(two, LINES[:10], key="a")["repeated"]
    assert two.state().status()["accepted"] == 10
    two.stop()


def test_two_equal_requests_in_one_group_are_one(tmp_path):
    one = service(tmp_path)
    body = b"".join(LINES[:10])
    waiting = [
        one.submit(PendingRequest("records", parse(body, lines=True), key=one.keys.digest("k", body)))
        for _ in range(5)
    ]
    answers = [future.result() for future in waiting]
    assert sum(not answer.get("repeated") for answer in answers) == 1
    assert one.state().status()["accepted"] == 10
    one.stop()


def test_bad_lines_are_counted_by_reason_and_row(tmp_path):
    one = service(tmp_path)
    lines = [*LINES[:2], b"{nonsense\n", b'{"user": "u"}\n', b'{"user": "u", "query": "q", "time": "noon"}\n']
    answer = send(one, lines)
    assert answer == {"accepted": 2, "skipped": {"not JSON": [2], "no query": [3], "unreadable time": [4]}}
    settle(one)
    assert one.state().status()["accepted"] == 2
    one.stop()


def test_rows_of_one_search_get_one_label(tmp_path):
    rows = [{"user": "u", "query": "q", "time": 1e9, "rank": n} for n in range(3)]
    rows += [{"user": "v", "query": "q", "time": 1e9}]
    found = to_columns([parse(json.dumps(rows).encode(), lines=False)], 0).frame
    assert found["rows_since_head"].to_list() == [0, 1, 2, 0]
    apart = to_columns([parse(json.dumps(row).encode(), lines=False) for row in rows], 0).frame
    assert apart["rows_since_head"].to_list() == [0, 0, 0, 0]


def test_a_full_disk_refuses_and_recovers(tmp_path, monkeypatch):
    one = service(tmp_path)
    send(one, LINES[:10])
    real = one.wal.append
    monkeypatch.setattr(one.wal, "append", _full)
    with pytest.raises(JournalFull):
        send(one, LINES[10:20])
    monkeypatch.setattr(one.wal, "append", real)
    send(one, LINES[20:30])
    settle(one)
    assert one.state().status()["accepted"] == 20
    one.stop()


def _full(payloads):
    raise JournalFull("no room")


def test_more_than_the_backlog_is_refused_not_lost(tmp_path):
    one = service(tmp_path, backlog="50")
    with pytest.raises(Busy):
        send(one, LINES[:51])
    assert send(one, LINES[:50])["accepted"] == 50
    one.stop()


def test_other_settings_on_the_same_state_are_refused(tmp_path):
    one = service(tmp_path)
    send(one, LINES[:10])
    one.stop()
    with pytest.raises(Refused, match="other methods or settings"):
        service(tmp_path, chosen={"k": "4", "shards": "1"})


def test_a_clock_that_is_set_back_stands_still(tmp_path):
    one = service(tmp_path)
    times = iter([5_000, 1_000, 6_000])
    one._committer._at, one._committer._clock = 0, lambda: next(times)
    seen = []
    enqueue = one._committer._enqueue
    one._committer._enqueue = lambda number, entry, result: (
        seen.append(entry.at),
        enqueue(number, entry, result),
    )
    for n in range(3):
        send(one, LINES[n : n + 1])
    assert seen == [5_000, 5_000, 6_000]
    one.stop()


def test_no_raw_user_id_reaches_the_disk(tmp_path):
    one = service(tmp_path)
    line = json.dumps({"user": "planted-user-7", "query": "planted query"}).encode() + b"\n"
    send(one, [line, *LINES[:50]])
    settle(one)
    one.stop()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not [path.name for path in files if b"planted-user-7" in path.read_bytes()]
    assert not [path.name for path in files if path.stat().st_mode & 0o077]


def test_an_erased_person_is_gone_from_all_files(tmp_path):
    one = service(tmp_path, chosen={"k": "40", "shards": "1"})
    send(one, [json.dumps({"user": "u-1", "query": "zq planted zq"}).encode() + b"\n", *LINES[:50]])
    settle(one)
    held = one.export("u-1")
    assert ([row["query"] for row in held["held"]], held["released"]) == (["zq planted zq"], 0)
    assert one.erase("u-1") == {"held": 1, "released": 0, "dropped": 1}
    assert one.export("u-1") == {"held": [], "released": 0}
    one._committer.call(lambda: None).result()
    left = [path.name for path in tmp_path.rglob("*") if path.is_file() and b"planted" in path.read_bytes()]
    assert left == []
    status = one.state().status()
    assert status["accepted"] == status["released"] + status["held"] + status["dropped"] == 51
    one.stop()


def test_a_new_epoch_gives_everybody_another_pseudonym(tmp_path):
    one = service(tmp_path)
    send(one, LINES)
    settle(one)
    first = {json.loads(line)["user"] for line in one.released.read(0, 10_000).splitlines()}
    done = one.rotate()
    last = one.released.last
    assert done["epoch"] == 1
    send(one, LINES)
    settle(one)
    second = {json.loads(line)["user"] for line in one.released.read(last, 10_000).splitlines()}
    assert first
    assert second
    assert not first & second
    one.stop()
    two = service(tmp_path)
    send(two, LINES[:100])
    settle(two)
    assert two.state().status()["epoch"] == 1
    two.stop()


def test_records_that_wait_too_long_are_dropped(tmp_path):
    one = service(tmp_path, chosen={"k": "40"}, hold_seconds="1")
    send(one, LINES[:10])
    settle(one)
    deadline = time.monotonic() + 20
    while one.state().status()["held"] and time.monotonic() < deadline:
        time.sleep(0.1)
    assert one.state().status() | {"queued": 0} == {
        "accepted": 10, "released": 0, "held": 0, "dropped": 10, "queued": 0, "epoch": 0,
    }  # fmt: skip
    one.stop()


def test_with_a_key_nothing_that_waits_can_be_read_on_disk(tmp_path):
    key = tmp_path / "key"
    key.write_text("k" * 64)
    key.chmod(0o600)
    options = {"chosen": {"k": "40", "shards": "1"}, "state_key": str(key)}
    one = service(tmp_path / "state", **options)
    send(one, [json.dumps({"user": "u", "query": "zq planted zq"}).encode() + b"\n", *LINES[:50]])
    settle(one)
    one.checkpoint()
    send(one, [json.dumps({"user": "u", "query": "zq planted too"}).encode() + b"\n"])
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert [path.name for path in files if b"planted" in path.read_bytes()] == []
    one.stop()
    two = service(tmp_path / "state", **options)
    assert [row["query"] for row in two.export("u")["held"]] == ["zq planted zq", "zq planted too"]
    two.stop()


def test_a_reader_who_is_too_slow_is_told_so(tmp_path):
    one = service(tmp_path, keep_bytes=str(1 << 20))
    one.released._segment_bytes = 1 << 16
    for start in range(0, len(LINES) * 30, 500):
        send(one, [LINES[n % len(LINES)] for n in range(start, start + 500)])
    settle(one)
    one.checkpoint()
    assert one.released.first > 1
    with pytest.raises(Gone):
        one.released.read(0, 10)
    assert one.released.read(one.released.first - 1, 1)
    one.stop()


def test_a_sender_who_hangs_up_harms_no_other(tmp_path):
    one = service(tmp_path)
    hold = one._committer.call(lambda: time.sleep(0.3))
    gone, stays = (one.submit(PendingRequest("records", parse(line, lines=True))) for line in LINES[:2])
    assert gone.cancel()
    assert stays.result()["accepted"] == 1
    hold.result()
    settle(one)
    assert one.state().status()["accepted"] == 1
    one.stop()


def test_what_a_method_refuses_changes_nothing_and_kills_nobody(tmp_path, monkeypatch):
    one = service(tmp_path)
    send(one, LINES[:20])

    def refuse(users, rows):
        raise Refused("this method cannot erase now")

    monkeypatch.setattr(one.worker.stream.pipeline.stages[0], "erase", refuse)
    with pytest.raises(Refused, match="cannot erase"):
        one.erase("u")
    send(one, LINES[20:30])
    settle(one)
    assert one.state().status()["accepted"] == 30
    one.stop()
    two = service(tmp_path)  # the refused entry is in no journal any more, or does nothing again
    assert two.state().status()["accepted"] == 30
    two.stop()


def test_a_journal_without_its_snapshot_is_refused(tmp_path):
    one = service(tmp_path)
    send(one, LINES[:10])
    one.stop()
    shutil.rmtree(tmp_path / "snapshots")
    with pytest.raises(DataError, match="snapshot is missing"):
        service(tmp_path)


def test_one_person_s_hundred_thousand_equal_searches_do_not_alarm_the_audit(tmp_path):
    """Squares of such counts do not fit into 32 bits."""
    one = service(tmp_path)
    line = b'{"user": "a", "query": "b", "time": "2026-01-01T00:00:%02d.%06dZ"}\n'
    send(one, [line % (n // 10_000, n) for n in range(300_000)])
    send(one, [b'{"user": "u%d", "query": "b"}\n' % n for n in range(2)])
    settle(one)
    one.stop()
    found = json.loads((tmp_path / "certificates" / "000001.json").read_text())
    checks = {check["check"]: check["verdict"] for check in found["methods"][0]["checks"]}
    assert checks["all labels of a cohort are drawn with equal probability"] == "kept"
    assert checks["labels do not depend on the text"] == "kept"


def test_another_secret_on_the_same_state_is_refused(tmp_path):
    one = service(tmp_path)
    send(one, LINES[:10])
    one.stop()
    flags = {"state": str(tmp_path), "classify": "no"}
    two = Service(setup(flags, ["cohort"], CHOSEN, seed=2, environment={}))
    with pytest.raises(Refused, match="another secret"):
        two.open()


def test_what_reads_entries_may_not_change_while_some_wait_to_be_applied_again(tmp_path):
    one = service(tmp_path / "a", click_seconds="1")
    send(one, LINES[:10])
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    one.stop()
    with pytest.raises(Refused, match="set up otherwise"):
        service(tmp_path / "b", click_seconds="8")
    service(tmp_path / "a", click_seconds="8").stop()  # stopped in order, nothing waits


def test_a_stop_while_a_snapshot_is_taken_does_not_hang(tmp_path):
    one = service(tmp_path)
    send(one, LINES[:10])
    begun, go_on = threading.Event(), threading.Event()

    def slow():
        begun.set()
        go_on.wait(30)
        return one._checkpoint()

    one.worker.run_on_worker(slow)
    begun.wait(30)
    ending = threading.Thread(target=one.stop)
    ending.start()
    time.sleep(0.3)
    go_on.set()
    ending.join(30)
    assert not ending.is_alive()


def test_an_erasure_waits_for_no_outlet_that_is_down(tmp_path, monkeypatch):
    one = service(tmp_path)
    send(one, LINES[:50])
    settle(one)
    monkeypatch.setattr(one.released, "append", _down)
    send(one, LINES[50:100])
    with pytest.raises(Unavailable, match="will be carried out"):
        one.erase("somebody")
    ending = threading.Thread(target=one.stop)
    ending.start()
    ending.join(30)
    assert not ending.is_alive()
    two = service(tmp_path)
    settle(two)
    assert two.state().status()["accepted"] == 100
    two.stop()


def _down(first, lines, count):
    raise DiskFull("no room")


def test_the_profile_of_an_erased_label_goes_even_if_a_crash_comes_between(tmp_path, monkeypatch):
    one = service(tmp_path / "a")
    send(one, LINES)
    settle(one)
    user = json.loads(LINES[0])["user"]
    name = one._committer.call(lambda: one._committer.pseudonym(user)).result()
    one.worker.run_on_worker(one._profiles.flush).result()
    assert one.profile(name)
    monkeypatch.setattr(one._profiles, "delete", _crash)
    with pytest.raises(QueryCloakError, match="RuntimeError"):
        one.erase(user)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    two = service(tmp_path / "b")
    settle(two)
    with pytest.raises(NotFound):
        two.profile(name)
    two.stop()
    one.stop()


def _crash(label):
    raise RuntimeError


def test_an_erasure_under_load_leaves_nothing_in_the_journal(tmp_path):
    one = service(tmp_path, chosen={"k": "40", "shards": "1"})
    send(one, [b'{"user": "u-1", "query": "zq planted zq"}\n'])
    ended = threading.Event()

    def go_on():
        number = 0
        while not ended.is_set():
            number += 1
            send(one, [LINES[number % len(LINES)]])

    sender = threading.Thread(target=go_on)
    sender.start()
    one.erase("u-1")
    left = [path.name for path in tmp_path.rglob("*") if path.is_file() and b"planted" in path.read_bytes()]
    ended.set()
    sender.join()
    assert left == []
    one.stop()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RuntimeError("planted text"), "applying records failed: RuntimeError in test_service.py, line"),
        (DataError("the sink file is missing"), "the sink file is missing"),
    ],
)
def test_a_failure_is_logged_with_its_reason_and_ends_the_service(
    tmp_path, monkeypatch, caplog, error, reason
):
    one = service(tmp_path)
    send(one, LINES[:10])
    settle(one)

    def fail(entries):
        raise error

    monkeypatch.setattr(one.worker.stream, "apply", fail)
    with pytest.raises(QueryCloakError, match=reason):
        one.erase("u")
    assert one.worker.failure is not None
    assert "worker-failed" in one.state().health.codes
    with pytest.raises(Unavailable):
        send(one, LINES[10:20])
    (logged,) = [record for record in caplog.records if record.levelname == "CRITICAL"]
    assert logged.trouble.startswith(reason)
    assert "planted" not in logged.trouble
    one.stop()


def test_an_idle_service_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(service_module, "_DUE_PERIOD", 0.0)
    one = service(tmp_path, chosen={"k": "40"}, hold_seconds="1000", snapshot_seconds="0.05")
    send(one, LINES[:10])
    settle(one)
    assert one.state().counts.held == 10
    one.checkpoint()
    position, saved = one.wal.last_number, one.state().snapshot_age
    for _ in range(20):
        time.sleep(0.05)
        one.run_periodic()
        settle(one)
    one._committer.call(lambda: None).result()
    assert one.wal.last_number == position
    assert one.state().snapshot_age > saved + 0.9, "no other snapshot was written"
    one.stop()


def test_no_profile_survives_the_erasure_of_a_user_who_returned_before_the_epoch(tmp_path):
    """The user's labels: one before the first erasure, one after it, one in the next epoch."""
    one = service(tmp_path, methods=("rules",), chosen={})
    labels = []
    for step in (lambda: one.erase("u"), one.rotate, lambda: None):
        send(one, [b'{"user": "u", "query": "rain", "category": "News/Weather"}\n'])
        settle(one)
        labels.append(json.loads(one.released.read(one.released.last - 1, 1))["user"])
        one.worker.run_on_worker(one._profiles.flush).result()
        assert one.profile(labels[-1])
        step()
    assert len(set(labels)) == 3
    one.erase("u")
    for label in labels:
        with pytest.raises(NotFound):
            one.profile(label)
    one.stop()


@pytest.mark.parametrize("options", [{"source": "bogus:x"}, {"sink": "bogus:x"}])
def test_an_unknown_source_or_sink_is_refused_before_anything_starts(tmp_path, options):
    with pytest.raises(UsageError, match="unknown s"):
        service(tmp_path, **options)


def test_a_budget_that_would_stop_the_stream_is_refused(tmp_path):
    chosen = {"budget": "5", "per": "query", "max_queries": "3"}
    with pytest.raises(UsageError, match="overspent=drop"):
        service(tmp_path, methods=["dp-semantic"], chosen=chosen)


def test_a_record_that_was_not_taken_is_in_no_file(tmp_path):
    one = service(tmp_path, chosen={"k": "40"})
    bad = [
        b'{"user": "", "query": "planted where nobody is"}\n',
        b'{"user": "u", "query": "p", "time": "x"}\n',
    ]
    assert send(one, [*LINES[:20], *bad, *LINES[20:40]])["accepted"] == 40
    left = [path.name for path in tmp_path.rglob("*") if path.is_file() and b"planted" in path.read_bytes()]
    assert left == []
    one.stop()
