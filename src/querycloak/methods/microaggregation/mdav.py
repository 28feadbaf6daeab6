"""MDAV: groups of k similar members, by a matrix of all distances, or in blocks for very many members.

Group sizes are k, and k to 2k - 1 for the last group. Fewer than 2k members make one group; so do fewer than
k, which the caller refuses. Of equally far members the one of the lowest rank is taken, everywhere, and all
sums are whole numbers. So the same ranks give the same groups, in whatever order the members come.

Blocks: members are cut in two until a block is small enough for a matrix, each time across the direction in
which their distances to some landmarks differ most. MDAV groups each block. Then the loosest groups, which
are the leftovers of each block, are mixed and grouped again; the result is kept where it is better.

Reference: thesis 003, algorithm 1, with the centroid of equation 5.14.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.kernels.threads import cores, each
from querycloak.log import IntArray
from querycloak.methods.microaggregation.tree_distance import Ints

#: Members of a block at most: a matrix of this size takes 400 MB. Fewer members are grouped exactly.
EXACT: Final = 10_000
_LANDMARKS: Final = 64
#: Bits of a distance that do not matter for a cut; the sums of the others are exact as floats.
_COARSE: Final = 13
_STEPS: Final = 1 << 12
#: Shares of the loosest groups that are grouped again, one after the other.
_AGAIN: Final = (0.4, 0.2)

Ranks = npt.NDArray[np.uint64]


class RowDistances(Protocol):
    """Distances by which members can be cut into blocks."""

    def rows(self, ones: npt.NDArray[np.integer], others: npt.NDArray[np.integer]) -> Ints:
        """Return the distances of some members to others: a row for each one."""


class Distances(RowDistances, Protocol):
    """Distances by which members can be grouped."""

    def matrix(self, members: npt.NDArray[np.integer] | None = None, threads: int | None = None) -> Ints:
        """Return all distances among some members, or among all."""


def split(labels: IntArray) -> list[IntArray]:
    """Return the places of the elements of each group, in their order."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.cumsum(np.bincount(labels))[:-1])


@njit(inline="always")
def _farthest(apart, live, size, place):  # type: ignore[no-untyped-def]
    best = live[0]
    for i in range(1, size):
        x = live[i]
        if apart[x] > apart[best] or (apart[x] == apart[best] and place[x] < place[best]):
            best = x
    return best


@njit(inline="always")
def _gather(apart, live, size, place, first, group):  # type: ignore[no-untyped-def]
    """Fill `group` with a member and those nearest to it, sorted by distance."""
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
    """Number a group and remove it from the live members; return how many are left."""
    for x in group:
        labels[x] = number
        size -= 1
        last = live[size]
        live[where[x]], where[last] = last, where[x]
    return size


@njit(inline="always")
def _subtract(matrix, group, live, size, sums):  # type: ignore[no-untyped-def]
    for x in group:
        apart = matrix[x]
        for i in range(size):
            sums[live[i]] -= apart[live[i]]


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
        middle = _farthest(-sums, live, size, place)  # the one with the least sum of distances
        far = _farthest(matrix[middle], live, size, place)
        for half in range(2 if two else 1):
            if half:
                far = _farthest(matrix[far], live, size, place)
            _gather(matrix[far], live, size, place, far, group)
            size = _settle(group, number, labels, live, where, size)
            _subtract(matrix, group, live, size, sums)
            number += 1
    for i in range(size):
        labels[live[i]] = number


def places(rank: Ranks) -> IntArray:
    """Return the place of each member in the order of the ranks, which should all differ."""
    return np.argsort(np.argsort(rank, kind="stable"))


def by_matrix(matrix: npt.NDArray[np.integer], k: int, rank: Ranks) -> IntArray:
    """Return the group number of each member, by a matrix of all distances.

    The centroid is the member with the least sum of distances to all that are not grouped yet.
    """
    labels = np.zeros(len(rank), np.int64)
    _by_matrix(matrix, k, places(rank), labels)
    return labels


class _Groups(NamedTuple):
    """Groups of some members."""

    members: IntArray
    labels: IntArray  # group number of each member
    spread: IntArray  # of each group: the sum of all distances to its most central member


def group(distances: Distances, k: int, rank: Ranks, most: int) -> IntArray:
    """Return the group number of each member, without a matrix of all distances.

    All groups have k members, and one has up to 2k - 1. Up to `most` members are one block.
    """
    if len(rank) <= most:
        return by_matrix(distances.matrix(), k, rank)
    found = _group(distances, np.argsort(rank, kind="stable"), k, rank, most)
    for share in _AGAIN:
        found = _regroup(distances, found, share, k, rank, most)
    labels = np.empty(len(rank), np.int64)
    labels[found.members] = found.labels
    return labels


def blocks(distances: RowDistances, members: IntArray, k: int, most: int) -> list[IntArray]:
    """Return blocks of members, which come in the order of their ranks; sizes but one are multiples of k."""
    done, waiting = [], [members]
    while waiting:
        block = waiting.pop()
        if block.size <= most or block.size < 4 * k:
            done.append(block)
            continue
        order = np.argsort(_direction(distances, block), kind="stable")  # equals stay by rank
        half = block.size // 2 // k * k
        for part in (order[half:], order[:half]):
            waiting.append(block[np.sort(part)])
    return done


def _direction(distances: RowDistances, block: IntArray) -> IntArray:
    """Return the place of each member on the line along which distances to landmarks differ most."""
    parts = np.array_split(block, cores())
    rows = each(lambda part: distances.rows(block[:_LANDMARKS], part), parts)
    table = (np.hstack(rows) >> _COARSE).astype(np.int64)
    table -= table.sum(axis=0) // table.shape[0]  # a member's mean distance is no direction
    table -= table.sum(axis=1, keepdims=True) // table.shape[1]
    floats = table.astype(np.float64)
    _, vectors = np.linalg.eigh(floats @ floats.T)
    main = np.rint(vectors[:, -1] * _STEPS)
    main *= np.sign(main[np.argmax(np.abs(main))])
    return np.asarray(main @ floats).astype(np.int64)


def _group(distances: Distances, members: IntArray, k: int, rank: Ranks, most: int) -> _Groups:
    """Group the members of each block."""
    parts = blocks(distances, members, k, most)

    def one(block: IntArray) -> tuple[IntArray, IntArray]:
        matrix = distances.matrix(block, threads=1)
        labels = by_matrix(matrix, k, rank[block])
        spread = [matrix[np.ix_(own, own)].sum(axis=1, dtype=np.int64).min() for own in split(labels)]
        return labels, np.array(spread, np.int64)

    found = each(one, parts)
    before = np.cumsum([0, *(spread.size for _, spread in found)])
    labels = [own + first for (own, _), first in zip(found, before, strict=False)]
    spreads = np.concatenate([spread for _, spread in found])
    return _Groups(np.concatenate(parts), np.concatenate(labels), spreads)


def _regroup(distances: Distances, old: _Groups, share: float, k: int, rank: Ranks, most: int) -> _Groups:
    """Group the members of the loosest groups again, if that reduces their spread."""
    size = np.bincount(old.labels)
    loosest = np.argsort(-(old.spread // size), kind="stable")[: int(share * size.size)]
    if not loosest.size:
        return old
    again = np.zeros(size.size, bool)
    again[loosest] = True
    chosen = again[old.labels]
    pool = old.members[chosen]
    new = _group(distances, pool[np.argsort(rank[pool], kind="stable")], k, rank, most)
    if new.spread.sum() >= old.spread[again].sum():
        return old
    number = np.cumsum(~again) - 1
    kept = old.labels[~chosen]
    return _Groups(
        np.concatenate([old.members[~chosen], new.members]),
        np.concatenate([number[kept], new.labels + int((~again).sum())]),
        np.concatenate([old.spread[~again], new.spread]),
    )
