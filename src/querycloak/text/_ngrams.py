"""Linear classifier over hashed words and character n-grams."""

from __future__ import annotations

import numpy as np
from numba import njit

_PRIME = np.uint64(0x100000001B3)
_START = np.uint64(0xCBF29CE484222325)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(40)
_SPACE = 32
_WORD = np.uint64(1)
SHORTEST_RUN, LONGEST_RUN = 3, 5
MOST_FEATURES = 1024


@njit(cache=True, nogil=True)
def _bucket(value, mask):  # type: ignore[no-untyped-def]
    value *= _SPREAD
    return np.int64((value ^ (value >> _SHIFT)) & mask)


@njit(cache=True, nogil=True)
def features(letters, low, high, mask, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the buckets of a text's words and character n-grams; return their number.

    The text stands between two spaces, so that a run can tell where a word begins and ends.
    """
    count, word, inside = 0, _START ^ _WORD, 0
    for p in range(low, high):
        if count + LONGEST_RUN + 1 > out.size:
            break
        if letters[p] != _SPACE:
            word, inside = (word ^ np.uint64(letters[p])) * _PRIME, inside + 1
        elif inside:
            out[count] = _bucket(word, mask)
            count, word, inside = count + 1, _START ^ _WORD, 0
        run = _START
        for n in range(1, min(LONGEST_RUN, high - p) + 1):
            run = (run ^ np.uint64(letters[p + n - 1])) * _PRIME
            if n >= SHORTEST_RUN:
                out[count] = _bucket(run, mask)
                count += 1
    return count


@njit(cache=True, nogil=True)
def _add_up(used, count, table, sums):  # type: ignore[no-untyped-def]
    sums[:] = 0.0
    for i in range(count):
        for c in range(sums.size):
            sums[c] += table[used[i], c]
    sums /= np.sqrt(max(count, 1))


@njit(cache=True, nogil=True)
def learn(letters, bounds, classes, weights, order, rates, table):  # type: ignore[no-untyped-def]
    """Fit the table by stochastic descent on the logistic loss, in the given order, one round per rate."""
    mask = np.uint64(table.shape[0] - 1)
    used, sums = np.empty(MOST_FEATURES, np.int64), np.empty(table.shape[1])
    for rate in rates:
        for t in order:
            count = features(letters, bounds[t], bounds[t + 1], mask, used)
            _add_up(used, count, table, sums)
            chance = np.exp(sums - sums.max())
            chance /= chance.sum()
            chance[classes[t]] -= 1.0
            chance *= rate * weights[t] / np.sqrt(max(count, 1))
            for i in range(count):
                for c in range(sums.size):
                    table[used[i], c] -= chance[c]


@njit(cache=True, nogil=True)
def score(letters, bounds, table):  # type: ignore[no-untyped-def]
    """Return the logarithms of the classes' probabilities for each text, and how many features it has."""
    mask = np.uint64(table.shape[0] - 1)
    size = bounds.size - 1
    used, sums = np.empty(MOST_FEATURES, np.int64), np.empty((size, table.shape[1]))
    counts = np.zeros(size, np.int64)
    for t in range(size):
        counts[t] = features(letters, bounds[t], bounds[t + 1], mask, used)
        _add_up(used, counts[t], table, sums[t])
        sums[t] -= sums[t].max()
        sums[t] -= np.log(np.exp(sums[t]).sum())
    return sums, counts
