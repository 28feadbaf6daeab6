"""Profiles in SQLite: all or nothing, once only, private, and there after kill -9."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given

from querycloak.errors import DataError, DiskFull, MissingExtra, ParameterError, StoreUnavailable
from querycloak.service.sinks.profiles import open_store
from tests.unit.service.sinks.profile_store import changes, follow, made_up, model_of, total

ROOT = Path(__file__).parents[4]
NAMES = tuple(f"p{number}" for number in range(40))


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/profiles.db"


@given(steps=changes)
def test_it_does_what_a_dictionary_would_do(tmp_path_factory, steps):
    url = f"sqlite:///{tmp_path_factory.mktemp('profiles')}/profiles.db"
    follow(lambda: open_store(url), open_store(url), steps)


def test_streams_share_a_file_without_seeing_each_other(url):
    one, other = open_store(url, "one"), open_store(url, "other")
    one.add(5, [("p1", "Arts", 2)])
    other.add(3, [("p1", "Sports", 1)])
    assert (one.last, one.counts_of("p1"), total(one)) == (5, {"Arts": 2}, 2)
    assert (other.last, other.counts_of("p1")) == (3, {"Sports": 1})
    assert one.delete("p1") == 2
    assert (total(one), other.counts_of("p1")) == (0, {"Sports": 1})
    one.close()
    other.close()


def test_its_files_are_private(url, tmp_path):
    path = tmp_path / "profiles.db"
    path.touch(0o644)
    store = open_store(url)
    store.add(1, [("p1", "Arts", 1)])
    assert {one.name for one in tmp_path.glob("profiles*")} >= {"profiles.db", "profiles.db-wal"}
    assert {stat.S_IMODE(one.stat().st_mode) for one in tmp_path.glob("profiles*")} == {0o600}
    store.close()


def test_an_add_that_fails_in_the_middle_leaves_nothing(url):
    store = open_store(url)
    store.add(1, [("p1", "Arts", 1)])
    too_much = [("p0", "Arts", 3), ("p1", "Arts", 2**63)]
    with pytest.raises((DataError, OverflowError)):
        store.add(2, too_much)
    assert (store.last, store.counts_of("p0"), store.counts_of("p1"), total(store)) == (
        1,
        None,
        {"Arts": 1},
        1,
    )
    store.add(2, [("p1", "Arts", 1)])
    assert store.counts_of("p1") == {"Arts": 2}
    store.close()


def test_counts_that_overlap_with_what_another_counted_are_refused(url):
    one, other = open_store(url), open_store(url)
    one.add(10, [("p1", "Arts", 10)])
    with pytest.raises(DataError, match="up to line 10 already, not 0"):
        other.add(15, [("p1", "Arts", 15)])
    other.add(10, [("p1", "Arts", 10)])
    assert other.last == 10
    other.add(15, [("p1", "Arts", 5)])
    assert one.counts_of("p1") == {"Arts": 15}
    one.close()
    other.close()


def test_a_forgotten_label_leaves_no_bytes_behind(url, tmp_path):
    store = open_store(url)
    for upto in range(1, 20):
        store.add(upto, [("planted-label", f"Arts/{upto}", 1), (f"other-{upto}", "Arts", 1)])
    assert any(b"planted-label" in one.read_bytes() for one in tmp_path.glob("profiles.db*"))
    assert store.delete("planted-label") == 19
    assert not any(b"planted-label" in one.read_bytes() for one in tmp_path.glob("profiles.db*"))
    assert total(store) == 19
    assert store.delete("planted-label") == 0
    store.close()


def test_a_file_that_another_program_locks_is_unavailable_and_then_works(url, tmp_path):
    store = open_store(url, patience=0.05)
    other = sqlite3.connect(tmp_path / "profiles.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked by another") as caught:
        store.add(1, [("p1", "Arts", 1)])
    assert caught.value.http_status == 503
    assert store.counts_of("p1") is None
    other.execute("ROLLBACK")
    other.close()
    store.add(1, [("p1", "Arts", 1)])
    assert store.counts_of("p1") == {"Arts": 1}
    store.close()


def test_a_full_disk_is_told_and_the_same_counts_can_come_again(url):
    store = open_store(url)
    store.add(1, made_up(1))
    store._database._writer.execute("PRAGMA max_page_count=12")
    with pytest.raises(DiskFull):
        store.add(2, [(f"label {number}", "Arts", 1) for number in range(20_000)])
    assert store.last == 1
    model_of([1]).assert_same(store, NAMES)
    store._database._writer.execute("PRAGMA max_page_count=1000000")
    store.add(2, made_up(2))
    model_of([1, 2]).assert_same(store, NAMES)
    store.close()


@pytest.mark.parametrize("content", [b"hello " * 500, b"SQLite format 3\0" + b"\1" * 5000])
def test_a_file_that_is_no_database_is_named(url, tmp_path, content):
    (tmp_path / "profiles.db").write_bytes(content)
    with pytest.raises(DataError, match=r"profiles\.db"):
        open_store(url)


def test_a_folder_in_place_of_the_file_is_named(tmp_path):
    with pytest.raises(DataError, match="cannot be opened"):
        open_store(f"sqlite:///{tmp_path}")


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///", "mysql://me:planted-password@host/db", "", "file"]
)
def test_other_addresses_are_refused_without_repeating_them(url):
    with pytest.raises(ParameterError, match="neither") as caught:
        open_store(url)
    assert "planted" not in str(caught.value)


def test_the_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"querycloak\[postgres\]"):
        open_store("postgresql://me@127.0.0.1/db")


def test_profiles_are_read_while_others_are_added(url):
    store, faults, ended = open_store(url), [], threading.Event()

    def read():
        try:
            while not ended.is_set():
                assert total(store) % 200 == 0, "a part of a transaction is seen"
                store.counts_of("p1")
        except BaseException as error:
            faults.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for upto in range(1, 60):
        store.add(upto, made_up(upto))
    ended.set()
    for reader in readers:
        reader.join(60)
    assert not faults
    model_of(range(1, 60)).assert_same(store, NAMES)
    store.close()


CHILD = """
import sys
from querycloak.service.sinks.profiles import open_store
from tests.unit.service.sinks.profile_store import made_up
store = open_store(sys.argv[1])
for upto in range(store.last + 1, 10**6):
    store.add(upto, made_up(upto))
    print(upto, flush=True)
"""


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.05, 0.1, 0.3])
def test_after_kill_all_that_was_added_is_there_once(url, seconds):
    for _ in range(2):
        child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(CHILD), url],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(seconds)
        os.kill(child.pid, signal.SIGKILL)
        told = child.stdout.read().split()
        child.stdout.close()
        child.wait()
        store = open_store(url)
        assert store.last >= (int(told[-1]) if told else 1)
        model_of(range(1, store.last + 1)).assert_same(store, NAMES)
        store.close()
