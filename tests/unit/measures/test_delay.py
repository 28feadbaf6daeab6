from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import strategies as st

import querycloak as qc
from querycloak import measures
from querycloak.errors import NotApplicable
from querycloak.measures.base import LogPair
from querycloak.measures.delay import Delay, release_rate_over_time
from tests.support.logs import made_up

NUMBERS = st.lists(st.floats(-5, 5), min_size=2, max_size=30)
START = datetime(2006, 3, 1, tzinfo=UTC)


def log(users, seconds):
    times = [None if s is None else START + timedelta(seconds=s) for s in seconds]
    columns = {"row": range(len(users)), "user": users, "query": [f"q{u}" for u in users], "time": times}
    return pl.DataFrame(columns, schema_overrides={"row": pl.Int64, "time": pl.Datetime("us", "UTC")})


def test_delay_by_hand():
    found = measures.delay([1, 2, 3, 4], [4, 4, 4, 8])
    assert found == pytest.approx({"mean": 2.5, "median": 2.5, "p90": 3.7, "max": 4})
    assert math.isnan(measures.delay([], [])["mean"])


@pytest.mark.parametrize(("entered", "released"), [([1], [1, 2]), ([2], [1])])
def test_delay_refuses_what_cannot_be(entered, released):
    with pytest.raises(ValueError):
        measures.delay(entered, released)


def test_release_rate_over_time_by_hand():
    assert release_rate_over_time([5, 10, 10, 10], 10, parts=2) == [0.2, 0.4]
    assert all(math.isnan(share) for share in release_rate_over_time([], 0))


def test_delay_of_a_release_by_hand():
    # in order of time: rows 2, 0, then 1 and 3 (one search: they come in together)
    original = log(["u", "v", "w", "v"], [10, 20, 0, 20])
    truth = pl.DataFrame({"original_row": [2, 0, 1, 3], "released_after": [2, 2, 4, 4]})
    found = Delay()(LogPair(original, original, truth))
    assert found["records"] == pytest.approx({"mean": 0.25, "median": 0, "p90": 0.7, "max": 1})
    assert found["seconds"]["max"] == 10
    assert found["counted"] == 4
    assert found["release_rate_by_tenths"][-1] == 1.0


def test_rows_without_a_time_are_not_counted():
    original = log(["u", "v", "w"], [0, None, 5])
    truth = pl.DataFrame({"original_row": [0, 1, 2], "released_after": [3, 3, 3]})
    found = Delay()(LogPair(original, original, truth))
    assert found["counted"] == 2
    assert found["records"]["max"] == 2
    assert found["seconds"]["max"] == 5


def test_delay_says_what_it_needs():
    original = log(["u"], [0])
    truth = pl.DataFrame({"original_row": [0], "released_after": [1]})
    with pytest.raises(NotApplicable, match="truth"):
        Delay()(LogPair(original, original))
    with pytest.raises(NotApplicable, match="no times"):
        Delay()(LogPair(log(["u"], [None]), original, truth))


@pytest.mark.parametrize(
    ("method", "settings"), [("swap", {"k": 3, "level": 1}), ("cohort", {"k": 3, "shards": 2})]
)
def test_real_releases_never_leave_before_they_came(method, settings):
    original = made_up(60, seed=3, categories=True)
    release = qc.protect(original, method, seed=1, **settings)
    found = qc.measure(original, release.log, ["delay", "profile_loss"], truth=release.truth)
    assert found["delay"]["counted"] == len(release.log)
    assert 0 <= found["delay"]["records"]["median"] <= found["delay"]["records"]["max"] < len(original)
    assert found["delay"]["seconds"]["mean"] > 0
    assert 0 <= found["profile_loss"]["loss"] < 0.5
