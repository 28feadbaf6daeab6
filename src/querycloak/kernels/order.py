"""Orders rows that left at the same moment, and finds rows that came at the same moment."""

from __future__ import annotations

import numpy as np
from numba import njit

from querycloak.kernels.hash_table import find, put
from querycloak.kernels.siphash import siphash

#: Up to so many rows of one moment are compared with each other; more go through a table.
_FEW = 24


@njit(cache=True, nogil=True)
def within_moments(seq, time, row, k0, k1, purpose):  # type: ignore[no-untyped-def]
    """Return the order by (seq, time, keyed hash of the row), for a `seq` that never falls."""
    order = np.arange(seq.size)
    i = 0
    while i < seq.size:
        j = i + 1
        while j < seq.size and seq[j] == seq[i]:
            j += 1
        if j - i > 1:
            ties = np.empty(j - i, np.uint64)
            for m in range(i, j):
                ties[m - i] = siphash(k0, k1, purpose, np.uint64(row[m]))
            by_tie = np.argsort(ties, kind="mergesort")
            by_time = np.argsort(time[i:j][by_tie], kind="mergesort")
            order[i:j] = i + by_tie[by_time]
        i = j
    return order


@njit(cache=True, nogil=True)
def _heads_of_many(start, end, order, who, row, head):  # type: ignore[no-untyped-def]
    size = 4
    while size < 2 * (end - start):
        size *= 2
    first, second = np.empty(size, np.int64), np.empty(size, np.int64)
    full, value = np.zeros(size, np.uint8), np.empty(size, np.int64)
    for m in range(start, end):
        i = order[m]
        slot = find(first, second, full, who[i], 0)
        if full[slot]:
            head[i] = value[slot]
        else:
            put(first, second, full, value, slot, who[i], 0, row[i])


@njit(cache=True, nogil=True)
def heads(when, who, row, order, never):  # type: ignore[no-untyped-def]
    """Return for each row the first row of its search: same moment, same `who` (person and query).

    `order` sorts rows by moment, then by row. Rows whose moment is `never` are searches of their own.
    """
    head = row.copy()
    start = 0
    while start < order.size:
        end = start + 1
        while end < order.size and when[order[end]] == when[order[start]]:
            end += 1
        if end - start > _FEW and when[order[start]] != never:
            _heads_of_many(start, end, order, who, row, head)
        elif end - start > 1 and when[order[start]] != never:
            for m in range(start + 1, end):
                for earlier in range(start, m):
                    if who[order[m]] == who[order[earlier]]:
                        head[order[m]] = head[order[earlier]]
                        break
        start = end
    return head


@njit(cache=True, nogil=True)
def searches(place, head, row):  # type: ignore[no-untyped-def]
    """Return the place of each search's first row, by `place`, and the number of rows read with it."""
    order, base, lowest = np.empty(place.size, np.int64), place.min(), row.min()
    for i in range(place.size):
        order[place[i] - base] = i
    firsts = np.empty(place.size, np.int64)
    of_row = np.full(row.max() - lowest + 1, np.int64(-1))
    found = 0
    for i in order:
        if head[i] == row[i]:
            firsts[found], of_row[row[i] - lowest] = i, found
            found += 1
    read = np.zeros(found, np.int64)
    for i in range(head.size):
        read[of_row[head[i] - lowest]] += 1
    return firsts[:found], np.cumsum(read)


@njit(cache=True, nogil=True)
def group(codes, size):  # type: ignore[no-untyped-def]
    """Sort codes from 0 to `size` - 1, equal ones as they come; return their places and where each starts."""
    starts = np.zeros(size + 1, np.int64)
    for i in range(codes.size):
        starts[codes[i] + 1] += 1
    for c in range(size):
        starts[c + 1] += starts[c]
    free, order = starts.copy(), np.empty(codes.size, np.int64)
    for i in range(codes.size):
        order[free[codes[i]]] = i
        free[codes[i]] += 1
    return order, starts
