"""Who is near: in a stream of released labels, sums a weight that falls with distance, label by label.

A place is a position in a stream in which the records of a category stand together, in the order of
release. Its window is centred where its author's own token should have left: `before` and `after` hold the
weights of the places on both sides of that centre, by distance.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

IntArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float32]

#: What is guessed for a place with no other label near it.
NOBODY = -1


@njit(inline="always")
def bounds(low, high, centre, before, after):  # type: ignore[no-untyped-def]
    """Return the first and the last-but-one place of a window that stays inside its category."""
    return max(low, centre - before.size + 1), min(high, centre + after.size)


@njit(inline="always")
def weight(place, centre, before, after):  # type: ignore[no-untyped-def]
    """Return what a label at this place counts."""
    return after[place - centre] if place >= centre else before[centre - place]


@njit(cache=True, nogil=True)
def best_nearby(  # type: ignore[no-untyped-def]
    label, category, starts, centre, before, after, barred, sums, first, last, best
):  # fmt: skip
    """Write the label with the largest sum near each place from `first` up to `last` into `best`.

    `sums` has one zero per label, and is left so. Where `barred`, a place's own label cannot win. Of equal
    sums the earliest in the window wins.
    """
    for place in range(first, last):
        c = category[place]
        begin, end = bounds(starts[c], starts[c + 1], centre[place], before, after)
        for near in range(begin, end):
            sums[label[near]] += weight(near, centre[place], before, after)
        if barred:
            sums[label[place]] = 0
        largest = np.float32(0)
        best[place] = NOBODY
        for near in range(begin, end):
            if sums[label[near]] > largest:
                largest, best[place] = sums[label[near]], label[near]
        for near in range(begin, end):
            sums[label[near]] = 0


def falling(scale: float, reach: int) -> FloatArray:
    """Return exp(-distance / scale) for distances up to `reach`."""
    return np.exp(-np.arange(reach + 1) / scale).astype(np.float32)


def shares(label: IntArray, category: IntArray, users: int, steady: float) -> FloatArray:
    """Return each place's label share of the category's records, as if each label had `steady` more."""
    pair = category.astype(np.int64) * users + label
    order = np.argsort(pair, kind="stable")
    ends = np.flatnonzero(np.diff(pair[order], append=-1))
    sizes = np.diff(ends, prepend=-1)
    share = np.empty(label.size, np.float32)
    share[order] = np.repeat(sizes, sizes)
    totals = np.bincount(category) if category.size else np.zeros(1)
    return ((share + np.float32(steady)) / totals[category]).astype(np.float32)
