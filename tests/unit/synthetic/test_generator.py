"""The made-up log: the same by seed, however it is cut, with nobody real in it."""

from __future__ import annotations

import re

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querycloak.errors import ParameterError
from querycloak.synthetic import generate, pieces
from querycloak.synthetic.rng import BLOCK_USERS

COLUMNS = ["row", "user", "query", "time", "rank", "url"]


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    return generate(3_000, seed=7, categories=True).frame


def test_columns_and_types_are_those_of_a_log(frame: pl.DataFrame) -> None:
    assert frame.columns == [*COLUMNS, "category"]
    assert frame.schema["row"] == pl.Int64
    assert frame.schema["rank"] == pl.Int64
    assert frame.schema["time"] == pl.Datetime("us", "UTC")
    assert generate(3).frame.columns == COLUMNS


def test_log_counts_its_rows() -> None:
    log = generate(40, seed=2)
    assert log.rows_read == len(log) == log.frame.height
    assert log.frame["row"].to_list() == list(range(len(log)))
    assert log.frame["user"].n_unique() == 40


def test_same_seed_same_bytes_other_seed_other_log() -> None:
    once, again = (generate(300, seed=5).frame.write_csv() for _ in range(2))
    assert once == again
    assert once != generate(300, seed=6).frame.write_csv()


def test_a_log_stays_the_same_over_versions_of_the_code() -> None:
    """Fails when a change alters made-up logs: then say so in the changelog, and renew the figures."""
    frame = generate(2, seed=1).frame
    assert frame.select("user", pl.col("time").dt.epoch("s")).head(3).rows() == FIRST_ROWS


FIRST_ROWS = [("149", 1144258822), ("149", 1146000482), ("149", 1146000511)]


@settings(max_examples=12, deadline=None)
@given(users=st.integers(1, BLOCK_USERS + 300), piece_users=st.integers(1, 700), seed=st.integers(0, 3))
def test_pieces_make_no_difference(users: int, piece_users: int, seed: int) -> None:
    whole = generate(users, seed).frame
    cut = pl.concat([piece.frame for piece in pieces(users, seed, piece_users=max(piece_users, users // 8))])
    assert cut.equals(whole)


def test_a_larger_log_opens_with_the_smaller_one() -> None:
    small, large = generate(BLOCK_USERS - 24, 3).frame, generate(BLOCK_USERS + 50, 3).frame
    assert large.head(small.height).equals(small)


def test_rows_come_by_user_then_time(frame: pl.DataFrame) -> None:
    numbered = frame.select(pl.col("user").cast(pl.Int64), "time")
    assert numbered.equals(numbered.sort("user", "time", maintain_order=True))


def test_rows_of_one_moment_are_clicks_of_one_search(frame: pl.DataFrame) -> None:
    moments = frame.group_by("user", "time").agg(
        pl.col("query").n_unique().alias("queries"),
        pl.len().alias("rows"),
        pl.col("rank").n_unique().alias("ranks"),
        pl.col("rank").null_count().alias("empty"),
    )
    assert moments["queries"].max() == 1
    several = moments.filter(pl.col("rows") > 1)
    assert several.height > 1_000
    assert several["empty"].sum() == 0
    assert (several["ranks"] == several["rows"]).all()


def test_rank_and_url_are_empty_together(frame: pl.DataFrame) -> None:
    assert (frame["rank"].is_null() == frame["url"].is_null()).all()
    assert frame["rank"].min() == 1


def test_period_is_kept(frame: pl.DataFrame) -> None:
    days = frame["time"].dt.date()
    assert str(days.min()) == "2006-03-01"
    assert str(days.max()) == "2006-05-31"
    week = generate(200, days=7, start="2024-02-26").frame["time"].dt.date()
    assert (str(week.min()), str(week.max())) == ("2024-02-26", "2024-03-03")


def test_one_day_is_enough_for_everyone() -> None:
    frame = generate(BLOCK_USERS, days=1).frame
    assert frame["time"].dt.date().n_unique() == 1
    assert frame.group_by("user", "time").agg(pl.col("query").n_unique())["query"].max() == 1


def test_queries_are_lower_case_and_tidy(frame: pl.DataFrame) -> None:
    queries = frame["query"]
    assert queries.null_count() == 0
    assert queries.str.len_chars().min() >= 1
    assert (queries == queries.str.to_lowercase()).all()
    assert not queries.str.contains(r"^\s|\s$|\s\s|\t|\n").any()


def test_the_same_click_leads_to_the_same_site(frame: pl.DataFrame) -> None:
    """A query's results do not change: equal query, category and rank give one address nearly always."""
    clicks = frame.drop_nulls("rank").group_by("query", "category", "rank")
    addresses = clicks.agg(pl.col("url").n_unique().alias("urls"), pl.len()).filter(pl.col("len") > 1)
    assert (addresses["urls"] == 1).mean() > 0.95


def test_categories_are_known_ones(frame: pl.DataFrame) -> None:
    from querycloak import text

    assert set(frame["category"].unique()) <= set(text.vocabulary())
    assert frame["category"].str.split("/").list.first().n_unique() == 16


def test_users_have_few_interests(frame: pl.DataFrame) -> None:
    """Half of a busy user's searches fall into few categories, although there are many."""
    busy = frame.filter(pl.len().over("user") >= 100)
    shares = (
        busy.group_by("user", "category")
        .len()
        .with_columns(share=pl.col("len") / pl.col("len").sum().over("user"))
    )
    top_four = (
        shares.sort("share", descending=True).group_by("user").agg(pl.col("share").head(4).sum())["share"]
    )
    assert top_four.median() > 0.5


def test_progress_is_told_up_to_the_end() -> None:
    told: list[tuple[int, int]] = []
    generate(BLOCK_USERS + 1, progress=lambda done, of: told.append((done, of)))
    assert told == [(BLOCK_USERS, BLOCK_USERS + 1), (BLOCK_USERS + 1, BLOCK_USERS + 1)]


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"users": 0}, "`users` must be int, at least 1; got 0"),
        ({"users": True}, "`users` must be int, at least 1; got True"),
        ({"users": 5, "seed": -1}, "`seed` must be int, at least 0; got -1"),
        ({"users": 5, "days": 0}, "`days` must be int, at least 1; got 0"),
        ({"users": 5, "start": "March"}, "`start` must be a day like 2006-03-01; got 'March'"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, object], text: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(text)):
        generate(**wrong)  # type: ignore[arg-type]


def test_wrong_piece_size_is_refused_at_once() -> None:
    with pytest.raises(ParameterError, match="piece_users"):
        pieces(10, piece_users=0)
