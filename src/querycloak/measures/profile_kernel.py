"""Kernels of `profile_loss`: distances between the original and the released categories of each user.

Users and categories are numbers from 0. Records come grouped by user (`grouped`), so that one scratch array
of the size of the tree serves all users, and a record costs one step for each level of its path.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: The value of a user without one of the two profiles.
UNKNOWN = np.nan


@njit(cache=True, nogil=True)
def grouped(person, value, people):  # type: ignore[no-untyped-def]
    """Return values ordered by user, and where each user starts. Records without one of both are left out."""
    starts = np.zeros(people + 1, np.int64)
    for i in range(person.size):
        if person[i] >= 0 and value[i] >= 0:
            starts[person[i] + 1] += 1
    for p in range(people):
        starts[p + 1] += starts[p]
    free, ordered = starts.copy(), np.empty(starts[people], np.int64)
    for i in range(person.size):
        if person[i] >= 0 and value[i] >= 0:
            ordered[free[person[i]]] = value[i]
            free[person[i]] += 1
    return ordered, starts


@njit(cache=True, nogil=True)
def _add_path(node, weight, parent, mass, met, touched, size):  # type: ignore[no-untyped-def]
    """Add mass to a node and its ancestors; record the nodes seen for the first time."""
    while node >= 0:
        if not met[node]:
            met[node] = True
            touched[size] = node
            size += 1
        mass[node] += weight
        node = parent[node]
    return size


@njit(cache=True, nogil=True)
def tree_distances(parent, before, before_starts, after, after_starts):  # type: ignore[no-untyped-def]
    """Return each user's exact earth mover's distance on the tree between two profiles.

    Masses are whole numbers, counts times the other profile's size, so that equal profiles are exactly 0
    apart. `parent` is -1 above level 1. A user without one of the profiles gets `UNKNOWN`.
    """
    people = before_starts.size - 1
    distance = np.full(people, UNKNOWN)
    mass, met = np.zeros(parent.size, np.int64), np.zeros(parent.size, np.bool_)
    touched = np.empty(parent.size, np.int64)
    for p in range(people):
        first, second = before_starts[p + 1] - before_starts[p], after_starts[p + 1] - after_starts[p]
        if first == 0 or second == 0:
            continue
        size = 0
        for i in range(before_starts[p], before_starts[p + 1]):
            size = _add_path(before[i], second, parent, mass, met, touched, size)
        for i in range(after_starts[p], after_starts[p + 1]):
            size = _add_path(after[i], -first, parent, mass, met, touched, size)
        moved = 0.0
        for t in range(size):
            node = touched[t]
            moved += abs(mass[node])
            mass[node], met[node] = 0, False
        distance[p] = moved / (first * second)
    return distance


@njit(inline="always")
def _towards_middle(a, b):  # type: ignore[no-untyped-def]
    return a * np.log2(2 * a / (a + b)) if a > 0 else 0.0


@njit(cache=True, nogil=True)
def divergences(values, before, before_starts, after, after_starts):  # type: ignore[no-untyped-def]
    """Return each user's Jensen-Shannon divergence (base 2, 0 to 1) between two profiles."""
    people = before_starts.size - 1
    found = np.full(people, UNKNOWN)
    counts = np.zeros((values, 2), np.int64)
    for p in range(people):
        first, second = before_starts[p + 1] - before_starts[p], after_starts[p + 1] - after_starts[p]
        if first == 0 or second == 0:
            continue
        counts[:] = 0
        for i in range(before_starts[p], before_starts[p + 1]):
            counts[before[i], 0] += 1
        for i in range(after_starts[p], after_starts[p + 1]):
            counts[after[i], 1] += 1
        total = 0.0
        for v in range(values):
            a, b = counts[v, 0] / first, counts[v, 1] / second
            total += _towards_middle(a, b) + _towards_middle(b, a)
        found[p] = min(1.0, max(0.0, total / 2))
    return found
