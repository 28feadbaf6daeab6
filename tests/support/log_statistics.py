"""The figures by which search logs are compared, counted as the publishers of AOL 2006 counted theirs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl


@dataclass(frozen=True)
class Statistics:
    """What a log looks like from far away; shares are between 0 and 1."""

    users: int
    lines: int
    searches: int  # different (user, query, time)
    new_queries: int  # lines whose query differs from the user's line before
    next_pages: int  # the same query again, right after, at a later time
    click_events: int
    lines_without_click: int
    distinct_queries: int
    searches_per_user: float
    median_searches_per_user: float
    lines_per_user: float
    median_lines_per_user: float
    users_with_one_line: float
    share_of_busiest_fifth: float
    repeated: float  # searches whose query the same user had made before
    words_per_query: float
    clicked_searches: float
    rank_shares: tuple[float, ...]  # of all clicks, on ranks 1, 2, 3
    deep_clicks: float  # below rank 10
    share_of_top_ten: float  # of new queries
    asked_once: float  # share of different queries that were made once
    busiest_hour: int
    quietest_hour: int


def describe(frame: pl.DataFrame) -> Statistics:
    """Count everything that `Statistics` holds; the log must be sorted by user, then time."""
    searches = frame.unique(["user", "query", "time"], maintain_order=True)
    again = (pl.col("user") == pl.col("user").shift()) & (pl.col("query") == pl.col("query").shift())
    new = searches.filter(~again.fill_null(value=False))
    lines = frame.group_by("user").len()["len"].sort(descending=True)
    made = searches.group_by("user").len()["len"]
    counts = new["query"].value_counts(sort=True)["count"]
    ranks = frame["rank"].drop_nulls()
    hours = searches["time"].dt.hour().value_counts().sort("count", "time")["time"]
    return Statistics(
        users=lines.len(),
        searches_per_user=_mean(made),
        median_searches_per_user=_median(made),
        lines_per_user=_mean(lines),
        median_lines_per_user=_median(lines),
        users_with_one_line=_mean(lines == 1),
        share_of_busiest_fifth=float(lines.head(lines.len() // 5).sum()) / frame.height,
        lines=frame.height,
        searches=searches.height,
        new_queries=new.height,
        next_pages=searches.height - new.height,
        click_events=ranks.len(),
        lines_without_click=frame.height - ranks.len(),
        distinct_queries=counts.len(),
        repeated=1.0 - searches.select("user", "query").unique().height / searches.height,
        words_per_query=_mean(new["query"].str.count_matches(r"\S+")),
        clicked_searches=_mean(searches["rank"].is_not_null()),
        rank_shares=tuple(_mean(ranks == rank) for rank in (1, 2, 3)),
        deep_clicks=_mean(ranks > 10),
        share_of_top_ten=float(counts.head(10).sum()) / new.height,
        asked_once=_mean(counts == 1),
        busiest_hour=int(hours[-1]),
        quietest_hour=int(hours[0]),
    )


def _mean(values: pl.Series) -> float:
    return float(values.cast(pl.Float64).to_numpy().mean()) if values.len() else 0.0


def _median(values: pl.Series) -> float:
    return float(np.median(values.to_numpy()))
