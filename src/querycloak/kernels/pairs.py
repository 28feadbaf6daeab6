"""Measures how alike two records are, for many pairs at once."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def shared_words(first, second, starts, words):  # type: ignore[no-untyped-def]
    """Give for each pair of rows the share of words that both have; a row's words are sorted."""
    share = np.zeros(first.size, np.float64)
    for p in range(first.size):
        i, end_i = starts[first[p]], starts[first[p] + 1]
        j, end_j = starts[second[p]], starts[second[p] + 1]
        total, both = (end_i - i) + (end_j - j), 0
        while i < end_i and j < end_j:
            if words[i] == words[j]:
                both += 1
                i += 1
                j += 1
            elif words[i] < words[j]:
                i += 1
            else:
                j += 1
        if total > both:
            share[p] = both / (total - both)
    return share
