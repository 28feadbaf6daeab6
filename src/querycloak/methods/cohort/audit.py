"""Audits of `cohort`: membership, and whether labels carry information about authors."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np
import polars as pl

from querycloak.audits.evidence import Evidence
from querycloak.audits.lineage import one_label, shown_after_erasure
from querycloak.guarantee import Audit, NotCheckable
from querycloak.log import FloatArray

#: Chance that any of the three tests of uniformity alarms although all is well.
FALSE_ALARM: Final = 1e-6
_TAIL: Final = FALSE_ALARM / 6  # three tests, two sides each
#: Up to this variance tails are exact or bounded. Above, hits are so nearly normal that the tail beyond
#: `_Z` deviations is below `_TAIL` even if it is 1.6 times that of the normal distribution.
_LARGE: Final = 10_000.0
_Z: Final = 5.2
#: Exponents at which the tail of a number of pairs is bounded: every one gives a bound.
_EXPONENTS: Final = np.concatenate([-np.geomspace(20, 1e-3, 60), np.geomspace(1e-3, 20, 120)])
#: The same for large parts, in units of the largest weight of a chi-square, which exists below one half.
_SCALED: Final = np.concatenate([-np.geomspace(1e3, 1e-7, 400), np.geomspace(1e-7, 0.4999, 400)])
#: A cohort's number in the truth counts its generations in multiples of this: members change by erasures.
GENERATIONS = 1 << 32


def _searches(evidence: Evidence) -> pl.LazyFrame:
    """Return each released search once, with its author, the user of its label, and its cohort."""
    return evidence.once("released searches", partial(_traced_searches, evidence)).lazy()


def _traced_searches(evidence: Evidence) -> pl.DataFrame:
    if "cohort" not in evidence.traced.collect_schema():
        raise NotCheckable("the truth names no cohorts (one cohort per topic, or another method's truth)")
    rows = evidence.placed("released_row", "cohort", "cohort_size", "query", "user", "original_user")
    return rows.filter(pl.col("head") == pl.col("place")).rename({"original_user": "author"})


def _one_cohort_each(k: int, evidence: Evidence) -> str:
    """Check that everyone is in one cohort only, that it has k members, and that labels are members'.

    After an erasure a cohort has other members; what left it before was drawn from the earlier ones.
    """
    if late := shown_after_erasure(evidence):
        return late
    rows = _searches(evidence)
    people = pl.concat([rows.select("cohort", person=name) for name in ("author", "user")]).unique()
    slots = people.select("person", cohort=pl.col("cohort") % GENERATIONS).unique()
    if torn := slots.group_by("person").len().filter(pl.col("len") > 1).collect().height:
        return f"{torn:,} people are in more than one cohort"
    seen = people.group_by("cohort").len().join(_sizes(rows), on="cohort").collect()
    if small := seen.filter(pl.col("members") < k).height:
        return f"{small:,} cohorts have fewer than {k} members"
    crowded = seen.filter(pl.col("len") > pl.col("members")).height
    return f"{crowded:,} cohorts show more people than they have members" if crowded else ""


def _sizes(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return the slots of each cohort, members of earlier releases included."""
    return rows.group_by("cohort").agg(members=pl.col("cohort_size").max())


def _log_binomial(first: int, last: int, n: int, p: float) -> FloatArray:
    """Return the logarithms of the chances of `first` to `last` hits in n trials."""
    hits = np.arange(first, last + 1)
    ways = [math.lgamma(n + 1) - math.lgamma(h + 1) - math.lgamma(n - h + 1) for h in hits.tolist()]
    return np.asarray(ways + hits * math.log(p) + (n - hits) * math.log1p(-p))


def unlikely_hits(hits: int, chances: list[tuple[float, int]]) -> bool:
    """Whether so many hits come up with a chance below `_TAIL`, on either side.

    `chances` has the probability of a hit and how many independent records have it.
    """
    mean = sum(p * n for p, n in chances)
    variance = sum(p * (1 - p) * n for p, n in chances)
    if variance > _LARGE:
        return abs(hits - mean) > _Z * math.sqrt(variance)
    low, share = 0, np.ones(1)
    for p, n in chances:
        spread = 15 * math.sqrt(n * p * (1 - p)) + 60  # beyond lies less than 1e-20
        first, last = max(0, int(n * p - spread)), min(n, int(n * p + spread))
        share = np.convolve(share, np.exp(_log_binomial(first, last, n, p)))
        low += first
    place = hits - low
    below, above = share[: max(place + 1, 0)].sum(), share[max(place, 0) :].sum()
    return bool(min(below, above) < _TAIL)


def unlikely_pairs(pairs: int, blocks: pl.DataFrame) -> bool:
    """Whether so many pairs with equal labels come up with a chance below `_TAIL`, on either side.

    `blocks` has the number `n` of records whose labels are compared with each other and the number `members`
    of labels. The numbers of records of each label are negatively associated, so the moment-generating
    function of the pairs is at most a product over labels; Chernoff's inequality then bounds the tails. In
    large parts the pairs of a block are distributed as a chi-square with `members - 1` degrees of freedom
    times a weight: with few members that is far from normal, however many records there are.
    """
    n, m = (blocks[name].cast(pl.Float64).to_numpy() for name in ("n", "members"))
    mean, variance = float((n * (n - 1) / 2 / m).sum()), float((n * (n - 1) / 2 / m * (1 - 1 / m)).sum())
    alike = blocks.group_by("n", "members").len().sort("n", "members")
    if variance > _LARGE:
        return _log_tail_of_large(pairs - mean, alike) < math.log(_TAIL)
    chosen = _EXPONENTS[_EXPONENTS > 0] if pairs > mean else _EXPONENTS[_EXPONENTS < 0]
    bound = -chosen * pairs
    for size, members, count in alike.iter_rows():
        own = np.arange(size + 1)
        moments = chosen[:, None] * (own * (own - 1) / 2) + _log_binomial(0, size, size, 1 / members)
        bound += count * members * np.logaddexp.reduce(moments, axis=1)
    return bool(bound.min() < math.log(_TAIL))


def _log_tail_of_large(deviation: float, blocks: pl.DataFrame) -> float:
    """Bound the chance of a deviation from the expected pairs by Chernoff's inequality; return its logarithm.

    Each block counts as a weighted chi-square with the mean and the variance of its pairs.
    """
    n, m, count = (blocks[name].cast(pl.Float64).to_numpy() for name in ("n", "members", "len"))
    weights, freedom = np.sqrt(n * (n - 1)) / (2 * m), count * (m - 1)
    chosen = _SCALED[_SCALED > 0] if deviation > 0 else _SCALED[_SCALED < 0]
    scaled = np.outer(chosen, weights / weights.max())
    moments = -(np.log1p(-2 * scaled) / 2 + scaled) @ freedom
    return float((moments - chosen / weights.max() * deviation).min())


def _own_label(evidence: Evidence) -> str:
    """Test that a record carries its author's own label with probability 1 / members."""
    rows = _searches(evidence)
    own = rows.join(_sizes(rows), on="cohort").select("members", hit=pl.col("user") == pl.col("author"))
    counts = own.group_by("members").agg(hits=pl.col("hit").sum(), n=pl.len()).sort("members").collect()
    hits = int(counts["hits"].sum())
    chances = [(1 / members, n) for members, n in counts.select("members", "n").iter_rows()]
    if not unlikely_hits(hits, chances):
        return ""
    expected = sum(p * n for p, n in chances)
    return f"{hits:,} records carry their author's own label; {expected:,.0f} were to be expected"


def _pairs(rows: pl.LazyFrame, together: list[str]) -> tuple[int, float, pl.DataFrame]:
    """Count pairs of records with equal labels among those with equal values; return also their expectation.

    The third part has the numbers of records that are compared with each other, and of possible labels.
    """
    equal = (
        rows.group_by(*together, "user")
        .agg(len=pl.len().cast(pl.Int64))  # squares of polars' own counts would not fit
        .group_by(*together)
        .agg(n=pl.col("len").sum(), pairs=(pl.col("len") * (pl.col("len") - 1) // 2).sum())
    )
    blocks = equal.join(_sizes(rows), on="cohort").filter(pl.col("n") > 1).collect()
    n, m = blocks["n"].cast(pl.Float64), blocks["members"].cast(pl.Float64)
    return int(blocks["pairs"].sum()), float((n * (n - 1) / 2 / m).sum()), blocks


def _even_labels(evidence: Evidence) -> str:
    """Test by pairs of records with equal labels that within a cohort every label is drawn alike."""
    rows = _searches(evidence)
    found, expected, blocks = _pairs(rows, ["cohort"])
    if not unlikely_pairs(found, blocks):
        return ""
    records = int(blocks["n"].sum())
    ratio = (records + 2 * found) / max(records + 2 * expected, 1)
    return f"labels repeat within cohorts {ratio:.3f} times as often as chance makes them"


def _independent_of_text(evidence: Evidence) -> str:
    """Test that two searches of one text in one cohort share a label as often as chance makes them."""
    found, expected, blocks = _pairs(_searches(evidence), ["cohort", "query"])
    if not unlikely_pairs(found, blocks):
        return ""
    return f"{found:,} pairs of the same text share a label; {expected:,.0f} were to be expected"


def _audit(check: str, test: object) -> Audit:
    return Audit(check, test, needs_truth=True, on_parts=True)  # type: ignore[arg-type]


def audits(k: int) -> tuple[Audit, ...]:
    """Return the audits of `cohort`; those of chance alarm once in a million good releases."""
    return (
        _audit(f"everyone is in one cohort of at least {k} users", lambda e: _one_cohort_each(k, e)),
        _audit("a record's label tells nothing about its author", _own_label),
        _audit("every label of a cohort is drawn alike", _even_labels),
        _audit("labels do not depend on the text", _independent_of_text),
        _audit("all rows of one search carry one label", one_label),
    )
