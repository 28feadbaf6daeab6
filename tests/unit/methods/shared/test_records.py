"""Held records: the cost of a push does not depend on what is held; windows are over in time."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from querycloak import log
from querycloak.dictionary import Dictionaries
from querycloak.kernels.hash_table import CountTable, PairTable
from querycloak.log import COLUMN_BIT, NO_TIME, Batch
from querycloak.methods.cohort import Cohort
from querycloak.methods.frequent_only import FrequentOnly
from querycloak.methods.km import Km
from querycloak.methods.shared.records import SlotBuffer
from querycloak.methods.shared.sessions import DAY, sessions
from querycloak.methods.short_sessions import ShortSessions
from querycloak.registry import METHODS

KEY = bytes(range(32))
PUSHES, EACH = 128, 8


def batches(texts: Dictionaries, days: bool = False) -> list[Batch]:
    """Make pieces of a log in which every query is new."""
    found = []
    for place in range(PUSHES):
        row = np.arange(place * EACH, (place + 1) * EACH)
        columns = {
            "row": row,
            "seq": row + 1,
            "user": texts.user.intern([f"user {n % 50}" for n in row.tolist()]),
            "query": texts.query.intern([f"word{n}" for n in row.tolist()]),
            "url": texts.url.intern([f"http://site{n}.example" for n in row.tolist()]),
            "time": row * 1_000_000 + (place // 32 * DAY if days else 0),
        }
        found.append(Batch.of(columns, texts))
    return found


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("km", {}),
        ("km", {"window": "day"}),
        ("short-sessions", {}),
        ("short-sessions", {"batch": "log"}),
        ("graph-suppress", {}),
        ("microagg-plain", {}),
        ("frequent-only", {}),
    ],
)
def test_a_push_copies_only_what_comes(monkeypatch, name, settings):
    """Records that are held were copied at every push, so a day's cost grew with its square."""
    texts, copied = Dictionaries(), 0
    method = METHODS.get(name)
    protector = method(method.Settings(**settings), KEY, texts)

    def counted(one, other):
        nonlocal copied
        copied += one.size + other.size
        return join(one, other)

    join = log._joined
    monkeypatch.setattr(log, "_joined", counted)
    for batch in batches(texts):
        protector.push(batch)
    assert copied <= 2 * PUSHES * EACH * len(Batch.COLUMNS)


def test_frequent_only_looks_at_a_held_record_once(monkeypatch):
    """All held records were looked up at every push."""
    texts, seen = Dictionaries(), 0
    protector = FrequentOnly(FrequentOnly.Settings(k=2), KEY, texts)
    for batch in batches(texts):
        protector.push(batch)
    peek = SlotBuffer.peek

    def counted(self, slots):
        nonlocal seen
        seen += slots.size
        return peek(self, slots)

    monkeypatch.setattr(SlotBuffer, "peek", counted)
    again = batches(texts)[0]
    out = protector.push(again.replace(row=again.row + 10_000, seq=again.seq + 10_000, user=again.user + 1))
    assert len(out) == 2 * EACH
    assert seen == 2 * EACH


def test_a_free_slot_costs_nothing_more_after_a_peak():
    """The list of free slots was copied whenever a record left."""
    buffer, pieces = SlotBuffer(texts := Dictionaries()), batches(Dictionaries())
    slots = [buffer.add(piece) for piece in pieces]
    buffer.pop(np.concatenate(slots))
    free = buffer._free
    for piece in pieces[:20]:
        assert buffer.pop(buffer.add(piece)).row.tolist() == piece.row.tolist()
        assert buffer._free is free
    assert len(buffer) == 0
    assert texts is not None


def test_slots_are_used_again_and_never_twice():
    texts = Dictionaries()
    buffer, held, rng = SlotBuffer(texts), {}, np.random.default_rng(5)
    for piece in batches(texts):
        slots = buffer.add(piece)
        assert not set(slots.tolist()) & set(held)
        held |= dict(zip(slots.tolist(), piece.row.tolist(), strict=True))
        some = rng.choice(list(held), min(len(held), 7), replace=False)
        assert buffer.pop(some).row.tolist() == [held.pop(slot) for slot in some.tolist()]
        assert len(buffer) == len(held)


def test_cohort_counts_new_users_only(monkeypatch):
    """All known users were counted whenever somebody new came, and labels grew by one at a time."""
    texts, counted, sizes = Dictionaries(), 0, set()
    protector = Cohort(Cohort.Settings(k=2, shards=2), KEY, texts)
    bincount = np.bincount

    def counting(values, *more, **options):
        nonlocal counted
        counted += len(values)
        return bincount(values, *more, **options)

    monkeypatch.setattr("querycloak.methods.cohort.assignment.np.bincount", counting)
    for n in range(300):
        one = {"row": np.array([n]), "seq": np.array([n + 1]), "user": texts.user.intern([f"u{n}"])}
        protector.push(Batch.of(one, texts))
        sizes.add(protector._labels._label.size)
    assert counted <= 2 * 300
    assert len(sizes) <= 10


@pytest.mark.parametrize("table", [CountTable, PairTable])
def test_a_table_is_counted_seldom(monkeypatch, table):
    """The whole table was counted at every reservation."""
    calls, held = 0, table()
    size = table.__len__

    def counting(self):
        nonlocal calls
        calls += 1
        return size(self)

    monkeypatch.setattr(table, "__len__", counting)
    for _ in range(2000):
        held.reserve(1)
    assert calls <= 40


def test_pages_that_must_stay_empty_are_no_terms():
    """`km` counted the words of pages that an earlier method had emptied, and its own audit failed."""
    texts = Dictionaries()
    users = texts.user.intern(["a", "b", "c", "d"])
    query = texts.query.intern(["word"] * 4)
    url = texts.url.intern(["http://only.example"] * 4)
    blank = np.array([0, COLUMN_BIT["url"], COLUMN_BIT["url"], COLUMN_BIT["url"]])
    row = np.arange(4)
    batch = Batch.of(
        {"row": row, "seq": row + 1, "user": users, "query": query, "url": url, "blank": blank}, texts
    )
    protector = Km(Km.Settings(k=2, m=1, urls="terms"), KEY, texts)
    protector.push(batch)
    released = protector.close()
    assert len(released) == 4
    assert (released.blank & COLUMN_BIT["url"] != 0).all()  # one user alone shows the page, so nobody does


@pytest.mark.parametrize("method", [Km, ShortSessions])
def test_a_finished_day_leaves_on_advance(method):
    """It left only when a later record came."""
    texts = Dictionaries()
    day = method.Settings(k=2, window="day") if method is Km else method.Settings(k=2, gap=30)
    row = np.arange(4)
    columns = {
        "row": row,
        "seq": row + 1,
        "user": texts.user.intern(["a", "b", "a", "b"]),
        "query": texts.query.intern(["word"] * 4),
        "time": np.array([1, 2, 3, 4]) * 60_000_000,
    }
    batch = Batch.of(columns, texts)
    protector, other = method(day, KEY, texts), method(day, KEY, texts)
    assert len(protector.push(batch)) == 0
    assert len(protector.advance(DAY - 1)) == 0
    out = protector.advance(DAY)
    assert sorted(out.row.tolist()) == row.tolist()
    other.push(batch)
    closed = other.close()
    for name in Batch.COLUMNS:
        assert getattr(out, name).tolist() == getattr(closed, name).tolist()
    again = method(day, KEY, texts)
    again.restore(protector.snapshot())
    for one in (protector, again):
        assert len(one.push(batch)) == 0  # of a day that is over
        assert sum(one.dropped.values()) == 4
        assert len(one.close()) == 0
        assert len(one.advance(9 * DAY)) == 0


def test_a_record_without_a_time_is_in_no_timed_session():
    """Whether it joined the next session depended on an overflow: only if that was after 1970."""
    user = np.zeros(4, np.int64)
    for later in (5 * DAY, -5 * DAY):
        time = np.array([later, NO_TIME, NO_TIME, later + 60_000_000])
        assert sessions(user, time).tolist() == [1, 0, 0, 1]


def test_a_record_buffer_returns_what_was_added():
    texts = Dictionaries()
    protector = Km(Km.Settings(k=2), KEY, texts)
    pieces = batches(texts)
    for piece in pieces:
        protector.push(piece)
    rows = pl.concat([pl.Series(piece.row) for piece in pieces])
    assert protector.snapshot()["held_row"].tolist() == rows.to_list()
