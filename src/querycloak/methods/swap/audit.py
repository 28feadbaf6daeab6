"""Audits of `swap`, by replaying arrivals and releases from the original and the truth."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numba import njit

from querycloak.audits.evidence import Evidence
from querycloak.audits.lineage import faults, one_label, shown_after_erasure
from querycloak.guarantee import Audit, NotCheckable
from querycloak.log import Flags, IntArray


def _never_own(evidence: Evidence) -> str:
    own = evidence.traced.filter(pl.col("user") == pl.col("original_user"))
    return faults(own, "are released under the label of their author")


class _Moves(NamedTuple):
    """Searches that came, or that left, in order of the moment.

    `pair` numbers the pairs of a category and a user, the user of a search that left being the one whom
    its label stands for. `row` is the row of the release, or -1.
    """

    category: IntArray
    pair: IntArray
    at: IntArray
    row: IntArray
    user: IntArray


def _moves(evidence: Evidence, level: int) -> tuple[_Moves, _Moves]:
    return evidence.once(f"moves at level {level}", partial(_listed, evidence, level))


class _Cut(NamedTuple):
    """The categories of the original's rows, and of labels that were there before, as numbers from 1."""

    rows: IntArray
    present: IntArray
    names: pl.Series


def _categories(evidence: Evidence, level: int) -> _Cut:
    """Number categories, cut at a level."""
    assert evidence.original is not None
    rows = evidence.original.select("row", "category").collect()
    rows = (rows if rows["row"].is_sorted() else rows.sort("row")).select(pl.col("category").cast(pl.String))
    both = pl.concat([rows, _present(evidence).select("category")])
    cut = pl.col("category").str.split("/").list.head(level).list.join("/").fill_null("").alias("cut")
    codes = both.unique().with_columns(cut).with_columns(code=pl.col("cut").rank("dense").cast(pl.Int32))
    found = both.join(codes, on="category", how="left", nulls_equal=True, maintain_order="left")
    code = found["code"].to_numpy()
    return _Cut(code[: rows.height], code[rows.height :], codes["cut"].unique().sort())


def _present(evidence: Evidence) -> pl.DataFrame:
    """Return the labels that waited when a part of a stream began; none for a whole log."""
    part = evidence.part
    if part is None or part.since == 0:
        return pl.DataFrame(schema={"user": pl.Int64, "category": pl.String})
    if part.present is None:
        raise NotCheckable("which labels were waiting when this part of the stream began is not known")
    return part.present


def _came(evidence: Evidence, cut: _Cut) -> tuple[pl.Series, IntArray, IntArray]:
    """List whose label came, to which category and when: those that were there before came first of all."""
    searches, present = evidence.searches, _present(evidence)
    heads = np.flatnonzero(searches.head == np.arange(searches.head.size))
    if evidence.part is not None:
        heads = heads[evidence.asked["row"].to_numpy()[heads] >= evidence.part.since]
    heads = heads[np.argsort(searches.entered[heads])]
    at = np.concatenate([np.zeros(present.height, np.int64), searches.entered[heads]])
    users = pl.concat([present["user"], evidence.asked["user"][heads]])
    return users, np.concatenate([cut.present, cut.rows[heads]]), at


def _listed(evidence: Evidence, level: int) -> tuple[_Moves, _Moves]:
    cut = _categories(evidence, level)
    user, category, moment = _came(evidence, cut)
    gone = evidence.placed("released_row", "released_after", "user")
    gone = gone.filter(pl.col("head") == pl.col("place")).sort("released_after")
    parts = [(user, category), (gone["user"], cut.rows[gone["place"].to_numpy()])]
    both = pl.concat([users.hash(6) ^ pl.Series(categories).hash(7) for users, categories in parts])
    ranks: IntArray = both.rank("dense").cast(pl.Int32).to_numpy()
    pair = ranks - np.int32(1)
    at = gone["released_after"].cast(pl.Int64).to_numpy()
    nowhere, rows = np.full(category.size, -1), gone["released_row"].to_numpy()
    return (
        _Moves(category, pair[: category.size], moment, nowhere, user.to_numpy()),
        _Moves(parts[1][1], pair[category.size :], at, rows, gone["user"].to_numpy()),
    )


def remaining(evidence: Evidence, level: Any, leftover: str) -> pl.DataFrame:
    """Return the labels that wait at the end of a part of a stream, by user and category.

    Labels that were dropped count as waiting, since nothing tells which they were.
    """
    depth = _depth(level, leftover)
    came, left = _moves(evidence, depth)
    pairs = 1 + max(int(moves.pair.max(initial=0)) for moves in (came, left))
    many = np.bincount(came.pair, minlength=pairs) - np.bincount(left.pair, minlength=pairs)
    names = _categories(evidence, depth).names
    known = pl.DataFrame({"user": came.user, "category": names.gather(came.category - 1), "pair": came.pair})
    one = known.unique("pair")
    one = one.with_columns(many=pl.Series(np.maximum(many, 0)[one["pair"].to_numpy()]))
    if evidence.erased is not None:
        one = one.join(evidence.erased.select("user").collect(), on="user", how="anti")
    return one.select(pl.col("user", "category").repeat_by("many").explode()).drop_nulls("user")


def _crowd(k: int, level: int, evidence: Evidence) -> str:
    """Check that more than k users were there before each group of releases, and k after it."""
    if evidence.earlier:
        raise NotCheckable("an earlier method may have suppressed records, so the arrivals are not known")
    came, left = _moves(evidence, level)
    bad, overdrawn = too_few(came[:3], left[:3], k, _erasures(evidence, came))
    if overdrawn:
        return "a label was released more often than its user had searched"
    rows = pl.LazyFrame({"released_row": left.row[bad]})
    return faults(rows, f"were released while {k} users or fewer were present")


def _erasures(evidence: Evidence, came: _Moves) -> tuple[IntArray, IntArray, IntArray]:
    """List whose tokens were taken out of which categories, and when, in order of the moment."""
    moves = pl.DataFrame({"category": came.category, "pair": came.pair, "user": came.user}).cast(pl.Int64)
    if evidence.erased is None:
        gone = moves.clear().rename({"user": "erased_after"})
    else:
        gone = moves.join(evidence.erased.collect(), on="user").unique(["category", "pair"])
    category, pair, at = gone.sort("erased_after").select("category", "pair", "erased_after").get_columns()
    return category.to_numpy(), pair.to_numpy(), at.to_numpy()


def _conserved(level: int, evidence: Evidence) -> str:
    """Check that no label leaves a category more often than its user came there, and none that was erased."""
    if late := shown_after_erasure(evidence):
        return late
    came, left = _moves(evidence, level)
    pairs = 1 + max(int(moves.pair.max(initial=0)) for moves in (came, left))
    torn = np.count_nonzero(np.bincount(came.pair, minlength=pairs) < np.bincount(left.pair, minlength=pairs))
    return (
        f"{torn:,} labels were released from a category more often than their users searched there"
        if torn
        else ""
    )


def audits(k: int, level: Any, leftover: str) -> tuple[Audit, ...]:
    """Return the audits of `swap`; where records may move up, what holds for their whole topic."""
    depth = _depth(level, leftover)
    tests: tuple[tuple[str, Callable[[Evidence], str]], ...] = (
        ("no record is released under the label of its author", _never_own),
        (f"more than {k} users are present at each release", lambda e: _crowd(k, depth, e)),
        (
            "no label is released more often than its user searched in the category",
            lambda e: _conserved(depth, e),
        ),
        ("all rows of one search carry one label", one_label),
    )
    return tuple(Audit(check, test, needs_truth=True, on_parts=True) for check, test in tests)


def _depth(level: Any, leftover: str) -> int:
    return 1 if level == "auto" or leftover == "rollup" else int(level)


#: Category, pair of category and user, and moment of each move, in order of the moment.
Moves = tuple[IntArray, IntArray, IntArray]


@njit(cache=True, nogil=True)
def _replay(  # type: ignore[no-untyped-def]
    came_to, came_as, came_at, left_from, left_as, left_at, gone_from, gone_as, gone_at, k, tokens, present,
    since, bad,
):  # fmt: skip
    arrived = erased = 0
    for i in range(left_at.size):
        while arrived < came_at.size and came_at[arrived] <= left_at[i]:
            tokens[came_as[arrived]] += 1
            present[came_to[arrived]] += tokens[came_as[arrived]] == 1
            arrived += 1
        while erased < gone_at.size and gone_at[erased] < left_at[i]:
            present[gone_from[erased]] -= tokens[gone_as[erased]] > 0
            tokens[gone_as[erased]] = 0
            erased += 1
        c, pair = left_from[i], left_as[i]
        before = present[c]
        tokens[pair] -= 1
        if tokens[pair] < 0:
            return True
        present[c] -= tokens[pair] == 0
        is_first = since[c] != left_at[i]  # of those that leave at this moment, whose order is not known
        bad[i] = (is_first and before <= k) or present[c] < k
        since[c] = left_at[i]
    return False


def too_few(came: Moves, left: Moves, k: int, gone: Moves) -> tuple[Flags, bool]:
    """Return which left although not more than k users were present, or left fewer than k behind.

    From the moment of `gone` on, a user does not count in that category: it was erased, and never returns.
    Also whether some user left a category more often than the user had come; then nothing else counts.
    """
    categories, pairs = (max(int(m[part].max(initial=-1)) for m in (came, left)) + 1 for part in (0, 1))
    tokens, present = np.zeros(pairs, np.int32), np.zeros(categories, np.int32)
    since = np.full(categories, np.iinfo(np.int64).min)
    bad = np.zeros(left[2].size, np.bool_)
    overdrawn = _replay(*came, *left, *gone, k, tokens, present, since, bad)
    return bad, bool(overdrawn)
