"""With a pool, fakes are what its people asked, at times that fit the log, and nobody of the log lends."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

from querycloak.clients.obfuscation import mixing
from querycloak.clients.obfuscation.borrowed import align_pool
from querycloak.clients.obfuscation.history import SearchHistory
from querycloak.errors import DataError, UsageError
from querycloak.registry import COVERS
from tests.support.covers import cover, log_of
from tests.support.logs import made_up

BORROWING = [name for name in COVERS.built_in if COVERS.get(name).borrows]
LOG = made_up(users=25, seed=4).frame
OTHERS = made_up(users=40, seed=5).frame.with_columns(user="x" + pl.col("user"))


def covered(method, log=LOG, others=OTHERS, **chosen):
    lent = align_pool(others, log)
    trace, truth = cover(log, method, pool=lent, **chosen)
    return trace.hstack(truth.select("fake", "original_row")), lent


@pytest.mark.parametrize("method", BORROWING)
@pytest.mark.parametrize("fakes", [None, 1.0, 2.5])
def test_fakes_come_from_the_pool_alone(method, fakes):
    found, lent = covered(method, fakes=fakes)
    fake = found.filter("fake")
    assert fake.height
    assert set(fake["query"]) <= set(lent["query"])
    assert set(fake["url"].drop_nulls()) <= set(lent["url"])
    assert set(found["user"]) == set(LOG["user"])
    assert found.filter(~pl.col("fake"))["original_row"].sort().to_list() == LOG["row"].to_list()
    assert found["time"].is_between(LOG["time"].min(), LOG["time"].max()).all()
    own = set(LOG["query"]) - set(lent["query"])
    assert own
    assert not own & set(fake["query"])


def test_usr_takes_one_person_of_the_pool_as_she_is():
    found, lent = covered("usr")
    histories = [part.select("query", "time", "url").sort(pl.all()) for part in lent.partition_by("user")]
    for part in found.filter("fake").partition_by("user"):
        taken = part.select("query", "time", "url").sort(pl.all())
        assert any(taken.equals(one) for one in histories)


def test_every_lender_can_be_drawn():
    """Of two lenders for 25 people, both: that one is never drawn happens once in 17 million keys."""
    two = OTHERS.filter(pl.col("user").is_in(sorted(set(OTHERS["user"]))[:2]))
    found, lent = covered("usr", others=two)
    sizes = {part.height for part in lent.partition_by("user")}
    assert {part.height for part in found.filter("fake").partition_by("user")} == sizes


@pytest.mark.parametrize("method", BORROWING)
def test_a_log_of_one_person_can_borrow(method):
    one = LOG.filter(pl.col("user") == LOG["user"][0])
    found, _ = covered(method, log=one, fakes=1.0)
    assert found["fake"].sum() > 0


def test_a_pool_of_another_year_keeps_its_hours_and_weekdays():
    later = OTHERS.with_columns(pl.col("time") + timedelta(days=500))
    lent = align_pool(later, LOG)
    first, last = LOG["time"].min(), LOG["time"].max()
    assert lent["time"].is_between(first, last).all()
    both = lent.with_row_index().select("user", "query", moved="time").unique()
    before = later.select("user", "query", "time").unique()
    pairs = both.join(before, on=["user", "query"])
    apart = (pairs["time"] - pairs["moved"]).dt.total_seconds()
    assert (apart % (7 * 86400) == 0).sum() >= both.height
    assert lent.height > 0.9 * later.height


def test_what_lasts_longer_than_the_log_is_left_out():
    log = log_of([("a", "one", 0), ("a", "two", 1000)])
    others = log_of([("b", "x", 10), ("b", "y", 500), ("b", "z", 5000)])
    assert align_pool(others, log)["query"].to_list() == ["x", "y"]


def test_people_of_the_log_do_not_lend_from_the_pool():
    log = log_of([("a", "one", 0), ("c", "two", 1000)])
    others = log_of([("a", "hers", 10), ("b", "x", 20)])
    assert align_pool(others, log)["user"].to_list() == ["b"]
    with pytest.raises(DataError, match="no row of the pool can be used"):
        align_pool(others.head(1), log)


@pytest.mark.parametrize("name", ["time", "url"])
def test_a_pool_without_a_column_of_the_log_is_refused(name):
    with pytest.raises(DataError, match=f"no column `{name}`"):
        align_pool(OTHERS.drop(name), LOG)


def test_rows_of_the_pool_without_a_time_are_refused():
    bad = OTHERS.with_columns(time=pl.when(pl.col("row") > 3).then("time"))
    with pytest.raises(DataError, match="no time"):
        align_pool(bad, LOG)


def test_a_log_without_times_takes_a_pool_without():
    bare, others = (frame.select("row", "user", "query") for frame in (LOG, OTHERS))
    trace, truth = cover(bare, "shadow", pool=align_pool(others, bare))
    assert set(trace.filter(truth["fake"])["query"]) <= set(OTHERS["query"])


def test_the_log_counts_without_its_pool():
    lent = align_pool(OTHERS, LOG)
    alone, both = SearchHistory.of(LOG), SearchHistory.of(LOG, lent)
    assert (both.users, len(both), both.span, both.tick) == (25, len(alone), alone.span, alone.tick)
    assert both.pool_users == lent["user"].n_unique()
    assert both.clicked_share == alone.clicked_share
    assert both.pauses.tolist() == alone.pauses.tolist()


def test_tmn_takes_no_pool():
    with pytest.raises(UsageError, match="takes no pool"):
        mixing.cover("log.tsv", "out.tsv", "tmn", pool="others.tsv")
