"""Near spellings and run-together words, on words as rows of byte values.

Words come as one array of bytes and their bounds. Near spellings use deletions on both sides: two words
at distance d share a string that is each of them with at most d letters left out.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_PRIME = np.uint64(0x100000001B3)
_START = np.uint64(0xCBF29CE484222325)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)
NOTHING = -1
MOST_LETTERS = 30
FAR = 9


@njit(cache=True, nogil=True)
def _hash(letters, low, high, skip, other):  # type: ignore[no-untyped-def]
    """Hash a word without its letters at `skip` and `other`."""
    value = _START
    for p in range(low, high):
        if p not in (skip, other):
            value = (value ^ np.uint64(letters[p])) * _PRIME
    value *= _SPREAD
    return value ^ (value >> _SHIFT)


@njit(cache=True, nogil=True)
def variants(letters, low, high, deletions, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the hashes of a word and of what deletions leave of it; return their number."""
    out[0] = _hash(letters, low, high, NOTHING, NOTHING)
    count = 1
    for i in range(low, high):
        out[count] = _hash(letters, low, high, i, NOTHING)
        count += 1
        if deletions > 1:
            for j in range(i + 1, high):
                out[count] = _hash(letters, low, high, i, j)
                count += 1
    return count


@njit(cache=True, nogil=True)
def _room():  # type: ignore[no-untyped-def]
    return np.empty(1 + MOST_LETTERS + MOST_LETTERS * MOST_LETTERS // 2, np.uint64)


@njit(cache=True, nogil=True)
def index_deletions(letters, bounds, deletions, buckets):  # type: ignore[no-untyped-def]
    """Lay the words out by the hashes of what deletions leave of them: (bucket starts, words, marks).

    A mark is the other half of the hash: it tells most strangers in a bucket apart without spelling them.
    """
    mask, out = np.uint64(buckets - 1), _room()
    starts = np.zeros(buckets + 1, np.int64)
    for w in range(bounds.size - 1):
        for i in range(variants(letters, bounds[w], bounds[w + 1], deletions[w], out)):
            starts[np.int64(out[i] & mask) + 1] += 1
    starts = np.cumsum(starts)
    fill, words = starts[:-1].copy(), np.empty(starts[-1], np.int32)
    marks = np.empty(starts[-1], np.uint32)
    for w in range(bounds.size - 1):
        for i in range(variants(letters, bounds[w], bounds[w + 1], deletions[w], out)):
            at = fill[np.int64(out[i] & mask)]
            words[at], marks[at] = w, np.uint32(out[i] >> _SHIFT)
            fill[np.int64(out[i] & mask)] += 1
    return starts, words, marks


@njit(cache=True, nogil=True)
def _is_vowel(letter):  # type: ignore[no-untyped-def]
    return letter in (97, 101, 105, 111, 117, 121)  # a e i o u y


@njit(cache=True, nogil=True)
def distance(a, a_low, a_high, b, b_low, b_high, limit, rows):  # type: ignore[no-untyped-def]
    """Count what it takes to turn one word into another, in halves of an error; FAR above the limit.

    A letter too many, too few or wrong, or two swapped, is one error. A vowel for another vowel, and a
    letter doubled or not doubled, are half an error: the ear does not tell them apart.
    """
    m, n = a_high - a_low, b_high - b_low
    rows[0, 0] = 0
    for j in range(1, n + 1):
        rows[0, j] = rows[0, j - 1] + 2
    for i in range(1, m + 1):
        rows[i, 0] = rows[i - 1, 0] + 2
        least, x = rows[i, 0], a[a_low + i - 1]
        less = 1 if i > 1 and x == a[a_low + i - 2] else 2
        for j in range(1, n + 1):
            y = b[b_low + j - 1]
            more = 1 if j > 1 and y == b[b_low + j - 2] else 2
            change = 0 if x == y else 1 if _is_vowel(x) and _is_vowel(y) else 2
            best = min(rows[i - 1, j] + less, rows[i, j - 1] + more, rows[i - 1, j - 1] + change)
            if i > 1 and j > 1 and x == b[b_low + j - 2] and y == a[a_low + i - 2]:
                best = min(best, rows[i - 2, j - 2] + 2)
            rows[i, j] = best
            least = min(least, best)
        if least > limit:
            return FAR
    return rows[m, n] if rows[m, n] <= limit else FAR


@njit(cache=True, nogil=True)
def nearest(letters, bounds, deletions, limits, vocabulary, index):  # type: ignore[no-untyped-def]
    """Return for each word the known one nearest in spelling (-1: none near enough) and its distance.

    `deletions` says how many letters to leave out in search of it. Of equally near words, one with the
    same first letter goes first, then the more common one.
    """
    known, known_bounds, common = vocabulary
    starts, words, marks = index
    mask, out = np.uint64(starts.size - 2), _room()
    rows = np.empty((MOST_LETTERS + 3, MOST_LETTERS + 3), np.int64)
    size = bounds.size - 1
    answer, far = np.full(size, NOTHING, np.int64), np.full(size, FAR, np.int64)
    for q in range(size):
        low, high = bounds[q], bounds[q + 1]
        best = np.inf
        for i in range(variants(letters, low, high, deletions[q], out)):
            bucket = np.int64(out[i] & mask)
            for j in range(starts[bucket], starts[bucket + 1]):
                w = words[j]
                a, b = known_bounds[w], known_bounds[w + 1]
                if marks[j] != np.uint32(out[i] >> _SHIFT) or w == answer[q]:
                    continue
                d = distance(letters, low, high, known, a, b, limits[q], rows)
                cost = d + 0.9 * (known[a] != letters[low]) - 0.08 * min(common[w], 10.0)
                if d < FAR and (cost < best or (cost == best and w < answer[q])):
                    best, answer[q], far[q] = cost, w, d
    return answer, far


@njit(cache=True, nogil=True)
def whole_words(letters, bounds):  # type: ignore[no-untyped-def]
    """Build a table from the hash of each word to its number."""
    size = 4
    while size < 2 * bounds.size:
        size *= 2
    keys, values = np.zeros(size, np.uint64), np.full(size, NOTHING, np.int64)
    for w in range(bounds.size - 1):
        key = _hash(letters, bounds[w], bounds[w + 1], NOTHING, NOTHING)
        slot = np.int64(key & np.uint64(size - 1))
        while values[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        keys[slot], values[slot] = key, w
    return keys, values


@njit(cache=True, nogil=True)
def _word_at(letters, low, high, keys, values):  # type: ignore[no-untyped-def]
    key = _hash(letters, low, high, NOTHING, NOTHING)
    slot = np.int64(key & np.uint64(keys.size - 1))
    while values[slot] >= 0:
        if keys[slot] == key:
            return values[slot]
        slot = (slot + 1) & (keys.size - 1)
    return NOTHING


@njit(cache=True, nogil=True)
def take_apart(letters, bounds, most_parts, keys, values, cost):  # type: ignore[no-untyped-def]
    """Cut each run-together word into known words at the least total cost: (parts, part counts).

    A word that cannot be cut has no parts; a part whose cost is infinite is never used.
    """
    size = bounds.size - 1
    parts, count = np.full((size, most_parts), NOTHING, np.int64), np.zeros(size, np.int64)
    best = np.empty((MOST_LETTERS + 1, most_parts + 1))
    back = np.empty((MOST_LETTERS + 1, most_parts + 1), np.int64)
    word = np.empty((MOST_LETTERS + 1, most_parts + 1), np.int64)
    for q in range(size):
        low, width = bounds[q], bounds[q + 1] - bounds[q]
        best[: width + 1] = np.inf
        best[0, 0] = 0.0
        for end in range(1, width + 1):
            for begin in range(end):
                if not (best[begin] < np.inf).any():
                    continue
                w = _word_at(letters, low + begin, low + end, keys, values)
                if w < 0 or cost[w] == np.inf:
                    continue
                for used in range(most_parts):
                    total = best[begin, used] + cost[w]
                    if total < best[end, used + 1]:
                        best[end, used + 1], back[end, used + 1], word[end, used + 1] = total, begin, w
        least = np.argmin(best[width])
        if best[width, least] < np.inf:
            count[q], n, end = least, least, width
            while n > 0:
                parts[q, n - 1] = word[end, n]
                end, n = back[end, n], n - 1
    return parts, count
