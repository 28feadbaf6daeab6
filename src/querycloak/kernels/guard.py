"""What the best attacker could think of a record's author, from bags of tokens alone.

The author's token was in the bag when the record left, and was not the token that left with it. A
string that leaves again and again was near the same person's token every time: shares multiply, and
whoever was once absent drops out. Nothing here knows who the author is.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from querycloak.kernels.tables import find, put


@njit(cache=True, nogil=True)
def shares(tokens, label):  # type: ignore[no-untyped-def]
    """Give the users in a bag, without the label's, and the logarithm of each one's share of tokens."""
    others = np.sort(tokens[tokens != label])
    users = np.empty(others.size, np.int64)
    counts = np.zeros(others.size, np.float64)
    n = 0
    for i in range(others.size):
        if n == 0 or users[n - 1] != others[i]:
            users[n] = others[i]
            n += 1
        counts[n - 1] += 1.0
    return users[:n], np.log(counts[:n] / others.size)


@njit(cache=True, nogil=True)
def posterior(text, users, evidence, times_left, sa, sb, sf, sv, score):  # type: ignore[no-untyped-def]
    """Give the largest posterior that any user would have as author of a text, if it left now.

    `times_left[text]` counts how often it left; the table maps (text, user) to a row of `score`: how
    often the user was near, and the sum of logarithms so far.
    """
    best, total, top = -np.inf, 0.0, np.full(users.size, -np.inf)
    for j in range(users.size):
        before = 0.0
        if times_left[text] > 0:
            slot = find(sa, sb, sf, text, users[j])
            if not sf[slot] or score[sv[slot], 0] < times_left[text]:
                continue
            before = score[sv[slot], 1]
        top[j] = before + evidence[j]
        best = max(best, top[j])
    if best == -np.inf:
        return 1.0 / max(users.size, 1)  # nobody was near every time: the string has several authors
    for one in np.sort(top):  # sums of floats depend on their order, and codes may not decide anything
        total += np.exp(one - best)
    return 1.0 / total


@njit(cache=True, nogil=True)
def remember(text, users, evidence, times_left, sa, sb, sf, sv, score, ends):  # type: ignore[no-untyped-def]
    """Add what leaves now to what is known about a text."""
    for j in range(users.size):
        slot = find(sa, sb, sf, text, users[j])
        if not sf[slot]:
            if times_left[text] > 0:
                continue  # was absent before: out for good
            put(sa, sb, sf, sv, slot, text, users[j], ends[0])
            score[ends[0], 0], score[ends[0], 1] = 0.0, 0.0
            ends[0] += 1
        score[sv[slot], 0] += 1.0
        score[sv[slot], 1] += evidence[j]
    times_left[text] += 1
