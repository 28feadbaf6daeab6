"""How far vectors lie apart, by their angle or in a straight line: one against many, or all against all.

Vectors become whole numbers first, so that no order of adding changes a distance.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.kernels.semantic_distance import UNIT, Ints
from querycloak.kernels.threads import mirror, strided

#: Steps between 0 and the largest value of a vector.
STEPS = 1 << 20


class Vectors(NamedTuple):
    """Vectors as whole numbers; `scale` is what a straight line is divided by, 0 for angles."""

    values: Ints
    scale: float

    @property
    def size(self) -> int:
        """How many vectors there are."""
        return int(self.values.shape[0])

    def row(self, one: int, others: npt.NDArray[np.integer]) -> Ints:
        """Give the distances of one vector to others, in `UNIT`s."""
        found: Ints = self.rows(np.array([one]), others)[0]
        return found

    def rows(self, ones: npt.NDArray[np.integer], others: npt.NDArray[np.integer]) -> Ints:
        """Give the distances of some vectors to others, in `UNIT`s: a row for each one."""
        out = np.empty((len(ones), len(others)), np.int32)
        for one, row in zip(ones, out, strict=True):
            _row(self.values, self.scale, one, np.asarray(others, np.int64), row)
        return out

    def matrix(self, members: npt.NDArray[np.integer] | None = None, threads: int | None = None) -> Ints:
        """Give all distances among some vectors, or among all, in `UNIT`s."""
        chosen = np.arange(self.size) if members is None else np.asarray(members, np.int64)
        out = np.zeros((chosen.size, chosen.size), np.int32)
        strided(lambda first, step: _fill(self.values, self.scale, chosen, first, step, out), threads)
        mirror(out)
        return out


def whole(vectors: npt.NDArray[np.floating]) -> Ints:
    """Turn vectors into whole numbers; the largest value of all becomes `STEPS`."""
    most = np.abs(vectors).max(initial=0.0) or 1.0
    rounded: Ints = np.rint(vectors * (STEPS / most)).astype(np.int32)
    return rounded


def by_angle(vectors: npt.NDArray[np.floating]) -> Vectors:
    """Make ready for 1 - cosine: 0 for one direction, 1 for nothing in common, 2 for opposite ones.

    A vector of zeros has no direction: it is at 0 from its like and at 1 from all else.
    """
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return Vectors(whole(vectors / np.where(length > 0, length, 1)), 0.0)


def by_line(vectors: npt.NDArray[np.floating]) -> Vectors:
    """Make ready for straight lines, divided by the longest one that the range of the values allows."""
    return Vectors(whole(vectors), 2.0 * STEPS * math.sqrt(max(vectors.shape[1], 1)))


@njit(inline="always")
def _angle(a, b):  # type: ignore[no-untyped-def]
    dot, first, second = np.int64(0), np.int64(0), np.int64(0)
    for d in range(a.size):
        dot += np.int64(a[d]) * np.int64(b[d])
        first += np.int64(a[d]) * np.int64(a[d])
        second += np.int64(b[d]) * np.int64(b[d])
    if first == 0 or second == 0:
        return 0.0 if first == second else 1.0
    return min(2.0, max(0.0, 1.0 - dot / np.sqrt(float(first) * float(second))))


@njit(inline="always")
def square(a, b):  # type: ignore[no-untyped-def]
    """Give the squared straight line between two vectors of whole numbers."""
    total = np.int64(0)
    for d in range(a.size):
        gap = np.int64(a[d]) - np.int64(b[d])
        total += gap * gap
    return total


@njit(cache=True, nogil=True)
def _row(values, scale, one, others, out):  # type: ignore[no-untyped-def]
    for j in range(others.size):
        a, b = values[one], values[others[j]]
        apart = np.sqrt(float(square(a, b))) / scale if scale else _angle(a, b)
        out[j] = np.rint(apart * UNIT)


@njit(cache=True, nogil=True)
def _fill(values, scale, members, first, step, out):  # type: ignore[no-untyped-def]
    """Fill the rows `first`, `first + step`, ... of a matrix, right of the diagonal."""
    for i in range(first, members.size, step):
        _row(values, scale, members[i], members[i + 1 :], out[i, i + 1 :])
