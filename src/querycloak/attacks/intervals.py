"""95 % intervals for shares of records that are not independent of each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from querycloak.kernels.intervals import Clusters

IntArray = npt.NDArray[np.int64]

#: The two-sided 95 % point of the normal distribution, and of Student's t with 1 and 2 degrees.
_Z = 1.959963984540054
_T_FEW = {1: 12.706204736, 2: 4.302652730}


@dataclass(frozen=True)
class Share:
    """A share with its 95 % interval."""

    value: float
    low: float
    high: float
    n: int


def share(hits: npt.NDArray[np.float64], clusters: Sequence[IntArray]) -> Share | None:
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


def _interval(mean: float, hits: npt.NDArray[np.float64], codes: IntArray) -> tuple[float, float]:
    clusters = Clusters.of(codes, hits)
    effective = clusters.effective()
    variance = max(clusters.jackknife_variance(), clusters.pooled_variance())
    spread = mean * (1.0 - mean)
    independent = min(spread / variance, float(hits.size)) if variance > 0 else effective
    return wilson(mean, independent, t_point(effective - 1.0))


def wilson(mean: float, n: float, z: float = _Z) -> tuple[float, float]:
    """Give Wilson's interval of a share among n independent trials; it never leaves 0 to 1."""
    squared = z * z
    middle = (mean + squared / (2 * n)) / (1 + squared / n)
    reach = z * math.sqrt(mean * (1 - mean) / n + squared / (4 * n * n)) / (1 + squared / n)
    low = 0.0 if mean == 0.0 else max(0.0, middle - reach)
    return low, 1.0 if mean == 1.0 else min(1.0, middle + reach)


def t_point(degrees: float) -> float:
    """Give the two-sided 95 % point of Student's t, wider where few clusters tell of the spread.

    From three degrees on by Fisher's expansion, which is right to 0.003 there and better above.
    """
    few = int(max(1.0, degrees))
    if few in _T_FEW:
        return _T_FEW[few]
    z, d = _Z, degrees
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(z + sum(term / d**power for power, term in enumerate(terms, start=1)))
