"""Sums over clusters: how far records that belong together go astray together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


def cluster_sums(codes: IntArray, values: FloatArray) -> tuple[FloatArray, IntArray]:
    """Add up the values of each cluster and count its members; codes are small and not negative."""
    sizes = np.bincount(codes)
    sums: FloatArray = np.bincount(codes, weights=values).astype(np.float64, copy=False)
    present = sizes > 0
    return sums[present], sizes[present].astype(np.int64)


def mean_variance(sums: FloatArray, sizes: IntArray) -> float:
    """Estimate the variance of the mean of all members, when only whole clusters are independent."""
    count, total = sums.size, int(sizes.sum())
    if count < 2:
        return 0.0
    astray = sums - sizes * (sums.sum() / total)
    return float(count / (count - 1) * np.dot(astray, astray)) / total**2


def effective_clusters(sizes: IntArray) -> float:
    """Count clusters as if they were equally large (Kish): one that holds nearly all counts as one."""
    shares = sizes / sizes.sum()
    return 1.0 / float(np.dot(shares, shares))
