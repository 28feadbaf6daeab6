"""`usr` takes over what one other person did; `hybrid` leaves nothing of it but the queries."""

from __future__ import annotations

import polars as pl
import pytest

from tests.support.covers import area, covered, log_of, searches
from tests.support.logs import made_up

LOG = made_up(users=60, seed=4).frame


def test_usr_is_all_of_one_other_person():
    hers = {
        user: part.sort(pl.all())
        for (user,), part in LOG.drop("row").partition_by("user", as_dict=True).items()
    }
    for (user,), part in covered(LOG, "usr").filter("fake").partition_by("user", as_dict=True).items():
        fakes = part.drop("user", "fake", "original_row").sort(pl.all())
        donors = [name for name, rows in hers.items() if rows.drop("user").sort(pl.all()).equals(fakes)]
        assert len(donors) >= 1
        assert user not in donors


def test_usr_with_a_number_borrows_from_several():
    rows = [("busy", f"own {n}", n * 1000) for n in range(9)]
    rows += [(f"u{n}", f"{name} {n}", n * 999) for n in range(5) for name in ("x", "y")]
    fakes = covered(log_of(rows), "usr", fakes=1).filter((pl.col("user") == "busy") & pl.col("fake"))
    assert fakes.height == 9
    assert not fakes["query"].str.starts_with("own").any()


def test_usr_shows_nothing_in_a_single_column():
    """Of 60 people's searches; a figure whose halves are alike lies within 0.46 to 0.54, by trial."""
    found = searches(covered(LOG, "usr", fakes=1))
    for figure in (found["query"].str.len_chars(), found["url"].is_not_null(), found["time"].dt.second()):
        assert 0.46 < area(figure, found["fake"]) < 0.54


def test_hybrid_asks_what_people_asked_when_a_machine_would():
    found = covered(LOG, "hybrid").filter("fake")
    assert set(found["query"]) <= set(LOG["query"])
    asked = LOG.select("user", "query", "time").unique()
    assert found.join(asked, on=["query", "time"]).height == 0
    hours = found["time"].dt.hour()
    assert 0.2 < (hours < 6).mean() < 0.3, "a machine does not sleep"


def test_hybrid_clicks_once_on_what_was_clicked_for_the_query():
    found = covered(LOG, "hybrid").filter("fake")
    assert searches(found).height == found.height
    known = LOG.filter(pl.col("url").is_not_null()).select("query", "rank", "url").unique()
    clicked = found.filter(pl.col("url").is_not_null())
    assert clicked.join(known, on=["query", "rank", "url"], how="semi").height == clicked.height > 0
    share = searches(LOG)["url"].is_not_null().mean()
    assert clicked.height / found.height == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("method", ["tmn", "hybrid"])
def test_bursts_follow_real_searches(method):
    found = covered(LOG, method, timing="burst")
    since = pl.when(~pl.col("fake")).then("time").forward_fill().over("user")
    late = found.with_columns(since=pl.col("time") - since).filter("fake")
    assert (late["since"].dt.total_seconds() <= 200).mean() > 0.98
    assert (late["since"].dt.total_seconds() >= 2).mean() > 0.8


@pytest.mark.parametrize("method", ["tmn", "hybrid"])
def test_regular_fakes_come_at_equal_intervals(method):
    fakes = covered(LOG, method, timing="regular").filter("fake")
    for part in fakes.partition_by("user"):
        gaps = part["time"].unique().sort().diff().drop_nulls().dt.total_seconds()
        assert gaps.len() == 0 or gaps.max() - gaps.min() <= 1


@pytest.mark.parametrize("method", ["tmn", "hybrid"])
def test_random_fakes_come_at_any_time_of_the_log(method):
    fakes = covered(LOG, method).filter("fake")
    gaps = fakes.select((pl.col("time").diff().over("user")).dt.total_seconds())["time"].drop_nulls()
    assert gaps.n_unique() > 0.5 * gaps.len()
    place = (fakes["time"] - LOG["time"].min()) / (LOG["time"].max() - LOG["time"].min())
    assert 0.45 < place.mean() < 0.55
