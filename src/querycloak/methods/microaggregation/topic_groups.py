"""Groups of users whose searches fall into the same categories (paper 003, 5.4.1.2 to 5.4.3.1), on integers.

The thesis builds a dense matrix for each level. A category is at one level only, so the matrices of all
levels are columns of one. It is kept as a short list for each user, and the common counts of two users are
summed along the lists of the users of a category.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.kernels.arrays import spans
from querycloak.kernels.threads import mirror, strided
from querycloak.log import IntArray
from querycloak.methods.microaggregation import mdav
from querycloak.methods.microaggregation.tree_distance import UNIT, Ints
from querycloak.text.taxonomy import Taxonomy


@dataclass(frozen=True)
class Counts:
    """A classification matrix: user a has `count[i]` times `category[i]`, i from `starts[a]` on."""

    starts: IntArray
    category: IntArray
    count: IntArray

    def of(self, users: IntArray) -> Counts:
        """Return the lists of some users only."""
        sizes = np.diff(self.starts)[users]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        place = spans(self.starts[users], sizes)
        return Counts(starts, self.category[place], self.count[place])

    def transposed(self) -> Counts:
        """Return the users of each category instead of the categories of each user."""
        user = np.repeat(np.arange(self.starts.size - 1), np.diff(self.starts))
        order = np.argsort(self.category, kind="stable")
        size = int(self.category.max(initial=-1)) + 1
        starts = np.searchsorted(self.category[order], np.arange(size + 1))
        return Counts(starts.astype(np.int64), user[order], self.count[order])


def count_categories(user: IntArray, node: IntArray, tree: Taxonomy, deepest: int, users: int) -> Counts:
    """Count how often each user's terms fall into each category of the first levels (Algorithm 2).

    A term counts for its category and for all above it but the root, down to the level `deepest`.
    """
    width, cells = tree.size, [np.empty(0, np.int64)]
    while (below := node > 0).any():
        user, node = user[below], node[below]
        counted = tree.depth[node] <= deepest
        cells.append(user[counted] * width + node[counted])
        node = tree.parent[node].astype(np.int64)
    cell, count = np.unique(np.concatenate(cells), return_counts=True)
    starts = np.searchsorted(cell, width * np.arange(users + 1))
    return Counts(starts.astype(np.int64), cell % width, count.astype(np.int64))


@njit(cache=True, nogil=True)
def _add_common(first, step, starts, category, count, begins, user, theirs, out):  # type: ignore[no-untyped-def]
    """Add the common counts of two users to the cells right of the diagonal, in every step-th row."""
    for a in range(first, starts.size - 1, step):
        for i in range(starts[a], starts[a + 1]):
            c = category[i]
            low = begins[c] + np.searchsorted(user[begins[c] : begins[c + 1]], a + 1)
            for j in range(low, begins[c + 1]):
                out[a, user[j]] += min(count[i], theirs[j])


def incidence(counts: Counts, threads: int | None = None) -> npt.NDArray[np.int32]:
    """Return how many counts two users have in common, at all levels (Algorithm 3); the diagonal is 0."""
    users = counts.starts.size - 1
    out = np.zeros((users, users), np.int32)
    by = counts.transposed()
    lists = (counts.starts, counts.category, counts.count, by.starts, by.category, by.count)
    strided(lambda first, step: _add_common(first, step, *lists, out), threads)
    mirror(out)
    return out


@njit(cache=True, nogil=True)
def _best_partner(row, own, order, alive):  # type: ignore[no-untyped-def]
    """Return the highest value of those alive, other than the own place, and its place in the order."""
    best, found = -1, -1
    for place in range(order.size):
        if alive[place] and place != own and row[order[place]] > best:
            best, found = row[order[place]], place
    return best, found


@njit(cache=True, nogil=True)
def _best_pair(common, order, alive, partner, most):  # type: ignore[no-untyped-def]
    """Return the place of the user alive who has most in common with another, its partner.

    The earlier best of a row is an upper bound: a row is searched again only if it is first and its partner
    is gone.
    """
    while True:
        best = np.argmax(most)
        if alive[partner[best]]:
            return best
        most[best], partner[best] = _best_partner(common[order[best]], best, order, alive)


@njit(cache=True, nogil=True)
def _grow(first, second, k, common, order, alive, label, number):  # type: ignore[no-untyped-def]
    """Start a group with two users, then add the user with most in common, up to k (Algorithm 5)."""
    merged, newest = np.zeros(order.size, np.int64), first
    for size in range(1, k + 1):
        label[order[newest]], alive[newest] = number, False
        merged += common[order[newest]]
        if size < k:
            newest = second if size == 1 else _best_partner(merged, -1, order, alive)[1]


@njit(cache=True, nogil=True)
def _partition(common, k, order):  # type: ignore[no-untyped-def]
    size = order.size
    label, alive = np.zeros(size, np.int64), np.ones(size, np.bool_)
    most, partner = np.empty(size, np.int64), np.empty(size, np.int64)
    for place in range(size if size > 1 else 0):
        most[place], partner[place] = _best_partner(common[order[place]], place, order, alive)
    for number in range(size // k if k > 1 else 0):
        first = _best_pair(common, order, alive, partner, most)
        _grow(first, partner[first], k, common, order, alive, label, number)
        most[~alive] = -1
    if k > 1:
        for place in range(size):
            if alive[place]:
                label[order[place]] = max(size // k - 1, 0)
    return label


def partition(common: npt.NDArray[np.int32], k: int, rank: npt.NDArray[np.uint64]) -> IntArray:
    """Return the group number of each user: k users with most in common (Algorithm 4).

    Users left over join the last group. Of equal pairs the one with the least ranks goes first. Fewer than k
    users are one group.
    """
    order = np.argsort(rank, kind="stable")
    if k == 1:
        return np.argsort(order).astype(np.int64)
    return np.asarray(_partition(common, k, order), np.int64)


def group(counts: Counts, k: int, rank: npt.NDArray[np.uint64], most: int) -> IntArray:
    """Return the group number of each user: groups of k users with most in common.

    More than `most` users are first cut into blocks of similar users; there are as many groups as without.
    """
    order = np.argsort(rank, kind="stable")
    label, first = np.empty(rank.size, np.int64), 0
    for block in mdav.blocks(TopicDistances(counts), order, k, most):
        label[block] = first + partition(incidence(counts.of(block)), k, rank[block])
        first += max(block.size // k, 1)
    return label


class TopicDistances:
    """Distances by which users are cut into blocks: 1 without common counts, 0 from `full` common counts on.

    They are not relative to a user's own counts: a user with many searches has most in common with other
    such users, and is grouped with them. `full` is the number of counts that 99 of 100 users do not exceed,
    so that one robot does not set the scale.
    """

    def __init__(self, counts: Counts) -> None:
        before = np.concatenate([[0], np.cumsum(counts.count)])
        sizes = np.sort(np.diff(before[counts.starts]))
        self._counts = counts
        self._full = max(int(sizes[sizes.size * 99 // 100]), 1) if sizes.size else 1

    def rows(self, ones: npt.NDArray[np.integer], others: npt.NDArray[np.integer]) -> Ints:
        """Return the distances of some users to others, in `UNIT`s: a row for each one."""
        out, counts = np.empty((len(ones), len(others)), np.int32), self._counts
        _rows(counts.starts, counts.category, counts.count, ones, others, self._full, out)
        return out


@njit(cache=True, nogil=True)
def _rows(starts, category, count, ones, others, full, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the share of `full` counts that each one and other do not have in common."""
    own = np.zeros(category.max() + 1 if category.size else 0, np.int64)
    for i, a in enumerate(ones):
        for at in range(starts[a], starts[a + 1]):
            own[category[at]] = count[at]
        for j, b in enumerate(others):
            common = 0
            for at in range(starts[b], starts[b + 1]):
                common += min(own[category[at]], count[at])
            out[i, j] = UNIT - min(common, full) * UNIT // full
        for at in range(starts[a], starts[a + 1]):
            own[category[at]] = 0
