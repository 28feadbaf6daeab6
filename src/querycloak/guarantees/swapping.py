"""Audits of `swap`, by replaying arrivals and releases from the original and the truth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from querycloak.guarantees import Audit, Evidence, NotCheckable
from querycloak.guarantees.lineage import faults
from querycloak.guarantees.presence import too_few
from querycloak.log import IntArray


def _never_own(evidence: Evidence) -> str:
    own = evidence.traced.filter(pl.col("user") == pl.col("original_user"))
    return faults(own, "left under their own user")


def one_label(evidence: Evidence) -> str:
    """Check that all rows of one search carry one label."""
    rows = evidence.traced.filter(pl.col("place") >= 0).select("released_row", "place", "user").collect()
    head, user = evidence.searches.head[rows["place"].to_numpy()], rows["user"].to_numpy()
    label = np.zeros(evidence.asked.height, np.int64)
    label[head] = user  # of any row of the search; the others must agree
    other = rows.lazy().filter(pl.Series(label[head] != user))
    return faults(other, "of one search carry several labels")


_GONE = ("released_row", "place", "released_after", "user")


class _Moves(NamedTuple):
    """Searches that came, or that left, in order of the moment.

    `pair` numbers the pairs of a category and a user, the user of a search that left being the one whom
    its label stands for. `row` is the row of original or release.
    """

    category: IntArray
    pair: IntArray
    at: IntArray
    row: IntArray


def _moves(evidence: Evidence, level: int) -> tuple[_Moves, _Moves]:
    if level not in evidence.memo:
        evidence.memo[level] = _listed(evidence, level)
    came, left = evidence.memo[level]
    return came, left


def _categories(evidence: Evidence, level: int) -> IntArray:
    """Number the category of each row of the original, cut at a level."""
    assert evidence.original is not None
    rows = evidence.original.select("row", "category").collect()
    rows = rows if rows["row"].is_sorted() else rows.sort("row")
    cut = pl.col("category").cast(pl.String).str.split("/").list.head(level).list.join("/").fill_null("")
    codes = rows.select("category").unique().with_columns(code=cut.rank("dense").cast(pl.Int32))
    found = rows.join(codes, on="category", how="left", nulls_equal=True, maintain_order="left")
    return found["code"].to_numpy()


def _listed(evidence: Evidence, level: int) -> tuple[_Moves, _Moves]:
    category, searches = _categories(evidence, level), evidence.searches
    heads = np.flatnonzero(searches.head == np.arange(searches.head.size))
    heads = heads[np.argsort(searches.entered[heads])]
    gone = evidence.traced.filter(pl.col("place") >= 0).select(*_GONE).collect()
    place = gone["place"].to_numpy()
    gone = gone.filter(pl.Series(searches.head[place] == place)).sort("released_after")
    place = gone["place"].to_numpy()
    parts = [(evidence.asked["user"][heads], category[heads]), (gone["user"], category[place])]
    pair = _pairs(pl.concat([_both(*part) for part in parts]))
    at = gone["released_after"].cast(pl.Int64).to_numpy()
    return (
        _Moves(parts[0][1], pair[: heads.size], searches.entered[heads], heads),
        _Moves(parts[1][1], pair[heads.size :], at, gone["released_row"].to_numpy()),
    )


def _both(user: pl.Series, category: IntArray) -> pl.Series:
    return user.hash(6) ^ pl.Series(category).hash(7)


def _pairs(both: pl.Series) -> IntArray:
    ranks: IntArray = both.rank("dense").cast(pl.Int32).to_numpy()
    return ranks - np.int32(1)


def _crowd(k: int, level: int, evidence: Evidence) -> str:
    """Check that more than k users were there before each group of releases, and k after it."""
    if evidence.earlier:
        raise NotCheckable("an earlier method may have dropped records, and nothing tells which arrived")
    came, left = _moves(evidence, level)
    bad, overdrawn = too_few(came[:3], left[:3], k)
    if overdrawn:
        return "a label left more often than its user had come"
    rows = pl.LazyFrame({"released_row": left.row[bad]})
    return faults(rows, f"left while {k} users or fewer were present")


def _conserved(level: int, evidence: Evidence) -> str:
    """Check that no label leaves a category more often than its user came there."""
    came, left = _moves(evidence, level)
    pairs = 1 + max(int(moves.pair.max(initial=0)) for moves in (came, left))
    torn = np.count_nonzero(np.bincount(came.pair, minlength=pairs) < np.bincount(left.pair, minlength=pairs))
    return f"{torn:,} users left a category more often than they came" if torn else ""


def audits(k: int, level: Any, leftover: str) -> tuple[Audit, ...]:
    """Give the audits of `swap`; where records may move up, what holds for their whole topic."""
    depth = 1 if level == "auto" or leftover == "rollup" else int(level)
    return (
        Audit("no record left under its own user", _never_own, True),
        Audit(f"more than {k} users were present at each release", lambda e: _crowd(k, depth, e), True),
        Audit("users per category are conserved", lambda e: _conserved(depth, e), True),
        Audit("all rows of one search carry one label", one_label, True),
    )
