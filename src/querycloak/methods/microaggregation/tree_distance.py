"""Distances between users in a tree of categories: one against many, or all against all.

The nearest category that another person has is found by walking up: of the categories below one ancestor the
least deep one is the nearest, so a table of ancestors and least depths is all that is needed.
Sums are whole numbers over a common denominator: the order of users and threads changes no distance.

Reference: thesis 003, equations 5.10 to 5.13.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.kernels.threads import mirror, strided
from querycloak.log import IntArray

Ints = npt.NDArray[np.int32]

#: The whole number that stands for the distance 1.
UNIT = 1 << 29
#: Common denominators up to here are exact; deeper trees get this one, and shares rounded to it.
_DENOMINATOR = 1 << 36
#: Rows of a matrix that are filled together.
_STRIP = 256


class Tree(NamedTuple):
    """The part of a taxonomy with categories of users; parents have smaller numbers than children."""

    parent: Ints
    depth: Ints
    share: IntArray  # [levels in common, sum of both depths] -> distance, times `whole`
    whole: int


class People(NamedTuple):
    """Categories of users, their counts, and all ancestors."""

    tree: Tree
    start: IntArray
    node: Ints
    times: IntArray
    total: IntArray
    above_start: IntArray
    above: Ints
    least: Ints  # the depth of the least deep category below

    @property
    def size(self) -> int:
        """Number of users."""
        return int(self.start.size - 1)

    def rows(self, ones: npt.NDArray[np.integer], others: npt.NDArray[np.integer]) -> Ints:
        """Return the distances of some users to others, in `UNIT`s: a row for each one."""
        out = np.empty((len(ones), len(others)), np.int32)
        _rows(self, np.asarray(ones, np.int64), np.asarray(others, np.int64), out)
        return out

    def matrix(self, members: npt.NDArray[np.integer] | None = None, threads: int | None = None) -> Ints:
        """Return all distances among some users, or among all, in `UNIT`s."""
        chosen = np.arange(self.size) if members is None else np.asarray(members, np.int64)
        out = np.zeros((chosen.size, chosen.size), np.int32)
        strided(lambda first, step: _fill(self, chosen, first, step, out), threads)
        mirror(out)
        return out


@njit(inline="always")
def _list_nodes(people, members):  # type: ignore[no-untyped-def]
    """Return the categories of some users and all above them but the root, parents first."""
    met = np.zeros(people.tree.parent.size, np.bool_)
    for p in members:
        for i in range(people.above_start[p], people.above_start[p + 1]):
            met[people.above[i]] = True
    return np.flatnonzero(met)


@njit(inline="always")
def _tabulate(nodes, least, slot, tree, value):  # type: ignore[no-untyped-def]
    """Number the ancestors of a user's categories; tabulate the nearest depths below each.

    A category below an ancestor, and below no deeper one of the list, is as near as the least deep category
    that the user has there, or as the ancestor's own parent says.
    """
    parent, depth, share, _ = tree
    for s in range(nodes.size):
        slot[nodes[s]] = s + 1
        level = depth[nodes[s]]
        up = slot[parent[nodes[s]]] if level > 1 else 0
        for own in range(level, value.shape[1] if level else 1):
            value[s + 1, own] = min(value[up, own], share[level, own + least[s]])


@njit(cache=True, nogil=True)
def _one_way(people, ones, others, out):  # type: ignore[no-untyped-def]
    """Sum, for each one and other, the distances of the other's categories to the nearest of the one's."""
    tree, start, node, times, _, above_start, above, least = people
    size, listed = tree.parent.size, _list_nodes(people, others)
    slot, under, near = np.zeros(size, np.int32), np.zeros(size, np.int32), np.empty(size, np.int64)
    value = np.full((1 + np.max(np.diff(above_start)), tree.share.shape[0]), tree.whole, np.int64)
    for r in range(ones.size):
        first, last = above_start[ones[r]], above_start[ones[r] + 1]
        _tabulate(above[first:last], least[first:last], slot, tree, value)
        for c in listed:
            under[c] = slot[c] if slot[c] or tree.depth[c] <= 1 else under[tree.parent[c]]
            near[c] = value[under[c], tree.depth[c]]
        slot[above[first:last]] = 0
        for j in range(others.size):
            total = 0
            for i in range(start[others[j]], start[others[j] + 1]):
                total += times[i] * near[node[i]]
            out[r, j] = total


@njit(cache=True, nogil=True)
def _rows(people, ones, others, out):  # type: ignore[no-untyped-def]
    """Fill the rows of `out` with the distances of each one to others."""
    forth, back = np.empty((ones.size, others.size), np.int64), np.empty((others.size, ones.size), np.int64)
    _one_way(people, ones, others, forth)
    _one_way(people, others, ones, back)
    for r in range(ones.size):
        for j in range(others.size):
            weight = people.total[ones[r]] + people.total[others[j]]
            apart = (forth[r, j] + back[j, r]) / (max(weight, 1) * people.tree.whole)
            out[r, j] = np.rint(apart * UNIT)


@njit(cache=True, nogil=True)
def _fill(people, members, first, step, out):  # type: ignore[no-untyped-def]
    """Fill every `step`-th strip of a symmetric matrix, from the diagonal to the right."""
    for low in range(first * _STRIP, members.size, step * _STRIP):
        high = min(low + _STRIP, members.size)
        _rows(people, members[low:high], members[low:], out[low:high, low:])


@njit(cache=True, nogil=True)
def _climb(start, node, parent, depth, bounds, above, least):  # type: ignore[no-untyped-def]
    """List all ancestors of each user's categories; without room (`above` empty) only count them."""
    value = np.zeros(parent.size, np.int32)
    met = np.empty(parent.size, np.int32)
    for p in range(start.size - 1):
        size = 0
        for i in range(start[p], start[p + 1]):
            c, own = node[i], depth[node[i]] + 1
            while True:
                if value[c] == 0:
                    met[size] = c
                    size += 1
                    value[c] = own
                value[c] = min(value[c], own)
                if depth[c] <= 1:
                    break
                c = parent[c]
        met[:size].sort()
        for i in range(size):
            if above.size:
                above[bounds[p] + i], least[bounds[p] + i] = met[i], value[met[i]] - 1
            value[met[i]] = 0
        if not above.size:
            bounds[p + 1] = bounds[p] + size


def shares(deepest: int) -> tuple[IntArray, int]:
    """Return equation 5.10 by levels in common and sum of both depths, and the common denominator."""
    whole = min(math.lcm(*range(1, max(2 * deepest, 2))), _DENOMINATOR)
    table = np.full((deepest + 1, 2 * deepest + 1), whole, np.int64)
    table[0, 0] = 0  # the root and itself
    for common in range(1, deepest + 1):
        for both in range(2 * common, 2 * deepest + 1):
            together = both - common
            table[common, both] = round((together - common) * whole / together)
    return table, whole


def people(
    parent: npt.NDArray[np.integer],
    start: npt.NDArray[np.integer],
    node: npt.NDArray[np.integer],
    times: npt.NDArray[np.integer],
) -> People:
    """Return users for distances: user p has each category of `node[start[p]:start[p + 1]]` `times` times.

    `parent` holds the parent of each node, before its children, and -1 for the root, node 0. Entries of the
    same category are summed; those without a count are left out.
    """
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))[times > 0]
    pairs, where = np.unique(owner * len(parent) + node[times > 0], return_inverse=True)
    counts = np.zeros(pairs.size, np.int64)
    np.add.at(counts, where, times[times > 0])
    tree, number = _pruned(parent, pairs % len(parent))
    nodes = number[pairs % len(parent)]
    starts = np.searchsorted(pairs, np.arange(len(start)) * len(parent))
    totals = np.diff(np.concatenate([[0], np.cumsum(counts)])[starts])
    bounds, nothing = np.zeros(len(start), np.int64), np.empty(0, np.int32)
    _climb(starts, nodes, tree.parent, tree.depth, bounds, nothing, nothing)
    above, least = np.empty(bounds[-1], np.int32), np.empty(bounds[-1], np.int32)
    if above.size:
        _climb(starts, nodes, tree.parent, tree.depth, bounds, above, least)
    return People(tree, starts, nodes, counts, totals, bounds, above, least)


def _pruned(parent: npt.NDArray[np.integer], used: npt.NDArray[np.integer]) -> tuple[Tree, Ints]:
    """Return the tree of the used categories and their ancestors, and the new number of each node."""
    kept = np.zeros(len(parent), bool)
    kept[0], here = True, np.unique(used)
    while here.size:
        kept[here] = True
        here = np.unique(parent[here])
        here = here[here > 0]
    number = (np.cumsum(kept) - 1).astype(np.int32)
    old = np.asarray(parent)[kept]
    parents = np.where(old < 0, -1, number[np.maximum(old, 0)]).astype(np.int32)
    depth, above = np.zeros(parents.size, np.int32), parents
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, parents[above], -1)
    return Tree(parents, depth, *shares(int(depth.max()))), number
