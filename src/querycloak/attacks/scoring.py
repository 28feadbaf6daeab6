"""Scores guesses against the truth: the only place where both are seen together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl

from querycloak import intervals
from querycloak.attacks.base import Attribution, ConceptGuesses, Identification, PairGuesses
from querycloak.attacks.case import Truth, codes
from querycloak.attacks.finding import Unit, bound_holds
from querycloak.dictionary import distinct
from querycloak.errors import NotApplicable, UsageError
from querycloak.log import Flags, FloatArray, IntArray

#: How often one author asked a string in the release: name, from, to.
_REPEATS = (("1", 1, 1), ("2-4", 2, 4), ("5+", 5, np.iinfo(np.int64).max))


@dataclass(frozen=True)
class Score:
    """What scoring found, before the runner adds the attack's name, its bound and its time."""

    unit: Unit
    share: intervals.Share
    median_user: float | None = None
    worst_decile_user: float | None = None
    details: dict[str, Any] = field(default_factory=dict)
    #: What fakes left to people, by the names that a finding has for it.
    privacy: dict[str, Any] = field(default_factory=dict)


def attribution(guesses: Attribution, truth: Truth, bound: float | None = None) -> Score:
    """Score one guess a row: the share of rows whose author's label was named; no guess is a miss."""
    if len(guesses.guess) != len(truth.label):
        raise UsageError(f"the attack made {len(guesses.guess):,} guesses for {len(truth.label):,} rows")
    right = (guesses.guess.cast(pl.String) == truth.label.cast(pl.String)).fill_null(False).to_numpy()
    rows = np.flatnonzero(truth.has_author())
    hits = right[rows].astype(np.float64)
    found = _share(hits, truth.clusters(rows))
    if not right.any() and truth.labels_are_parts:
        raise NotApplicable("each label is of a part of somebody's history, and none is its author's own")
    details = {"guessed": 1.0 - guesses.guess.null_count() / len(guesses.guess)} | guesses.details
    if truth.repeats is not None:
        details |= _by_repeats(hits, rows, truth, bound)
    return Score("record", found, *_over_users(hits, truth.author[rows]), details)


def _share(hits: FloatArray, clusters: list[IntArray]) -> intervals.Share:
    found = intervals.share(hits, clusters)
    if found is None:
        raise NotApplicable("there is nothing to score: no released row has an author")
    return found


def _by_repeats(hits: FloatArray, rows: IntArray, truth: Truth, bound: float | None) -> dict[str, Any]:
    """Split success by how often a row's author asked its query: repeated strings tell most."""
    assert truth.repeats is not None
    often = truth.repeats[rows]
    parts: dict[str, Any] = {}
    for name, least, most in _REPEATS:
        chosen = np.flatnonzero((often >= least) & (often <= most))
        part = intervals.share(hits[chosen], truth.clusters(rows[chosen]))
        parts[name] = _as_dict(part, bound) if part else None
    return {"by_repeats": parts, "repeated": parts["5+"]}


def _as_dict(part: intervals.Share, bound: float | None) -> dict[str, Any]:
    values = asdict(part)
    return {"success": values.pop("value")} | values | {"holds": bound_holds(bound, part.low)}


def _over_users(hits: FloatArray, author: IntArray) -> tuple[float, float]:
    """Return the median author's success and that of the author at the worst tenth."""
    sizes = np.bincount(author)
    rates = np.bincount(author, weights=hits)[sizes > 0] / sizes[sizes > 0]
    median, worst = np.quantile(rates, [0.5, 0.9])
    return float(median), float(worst)


def pairs(guesses: PairGuesses, truth: Truth, seed: int = 0) -> Score:
    """Score pairs: how often "one author or two?" is answered right on as many of one as of the other.

    The attacker calls the better-scored half of the balanced pairs one author's; 0.5 is chance.
    """
    first, second = (places(rows, truth.released_row) for rows in (guesses.first, guesses.second))
    scored = truth.has_author()[first] & truth.has_author()[second] & ~np.isnan(guesses.score)
    first, second, score = first[scored], second[scored], guesses.score[scored]
    same = truth.author[first] == truth.author[second]
    chosen = _balanced(same, seed)
    hits = _decided(score[chosen], same[chosen])
    clusters = [truth.author[first[chosen]], truth.author[second[chosen]]]
    details = guesses.details | {
        "chance": 0.5,
        "area_under_curve": area_under_curve(score, same),
        "precision_at_true_pairs": precision_at(score, same, int(same.sum())),
        "pairs": int(same.size),
        "true_pairs": int(same.sum()),
    }
    return Score("pair", _share(hits, clusters), *_over_users(hits, clusters[0]), details)


def places(rows: IntArray, released_row: IntArray) -> IntArray:
    """Find where released rows stand in the release; they come in increasing order."""
    places = np.searchsorted(released_row, rows)
    if rows.size and (places.max() >= released_row.size or np.any(released_row[places] != rows)):
        raise UsageError("the attack named rows that the release does not have")
    return places.astype(np.int64)


def _balanced(same: Flags, seed: int) -> IntArray:
    """Draw equally many pairs of both kinds."""
    kinds = np.flatnonzero(same), np.flatnonzero(~same)
    size = min(kind.size for kind in kinds)
    if not size:
        raise NotApplicable("there are not both pairs of one author and pairs of two among those scored")
    draws = np.random.default_rng(seed)
    return np.sort(np.concatenate([draws.choice(kind, size, replace=False) for kind in kinds]))


def _decided(score: FloatArray, same: Flags) -> FloatArray:
    """Call the upper half one author's; pairs that tie at the cut are right as often as a coin would be."""
    half = score.size // 2
    cut = np.partition(score, half)[half]
    above, ties = score > cut, score == cut
    called = np.where(ties, (half - above.sum()) / ties.sum(), above.astype(np.float64))
    hits: FloatArray = np.where(same, called, 1.0 - called)
    return hits


def area_under_curve(score: FloatArray, same: Flags) -> float:
    """Return the chance that a pair of one author scores above a pair of two; ties count half."""
    order = np.sort(score[~same])
    true = score[same]
    if not order.size or not true.size:
        return float("nan")
    below, upto = np.searchsorted(order, true, "left"), np.searchsorted(order, true, "right")
    return float((below + upto).mean() / 2 / order.size)


def precision_at(score: FloatArray, same: Flags, count: int) -> float:
    """Return the share of one author's pairs among the best `count`; ties at the cut count by their mean."""
    if not count:
        return float("nan")
    cut = np.partition(score, score.size - count)[score.size - count]
    above, ties = score > cut, score == cut
    room = count - int(above.sum())
    return float((same[above].sum() + room * same[ties].mean()) / count)


def concepts(guesses: ConceptGuesses, truth: Truth, asked: pl.Series) -> Score:
    """Score one guess a phrase: the share whose concept was there before.

    Rows whose query was not read as so many phrases when it came in tell nothing, and are left out.
    """
    texts, number = distinct(asked)
    concept, start = guesses.meaning(texts)
    size = np.diff(start)[number]
    shown = np.zeros(len(asked), np.int64)
    np.maximum.at(shown, guesses.row, guesses.turn + 1)
    kept = truth.has_author()[guesses.row] & (size[guesses.row] == shown[guesses.row])
    row, turn = guesses.row[kept], guesses.turn[kept]
    right = concept[start[number[row]] + turn] == guesses.guess[kept]
    hits = right.astype(np.float64)
    found = _share(hits, truth.clusters(row))
    details = guesses.details | {"phrases": int(guesses.row.size), "left_out": int((~kept).sum())}
    return Score("concept", found, *_over_users(hits, truth.author[row]), details)


def identification(guesses: Identification, truth: Truth, people: Mapping[str, str]) -> Score:
    """Score one guess a target: a label or a row of the target, or a list of either.

    `people` leads from the attack's names of targets to users of the original. A list counts by the
    share of it that is right: of t labels, one of them right, each would be named once in t times. No
    guess is a miss.
    """
    table = pl.DataFrame({"target": guesses.target.cast(pl.String), "guess": guesses.guess})
    table = table.with_columns(user=pl.col("target").replace_strict(people, default=None))
    if table["user"].null_count():
        raise UsageError("the attack named targets that it was not given")
    kind = _right_labels if table.schema["guess"] in (pl.String, pl.List(pl.String)) else _right_rows
    each = table.with_row_index("place")
    each = each.explode("guess") if isinstance(table.schema["guess"], pl.List) else each
    right = kind(each, truth).group_by("place").agg(pl.col("right").fill_null(value=False).mean())
    hits = right.sort("place")["right"].to_numpy()
    details = guesses.details | {
        "targets": len(hits),
        "guessed": 1.0 - table["guess"].null_count() / len(hits),
    }
    if guesses.candidates is not None and guesses.candidates.size:
        sizes = guesses.candidates
        details["chance"] = float(np.where(sizes > 0, 1.0 / np.maximum(sizes, 1), 0.0).mean())
    share = _share(hits, [codes(table["user"])])
    return Score("user", share, *_over_users(hits, codes(table["user"])), details)


def _right_labels(guesses: pl.DataFrame, truth: Truth) -> pl.DataFrame:
    goes_by = truth.right_labels().select("user", guess="label", right=pl.lit(value=True))
    return guesses.join(goes_by, on=["user", "guess"], how="left")


def _right_rows(guesses: pl.DataFrame, truth: Truth) -> pl.DataFrame:
    wrote = pl.DataFrame({"guess": truth.released_row, "wrote": truth.user})
    found = guesses.with_columns(pl.col("guess").cast(pl.Int64)).join(wrote, on="guess", how="left")
    return found.with_columns(right=pl.col("wrote") == pl.col("user"))
