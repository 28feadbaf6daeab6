"""95 % intervals for shares of records that are not independent of each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from querycloak.log import FloatArray, IntArray

#: The two-sided 95 % point of the normal distribution.
_Z = 1.959963984540054
#: Steps of the numerical integration.
_ANGLES = 20_000


class Estimate(NamedTuple):
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Share:
    """A share of `n` units with its 95 % interval."""

    value: float
    low: float
    high: float
    n: int


def share(hits: FloatArray, clusters: Sequence[IntArray]) -> Share | None:
    """Estimate the mean of hits (each 0 to 1) with the widest interval that any clustering gives.

    Each clustering is an array of codes, one a hit. The interval is Wilson's at the number of independent
    records that would vary as much as the clusters do (the larger of two estimates). Where every hit is
    the same, nothing varies, so the (effective) number of clusters stands in: about the rule of three,
    with clusters in place of records.
    """
    if not hits.size:
        return None
    mean = float(hits.mean())
    found = [_interval(mean, hits, codes) for codes in (clusters or [np.arange(hits.size)])]
    return Share(mean, min(low for low, _ in found), max(high for _, high in found), int(hits.size))


def _interval(mean: float, hits: FloatArray, codes: IntArray) -> tuple[float, float]:
    clusters = Clusters.of(codes, hits)
    effective = clusters.effective()
    variance = max(clusters.jackknife_variance(), clusters.pooled_variance())
    spread = mean * (1.0 - mean)
    independent = min(spread / variance, float(hits.size)) if variance > 0 else effective
    return wilson(mean, independent, t_point(effective - 1.0))


def wilson(mean: float, n: float, z: float = _Z) -> tuple[float, float]:
    """Return Wilson's interval of a share among n independent trials; it never leaves 0 to 1."""
    squared = z * z
    middle = (mean + squared / (2 * n)) / (1 + squared / n)
    reach = z * math.sqrt(mean * (1 - mean) / n + squared / (4 * n * n)) / (1 + squared / n)
    low = 0.0 if mean == 0.0 else max(0.0, middle - reach)
    return low, 1.0 if mean == 1.0 else min(1.0, middle + reach)


def t_point(degrees: float) -> float:
    """Return the two-sided 95 % point of Student's t; fewer than one degree count as one.

    From three degrees on by Fisher's expansion, whose error is at most 0.003 and falls with the degrees;
    below, where it fails, by numerical integration.
    """
    z, d = _Z, max(1.0, degrees)
    if d < 3:
        return _t_point_of_few(d)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(z + sum(term / d**power for power, term in enumerate(terms, start=1)))


@dataclass(frozen=True)
class Clusters:
    """What a mean's uncertainty needs to know of each cluster: members, their sum, their squares' sum."""

    sizes: FloatArray
    sums: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, codes: IntArray, values: FloatArray) -> Clusters:
        """Add up the values of each cluster; codes are small and not negative."""
        sizes = np.bincount(codes)
        weighed = (np.bincount(codes, weights=part) for part in (values, values * values))
        present = sizes > 0
        sums, squares = (part.astype(np.float64, copy=False)[present] for part in weighed)
        return cls(sizes[present].astype(np.float64), sums, squares)

    @property
    def mean(self) -> float:
        """The mean over all members."""
        return float(self.sums.sum() / self.sizes.sum())

    def effective(self) -> float:
        """Count clusters as if they were equally large (Kish): one that holds nearly all counts as one."""
        shares = self.sizes / self.sizes.sum()
        return 1.0 / float(np.dot(shares, shares))

    def jackknife_variance(self) -> float:
        """Estimate the variance of the mean by leaving out each cluster in turn."""
        count, left = self.sizes.size, self.sizes.sum() - self.sizes
        if count < 2:
            return 0.0
        moved = (self.sums - self.sizes * self.mean) / left
        return float((count - 1) / count * np.dot(moved, moved))

    def pooled_variance(self) -> float:
        """Estimate it as if members of every cluster, large or small, agreed as much as they do on average.

        The jackknife hears of the largest clusters only what they happened to do; this one knows from
        the others what they might have done.
        """
        total, mean = self.sizes.sum(), self.mean
        spread = float(self.squares.sum() / total) - mean * mean
        several = self.sizes >= 2
        if spread <= 0 or not several.any():
            return 0.0
        n, sums, squares = self.sizes[several], self.sums[several], self.squares[several]
        own = squares - 2 * mean * sums + n * mean * mean
        together = ((sums - n * mean) ** 2 - own) / n
        agreement = min(1.0, max(0.0, float(together.sum() / (n - 1).sum()) / spread))
        return spread * float((self.sizes * (1 + (self.sizes - 1) * agreement)).sum()) / float(total) ** 2


def _t_point_of_few(degrees: float) -> float:
    """Return the point by integration: with t = √d·tan(a), the density of the angle a is cos(a)^(d - 1)."""
    step = math.pi / 2 / _ANGLES
    angles = (np.arange(_ANGLES) + 0.5) * step
    mass = np.cumsum(np.cos(angles) ** (degrees - 1))
    angle = np.interp(0.95 * mass[-1], mass, angles + step / 2)
    return float(math.sqrt(degrees) * math.tan(angle))
