"""`short-sessions` against a naive version, and what its settings promise."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import querycloak as qc
from querycloak.errors import DataError, ParameterError, Refused
from querycloak.log import NO_TIME, Log
from querycloak.methods.short_sessions import ShortSessions, _sessions
from querycloak.testing.harness import Harness
from tests.reference import naive_short_sessions as naive
from tests.support.logs import made_up

START = datetime(2006, 3, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
QUERIES = ("rain", "rain tomorrow", "Snow", "snow rain", "one of a kind", "!?")


def frame(searches):
    """Make a log of (user, query, hours since the start)."""
    return pl.DataFrame(
        {
            "row": pl.Series(range(len(searches)), dtype=pl.Int64),
            "user": [user for user, _, _ in searches],
            "query": [query for _, query, _ in searches],
            "time": pl.Series(
                [START + timedelta(hours=at) for _, _, at in searches], dtype=pl.Datetime("us", "UTC")
            ),
            "rank": pl.Series([1] * len(searches), dtype=pl.Int64),
            "url": [f"http://page-{row}.example/" for row in range(len(searches))],
            "category": ["Home"] * len(searches),
        }
    )


def spelled(searches, **settings):
    """Run the method; give (label, query, time, row, blank) of what leaves, in order."""
    harness = Harness(ShortSessions, ShortSessions.Settings(**settings), frame(searches))
    out = harness.run()
    texts = harness.texts.user.decode(out.user).to_list(), harness.texts.query.decode(out.query).to_list()
    return list(zip(*texts, out.time.tolist(), out.row.tolist(), out.blank.tolist(), strict=True))


SEARCHES = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(QUERIES), st.integers(0, 60)), max_size=25
).map(lambda found: sorted(set(found), key=lambda one: one[2]))


@given(
    searches=SEARCHES,
    k=st.integers(2, 3),
    gap=st.integers(0, 4),
    most=st.integers(1, 3),
    rare=st.sampled_from(["drop", "terms"]),
    batch=st.sampled_from(["day", "log"]),
    days=st.integers(0, 2),
)
def test_the_sessions_are_the_naive_ones(searches, k, gap, most, rare, batch, days):
    out = spelled(searches, k=k, gap=gap * 60.0, most=most, rare=rare, batch=batch, days=days)
    seconds = int((START - EPOCH).total_seconds())
    plain = [(user, query, seconds + at * 3600, row) for row, (user, query, at) in enumerate(searches)]
    expected = naive.released(plain, k=k, gap=gap * 3600, most=most, rare=rare, batch=batch, days=days)
    found: dict[int, set[tuple[object, ...]]] = {day: set() for day in expected}
    labels = list(dict.fromkeys(label for label, *_ in out))
    for label in labels:
        hers = [one for one in out if one[0] == label]
        (day,) = {time // 86_400_000_000 for _, _, time, _, _ in hers}
        found[day].add(tuple((row, query, blank == 0) for _, query, _, row, blank in hers))
    assert found == expected
    assert len(labels) == sum(len(sessions) for sessions in expected.values())
    assert [one[0] for one in out] == [one[0] for label in labels for one in out if one[0] == label]
    days = [time // 86_400_000_000 for _, _, time, _, _ in out]
    assert days == sorted(days)


def test_a_session_ends_at_midnight_however_short_the_silence_is():
    minute = 60_000_000
    time = np.array([-20, -5, 5, 20]) * minute + 10 * 86_400_000_000
    assert _sessions(np.zeros(4, np.int64), time, 30 * minute).tolist() == [0, 0, 1, 1]


COMMON = [(user, "rain", hour) for hour, user in enumerate("abcdefgh")]


def test_sessions_of_a_day_are_shuffled_and_their_searches_are_not():
    steps = [
        (user, query, at) for at, query in ((1, "rain"), (2, "snow"), (3, "wind")) for user in "abcdefghij"
    ]
    out = spelled(steps, k=2, gap=120.0, time="day")
    assert [query for _, query, *_ in out] == ["rain", "snow", "wind"] * 10
    assert [row for *_, row, _ in out[::3]] != sorted(row for *_, row, _ in out[::3])  # 1 in 10! by chance


@pytest.mark.parametrize(("time", "unit"), [("hour", 3_600_000_000), ("day", 86_400_000_000)])
def test_times_are_as_coarse_as_asked_for(time, unit):
    out = spelled([("a", "rain", 1.5), ("b", "rain", 2.75)], k=2, time=time)
    assert {moment % unit for _, _, moment, _, _ in out} == {0}
    assert len(out) == 2


def test_a_day_counts_the_people_of_the_days_before():
    searches = [("a", "rain", 1), ("b", "rain", 30), ("a", "rain", 60)]
    assert [row for *_, row, _ in spelled(searches, k=2)] == [1, 2]
    assert sorted(row for *_, row, _ in spelled(searches, k=2, batch="log")) == [0, 1, 2]


def test_people_of_long_ago_are_forgotten():
    searches = [("a", "rain", 1), ("b", "rain", 30), ("c", "rain", 80), ("d", "snow", 81)]
    assert [row for *_, row, _ in spelled(searches, k=2, days=2)] == [1]
    assert [row for *_, row, _ in spelled(searches, k=2, days=3)] == [1, 2]
    harness = Harness(ShortSessions, ShortSessions.Settings(k=2, days=1), frame(searches))
    method = harness.make()
    method.push(harness.batch)
    assert method.snapshot()["asked_query"].size == 1  # of the day before; the last one is still held


def test_what_is_left_of_a_query_takes_nothing_along_that_tells_the_rest():
    log = Log(frame([*COMMON, ("a", "Rain, on Quibble Street", 9), ("b", "rain on me", 9)]))
    release = qc.protect(log, "short-sessions", k=2, rare="terms", batch="log", seed=1)
    shown = release.log.frame
    cut = shown.filter(pl.col("query") == "rain on")
    assert cut.height == 2
    assert cut.select(pl.col("url", "rank", "category").null_count()).row(0) == (2, 2, 2)
    whole = shown.filter(pl.col("query") == "rain")
    assert whole.select(pl.col("url", "rank", "category").null_count()).row(0) == (0, 0, 0)
    assert not shown["query"].str.contains("(?i)quibble").any()


def test_the_users_of_terms_are_counted_in_a_release_of_a_file_and_of_a_frame(tmp_path):
    """Terms are in the texts of the original, which an audit reads again."""
    log = made_up(60, seed=2)
    qc.write(log, tmp_path / "log.tsv")
    for source in (tmp_path / "log.tsv", log):
        release = qc.protect(source, "short-sessions", k=3, rare="terms", seed=1)
        assert release.report.released
        found = {one["check"]: one["verdict"] for one in release.certificate["methods"][0]["checks"]}
        assert found["each released term is of at least 3 users before its release"] == "kept"


def test_a_rare_query_of_common_terms_loses_its_click_too():
    searches = [*COMMON, *((user, "snow", 9) for user in "ab"), ("c", "rain snow", 10)]
    shown = qc.protect(
        Log(frame(searches)), "short-sessions", k=2, rare="terms", batch="log", seed=1
    ).log.frame
    assert shown.filter(pl.col("query") == "rain snow")["url"].to_list() == [None]


def test_clicks_can_stay_behind():
    shown = qc.protect(Log(frame(COMMON)), "short-sessions", k=2, clicks="drop", seed=1).log.frame
    assert shown.height == 8
    assert shown["url"].null_count() == shown["rank"].null_count() == 8


def test_labels_are_new_and_differ_from_release_to_release():
    log = made_up(users=60, seed=3)
    releases = [qc.protect(log, "short-sessions", k=3, batch="log", seed=seed).log.frame for seed in (1, 2)]
    labels = [set(frame["user"]) for frame in releases]
    assert not labels[0] & labels[1]
    assert not (labels[0] | labels[1]) & set(log.frame["user"])


def test_rows_of_one_search_stay_together():
    twice = frame(COMMON).vstack(
        frame(COMMON).with_columns(row=pl.col("row") + 8, url=pl.lit("http://two.example/"))
    )
    release = qc.protect(Log(twice), "short-sessions", k=2, most=1, seed=1)
    assert release.log.frame.group_by("user").len()["len"].to_list() == [2] * 8


def test_late_and_timeless_records_are_dropped_and_counted():
    harness = Harness(
        ShortSessions, ShortSessions.Settings(k=2), frame([("a", "rain", 1), ("b", "rain", 30)])
    )
    method = harness.make()
    method.push(harness.batch)
    one, row = harness.batch[:1], harness.batch.row[:1]
    method.push(one.replace(row=row + 10))
    method.push(one.replace(row=row + 11, time=np.full(1, NO_TIME)))
    assert method.dropped["came after its day was closed"] == 1
    assert method.dropped["has no time"] == 1


def test_a_log_without_times_or_people_enough_is_refused():
    with pytest.raises(DataError, match="time"):
        qc.protect(Log(frame(COMMON).drop("time")), "short-sessions", k=2)
    with pytest.raises(ParameterError, match="the log has only 8 users"):
        qc.protect(Log(frame(COMMON)), "short-sessions", k=9)
    with pytest.raises(Refused, match="must know whose each record is"):
        qc.protect(Log(frame(COMMON)), "cohort", "short-sessions", **{"cohort.k": 2})


@pytest.mark.parametrize("methods", [("rules", "short-sessions"), ("short-sessions", "rules")])
def test_rules_may_come_before_or_after(methods):
    log = made_up(users=150, seed=3)
    settings = {"short-sessions.k": 3, "rare": "terms" if methods[0] == "short-sessions" else "drop"}
    release = qc.protect(log, *methods, **settings, seed=1)
    shown = release.log.frame.with_row_index("at")
    assert shown.height > 50
    spans = shown.group_by("user").agg(span=pl.col("at").max() - pl.col("at").min(), n=pl.len())
    assert (spans["span"] < spans["n"]).all()
    assert all(part["audit"] == "kept" for part in release.certificate["methods"])


def test_attacks_find_people_by_the_labels_of_their_sessions():
    # Each of 40 people asks four things that two others ask too: together they lead to one person.
    topics = [f"topic {n}" for n in range(40)]
    steps = [(f"u{n}", topics[(n + 7 * i * i) % 40], 2 + i / 60) for i in range(4) for n in range(40)]
    log = Log(frame(steps))
    release = qc.protect(log, "short-sessions", k=2, seed=1)
    names = ["link-overlap", "link-background", "link-pairs"]
    findings = {one.attack: one for one in qc.attack(release, log, *names)}
    assert findings["link-overlap"].success > 0.9
    assert findings["link-background"].success > 0.5
    assert findings["link-pairs"].success > 0.5
