"""`shadow` searches when you do and as you do, about other things."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from querycloak.clients.obfuscation import threads
from querycloak.clients.obfuscation.history import SearchHistory
from querycloak.clients.obfuscation.random_stream import KeyedStream
from querycloak.clients.obfuscation.timing import companion_times, reflect_into, session_of
from querycloak.text import classify_log
from tests.support.covers import KEY, area, covered, log_of, searches
from tests.support.logs import made_up

LOG = made_up(users=250, seed=6).frame


@pytest.fixture(scope="module")
def found():
    return covered(LOG, "shadow")


FIGURES = {
    "second": pl.col("time").dt.second(),
    "minute": pl.col("time").dt.minute(),
    "hour": pl.col("time").dt.hour(),
    "weekday": pl.col("time").dt.weekday(),
    "day": pl.col("time").dt.ordinal_day(),
    "letters": pl.col("query").str.len_chars(),
    "words": pl.col("query").str.count_matches(r"\S+"),
    "blanks": pl.col("query").str.count_matches(r"\s\s|^\s|\s$"),
    "capitals": pl.col("query").str.count_matches(r"[A-Z]"),
    "marks": pl.col("query").str.count_matches(r"[^a-z0-9 ]"),
    "clicked": pl.col("url").is_not_null(),
    "rank": pl.col("rank").fill_null(0),
    "letters of the address": pl.col("url").str.len_chars().fill_null(0),
    "since the search before": pl.col("time").diff().over("user").dt.total_seconds().fill_null(0),
    "until the search after": (-pl.col("time").diff(-1).over("user")).dt.total_seconds().fill_null(0),
    "asked before by her": pl.int_range(pl.len()).over("user", "query"),
    "place in the trace": pl.int_range(pl.len()).over("user") / pl.len().over("user"),
}


@pytest.mark.parametrize("name", FIGURES)
def test_no_single_figure_tells_fakes(found, name):
    """Half of 20,000 searches are fakes; by chance alone a figure leaves 0.48 to 0.52 once in 10,000 runs.

    It may lie a little further off where other people's threads are only like hers.
    """
    once = searches(found).with_columns(figure=FIGURES[name])
    assert abs(area(once["figure"], once["fake"]) - 0.5) < 0.03


def test_as_many_clicks_a_search(found):
    many = found.group_by("user", "query", "time", "fake").agg(pl.col("url").count())
    assert abs(area(many["url"], many["fake"]) - 0.5) < 0.03


def test_fakes_keep_to_her_sessions(found):
    apart = []
    for part in found.partition_by("user"):
        real = part.filter(~pl.col("fake"))["time"].to_physical().to_numpy()
        fake = part.filter("fake")["time"].to_physical().to_numpy()
        apart += np.abs(fake[:, None] - real[None, :]).min(axis=1).tolist()
    assert np.mean(np.array(apart) < 600e6) > 0.9


def test_fakes_are_as_popular_as_real_queries(found):
    """In the log as it was: in the traces, whatever is borrowed stands twice, and the page says so."""
    asked = LOG.unique(["user", "query"]).group_by("query").len("people")
    once = searches(found).join(asked, on="query", how="left")
    assert abs(area(once["people"], once["fake"]) - 0.5) < 0.03


def test_a_fake_comes_first_in_half_of_the_sessions(found):
    """Of 4,000 sessions and more; 0.44 to 0.56 holds but once in 10,000 runs."""
    firsts = []
    for part in found.partition_by("user"):
        session = session_of(part["time"].to_physical().to_numpy())
        firsts += part["fake"].to_numpy()[np.flatnonzero(np.diff(session, prepend=-1))].tolist()
    assert len(firsts) > 3_000
    assert 0.44 < np.mean(firsts) < 0.56


def test_fakes_are_repeated_over_weeks_like_real_ones(found):
    spans = (
        found.group_by("user", "fake", "query")
        .agg(
            pl.col("time").n_unique().alias("times"),
            (pl.col("time").max() - pl.col("time").min()).alias("over"),
        )
        .filter(pl.col("times") > 1)
    )
    weeks = spans.filter(pl.col("over") > pl.duration(days=7)).group_by("fake").len().sort("fake")["len"]
    assert 0.6 < weeks[1] / weeks[0] < 1.6


def test_fakes_are_about_other_things(found):
    """The companion's topics are fewer of hers than another person's would be."""
    topics = classify_log(found).with_columns(topic=pl.col("category").str.split("/").list.first())
    by_topic = topics.pivot(
        "topic", index=["user", "fake"], values="query", aggregate_function="len"
    ).fill_null(0)
    by_topic = by_topic.filter(
        pl.col("user").is_in(LOG["user"].value_counts().filter(pl.col("count") > 50)["user"])
    )
    by_topic = by_topic.sort("user")
    sides = [
        by_topic.filter(pl.col("fake") == side).drop("user", "fake").to_numpy() for side in (False, True)
    ]
    real, fake = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides)
    own, others = (real * fake).sum(axis=1).mean(), (real @ real.T)[~np.eye(len(real), dtype=bool)].mean()
    assert own < others


def test_nobody_is_her_own_companion():
    marked = LOG.with_columns(query=pl.col("user") + " " + pl.col("query"))
    fakes = covered(marked, "shadow").filter("fake")
    assert not fakes.select(pl.col("query").str.starts_with(pl.col("user") + " ")).to_series().any()


def test_somebody_who_never_clicks_has_a_companion_who_never_does():
    quiet = LOG["user"][0]
    silent = [pl.when(pl.col("user") != quiet).then(name).alias(name) for name in ("rank", "url")]
    fakes = covered(LOG.with_columns(silent), "shadow").filter((pl.col("user") == quiet) & pl.col("fake"))
    assert fakes["url"].null_count() == fakes.height > 0


def test_companions_do_not_keep_step():
    """Everybody changes the subject after ten days; companions, whose threads are as long, at any time."""
    day = 86_400
    rows = [(f"u{u:02}", f"{'ab'[n >= 10]}{u} w{u}{n}", n * day + u) for u in range(30) for n in range(20)]
    fakes = covered(log_of(rows), "shadow").filter("fake")
    subject = pl.col("query").str.split(" ").list.first()
    changes = fakes.with_columns(change=(subject != subject.shift()).over("user")).with_columns(
        place=pl.int_range(pl.len()).over("user")
    )
    assert changes.filter("change")["place"].n_unique() > 8


def test_two_companions_are_two_people():
    fakes = covered(LOG, "shadow", fakes=2).filter("fake")
    assert searches(fakes).height == pytest.approx(2 * searches(LOG).height, rel=0.01)


def test_a_thread_is_what_shares_telling_words():
    rows = [("a", "jaguar engine", 1), ("a", "tomato soup", 2), ("a", "engine oil", 3)]
    rows += [("a", "jaguar engine", 900_000), ("b", "engine oil", 4)]
    found = SearchHistory.of(log_of(rows))
    of = threads.find_threads(found).of
    assert of[0] == of[2] == of[3] != of[1]
    assert of[4] not in of[:4]


def test_common_words_join_nothing():
    rows = [("a", f"pictures word{n}", n) for n in range(30)]
    assert np.unique(threads.find_threads(SearchHistory.of(log_of(rows))).of).size == 30


def test_sessions_end_with_a_long_pause():
    minute = 60_000_000
    assert session_of(np.array([0, 10, 41, 71, 72]) * minute).tolist() == [0, 0, 1, 1, 1]


def test_a_companion_session_is_paced_like_the_real_one():
    second = 1_000_000
    time = np.array([0, 10, 30, 100_000, 100_010]) * second
    when = companion_times(time, np.array([], np.int64), KeyedStream(KEY, "test"))
    assert set(np.abs(when - time[[0, 0, 0, 3, 3]])[[0, 3]].tolist()) <= {10 * second, 20 * second}
    assert set(np.diff(when)[[0, 1, 3]].tolist()) <= {10 * second, 20 * second}


def test_what_lies_outside_is_folded_back():
    assert reflect_into(np.array([-3, 0, 5, 12, 99]), (0, 10)).tolist() == [3, 0, 5, 8, 0]
