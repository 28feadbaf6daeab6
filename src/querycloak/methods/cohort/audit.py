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
from querycloak.log import FloatArray, IntArray

#: Probability that any of the tests of chance fails on a correct release.
FALSE_ALARM: Final = 1e-6
_TAIL: Final = FALSE_ALARM / 22  # seven tests of the whole with two sides each, four of users with two levels
#: Up to this variance tails are exact or bounded. Above, hits are so nearly normal that the tail beyond
#: `_Z` deviations is below `_TAIL` even if it is 1.6 times that of the normal distribution.
_LARGE: Final = 10_000.0
_Z: Final = 5.45
#: Probability of what is unlikely for one user, but usual for a few of many.
_UNUSUAL: Final = 1e-4
_HOUR: Final = 3_600_000_000
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
    found = rows.filter(pl.col("head") == pl.col("place")).rename({"original_user": "author"})
    time = evidence.asked["time"].gather(found["place"]).to_physical()
    return found.with_columns(hour=time // _HOUR % 24)


def _one_cohort_each(k: int, evidence: Evidence) -> str:
    """Check that every user is in one cohort only, that it has k members, and that labels are members'.

    After an erasure a cohort has other members; earlier labels were drawn from the earlier ones.
    """
    if late := shown_after_erasure(evidence):
        return late
    rows = _searches(evidence)
    people = pl.concat([rows.select("cohort", person=name) for name in ("author", "user")]).unique()
    slots = people.select("person", cohort=pl.col("cohort") % GENERATIONS).unique()
    if torn := slots.group_by("person").len().filter(pl.col("len") > 1).collect().height:
        return f"{torn:,} users are in more than one cohort"
    seen = people.group_by("cohort").len().join(_sizes(rows), on="cohort").collect()
    if small := seen.filter(pl.col("members") < k).height:
        return f"{small:,} cohorts have fewer than {k} members"
    crowded = seen.filter(pl.col("len") > pl.col("members")).height
    return f"{crowded:,} cohorts have more users than members" if crowded else ""


def _sizes(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return the slots of each cohort, members of earlier releases included."""
    return rows.group_by("cohort").agg(members=pl.col("cohort_size").max())


def _log_binomial(first: int, last: int, n: int, p: float) -> FloatArray:
    """Return the logarithms of the probabilities of `first` to `last` hits in n trials."""
    hits = np.arange(first, last + 1)
    ways = [math.lgamma(n + 1) - math.lgamma(h + 1) - math.lgamma(n - h + 1) for h in hits.tolist()]
    return np.asarray(ways + hits * math.log(p) + (n - hits) * math.log1p(-p))


def unlikely_hits(hits: int, chances: list[tuple[float, int]]) -> bool:
    """Whether so many hits have a probability below `_TAIL`, on either side.

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
    """Whether so many pairs with equal labels have a probability below `_TAIL`, on either side.

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
    """Test that a search carries the label of its author with probability 1 / members."""
    rows = _searches(evidence)
    own = rows.join(_sizes(rows), on="cohort").select("members", hit=pl.col("user") == pl.col("author"))
    counts = own.group_by("members").agg(hits=pl.col("hit").sum(), n=pl.len()).sort("members").collect()
    hits = int(counts["hits"].sum())
    chances = [(1 / members, n) for members, n in counts.select("members", "n").iter_rows()]
    if not unlikely_hits(hits, chances):
        return ""
    expected = sum(p * n for p, n in chances)
    return f"{hits:,} searches carry the label of their author; {expected:,.0f} are expected"


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
    """Test by pairs of searches with equal labels that all labels of a cohort have equal probability."""
    rows = _searches(evidence)
    found, expected, blocks = _pairs(rows, ["cohort"])
    if not unlikely_pairs(found, blocks):
        return ""
    records = int(blocks["n"].sum())
    ratio = (records + 2 * found) / max(records + 2 * expected, 1)
    return f"labels repeat within cohorts {ratio:.3f} times as often as at random"


def _independent_of_author(evidence: Evidence) -> str:
    """Test that two searches of one author share a label as often as at random."""
    hits, n, members = (pl.col(name).cast(pl.Int64) for name in ("hits", "n", "members"))
    own = _labels_of_authors(evidence).group_by("cohort", "author")
    blocks = own.agg(n=n.first(), members=members.first(), pairs=(hits * (hits - 1) // 2).sum())
    found = int(blocks["pairs"].sum())
    if not unlikely_pairs(found, blocks.filter(pl.col("n") > 1)):
        return ""
    expected = blocks.select((n * (n - 1) / 2 / members).sum()).item()
    return f"{found:,} pairs of searches of one author share a label; {expected:,.0f} are expected"


def _independent_of_text(evidence: Evidence) -> str:
    """Test that two searches of one text in one cohort share a label as often as at random."""
    found, expected, blocks = _pairs(_searches(evidence), ["cohort", "query"])
    if not unlikely_pairs(found, blocks):
        return ""
    return f"{found:,} pairs of the same text share a label; {expected:,.0f} are expected"


#: Sequences of searches in which a label may not depend on the one before.
_COHORT, _AUTHOR, _TEXT = ["cohort"], ["cohort", "author"], ["cohort", "author", "query"]


def _repeats(evidence: Evidence, sequence: list[str]) -> pl.DataFrame:
    """Count, by author, searches with the label of the one before in their sequence, in order of release.

    Labels are uniform and independent, so these events are too: each has the probability 1 / members.
    """
    return evidence.once(f"repeats {sequence}", partial(_counted_repeats, evidence, sequence))


def _counted_repeats(evidence: Evidence, sequence: list[str]) -> pl.DataFrame:
    rows = _searches(evidence)
    same = pl.col("user") == pl.col("user").shift().over(sequence)
    counts = rows.select("cohort", "author", same=same).drop_nulls("same").group_by("cohort", "author")
    return _with_members(rows, counts.agg(hits=pl.col("same").sum(), n=pl.len()))


def _with_members(rows: pl.LazyFrame, counts: pl.LazyFrame) -> pl.DataFrame:
    return counts.join(_sizes(rows), on="cohort").collect()


def _independent_of_time(evidence: Evidence) -> str:
    """Test on the whole release that labels depend neither on the hour of day nor on the label before."""
    found, expected, blocks = _pairs(_searches(evidence), [*_AUTHOR, "hour"])
    if unlikely_pairs(found, blocks):
        return f"{found:,} pairs of one author and hour of day share a label; {expected:,.0f} are expected"
    for sequence, of in ((_COHORT, "its cohort"), (_AUTHOR, "its author")):
        repeats = _repeats(evidence, sequence)
        sums = repeats.group_by("members").agg(pl.col("n").sum()).sort("members")
        hits = int(repeats["hits"].sum())
        chances = [(1 / members, n) for members, n in sums.iter_rows()]
        if unlikely_hits(hits, chances):
            expected = sum(p * n for p, n in chances)
            return f"{hits:,} searches have the label of the one before of {of}; {expected:,.0f} are expected"
    return ""


def _labels_of_authors(evidence: Evidence) -> pl.DataFrame:
    """Return each author's searches by label: `hits` of the `n` searches of the author in the cohort."""
    return evidence.once("labels of authors", partial(_counted_labels, evidence))


def _counted_labels(evidence: Evidence) -> pl.DataFrame:
    rows = _searches(evidence)
    counts = rows.group_by("cohort", "author", "user").agg(hits=pl.len())
    counts = counts.with_columns(n=pl.col("hits").sum().over("cohort", "author"))
    return _with_members(rows, counts)


def unlikely_users(counts: pl.DataFrame, tests: int, *, few: bool = False) -> IntArray:
    """Return the authors with so many `hits` (or so few) among `n` that the probability is below `_TAIL`.

    `tests` is the number of tests of this kind; `_TAIL` is for all of them together.
    """
    return _rare(counts, math.log(_TAIL / max(tests, 1)), few=few)


def unlikely_many(counts: pl.DataFrame, tests: int, authors: int, *, few: bool = False) -> IntArray:
    """Return the authors with unusual `hits` if so many of all `authors` have a probability below `_TAIL`.

    Labels of authors are independent, and each author is unusual with a probability of at most `_UNUSUAL`.
    """
    if not authors:
        return np.empty(0, np.int64)
    found = np.unique(_rare(counts, math.log(_UNUSUAL * authors / tests), few=few))
    if found.size <= _UNUSUAL * authors:
        return found[:0]
    tail = _log_tail(found.size, authors, _UNUSUAL, few=False)
    return found if tail < math.log(_TAIL) else found[:0]


def _rare(counts: pl.DataFrame, limit: float, *, few: bool) -> IntArray:
    """Return the authors whose `hits` among `n` have a tail with a logarithm below the limit."""
    hits, n, members = (counts[name].cast(pl.Float64).to_numpy() for name in ("hits", "n", "members"))
    share, p = hits / n, 1 / members
    extreme = share < p if few else share > p
    # A tail is at least Chernoff's bound divided by the square root of 2n: few users need the exact one.
    bound = -n * (_entropy(share, p) + _entropy(1 - share, 1 - p))
    place = np.flatnonzero(extreme & (bound - np.log(2 * n) / 2 < limit))
    rare = [_log_tail(int(hits[i]), int(n[i]), float(p[i]), few=few) < limit for i in place.tolist()]
    found: IntArray = counts["author"].to_numpy()[place[rare]]
    return found


def _entropy(share: FloatArray, p: FloatArray) -> FloatArray:
    return share * np.log(np.where(share > 0, share / p, 1.0))


def _log_tail(hits: int, n: int, p: float, *, few: bool) -> float:
    first, last = (0, hits) if few else (hits, n)
    return float(np.logaddexp.reduce(_log_binomial(first, last, n, p)))


def _tests(evidence: Evidence) -> tuple[int, int, int]:
    """Return the number of authors, of pairs of an author and a label, and the fewest members of a cohort."""
    rows = _searches(evidence)
    authors = _with_members(rows, rows.select("cohort", "author").unique())
    return authors.height, int(authors["members"].sum()), int(authors["members"].min() or 0)  # type: ignore[arg-type]


def _each_author(evidence: Evidence) -> str:
    """Test the labels of single users: a fault that is small in the whole is large for the user concerned."""
    counts, (authors, pairs, _) = _labels_of_authors(evidence), _tests(evidence)
    own = counts.with_columns(hits=pl.when(pl.col("user") == pl.col("author")).then("hits").otherwise(0))
    own = own.group_by("cohort", "author", "n", "members").agg(pl.col("hits").max())
    kinds = {
        "have too many searches under one label": (counts, pairs, False),
        "have too few searches under their own label": (own, authors, True),
        "have too many searches with the label of the one before": (
            _repeats(evidence, _AUTHOR),
            authors,
            False,
        ),
        "have too many equal queries with one label": (_repeats(evidence, _TEXT), authors, False),
    }
    texts = []
    for what, (hits, tests, few) in kinds.items():
        each = unlikely_users(hits, tests, few=few)
        found = np.union1d(each, unlikely_many(hits, tests, authors, few=few))
        texts += [f"{found.size:,} users {what}"] if found.size else []
    return "; ".join(texts)


def _least_searches(evidence: Evidence) -> str:
    _, pairs, members = _tests(evidence)
    if not pairs:
        return ""
    least = math.floor(math.log(pairs / _TAIL) / math.log(members)) + 1
    return f"a single user whose searches all carry one label is detected from {least:,} searches on"


def _audit(check: str, test: object, power: object = None) -> Audit:
    return Audit(check, test, needs_truth=True, on_parts=True, power=power)  # type: ignore[arg-type]


def audits(k: int) -> tuple[Audit, ...]:
    """Return the audits of `cohort`; the tests of chance fail on one in a million correct releases."""
    return (
        _audit(f"every user is in one cohort of at least {k} users", lambda e: _one_cohort_each(k, e)),
        _audit("searches carry the label of their author as often as at random", _own_label),
        _audit("all labels of a cohort are drawn with equal probability", _even_labels),
        _audit("labels do not depend on the author", _independent_of_author),
        _audit("labels do not depend on the text", _independent_of_text),
        _audit("labels do not depend on the time or on the label before", _independent_of_time),
        _audit("the labels of every single user are drawn at random", _each_author, _least_searches),
        _audit("all rows of one search carry one label", one_label),
    )
