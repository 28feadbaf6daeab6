"""Audits of `swap`, by replaying arrivals and releases from the original and the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from querycloak.guarantees import Audit, Evidence
from querycloak.guarantees.lineage import faults


def _never_own(evidence: Evidence) -> str:
    own = evidence.traced.filter(pl.col("user") == pl.col("original_user"))
    return faults(own, "left under their own user")


def one_label(evidence: Evidence) -> str:
    """Check that all rows of one search carry one label."""
    beside = evidence.traced.join(evidence.searches, left_on="original_row", right_on="row", how="left")
    return faults(
        beside.filter(pl.col("user").n_unique().over("head") > 1), "of one search carry several labels"
    )


def number(column: str) -> pl.Expr:
    """Turn texts into numbers by a 64-bit hash; among millions two meet by chance once in a million runs."""
    return pl.col(column).hash(5).reinterpret(signed=True)


def _events(evidence: Evidence, level: int) -> dict[str, Any]:
    """List arrivals and releases of searches; a release's user is the one whom its label stands for."""
    if level not in evidence.memo:
        evidence.memo[level] = _listed(evidence, level)
    events: dict[str, Any] = evidence.memo[level]
    return events


def _listed(evidence: Evidence, level: int) -> dict[str, Any]:
    assert evidence.original is not None
    cut = pl.col("category").str.split("/").list.head(level).list.join("/")
    paths = evidence.original.select("category").unique().with_columns(cut=cut.fill_null(""))
    heads = evidence.searches.filter(pl.col("row") == pl.col("head")).drop("head")
    named = evidence.original.select("row", "category", user=number("user")).join(heads, on="row")
    came = named.join(paths.with_columns(group=number("cut")), on="category", nulls_equal=True)
    came = came.select("row", "group", "user", at="entered").collect().lazy()
    rows = evidence.traced.select("released_row", "original_row", "released_after", user=number("user"))
    gone = rows.join(came.select("row", "group"), left_on="original_row", right_on="row")
    arrivals = came.select(
        "group", "user", "at", change=pl.lit(1, pl.Int64), released_row=pl.lit(-1, pl.Int64)
    )
    releases = gone.select(
        "group",
        "user",
        at=pl.col("released_after").cast(pl.Int64),
        change=pl.lit(-1, pl.Int64),
        released_row=pl.col("released_row").cast(pl.Int64),
    )
    events = pl.concat([arrivals, releases]).collect()
    return {name: events[name].to_numpy() for name in events.columns}


def _present(group: Any, user: Any, at: Any, change: Any) -> Any:
    """Say by how much each event changes the number of different users present in its group."""
    order = np.lexsort((-change, at, user, group))
    g, u, c = group[order], user[order], change[order]
    total = np.cumsum(c)
    first = np.flatnonzero(np.r_[True, (g[1:] != g[:-1]) | (u[1:] != u[:-1])])
    base = np.repeat(total[first] - c[first], np.diff(np.r_[first, g.size]))
    count = total - base
    step = np.where((c > 0) & (count == 1), 1, np.where((c < 0) & (count == 0), -1, 0))
    result = np.empty_like(step)
    result[order] = step
    return result, count.min(initial=0)


def _crowd(k: int, level: int, evidence: Evidence) -> str:
    """Check that more than k users were there before each group of releases, and k after it."""
    events = _events(evidence, level)
    group, user, at, change = (events[name] for name in ("group", "user", "at", "change"))
    if not (change < 0).any():
        return ""
    step, least = _present(group, user, at, change)
    if least < 0:
        return "a label left more often than its user had come"
    order = np.lexsort((-change, at, group))
    g, t, c = group[order], at[order], change[order]
    total = np.cumsum(step[order])
    first = np.flatnonzero(np.r_[True, g[1:] != g[:-1]])
    base = np.repeat(np.r_[0, total[first[1:] - 1]], np.diff(np.r_[first, g.size]))
    now = total - base
    starts = np.flatnonzero((c < 0) & np.r_[True, (c[:-1] > 0) | (t[1:] != t[:-1]) | (g[1:] != g[:-1])])
    ends = np.flatnonzero((c < 0) & np.r_[(t[1:] != t[:-1]) | (g[1:] != g[:-1]), True])
    before = now[starts] - step[order][starts]
    bad = (before <= k) | (now[ends] < k)
    rows = events["released_row"][order][starts[bad]]
    table = pl.LazyFrame({"released_row": np.sort(rows)})
    return faults(table, f"left while {k} users or fewer were present") if rows.size else ""


def _conserved(level: int, evidence: Evidence) -> str:
    """Check that no label leaves a category more often than its user came there."""
    events = pl.DataFrame(_events(evidence, level))
    sums = events.group_by("group", "user").agg(pl.col("change").sum()).filter(pl.col("change") < 0)
    return f"{sums.height:,} users left a category more often than they came" if sums.height else ""


def audits(k: int, level: Any, leftover: str) -> tuple[Audit, ...]:
    """Give the audits of `swap`; where records may move up, what holds for their whole topic."""
    depth = 1 if level == "auto" or leftover == "rollup" else int(level)
    return (
        Audit("no record left under its own user", _never_own, True),
        Audit(f"more than {k} users were present at each release", lambda e: _crowd(k, depth, e), True),
        Audit("users per category are conserved", lambda e: _conserved(depth, e), True),
        Audit("all rows of one search carry one label", one_label, True),
    )
