"""Profiles on integers: how far each person's released categories lie from the ones she asked about.

People and categories are numbers from 0. Records come grouped by person (`grouped`), so that one scratch
array of the size of the tree serves everybody, and a record costs one step for each level of its path.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from querycloak.kernels.tables import find, put

#: Columns of the entries of a profiler: which category, how often, and the label's next entry.
CATEGORY, COUNT, NEXT = range(3)
#: What a person without one of the two profiles gets.
UNKNOWN = np.nan


@njit(cache=True, nogil=True)
def grouped(person, value, people):  # type: ignore[no-untyped-def]
    """Order values by person; say where each person starts. Records without person or value are left out."""
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
    """Put mass on a node and all above it; note the nodes that are met for the first time."""
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
    """Give each person's exact earth mover's distance on the tree between her two profiles.

    Masses are whole numbers, counts times the other profile's size, so that equal profiles are exactly 0
    apart. `parent` is -1 above level 1. A person without one of the profiles gets `UNKNOWN`.
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
    """Give each person's Jensen-Shannon divergence (base 2, 0 to 1) between her two profiles."""
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


@njit(cache=True, nogil=True)
def tally(label, category, many, first, second, full, value, entries, head, size):  # type: ignore[no-untyped-def]
    """Add records to the profiles of their labels; give the number of entries.

    The table (`first`, `second`, `full`, `value`) leads from (label, category) to an entry; `head` has each
    label's latest entry, from which `NEXT` leads through its profile.
    """
    for i in range(label.size):
        if label[i] < 0 or category[i] < 0:
            continue
        slot = find(first, second, full, label[i], category[i])
        if not full[slot]:
            put(first, second, full, value, slot, label[i], category[i], size)
            entries[size, CATEGORY], entries[size, COUNT] = category[i], 0
            entries[size, NEXT] = head[label[i]]
            head[label[i]] = size
            size += 1
        entries[value[slot], COUNT] += many[i]
    return size
