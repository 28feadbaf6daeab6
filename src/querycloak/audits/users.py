"""Audits for guarantees about how many users asked a released query, ever or within a window of time."""

from __future__ import annotations

import numpy as np
import polars as pl
from numba import njit

from querycloak.audits.evidence import NO_TIMES, Evidence, number
from querycloak.audits.lineage import faults
from querycloak.guarantee import Audit, NotCheckable
from querycloak.log import IntArray


def replayed(original: pl.LazyFrame) -> pl.LazyFrame:
    """Number the original's rows as they are replayed: by time, ties by input row; `read` from 1."""
    if "time" not in original.collect_schema().names():
        raise NotCheckable(NO_TIMES)
    return original.sort("time", "row", nulls_last=True).with_row_index("read", offset=1)


def _counts(k: int, evidence: Evidence) -> str:
    rare = evidence.release.filter(pl.len().over("query") < k)
    fault = faults(rare, f"show a query that stands in fewer than {k} rows")
    if fault and evidence.later:
        raise evidence.undecided("later methods may have removed rows of a query that enough users asked")
    return fault


def _askers(k: int, evidence: Evidence) -> str:
    """Count the people behind each released text, in the original and behind the released rows."""
    assert evidence.original is not None
    shown = evidence.traced.select("released_row", "query", user="original_user")
    pairs = pl.concat([evidence.original.select("query", "user"), shown.select("query", "user")])
    askers = pairs.unique().group_by("query", maintain_order=False).agg(askers=pl.len())
    beside = shown.join(askers, on="query", how="left", nulls_equal=True)
    return faults(beside.filter(pl.col("askers") < k), f"show a query that fewer than {k} users asked")


def too_early(k: int, rows: pl.LazyFrame, uses: pl.LazyFrame) -> pl.LazyFrame:
    """Return the rows that were released before k people had used their `thing`.

    `uses` has things, each with a `person` and the number of rows `read` by then.
    """
    first = uses.group_by("thing", "person").agg(pl.col("read").min())
    ripe = first.group_by("thing").agg(ripe=pl.col("read").sort().get(k - 1, null_on_oob=True))
    beside = rows.join(ripe, on="thing", how="left", nulls_equal=True)
    early = pl.col("ripe").is_null() | (pl.col("released_after") < pl.col("ripe"))
    return beside.filter(early)


def queries_too_early(k: int, evidence: Evidence) -> pl.LazyFrame:
    """Return the rows that were released before k people had asked their query."""
    assert evidence.original is not None
    asked = replayed(evidence.original).select("read", thing="query", person="user")
    rows = evidence.traced.select("released_row", "released_after", thing="query")
    return too_early(k, rows, asked)


def _in_time(k: int, evidence: Evidence) -> str:
    if evidence.rewritten:
        raise NotCheckable("another method of this release rewrites queries")
    return faults(queries_too_early(k, evidence), f"were released before {k} users had asked their query")


def asked_by(k: int) -> tuple[Audit, ...]:
    """Return the audits of "each released query was asked by at least k users"."""
    return (
        Audit(f"each released query stands in at least {k} rows", lambda e: _counts(k, e)),
        Audit(f"each released query was asked by at least {k} users", lambda e: _askers(k, e), True),
        Audit(f"no query was released before {k} users had asked it", lambda e: _in_time(k, e), True),
    )


def askers_within(group: IntArray, user: IntArray, time: IntArray, span: int) -> IntArray:
    """Count, for each event, the different users of its group in the last `span` of time.

    Events are sorted by group, then by time. Users are numbered from 0. A user counts once: by the last of
    their events so far.
    """
    count = np.zeros(group.size, np.int64)
    _count_within(group, user, time, span, np.full(int(user.max(initial=-1)) + 1, -1), count)
    return count


@njit(cache=True, nogil=True)
def _count_within(group, user, time, span, latest, count):  # type: ignore[no-untyped-def]
    oldest = users = 0
    for i in range(group.size):
        if i == 0 or group[i] != group[i - 1]:
            oldest, users = i, 0
        while time[oldest] <= time[i] - span:
            users -= latest[user[oldest]] == oldest
            oldest += 1
        users += latest[user[i]] < oldest
        latest[user[i]] = i
        count[i] = users


def _events(evidence: Evidence, level: int | None) -> pl.DataFrame:
    """Return every event as `group, user, time, row`; the group is the query or a cut category."""
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
    return faults(beside.filter(alone), f"show a text that fewer than {z} users asked within the window")


def in_company(z: int, span: int, levels: int) -> Audit:
    """Promise that z people had asked a released text within the time before it left."""
    check = f"each released text was asked by at least {z} users within the window"
    return Audit(check, lambda e: _in_company(z, span, levels, e), needs_truth=True)
