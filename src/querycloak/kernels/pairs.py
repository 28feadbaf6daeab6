"""What two records have in common: words, and those who may have written both."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def shared_words(first, second, begins, words, rarity, alike, rarest):  # type: ignore[no-untyped-def]
    """Compare the word lists of pairs of strings: write the share in common and the rarest common word.

    Each string's words are sorted; a string without words has nothing in common with any.
    """
    for pair in range(first.size):
        a, a_end = begins[first[pair]], begins[first[pair] + 1]
        b, b_end = begins[second[pair]], begins[second[pair] + 1]
        together = (a_end - a) + (b_end - b)
        common = 0
        while a < a_end and b < b_end:
            if words[a] == words[b]:
                common += 1
                rarest[pair] = max(rarest[pair], rarity[words[a]])
            step_a = words[a] <= words[b]
            step_b = words[b] <= words[a]
            a += step_a
            b += step_b
        alike[pair] = common / (together - common) if common else 0.0


@njit(cache=True, nogil=True)
def agreement(first, second, who, belief, agreed):  # type: ignore[no-untyped-def]
    """Write the probability that the same label wrote both records, if they are independent."""
    for pair in range(first.size):
        total = 0.0
        for i in range(who.shape[1]):
            for j in range(who.shape[1]):
                if who[first[pair], i] >= 0 and who[first[pair], i] == who[second[pair], j]:
                    total += np.float64(belief[first[pair], i]) * belief[second[pair], j]
        agreed[pair] = total
