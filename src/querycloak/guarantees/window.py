"""An audit of z-anonymity: who asked what within a stretch of time, counted again from the original."""

from __future__ import annotations

import numpy as np
import polars as pl

from querycloak.guarantees import Audit, Evidence, NotCheckable, number
from querycloak.guarantees.frequent import replayed
from querycloak.guarantees.lineage import faults
from querycloak.log import IntArray


def askers_within(group: IntArray, user: IntArray, time: IntArray, span: int) -> IntArray:
    """Count, for each event, the different users of its group in the last `span` of time.

    Events come sorted by group, then by time. A user counts once: by the last of her events so far.
    """
    count = np.zeros(group.size, np.int64)
    oldest, current = 0, -1
    seen: dict[int, int] = {}
    for i, (g, u, t) in enumerate(zip(group.tolist(), user.tolist(), time.tolist(), strict=True)):
        if g != current:
            oldest, seen, current = i, {}, g
        while time[oldest] <= t - span:
            if seen.get(user[oldest]) == oldest:
                del seen[user[oldest]]
            oldest += 1
        seen[u] = i
        count[i] = len(seen)
    return count


def _events(evidence: Evidence, level: int | None) -> pl.DataFrame:
    """Give every event as `group, user, time, row`, the group being the query or a cut category."""
    assert evidence.original is not None
    original = evidence.original
    if level is None:
        group = pl.col("query")
    else:
        search = pl.col("category").sort_by("row").first().over("user", "query", "time")
        original = original.with_columns(category=search)  # one search has one category: its first row's
        path = pl.col("category").cast(pl.String)
        deep = path.str.count_matches("/", literal=True) + 1 >= level
        group = pl.when(deep).then(number(path.str.split("/").list.head(level).list.join("/")))
    events = replayed(original).select("row", "read", "user", "time", group=group)
    return events.filter(pl.col("group").is_not_null()).sort("group", "read").collect()


def _counted(events: pl.DataFrame, span: int) -> pl.DataFrame:
    code = pl.col("group").rank("dense").cast(pl.Int64), pl.col("user").rank("dense").cast(pl.Int64)
    time = pl.col("time").cum_max().over("group").to_physical()
    numbers = events.select(code[0].alias("g"), code[1].alias("u"), time.alias("t"))
    g, u, t = (numbers[name].to_numpy() for name in ("g", "u", "t"))
    counts = askers_within(g, u, t, span)
    return events.select("row", "group").with_columns(askers=pl.Series(counts))


def _in_company(z: int, span: int, levels: int, evidence: Evidence) -> str:
    """Look each released text up among the queries, then among the categories of each level."""
    original = evidence.original
    assert original is not None
    if evidence.rewritten_later:
        raise NotCheckable("a later method of this release rewrites queries")
    shown = evidence.traced.select("released_row", "query", "original_row")
    has_categories = "category" in original.collect_schema().names()
    depths = [None, *range(1, levels + 1)] if has_categories and levels else [None]
    counted = pl.concat([_counted(_events(evidence, depth), span) for depth in depths]).lazy()
    best = counted.group_by("row", "group").agg(pl.col("askers").max())
    beside = shown.join(best, left_on=["original_row", "query"], right_on=["row", "group"], how="left")
    alone = pl.col("askers").is_null() | (pl.col("askers") < z)
    return faults(beside.filter(alone), f"had fewer than {z} people asking the same within the window")


def in_company(z: int, span: int, levels: int) -> Audit:
    """Promise that z people had asked a released text within the time before it left."""
    return Audit(
        f"each released text was asked by at least {z} people within the window",
        lambda e: _in_company(z, span, levels, e),
        needs_truth=True,
    )
