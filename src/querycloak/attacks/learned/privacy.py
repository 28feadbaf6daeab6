"""What hiding among fakes left of a person's privacy, after an attack sorted her searches into clusters.

All numbers lie between 0 and 1, and more is more private: errors of the attack over pairs of searches
(structure), how unlike her own the clusters' profiles are (semantic), and errors that are due to the fakes
alone (relative). A number that nothing defines, such as errors over no pairs, is nan.

Reference: paper 004, sections 2.5 and 5.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from querycloak.attacks.intervals import t_point, wilson

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def structure(cluster: IntArray, real: Flags) -> tuple[float, float]:
    """Give the share of real pairs that were torn apart, and of real–fake pairs that were put together.

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
    """Give how unlike her true profile each cluster's is, as cosine distance; rows are searches.

    A profile is the mean of its searches' weights. A cluster with no weight tells nothing of her: 1.
    """
    hers = weights[real].sum(0)
    if not hers.any():
        return []
    parts = range(int(cluster.max(initial=-1)) + 1)
    return [_apart(hers, weights[cluster == part].sum(0)) for part in parts]


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
    """Give Student's 95 % interval of a mean of shares; one person says nothing about others.

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
