"""What a live method costs: delay, records still held, and how the share released grows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
#: Stands for "no time" among moments: later than all.
NEVER = int(np.iinfo(np.int64).max)


def delay(entered: Sequence[float], released: Sequence[float]) -> dict[str, float]:
    """Say how long records waited: from entry to release, both in records read (or both in seconds).

    >>> delay([1, 2, 3], [3, 3, 3])
    {'mean': 1.0, 'median': 1.0, 'p90': 1.8, 'max': 2.0}
    """
    if len(entered) != len(released):
        raise ValueError(f"the sequences must be equally long; got {len(entered)} and {len(released)}")
    return _figures(np.asarray(released, np.float64) - np.asarray(entered, np.float64))


def _figures(waited: FloatArray) -> dict[str, float]:
    if not waited.size:
        return dict.fromkeys(("mean", "median", "p90", "max"), float("nan"))
    if waited.min() < 0:
        raise ValueError("a record cannot be released before it entered")
    middle, high = np.quantile(waited, (0.5, 0.9)).tolist()
    return {"mean": float(waited.mean()), "median": middle, "p90": high, "max": float(waited.max())}


def release_rate_over_time(released_after: Sequence[int], records: int, parts: int = 10) -> list[float]:
    """Give the share of what had been read that had been released, after each tenth of the input.

    `released_after` says for each released record how many had been read when it left.

    >>> release_rate_over_time([2, 4], records=4, parts=2)
    [0.5, 0.5]
    """
    if not records:
        return [float("nan")] * parts
    when = np.sort(np.asarray(released_after))
    read = [records * part // parts for part in range(1, parts + 1)]
    gone = np.searchsorted(when, read, side="right").tolist()
    return [left / so_far if so_far else float("nan") for left, so_far in zip(gone, read, strict=True)]


def final_held(categories: Iterable[str], level: int) -> float:
    """Give the mean number of records that a category still holds at the end, categories cut at `level`.

    `categories` are those of the records that never left. Categories that hold nothing do not count.

    >>> final_held(["Arts/Music", "Arts/Film", "Games/Chess"], level=1)
    1.5
    """
    cut: dict[str, int] = {}
    for path in categories:
        name = "/".join(path.split("/")[:level])
        cut[name] = cut.get(name, 0) + 1
    return sum(cut.values()) / len(cut) if cut else 0.0


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
    """Give the probability that a Brownian bridge goes beyond x: Kolmogorov's limit."""
    if x < 0.2:  # 1 up to 13 digits, and the series below converges slowly
        return 1.0
    terms = ((-1) ** (j - 1) * math.exp(-2 * (j * x) ** 2) for j in range(1, 101))
    return min(1.0, max(0.0, 2 * math.fsum(terms)))


def arrivals(when: IntArray, head: IntArray) -> IntArray:
    """Say for each row how many rows had been read once its search was in, in order of time.

    `when` is each row's time and `head` the first row of its search; rows of a search come in together.
    """
    order = np.lexsort((head, when))
    last = np.flatnonzero(np.append(head[order][1:] != head[order][:-1], True))
    read = np.empty(when.size, np.int64)
    read[order] = last[np.searchsorted(last, np.arange(when.size))] + 1
    return read


def waiting(released_after: IntArray, row: IntArray, when: IntArray, head: IntArray) -> dict[str, Any]:
    """Give the delays of released rows, in records and in seconds; `row` is each one's place in `when`.

    `when` is in microseconds; rows without a time have the largest number and are not counted.
    """
    known = when[row] < NEVER
    row, released_after = row[known], released_after[known]
    in_order = np.sort(when)
    last = in_order[np.searchsorted(in_order, NEVER) - 1] if when.size else 0
    moment = np.minimum(in_order[np.minimum(released_after, when.size) - 1], last)
    return {
        "records": _figures((released_after - arrivals(when, head)[row]).astype(np.float64)),
        "seconds": _figures((moment - when[row]) / 1e6),
        "counted": int(row.size),
    }
