"""MDAV: groups of k alike members, from the outside in, by a matrix of distances or by vectors.

Sizes are k, and k to 2k - 1 for the last group; fewer than 2k members make one group, and fewer than k too:
the caller refuses those. Of equally far members the one of the lowest rank is taken, everywhere; all sums are
whole numbers. So with the same ranks the same members meet, in whatever order they come.

Reference: thesis 003, algorithm 1; the centroid of equation 5.14 for a matrix, the average for vectors.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.kernels.vector_distance import square

Longs = npt.NDArray[np.int64]


@njit(inline="always")
def _farthest(apart, live, size, place):  # type: ignore[no-untyped-def]
    """Give the live member with the greatest distance."""
    best = live[0]
    for i in range(1, size):
        x = live[i]
        if apart[x] > apart[best] or (apart[x] == apart[best] and place[x] < place[best]):
            best = x
    return best


@njit(inline="always")
def _gather(apart, live, size, place, first, group):  # type: ignore[no-untyped-def]
    """Fill `group` with a member and the nearest ones to it, kept sorted while looking."""
    group[0], found = first, 1
    for i in range(size):
        x = live[i]
        if x == first:
            continue
        at = found if found < group.size else group.size
        while at > 1 and (
            apart[x] < apart[group[at - 1]]
            or (apart[x] == apart[group[at - 1]] and place[x] < place[group[at - 1]])
        ):
            if at < group.size:
                group[at] = group[at - 1]
            at -= 1
        if at < group.size:
            group[at] = x
            found = min(found + 1, group.size)


@njit(inline="always")
def _settle(group, number, labels, live, where, size):  # type: ignore[no-untyped-def]
    """Give a group its number and take it out of the live members; give how many are left."""
    for x in group:
        labels[x] = number
        size -= 1
        last = live[size]
        live[where[x]], where[last] = last, where[x]
    return size


@njit(inline="always")
def _forget(matrix, group, live, size, sums):  # type: ignore[no-untyped-def]
    for x in group:
        apart = matrix[x]
        for i in range(size):
            sums[live[i]] -= apart[live[i]]


@njit(inline="always")
def _medoid(sums, live, size, place):  # type: ignore[no-untyped-def]
    best = live[0]
    for i in range(1, size):
        x = live[i]
        if sums[x] < sums[best] or (sums[x] == sums[best] and place[x] < place[best]):
            best = x
    return best


@njit(cache=True, nogil=True)
def _by_matrix(matrix, k, place, labels):  # type: ignore[no-untyped-def]
    size = place.size
    live, where = np.arange(size), np.arange(size)
    sums, group = np.zeros(size, np.int64), np.empty(k, np.int64)
    for i in range(size):
        for j in range(size):
            sums[i] += matrix[i, j]
    number = 0
    while size >= 2 * k:
        two = size >= 3 * k
        middle = _medoid(sums, live, size, place)
        far = _farthest(matrix[middle], live, size, place)
        for half in range(2 if two else 1):
            if half:
                far = _farthest(matrix[far], live, size, place)
            _gather(matrix[far], live, size, place, far, group)
            size = _settle(group, number, labels, live, where, size)
            _forget(matrix, group, live, size, sums)
            number += 1
    for i in range(size):
        labels[live[i]] = number


def places(rank: npt.NDArray[np.uint64]) -> Longs:
    """Give the place of each member in the order of the ranks, which should all differ."""
    place = np.empty(len(rank), np.int64)
    place[np.argsort(rank, kind="stable")] = np.arange(len(rank))
    return place


def by_matrix(matrix: npt.NDArray[np.integer], k: int, rank: npt.NDArray[np.uint64]) -> Longs:
    """Group members by their distances; give the number of each one's group.

    The centroid is the member with the least sum of distances to all that are not grouped yet.
    """
    labels = np.zeros(len(rank), np.int64)
    _by_matrix(matrix, k, places(rank), labels)
    return labels


@njit(inline="always")
def _measure(vectors, point, live, size, apart):  # type: ignore[no-untyped-def]
    for i in range(size):
        apart[live[i]] = square(vectors[live[i]], point)


@njit(cache=True, nogil=True)
def _by_vectors(vectors, k, place, labels):  # type: ignore[no-untyped-def]
    size, width = vectors.shape
    live, where = np.arange(size), np.arange(size)
    apart, group = np.empty(size, np.int64), np.empty(k, np.int64)
    total, middle = np.zeros(width, np.int64), np.empty(width, np.int64)
    for i in range(size):
        total += vectors[i]
    number = 0
    while size >= 2 * k:
        two = size >= 3 * k
        for d in range(width):
            middle[d] = (2 * total[d] + size) // (2 * size)
        _measure(vectors, middle, live, size, apart)
        for _ in range(2 if two else 1):
            far = _farthest(apart, live, size, place)
            _measure(vectors, vectors[far], live, size, apart)
            _gather(apart, live, size, place, far, group)
            size = _settle(group, number, labels, live, where, size)
            for x in group:
                total -= vectors[x]
            number += 1
    for i in range(size):
        labels[live[i]] = number


def by_vectors(vectors: npt.NDArray[np.int32], k: int, rank: npt.NDArray[np.uint64]) -> Longs:
    """Group vectors of whole numbers by straight lines; give the number of each one's group.

    The centroid is the average, rounded to whole numbers.
    """
    labels = np.zeros(len(rank), np.int64)
    _by_vectors(vectors, k, places(rank), labels)
    return labels


@njit(cache=True, nogil=True)
def _medoids(matrix, order, start, place, medoid, spread):  # type: ignore[no-untyped-def]
    for g in range(start.size - 1):
        members = order[start[g] : start[g + 1]]
        for x in members:
            total = np.int64(0)
            for y in members:
                total += matrix[x, y]
            if medoid[g] < 0 or total < spread[g] or (total == spread[g] and place[x] < place[medoid[g]]):
                medoid[g], spread[g] = x, total


def medoids(
    matrix: npt.NDArray[np.integer], labels: Longs, rank: npt.NDArray[np.uint64]
) -> tuple[Longs, Longs]:
    """Give each group's most central member and the sum of the distances of all members to it."""
    groups = int(labels.max(initial=-1)) + 1
    order = np.argsort(labels, kind="stable")
    start = np.searchsorted(labels[order], np.arange(groups + 1))
    medoid, spread = np.full(groups, -1, np.int64), np.zeros(groups, np.int64)
    _medoids(matrix, order, start, places(rank), medoid, spread)
    return medoid, spread
