"""`link-time`: when a token came in, which records make a session, and what that adds."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.attacks.link_time import entry_window, find_sessions
from querycloak.attacks.release_order import read_stream, sessions
from querycloak.attacks.run import attack
from querycloak.errors import NotApplicable
from tests.reference import naive_links
from tests.unit.attacks.made import COHORT, SWAP, K, found, guess, made, table

RECORDS = st.lists(st.tuples(st.integers(0, 50), st.sets(st.integers(0, 4))), min_size=1, max_size=25)


@given(RECORDS, st.integers(0, 30), st.floats(0, 3))
def test_sessions_are_those_of_the_slow_twin(records, gap, chance):
    times = [time for time, _ in records]
    words = [sorted(some) for _, some in records]
    begins = np.cumsum([0, *(len(some) for some in words)])
    flat = np.array([w for some in words for w in some], np.int32)
    frequency = np.array([0.02, 0.05, 0.1, 0.3, 1.0])
    by_time = np.argsort(np.array(times), kind="stable")
    of = sessions.chain(
        by_time,
        np.array(times),
        np.arange(len(times), dtype=np.int32),
        begins,
        flat,
        frequency,
        gap,
        chance,
        99,
    )
    expected = naive_links.sessions(times, [set(some) for some in words], frequency, gap, chance)
    for i in range(len(times)):
        assert {j for j in range(len(times)) if of[j] == of[i]} == expected[i]


@given(st.permutations(range(12)))
def test_an_entry_is_the_first_place_by_which_something_as_late_had_left(arrival):
    entries = sessions.entries(np.array(arrival))
    for place, rank in enumerate(arrival):
        assert entries[place] == min(p for p in range(12) if max(arrival[: p + 1]) >= rank)


def test_tokens_leave_after_their_records_came_so_windows_begin_there():
    case = made("swap")
    seen = read_stream(case.release, 1)
    (centre, before, after), held = entry_window(seen, K, 60)
    assert K <= held <= 3 * K
    assert before.size < after.size
    assert np.all(centre >= seen.starts[seen.category])
    assert np.all(centre < seen.starts[seen.category + 1])


def test_coarse_times_are_noticed():
    case = made("swap")
    by_day = case.release.with_columns(pl.col("time").dt.truncate("30d"))
    (_, before, after), held = entry_window(read_stream(by_day, 1), K, 60)
    assert held is None
    assert before.size == after.size


def test_missing_times_are_no_session():
    times = pl.Series([None, 5, None], dtype=pl.Int64).cast(pl.Datetime("us"))
    frame = table(["a", "b", "c"], ["red shoes"] * 3, time=times)
    for certificate in (SWAP, COHORT):
        answer = guess("link-time", frame, certificate)
        assert len(answer.guess) == 3
        assert answer.details["records_in_sessions"] == 0


def test_words_join_what_is_close_in_time_and_stems_count():
    minutes = pl.Series([0, 1, 2, 600], dtype=pl.Int64) * 60_000_000
    queries = ["red shoe", "cheap shoes", "boat", "shoes"]
    frame = table(list("abcd"), queries, time=minutes.cast(pl.Datetime("us")))
    (members, groups), linked = find_sessions(read_stream(frame, 0), 30 * 60e6, 1.0)
    together = [set(members[groups[g] : groups[g + 1]].tolist()) for g in range(4)]
    assert linked == 2
    assert {0, 1} in together


def test_kept_times_add_to_what_repeats_tell():
    time, repeat = found("link-time", "swap"), found("link-repeat", "swap")
    assert time.success > repeat.success
    assert time.low > 2 / K


def test_without_times_it_says_so():
    case = made("swap")
    timeless = case.release.with_columns(time=pl.lit(None, pl.Datetime("us", "UTC")))
    (finding,) = attack(timeless, case.certificate, case.original, case.truth, ["link-time"])
    assert "time" in finding.not_applicable


@pytest.mark.parametrize("certificate", [SWAP, COHORT])
def test_one_row_or_none(certificate):
    frame = table(["a"], ["x"], time=pl.Series([1]).cast(pl.Datetime("us")))
    assert len(guess("link-time", frame, certificate).guess) == 1
    with pytest.raises(NotApplicable, match="no time"):
        guess("link-time", frame.clear(), certificate)
