"""Integer weights of the exponential mechanism, and the privacy loss of a draw by them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from querycloak.errors import ParameterError
from querycloak.kernels.exponential_mechanism import Weights
from querycloak.text.concept_space import ConceptSpace

#: A draw that spends more would show its input nearly always, and its weights no longer fit.
LARGEST_EPSILON: Final = 40.0
_ROOM: Final = 62  # bits for the sum of all weights
_SLACK: Final = 1 - 2.0**-40  # keeps what floats round up below what was asked for


def draw_weights(space: ConceptSpace, tables: Sequence[tuple[int, float]]) -> Weights:
    """Return a table of integer weights for each (domain, epsilon of a draw): eq. 3, 7 and 8.

    The least weight is a whole number, and every other at most e^(epsilon/2) times it.
    """
    similarity = space.scaled_similarity()
    bits = _ROOM - math.ceil(math.log2(max(len(space.candidates.members), 2)))
    weight = np.zeros((len(tables), *similarity.shape[1:]), np.uint64)
    floor = np.zeros(len(tables), np.uint64)
    for place, (domain, epsilon) in enumerate(tables):
        _check(epsilon)
        least = math.floor(2.0**bits * math.exp(-epsilon / 2))
        grown = np.floor(least * np.exp(similarity[domain] * epsilon / 2) * _SLACK)
        weight[place] = np.maximum(grown, least).astype(np.uint64)
        floor[place] = least
    return Weights(weight, floor)


def _check(epsilon: float) -> None:
    if not 0 < epsilon <= LARGEST_EPSILON:
        raise ParameterError(
            f"a single draw would spend {epsilon:g}",
            hint=f"above {LARGEST_EPSILON:g} a draw protects nobody: lower `epsilon` or raise `max_queries`",
        )


def spent(weights: Weights) -> list[float]:
    """Return the largest privacy loss of a draw by each table, from the integers themselves, rounded up.

    Two inputs give an output weights in a ratio of at most largest / least, and so do their sums.
    """
    ratios = [
        Fraction(int(table.max()), int(floor))
        for table, floor in zip(weights.weight, weights.floor, strict=True)
    ]
    return [math.nextafter(2 * _log_up(ratio), math.inf) for ratio in ratios]


def _log_up(ratio: Fraction) -> float:
    """Return the logarithm of a fraction, rounded up."""
    value = math.log(ratio.numerator) - math.log(ratio.denominator)
    return value + 1e-14 * (1 + math.log(ratio.numerator))  # far more than the floats can be wrong
