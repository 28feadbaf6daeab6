"""Groups of k among very many members: the candidates for a member are those in its block of alike ones.

Members are cut in two until a block is small enough for a matrix, each time across the direction in which
their distances to some landmarks differ most. MDAV groups each block. Then the loosest groups, which are
what MDAV leaves over in each block, are mixed and grouped again, and that is kept where it is better.
Landmarks, cuts and ties go by rank, and sums are whole numbers: the order of the members makes no difference.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from querycloak.kernels import mdav
from querycloak.kernels.semantic_distance import Ints, Longs
from querycloak.kernels.threads import cores, each

#: Members of a block at most: a matrix of this size takes 256 MB.
MOST = 8192
_LANDMARKS = 64
_COARSE = 13  # bits of a distance that do not matter for a cut; the sums of the others are exact as floats
_STEPS = 1 << 12
#: Shares of the loosest groups that are grouped again, one after the other.
_AGAIN = (0.4, 0.2)

Ranks = npt.NDArray[np.uint64]


class Distances(Protocol):
    """What can give the distances among members: `People`, `Vectors`, or your own."""

    @property
    def size(self) -> int:
        """How many members there are."""

    def rows(self, ones: npt.NDArray[np.integer], others: npt.NDArray[np.integer]) -> Ints:
        """Give the distances of some members to others: a row for each one."""

    def matrix(self, members: npt.NDArray[np.integer] | None = None, threads: int | None = None) -> Ints:
        """Give all distances among some members."""


class _Groups(NamedTuple):
    """The groups of some members: whose group has which number, and how loose each group is."""

    members: Longs
    labels: Longs
    spread: Longs


def group(distances: Distances, k: int, rank: Ranks, most: int = MOST, threads: int | None = None) -> Longs:
    """Group members by their distances, without a matrix of all; give the number of each one's group.

    All groups have k members, and one has up to 2k - 1. Up to `most` members are one block.
    """
    if len(rank) <= most:
        return mdav.by_matrix(distances.matrix(threads=threads), k, rank)
    found = _group(distances, np.argsort(rank, kind="stable"), k, rank, most, threads)
    for share in _AGAIN:
        found = _regroup(distances, found, share, k, rank, most, threads)
    labels = np.empty(len(rank), np.int64)
    labels[found.members] = found.labels
    return labels


def blocks(
    distances: Distances, members: Longs, k: int, most: int, threads: int | None = None
) -> list[Longs]:
    """Cut members, in the order of their ranks, into blocks; all sizes but one are multiples of k."""
    done, waiting = [], [members]
    while waiting:
        block = waiting.pop()
        if block.size <= most or block.size < 4 * k:
            done.append(block)
            continue
        order = np.argsort(_direction(distances, block, threads), kind="stable")  # equal ones stay by rank
        half = block.size // 2 // k * k
        for part in (order[half:], order[:half]):
            waiting.append(block[np.sort(part)])
    return done


def _direction(distances: Distances, block: Longs, threads: int | None) -> Longs:
    """Place the members of a block on the line along which their distances to landmarks differ most."""
    parts = np.array_split(block, cores(threads))
    rows = each(lambda part: distances.rows(block[:_LANDMARKS], part), parts, threads)
    table = (np.hstack(rows) >> _COARSE).astype(np.int64)
    table -= table.sum(axis=0) // table.shape[0]  # how far out a member lies in general is no direction
    table -= table.sum(axis=1, keepdims=True) // table.shape[1]
    floats = table.astype(np.float64)
    _, vectors = np.linalg.eigh(floats @ floats.T)
    main = np.rint(vectors[:, -1] * _STEPS)
    main *= np.sign(main[np.argmax(np.abs(main))])
    return np.asarray(main @ floats).astype(np.int64)


def _group(
    distances: Distances, members: Longs, k: int, rank: Ranks, most: int, threads: int | None
) -> _Groups:
    """Cut members into blocks and group each."""
    parts = blocks(distances, members, k, most, threads)

    def one(block: Longs) -> tuple[Longs, Longs]:
        matrix = distances.matrix(block, threads=1)
        labels = mdav.by_matrix(matrix, k, rank[block])
        return labels, mdav.medoids(matrix, labels, rank[block])[1]

    found = each(one, parts, threads)
    before = np.cumsum([0, *(spread.size for _, spread in found)])
    labels = [own + first for (own, _), first in zip(found, before, strict=False)]
    return _Groups(
        np.concatenate(parts), np.concatenate(labels), np.concatenate([spread for _, spread in found])
    )


def _regroup(
    distances: Distances, old: _Groups, share: float, k: int, rank: Ranks, most: int, threads: int | None
) -> _Groups:
    """Group the members of the loosest groups again, if that makes them closer."""
    size = np.bincount(old.labels)
    loosest = np.argsort(-(old.spread // size), kind="stable")[: int(share * size.size)]
    if not loosest.size:
        return old
    again = np.zeros(size.size, bool)
    again[loosest] = True
    chosen = again[old.labels]
    pool = old.members[chosen]
    new = _group(distances, pool[np.argsort(rank[pool], kind="stable")], k, rank, most, threads)
    if new.spread.sum() >= old.spread[again].sum():
        return old
    number = np.cumsum(~again) - 1
    kept = old.labels[~chosen]
    return _Groups(
        np.concatenate([old.members[~chosen], new.members]),
        np.concatenate([number[kept], new.labels + int((~again).sum())]),
        np.concatenate([old.spread[~again], new.spread]),
    )


def medoids(
    distances: Distances, labels: Longs, rank: Ranks, threads: int | None = None
) -> tuple[Longs, Longs]:
    """Give each group's most central member and the sum of distances to it, without a matrix of all."""
    order = np.argsort(labels, kind="stable")
    edges = np.flatnonzero(np.diff(labels[order])) + 1

    def one(members: Longs) -> tuple[int, int]:
        matrix, together = distances.matrix(members, threads=1), np.zeros(members.size, np.int64)
        medoid, spread = mdav.medoids(matrix, together, rank[members])
        return int(members[medoid[0]]), int(spread[0])

    found = np.array(each(one, np.split(order, edges), threads), np.int64)
    return found[:, 0], found[:, 1]
