"""The Kolmogorov-Smirnov test of paper 000."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from papers.p000.results import THREE, Results


def kolmogorov_smirnov(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """Compare two samples: the largest gap between their cumulative shares, and its asymptotic p-value.

    >>> kolmogorov_smirnov([1, 2], [1, 2])
    (0.0, 1.0)
    """
    first, second = np.sort(np.asarray(a, np.float64)), np.sort(np.asarray(b, np.float64))
    if not first.size or not second.size:
        raise ValueError("both samples must have values")
    every = np.concatenate([first, second])
    shares = [np.searchsorted(side, every, side="right") / side.size for side in (first, second)]
    gap = float(np.abs(shares[0] - shares[1]).max())
    return gap, _beyond(gap * math.sqrt(first.size * second.size / (first.size + second.size)))


def _beyond(x: float) -> float:
    """Return the probability that a Brownian bridge goes beyond x: Kolmogorov's limit."""
    if x < 0.2:  # 1 up to 13 digits, and the series below converges slowly
        return 1.0
    terms = ((-1) ** (j - 1) * math.exp(-2 * (j * x) ** 2) for j in range(1, 101))
    return min(1.0, max(0.0, 2 * math.fsum(terms)))


def of_rates(linked: dict[int, float]) -> tuple[float, float]:
    """Compare success rates by k with the values 1/k."""
    return kolmogorov_smirnov([1 / k for k in linked], list(linked.values()))


def tested(results: Results) -> dict[tuple[str, int], dict[int, float]]:
    """Return the success rates by k that are tested, by attack and level."""
    every = [(name, level) for name in THREE for level in (1, 13)] + [("link-repeat", 1)]
    found = {(name, level): results.linked(name, "swap", level) for name, level in every}
    return {at: linked for at, linked in found.items() if linked}


def compared_samples(results: Results) -> dict[str, list[float]]:
    """Return the samples that the test compares, by their label in Figure 7."""
    return {"1/k": [1 / k for k in results.ks]} | {
        f"{name}, level {level}": list(linked.values()) for (name, level), linked in tested(results).items()
    }
