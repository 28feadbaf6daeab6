"""`Space`: which concepts may replace which, how alike they are (paper 002, eq. 5, 6, 12), and weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from querycloak.errors import ParameterError, UsageError
from querycloak.kernels.exponential_mechanism import Candidates, Weights, shared
from querycloak.text.concepts import ancestry
from querycloak.text.concepts.profile import Topics
from querycloak.text.concepts.words import Concepts

CRITERIA: Final = ("sqc1", "sqc2", "none")
#: A draw that spends more would show its input nearly always, and its weights no longer fit.
LARGEST_EPSILON: Final = 40.0
_ROOM: Final = 62  # bits for the sum of all weights
_SLACK: Final = 1 - 2.0**-40  # keeps what floats round up below what was asked for

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def similarity(common: npt.ArrayLike, union: npt.ArrayLike) -> Floats:
    """Give eq. 5 by the numbers of subsumers that two concepts have in common and in either."""
    shared_, either = np.asarray(common, np.float64), np.asarray(union, np.float64)
    return 1 - np.log2(1 + (either - shared_) / either)


@dataclass(frozen=True, eq=False)
class Space:
    """Domains of concepts, and the least similarity that two concepts of each can have."""

    candidates: Candidates
    least: Floats

    @property
    def domains(self) -> int:
        """How many domains there are."""
        return self.least.size

    @cached_property
    def widest(self) -> int:
        """The most subsumers that a concept has."""
        return int(np.diff(self.candidates.features_start).max(initial=1))

    def members(self, domain: int) -> Longs:
        """List the concepts of a domain."""
        start = self.candidates.members_start
        return self.candidates.members[start[domain] : start[domain + 1]].astype(np.int64)

    def weights(self, tables: Sequence[tuple[int, float]]) -> Weights:
        """Make a table of integer weights for each (domain, epsilon of a draw): eq. 3, 7 and 8.

        The least weight is a whole number, and every other at most e^(epsilon/2) times it.
        """
        shares = self.shares()
        bits = _ROOM - math.ceil(math.log2(max(len(self.candidates.members), 2)))
        weight = np.zeros((len(tables), *shares.shape[1:]), np.uint64)
        floor = np.zeros(len(tables), np.uint64)
        for place, (domain, epsilon) in enumerate(tables):
            _check(epsilon)
            least = math.floor(2.0**bits * math.exp(-epsilon / 2))
            grown = np.floor(least * np.exp(shares[domain] * epsilon / 2) * _SLACK)
            weight[place] = np.maximum(grown, least).astype(np.uint64)
            floor[place] = least
        return Weights(weight, floor)

    def shares(self) -> Floats:
        """Give likeness by domain, united and common features: 0 for the least alike, 1 for the same."""
        union = np.arange(2 * self.widest + 1)[:, None]
        common = np.arange(self.widest + 1)
        alike = similarity(np.minimum(common, np.maximum(union, 1)), np.maximum(union, 1))
        span = (1 - self.least)[:, None, None]
        with np.errstate(
            invalid="ignore", divide="ignore"
        ):  # a domain of one concept has nothing to tell apart
            found = (alike - self.least[:, None, None]) / span
        return np.clip(np.nan_to_num(found, nan=0.0), 0, 1)

    def similarities(self, first: Longs, second: Longs) -> Floats:
        """Give the similarity of pairs of concepts of one domain each, by this space's criterion."""
        return similarity(*shared(first, second, self.candidates))


def _check(epsilon: float) -> None:
    if not 0 < epsilon <= LARGEST_EPSILON:
        raise ParameterError(
            f"a single draw would spend {epsilon:g}",
            hint=f"above {LARGEST_EPSILON:g} a draw protects nobody: lower `epsilon` or raise `max_queries`",
        )


def spent(weights: Weights) -> list[float]:
    """Give what a draw by each table can spend at most, from the integers themselves, rounded up.

    Two inputs give an output weights in a ratio of at most largest / least, and so do their sums.
    """
    ratios = [
        Fraction(int(table.max()), int(floor))
        for table, floor in zip(weights.weight, weights.floor, strict=True)
    ]
    return [math.nextafter(2 * _log_up(ratio), math.inf) for ratio in ratios]


def _log_up(ratio: Fraction) -> float:
    """Give the logarithm of a fraction, rounded up."""
    value = math.log(ratio.numerator) - math.log(ratio.denominator)
    return value + 1e-14 * (1 + math.log(ratio.numerator))  # far more than the floats can be wrong


def space_of(
    concepts: Concepts,
    topics: Topics,
    criterion: str = "sqc1",
    domains: Topics | None = None,
    root: int | None = None,
) -> Space:
    """Lay out the candidates of a criterion: one domain, or one for each topic of `domains`.

    All three criteria are eq. 5 on some sets of features: the subsumers (sqc1); the subsumers marked with
    the topic, so that concepts of two topics share none and have the similarity 0 (sqc2); the concept
    itself alone (none). Features are also marked with their domain, and lie inside it.
    """
    chosen = _below(concepts, root)
    of = np.full(concepts.size, -1, np.int64)
    of[chosen] = 0 if domains is None else domains.of[chosen]
    present, numbers = np.unique(of[chosen], return_inverse=True)
    of[chosen] = numbers
    mark = of if criterion != "sqc2" else of * (int(topics.of.max()) + 1) + topics.of
    row, feature = _features(concepts, of, present.size, mark, criterion)
    candidates = _candidates(concepts.size, row, feature, of)
    apart = [_least(candidates, d) if criterion == "sqc1" else 0.0 for d in range(present.size)]
    return Space(candidates, np.array(apart))


def _below(concepts: Concepts, root: int | None) -> Longs:
    """List the sayable concepts at and below a root."""
    chosen = concepts.sayable.astype(np.int64)
    if root is not None:
        row = np.repeat(np.arange(concepts.size), np.diff(concepts.ancestors.start))
        chosen = np.intersect1d(chosen, row[concepts.ancestors.flat == root])
    if not chosen.size:
        raise UsageError("no concept of the taxonomy can be said", hint="give another `root` or `taxonomy`")
    return chosen


def _features(
    concepts: Concepts, of: Longs, domains: int, mark: Longs, criterion: str
) -> tuple[Longs, Longs]:
    """List pairs of a concept and a number for each of its features."""
    above = concepts.ancestors
    row = np.repeat(np.arange(concepts.size), np.diff(above.start))
    if criterion == "none":
        kept = (above.flat == row) & (of[row] >= 0)
        return row[kept], row[kept]
    inside = np.zeros((domains, concepts.size), np.bool_)
    for d in range(domains):
        top = _subsumer(concepts, row, of == d)
        inside[d, row[above.flat == top]] = True
    kept = of[row] >= 0
    kept[kept] = inside[of[row[kept]], above.flat[kept]]
    return row[kept], above.flat[kept].astype(np.int64) * (int(mark.max()) + 1) + mark[row[kept]]


def _subsumer(concepts: Concepts, row: Longs, member: npt.NDArray[np.bool_]) -> int:
    """Give the deepest concept that all members have above them (or are)."""
    above = concepts.ancestors
    count = np.bincount(above.flat[member[row]], minlength=concepts.size)
    common = np.flatnonzero(count == np.count_nonzero(member))
    if not common.size:
        raise UsageError("the taxonomy has several roots", hint="put one concept above all others")
    return int(common[np.argmax(np.diff(above.start)[common])])


def _candidates(size: int, row: Longs, feature: Longs, of: Longs) -> Candidates:
    names, feature = np.unique(feature, return_inverse=True)
    held = np.bincount(feature, minlength=names.size)
    order = np.lexsort((feature, -held[feature], row))
    features = feature[order].astype(np.int32)
    start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=size))]).astype(np.int64)
    holders, holders_start = ancestry.inverted(features, start, names.size)
    some = np.flatnonzero(of >= 0)
    members = some[np.argsort(of[some], kind="stable")].astype(np.int32)
    members_start = np.concatenate([[0], np.cumsum(np.bincount(of[some]))]).astype(np.int64)
    return Candidates(features, start, holders, holders_start, members, members_start, of.astype(np.int32))


def _least(candidates: Candidates, domain: int) -> float:
    start = candidates.members_start
    members = candidates.members[start[domain] : start[domain + 1]].astype(np.int64)
    return float(similarity(*ancestry.most_apart(members, candidates.features, candidates.features_start)))
