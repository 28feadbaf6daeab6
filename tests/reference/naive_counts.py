"""Counts of first searches with loops, and the exact distribution of what `threshold-dp` shows."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np

#: Noise beyond so many scales is left out: less than 10⁻¹⁷ of it.
_FAR = 40


def first_searches(rows, d):
    """Count the first d searches of each person; `rows` are (user, query, time) as they stand in the file.

    Rows of the same person, query and time are clicks of one search.
    """
    searches, seen, counts = [], set(), Counter()
    for place, (user, query, time) in enumerate(rows):
        if (user, query, time) not in seen:
            seen.add((user, query, time))
            searches.append((time, place, user, query))
    used = Counter()
    for _, _, user, query in sorted(searches):
        if used[user] < d:
            used[user] += 1
            counts[query] += 1
    return counts


def laplace(x, b):
    """Give P(X = x) of the discrete Laplace distribution."""
    p = math.exp(-1 / b)
    return (1 - p) / (1 + p) * p ** abs(x)


def line(n, K, b, b_q, top):
    """Give the probability of everything that the table may say about a query asked n times.

    The first place stands for "not shown", the others for counts from 0 to `top`; n = 0 is never shown.
    """
    if n == 0:
        return np.array([1.0] + [0.0] * (top + 1))
    reach = math.ceil(_FAR * b) + 1
    shown = sum(laplace(x, b) for x in range(-reach, reach + 1) if n + x > K)
    counts = np.zeros(top + 1)
    reach = math.ceil(_FAR * b_q) + 1
    for y in range(-reach, reach + 1):
        counts[min(max(n + y, 0), top)] += laplace(y, b_q)
    return np.concatenate([[1 - shown], shown * counts])


def tables(counts, K, b, b_q, top):
    """Give the probability of every table at once: lines are drawn one by one, so they multiply."""
    whole = np.array([1.0])
    for n in counts:
        whole = np.outer(whole, line(n, K, b, b_q, top)).ravel()
    return whole


def excess(one, other, epsilon):
    """Give the least δ with which no event is likelier under `one` than e^ε times under `other`."""
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum())


def histories(d, queries):
    """List all that one person may add: how often each query, d searches at most."""
    return [added for added in product(range(d + 1), repeat=queries) if sum(added) <= d]
