"""Counts of users: equal to naive ones for every cut of the log, with erasures and restarts between."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.log import NO_TIME
from querycloak.methods.shared.sessions import DAY
from querycloak.methods.shared.user_counts import UsersByDay, UsersInWindow, UsersUntil, users_of
from tests.reference import naive

NOBODY = np.empty(0, np.int64)
records = st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 5)), max_size=60)
cuts = st.integers(0, 60)


def columns(rows, width):
    return tuple(np.array([row[i] for row in rows], np.int64) for i in range(width))


def restarted(counts, make):
    again = make()
    again.restore(counts.snapshot())
    return again


@given(records=records, k=st.integers(2, 4), cut=cuts)
def test_users_until_k_equal_the_naive_count(records, k, cut):
    key, user = columns(records, 2)
    time = np.arange(1, len(records) + 1)
    counts, found = UsersUntil(k), []
    for part in (slice(0, cut), slice(cut, None)):
        found += counts.add(key[part], user[part], time[part]).tolist()
        counts = restarted(counts, lambda: UsersUntil(k))
    expected = naive.opened(key.tolist(), user.tolist(), time.tolist(), k)
    askers = defaultdict(set)
    for i, (each, who) in enumerate(records):
        askers[each].add(who)
        assert found[i] == min(k, len(askers[each]))
    assert counts.reached_at(np.arange(-1, 4)).tolist() == [expected.get(each, -1) for each in range(-1, 4)]


@given(records=records, k=st.integers(2, 4), erased=st.sets(st.integers(0, 5), max_size=3))
def test_users_until_k_are_counted_without_the_erased(records, k, erased):
    key, user = columns(records, 2)
    counts = UsersUntil(k)
    counts.add(key, user, np.arange(len(records)))
    counts.erase(np.array(sorted(erased), np.int64))
    known = defaultdict(list)  # no more than the first k of a key
    for each, who in records:
        if who not in known[each] and len(known[each]) < k:
            known[each].append(who)
    for each, people in known.items():
        left = len(set(people) - erased)
        again = counts.add(np.array([each]), np.array([99]), np.array([0]))
        assert again.tolist() == [min(k, left + 1)]


events = st.lists(
    st.tuples(st.integers(-1, 3), st.integers(-1, 2), st.integers(0, 3), st.integers(0, 30)), max_size=60
)


@given(events=events, span=st.integers(1, 15), z=st.integers(1, 3), cut=cuts)
def test_users_in_a_window_equal_the_naive_count(events, span, z, cut):
    keys = np.array([(a, 10 + b if b >= 0 else -1) for a, b, _, _ in events], np.int64).reshape(-1, 2)
    _, _, user, time = columns(events, 4)
    counts, found = UsersInWindow(span), []
    for part in (slice(0, cut), slice(cut, None)):
        found += counts.add(keys[part], user[part], time[part]).tolist()
        counts = restarted(counts, lambda: UsersInWindow(span))
    first = [next((j for j, n in enumerate(row) if n >= z), -1) for row in found]
    assert first == naive.exposed(keys.tolist(), user.tolist(), time.tolist(), span, z)


def test_one_key_for_each_record_is_enough_and_no_time_is_now():
    counts = UsersInWindow(10)
    time = np.array([5, NO_TIME, 14, 15])
    assert counts.add(np.array([1, 1, 1, 1]), np.array([0, 1, 2, 3]), time).tolist() == [1, 2, 3, 2]
    late = counts.add(np.array([1, -1]), np.array([4, 5]), np.array([16, 16]))
    assert late.tolist() == [3, 0]


days = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 4)), max_size=40)


@given(rows=days, span=st.integers(0, 3), erased=st.sets(st.integers(0, 3), max_size=2))
def test_users_by_day_equal_the_naive_count(rows, span, erased):
    rows = sorted(rows, key=lambda row: row[2])
    counts, seen = UsersByDay(span), []
    for day in range(5):
        today = [row for row in rows if row[2] == day]
        if day == 3:
            counts.erase(np.array(sorted(erased), np.int64))
            seen = [row for row in seen if row[1] not in erased]
        seen += today
        key, user, number = columns(today, 3)
        found = counts.add(key, user, number * DAY + 17)
        people = defaultdict(set)
        for each, who, when in seen:
            if not span or when > day - span:
                people[each].add(who)
        assert found.tolist() == [len(people[each]) for each in key.tolist()]
        counts = restarted(counts, lambda: UsersByDay(span))


def test_different_users_are_counted_once():
    key, user = np.array([0, 2, 2, 2]), np.array([7, 7, 7, 8])
    assert users_of(key, user, 4).tolist() == [1, 0, 2, 0]


@pytest.mark.parametrize(
    "counts", [UsersUntil(2), UsersInWindow(5), UsersByDay(0)], ids=lambda c: type(c).__name__
)
def test_nothing_is_counted_of_nothing(counts):
    assert counts.add(NOBODY, NOBODY, NOBODY).size == 0
    counts.erase(NOBODY)
