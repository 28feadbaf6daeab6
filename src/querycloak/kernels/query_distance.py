"""Hausdorff distances between people's sets of searches (paper 003, 5.3.1.2), exact, on integers and arrays.

All pairs of people are compared, but few pairs of searches. A search of one person stops looking among the
other's as soon as it has found one nearer than the largest gap known for the two people; what cannot be
nearer than the best so far is left after its cheap parts. Searches far from all others (many and long
words, deep ranks) open large gaps early, so they look first and are found last.

Gaps in here are six times the distances of equation 5.3, whose parts are sums: no division until the end.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: With or without a rank, with or without a host.
KINDS = 4
#: Columns of what is known of a search: numbers, and whole numbers (where its words are).
TIME, TERMS, RANK = range(3)
HOST, LOW, HIGH = range(3)
#: More than rounding can add to a sum of a few numbers up to 1.
ROUNDING = 1e-12


@njit(inline="always")
def number_gap(a, b):  # type: ignore[no-untyped-def]
    """Take the difference of two normalised numbers; 1 if one is missing (below 0), 0 if both are."""
    if a < 0.0 or b < 0.0:
        return 0.0 if a < 0.0 and b < 0.0 else 1.0
    return abs(a - b)


@njit(inline="always")
def host_gap(a, b, labels, depth):  # type: ignore[no-untyped-def]
    """Weigh the labels in which two hosts differ, those on the right most; the weights sum to 1.

    Row h of `labels` holds the numbers of a host's labels from the right, then numbers below 0.
    """
    if a == b:
        return 0.0
    if a < 0 or b < 0:
        return 1.0
    m, apart, full = max(depth[a], depth[b]), 0.0, 0.0
    for i in range(m):
        apart += apart + (labels[a, i] != labels[b, i])
        full += full + 1.0
    return apart / full


@njit(inline="always")
def strings_gap(own, near, rows, words, low, high, value, limit):  # type: ignore[no-untyped-def]
    """Give the Hausdorff distance between two strings' words, or infinity if it is not below the limit.

    `own` says which `rows` (numbers of distances to every word) the one string's words have, and `near` holds
    the least of them; the other string's words are `words[low:high]`.
    """
    if own.size == 0 or low == high:
        return 0.0 if own.size == 0 and low == high else 1.0
    far = near.dtype.type(0)
    for y in range(low, high):
        far = max(far, near[words[y]])
    if value[far] >= limit:
        return np.inf
    for x in range(own.size):
        least = rows[own[x], words[low]]
        for y in range(low + 1, high):
            least = min(least, rows[own[x], words[y]])
        far = max(far, least)
    return value[far]


@njit(cache=True, nogil=True)
def nearest_words(own, rows, near):  # type: ignore[no-untyped-def]
    """Fill `near` with the least number that any of the rows has for each word."""
    for x in range(own.size):
        row = rows[own[x]]
        if x == 0:
            near[:] = row
        for w in range(near.size):
            near[w] = min(near[w], row[w])


@njit(inline="always")
def _step(q, before, kind, numbers, marks):  # type: ignore[no-untyped-def]
    """Say how much farther from anything a search can be than one with the same string; or infinity."""
    if kind[q] != kind[before] or marks[q, HOST] != marks[before, HOST]:
        return np.inf
    apart = number_gap(numbers[q, TIME], numbers[before, TIME])
    return apart + number_gap(numbers[q, RANK], numbers[before, RANK]) + ROUNDING


@njit(cache=True, nogil=True)
def widen(  # type: ignore[no-untyped-def]  # noqa: PLR0912, a call would cost half as much again
    people, looking, kind, string, places, groups, rows, searches, hosts, weights, gaps
):
    """Write for each of some people, and everybody else, how far a search of hers is from the other's.

    Where the gap known for the two is larger already, that is written. The larger of `gaps[a, b]` and
    `gaps[b, a]` is the Hausdorff distance once both have had their turn, in whatever order.

    `looking` orders each person's searches, with equal strings together; `groups[a]` bounds hers by kind
    (two bits: has a rank, has a host), and searches whose kinds differ in a bit are at least 1 apart.
    `places` maps words to rows. A look goes round a kind from where the last one ended: neighbours in the
    order find the same.
    """
    numbers, marks, words = searches
    labels, depth, value = hosts
    more, most = weights
    near, size = np.empty(rows.shape[1], rows.dtype), groups.shape[0]
    nearest = np.zeros(size)
    for a in people:
        gap, at, before = np.maximum(gaps[a], gaps[:, a]), groups[:, :KINDS].copy(), -1
        for turn in range(groups[a, 0], groups[a, KINDS]):
            q = looking[turn]
            own = places[words[marks[q, LOW] : marks[q, HIGH]]]
            step = np.inf
            if before >= 0 and string[q] == string[before]:
                step = _step(q, before, kind, numbers, marks)
            else:
                nearest_words(own, rows, near)
            before = q
            for b in range(size):
                nearest[b] += step
                if nearest[b] <= gap[b] or a == b:
                    continue
                enough, best = gap[b], np.inf
                for flip in range(KINDS):
                    if best <= enough or best <= (flip + 1) // 2:
                        break
                    first, last = groups[b, kind[q] ^ flip], groups[b, (kind[q] ^ flip) + 1]
                    p = found = at[b, kind[q] ^ flip]
                    for _ in range(last - first):
                        d = number_gap(numbers[q, TIME], numbers[p, TIME]) + number_gap(
                            numbers[q, RANK], numbers[p, RANK]
                        )
                        d += more * abs(numbers[q, TERMS] - numbers[p, TERMS])
                        if d < best:
                            d += host_gap(marks[q, HOST], marks[p, HOST], labels, depth)
                        if d + most <= enough:  # whatever the words
                            best, found = d + most, p
                            break
                        if d < best:
                            limit = (best - d) / most
                            low, high = marks[p, LOW], marks[p, HIGH]
                            d += most * strings_gap(own, near, rows, words, low, high, value, limit)
                        if d < best:
                            best, found = d, p
                            if best <= enough:
                                break
                        p = p + 1 if p + 1 < last else first
                    at[b, kind[q] ^ flip] = found
                gap[b], nearest[b] = max(enough, best), best
        gaps[a] = gap
