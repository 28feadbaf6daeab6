"""Scores how an attack told people's searches from their fakes: success over pairs, and the privacy left.

Privacy lies between 0 and 1, and more is more private: errors of the attack over pairs of searches
(structure), how unlike the user's own the clusters' profiles are (semantic), and errors that are due to the
fakes alone (relative). A number that nothing defines, such as errors over no pairs, is nan.

Reference: paper 004, sections 2.5 and 5.2.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak.attacks.base import ClusteredTrace, TraceClusters
from querycloak.attacks.case import Truth
from querycloak.attacks.link_learned import pair_scores
from querycloak.attacks.link_learned.features import Categories
from querycloak.attacks.scoring import Score, area_under_curve, places
from querycloak.attacks.searches import Searches
from querycloak.errors import NotApplicable, UsageError
from querycloak.intervals import Share, t_point, wilson
from querycloak.log import Flags, FloatArray, IntArray

_ERRORS: Final = ("false_negatives", "false_positives")
#: How deep topics are compared; the paper's level 2.
_LEVEL: Final = 2
_HOURS: Final = 24


@dataclass(frozen=True, kw_only=True)
class TargetScore:
    """The numbers of one target; nan where there is nothing to tell.

    `errors` are the shares of false negatives and of false positives, `size` counts the pairs or records.
    """

    errors: tuple[float, float]
    topics: Sequence[float]
    hours: Sequence[float]
    area: float
    size: int

    @property
    def success(self) -> float:
        """The share told right, where both kinds of errors have equal weight."""
        return 1.0 - sum(self.errors) / 2


@dataclass(frozen=True, kw_only=True)
class _Person(TargetScore):
    relative: tuple[float, float]
    named: float
    named_topics: float
    parts: int


def score(guesses: TraceClusters, release: pl.DataFrame, truth: Truth, targets: Collection[str]) -> Score:
    """Score the clusters of each person under attack; a person counts as much as any other.

    Of pairs of two real searches and of a real one and a fake, half of either kind, the share told right: a
    coin has 0.5, and so has any clustering where nothing tells fakes from real searches.
    """
    if truth.fake is None:
        raise NotApplicable("the truth does not say which searches are fake")
    _check(guesses, release, truth, targets)
    people = [_person(one, guesses, release, truth) for one in guesses.people]
    told = [one for one in people if not np.isnan(one.success)]
    if not told:
        raise NotApplicable("nobody under attack has two real searches and a fake")
    details = guesses.details | {
        "chance": 0.5,
        "area_under_curve": spread([one.area for one in told])["mean"],
        "left_out": len(people) - len(told),
    }
    return over_targets(told, details, _privacy(told, guesses.again))


def over_targets(told: Sequence[TargetScore], details: dict[str, Any], privacy: dict[str, Any]) -> Score:
    """Return the score over targets, each of whom counts as much as any other."""
    success = np.array([one.success for one in told])
    share = Share(float(success.mean()), *mean_interval(success), sum(one.size for one in told))
    middle, worst = np.quantile(success, [0.5, 0.9]).tolist()
    return Score("pair", share, middle, worst, details, privacy)


def _check(guesses: TraceClusters, release: pl.DataFrame, truth: Truth, targets: Collection[str]) -> None:
    """Raise UsageError for guesses about other traces, of which the attacker knows the truth."""
    named = [set(release["user"][places(one.row, truth.released_row)]) for one in guesses.people]
    if any(len(users) != 1 or not users <= set(targets) for users in named):
        raise UsageError("the attack separated searches of people that it was not to attack")
    if len(set.union(set(), *named)) < len(named):
        raise UsageError("the attack separated one person's searches twice")


def _privacy(people: Sequence[_Person], again: bool) -> dict[str, Any]:
    semantic = semantic_privacy(people)
    structure = {"parts": max(one.parts for one in people)} | errors([one.errors for one in people])
    if any(not np.isnan(one.named) for one in people):
        semantic["named"] = spread([one.named_topics for one in people])
        structure["named"] = spread([one.named for one in people])
    relative = {"parts": pair_scores.MANY} | errors([one.relative for one in people]) if again else None
    return {"structure": structure, "semantic": semantic, "relative": relative}


def errors(found: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Describe people's false negatives and false positives, and the mean of both."""
    spreads = {name: spread([pair[at] for pair in found]) for at, name in enumerate(_ERRORS)}
    return {"error": spread([sum(pair) / 2 for pair in found])} | spreads


def semantic_privacy(people: Sequence[TargetScore]) -> dict[str, Any]:
    """Describe how unlike the targets' own the profiles by topic and by hour are."""
    return _profile([one.topics for one in people]) | {"temporal": _profile([one.hours for one in people])}


def _profile(found: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Describe the distances of people's clusters: the least of each person, and the mean."""
    known = [distances for distances in found if len(distances)]
    means = [float(np.mean(distances)) for distances in known]
    return {"worst": spread([min(distances) for distances in known]), "mean": spread(means)}


def _person(one: ClusteredTrace, guesses: TraceClusters, release: pl.DataFrame, truth: Truth) -> _Person:
    assert truth.fake is not None
    at = places(one.row, truth.released_row)
    real = ~truth.fake[at]
    own = _searches(release, one.row)
    distances = profiles(topic_weights(own), one.cluster, real)
    unknown = ~np.isin(one.row, one.known_rows)
    return _Person(
        errors=structure(one.cluster, real),
        relative=_relative(one, real, guesses.seed) if guesses.again else (np.nan, np.nan),
        topics=distances,
        hours=profiles(hour_weights(own), one.cluster, real),
        named=np.nan
        if one.own_cluster is None
        else _named(one.cluster[unknown] == one.own_cluster, real[unknown]),
        named_topics=distances[one.own_cluster] if one.own_cluster is not None and distances else np.nan,
        area=_area(one, real),
        size=int(real.sum() * (real.sum() - 1) // 2 + real.sum() * (~real).sum()),
        parts=int(one.cluster.max(initial=-1)) + 1,
    )


def _relative(one: ClusteredTrace, real: Flags, seed: int) -> tuple[float, float]:
    """Compare with the clusters of the real searches alone, by the same scores."""
    own = np.flatnonzero(real)
    scores = pair_scores.among(one.score, real.size, own)
    return relative(pair_scores.cut(scores, own.size, pair_scores.MANY, seed), one.finer[real])


def _named(called_real: Flags, real: Flags) -> float:
    """Return the error of the own cluster over as many real searches as fakes, without known rows."""
    if not real.any() or real.all():
        return np.nan
    return float(1.0 - called_real[real].mean() + called_real[~real].mean()) / 2


def _area(one: ClusteredTrace, real: Flags) -> float:
    low, high = np.triu_indices(real.size, 1)
    one_real = real[low] | real[high]
    return area_under_curve(one.score[one_real].astype(np.float64), (real[low] & real[high])[one_real])


def _searches(release: pl.DataFrame, row: IntArray) -> Searches:
    """Find the rows of these searches again, in this order; each begins with one of the rows given."""
    first = pl.DataFrame({"released_row": row}).with_row_index("_place")
    keys = [name for name in ("user", "query", "time") if name in release.columns]
    begins = release.join(first, on="released_row", how="semi").select(keys)
    own = release.join(begins, on=keys, how="semi", nulls_equal=True, maintain_order="left")
    found = Searches.of(own)
    begun = own.with_columns(_begin=own["released_row"].gather(found.first_row[found.of_row]))
    kept = begun.join(first, left_on="_begin", right_on="released_row", maintain_order="left")
    return Searches.of(kept.sort("_place", maintain_order=True).drop("_begin", "_place"))


def structure(cluster: IntArray, real: Flags) -> tuple[float, float]:
    """Return the share of real pairs that were torn apart, and of real–fake pairs that were put together.

    For fakes that nothing tells from real searches the two add up to 1, whatever the clusters.
    """
    parts = int(cluster.max(initial=-1)) + 1
    true = np.bincount(cluster[real], minlength=parts).astype(np.float64)
    fake = np.bincount(cluster[~real], minlength=parts).astype(np.float64)
    torn = 1.0 - _ratio(_pairs(true).sum(), float(_pairs(true.sum())))
    return torn, _ratio(float(true @ fake), float(true.sum() * fake.sum()))


def relative(before: IntArray, after: IntArray) -> tuple[float, float]:
    """Compare the clusters of real searches with what the same attack makes of them when there are no fakes.

    Of pairs that were together before, the share that is not any more; of pairs that were apart, the share
    that is together now.
    """
    rows, columns = int(before.max(initial=-1)) + 1, int(after.max(initial=-1)) + 1
    both = np.bincount(before * columns + after, minlength=rows * columns).astype(np.float64)
    was, is_ = both.reshape(rows, columns).sum(1), both.reshape(rows, columns).sum(0)
    together, now, still = (float(_pairs(counts).sum()) for counts in (was, is_, both))
    apart = before.size * (before.size - 1) / 2 - together
    return _ratio(together - still, together), _ratio(now - still, apart)


def profiles(weights: FloatArray, cluster: IntArray, real: Flags) -> list[float]:
    """Return the cosine distance of each cluster's profile from the user's own; rows are searches.

    A profile is the mean of its searches' weights. A cluster without weight has distance 1.
    """
    own = weights[real].sum(0)
    if not own.any():
        return []
    parts = range(int(cluster.max(initial=-1)) + 1)
    return [_apart(own, weights[cluster == part].sum(0)) for part in parts]


def spread(values: Sequence[float] | FloatArray) -> dict[str, Any]:
    """Describe a number over people: mean with a 95 % interval, percentiles, and all values, sorted.

    Those for whom it is not defined are left out; `n` are left.
    """
    found = np.sort(np.asarray(values, np.float64))
    found = found[~np.isnan(found)]
    if not found.size:
        return {"n": 0, "mean": None, "low": None, "high": None, "median": None, "values": []}
    low, high = mean_interval(found)
    fifth, median, last = np.quantile(found, [0.05, 0.5, 0.95]).tolist()
    about = {"n": int(found.size), "mean": float(found.mean()), "low": low, "high": high, "median": median}
    return about | {"percentile_5": fifth, "percentile_95": last, "values": found.round(6).tolist()}


def mean_interval(values: FloatArray) -> tuple[float, float]:
    """Return Student's 95 % interval of a mean of shares; 0 to 1 for a single user.

    Where all values are one, their spread is unknown rather than none: then Wilson's for so many trials.
    """
    if values.size < 2:
        return 0.0, 1.0
    mean, deviation = float(values.mean()), float(values.std(ddof=1))
    t = t_point(values.size - 1.0)
    if deviation < 1e-12:
        return wilson(mean, float(values.size), t)
    reach = t * deviation / math.sqrt(values.size)
    return max(0.0, mean - reach), min(1.0, mean + reach)


def _pairs(counts: FloatArray | np.floating[Any]) -> Any:
    return counts * (counts - 1.0) / 2.0


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else math.nan


def _apart(a: FloatArray, b: FloatArray) -> float:
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return min(1.0, max(0.0, 1.0 - float(a @ b) / lengths)) if lengths else 1.0


def topic_weights(searches: Searches) -> FloatArray:
    """Return weights of categories down to level 2, one unit for each search."""
    paths = Categories.of(searches).paths
    names = ["/".join(path.split("/")[:_LEVEL]) for path in paths.names]
    number = {name: n for n, name in enumerate(dict.fromkeys(names))}
    weights = np.zeros((len(searches), len(number)))
    search = np.repeat(np.arange(len(searches)), paths.sizes)
    topic = np.array([number[name] for name in names], np.int64)[paths.bags.item]
    np.add.at(weights, (search, topic), 1.0 / np.repeat(paths.sizes, paths.sizes))
    return weights


def hour_weights(searches: Searches) -> FloatArray:
    """Return weights of the hours of the day, one unit for each search with a time."""
    weights = np.zeros((len(searches), _HOURS))
    if "time" in searches.frame.columns:
        hour = searches.column("time").dt.hour()
        known = hour.is_not_null().to_numpy()
        weights[np.flatnonzero(known), hour.drop_nulls().to_numpy()] = 1.0
    return weights
