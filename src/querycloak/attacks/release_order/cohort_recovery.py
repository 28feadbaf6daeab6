"""Finds which labels are drawn from one cohort: they turn up on the same rare strings."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.log import IntArray


@njit(cache=True, nogil=True)
def count_pairs(groups, most):  # type: ignore[no-untyped-def]
    """Count the pairs of records within groups of two to `most` records."""
    pairs = 0
    for g in range(groups.size - 1):
        size = groups[g + 1] - groups[g]
        if 2 <= size <= most:
            pairs += size * (size - 1) // 2
    return pairs


@njit(cache=True, nogil=True)
def meetings(members, groups, label, labels, most, pair, weight):  # type: ignore[no-untyped-def]
    """Write each pair of different labels that meet in a small group, a group counting size / 2 in all."""
    found = 0
    for g in range(groups.size - 1):
        size = groups[g + 1] - groups[g]
        if size < 2 or size > most:
            continue
        for i in range(groups[g], groups[g + 1]):
            for j in range(i + 1, groups[g + 1]):
                a, b = label[members[i]], label[members[j]]
                if a != b:
                    pair[found] = np.int64(min(a, b)) * labels + max(a, b)
                    weight[found] = 1.0 / (size - 1)
                    found += 1
    return found


@njit(cache=True, nogil=True)
def root(parent, x):  # type: ignore[no-untyped-def]
    """Return the set that an element belongs to; `parent` leads there, by ever shorter ways."""
    while parent[x] != x:
        parent[x] = parent[parent[x]]
        x = parent[x]
    return x


@njit(cache=True, nogil=True)
def join(first, second, labels, size_limit):  # type: ignore[no-untyped-def]
    """Join labels, the surest pairs first, into sets of at most `size_limit`; give each label its set."""
    parent, size = np.arange(labels), np.ones(labels, np.int64)
    for i in range(first.size):
        a, b = root(parent, first[i]), root(parent, second[i])
        if a != b and size[a] + size[b] <= size_limit:
            parent[b] = a
            size[a] += size[b]
    for x in range(labels):
        parent[x] = root(parent, x)
    return parent


def mates(
    members: IntArray, groups: IntArray, label: npt.NDArray[np.int32], labels: int, k: int, most: int
) -> IntArray:
    """Return for each label the number of its probable set of at most k labels."""
    room = count_pairs(groups, most)
    pair, weight = np.empty(room, np.int64), np.empty(room, np.float64)
    found = meetings(members, groups, label, labels, most, pair, weight)
    different, which = np.unique(pair[:found], return_inverse=True)
    total = np.bincount(which, weight[:found], minlength=different.size)
    surest = np.argsort(-total, kind="stable")
    first, second = different[surest] // max(labels, 1), different[surest] % max(labels, 1)
    sets: IntArray = join(first, second, labels, k)
    return sets


@njit(cache=True, nogil=True)
def most_seen(members, groups, label, sets):  # type: ignore[no-untyped-def]
    """Return for each record the label seen most often in its group among those of its own label's set.

    Of equally frequent labels the one seen first wins.
    """
    best, times = np.full(label.size, -1, np.int64), np.zeros(sets.size, np.int64)
    for g in range(groups.size - 1):
        begin, end = groups[g], groups[g + 1]
        for i in range(begin, end):
            times[label[members[i]]] += 1
        winner = np.full(end - begin, -1, np.int64)  # by place of a set's first record in the group
        leader = np.empty(end - begin, np.int64)
        _lead(members, label, sets, begin, end, leader)
        for i in range(begin, end):
            x, own = leader[i - begin], label[members[i]]
            if winner[x] < 0 or times[own] > times[winner[x]]:
                winner[x] = own
        for i in range(begin, end):
            best[members[i]] = winner[leader[i - begin]]
            times[label[members[i]]] = 0
    return best


@njit(cache=True, nogil=True)
def _lead(members, label, sets, begin, end, leader):  # type: ignore[no-untyped-def]
    """Write for each record of a group the first record whose label is of the same set."""
    if end - begin == 1:
        leader[0] = 0
        return
    own = np.empty(end - begin, np.int64)
    for i in range(begin, end):
        own[i - begin] = sets[label[members[i]]]
    order = np.argsort(own, kind="mergesort")
    first = order[0]
    for i in range(order.size):
        if own[order[i]] != own[first]:
            first = order[i]
        leader[order[i]] = first
