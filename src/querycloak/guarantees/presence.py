"""Who was present when something left: what came and what left replayed one by one, for an audit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.log import IntArray

#: Category, pair of category and user, and moment of each move, in order of the moment.
Moves = tuple[IntArray, IntArray, IntArray]


@njit(cache=True, nogil=True)
def _replay(  # type: ignore[no-untyped-def]
    came_to, came_as, came_at, left_from, left_as, left_at, gone_from, gone_as, gone_at, k, tokens, present,
    since, bad,
):  # fmt: skip
    arrived = erased = 0
    for i in range(left_at.size):
        while arrived < came_at.size and came_at[arrived] <= left_at[i]:
            tokens[came_as[arrived]] += 1
            present[came_to[arrived]] += tokens[came_as[arrived]] == 1
            arrived += 1
        while erased < gone_at.size and gone_at[erased] < left_at[i]:
            present[gone_from[erased]] -= tokens[gone_as[erased]] > 0
            tokens[gone_as[erased]] = 0
            erased += 1
        c, pair = left_from[i], left_as[i]
        before = present[c]
        tokens[pair] -= 1
        if tokens[pair] < 0:
            return True
        present[c] -= tokens[pair] == 0
        is_first = since[c] != left_at[i]  # of those that leave at this moment, whose order is not known
        bad[i] = (is_first and before <= k) or present[c] < k
        since[c] = left_at[i]
    return False


def too_few(came: Moves, left: Moves, k: int, gone: Moves) -> tuple[npt.NDArray[np.bool_], bool]:
    """Say which left although not more than k users were present, or left fewer than k behind.

    From the moment of `gone` on, a user does not count in that category: she was erased, and never returns.
    Also whether some user left a category more often than she had come; then nothing else counts.
    """
    categories, pairs = (max(int(m[part].max(initial=-1)) for m in (came, left)) + 1 for part in (0, 1))
    tokens, present = np.zeros(pairs, np.int32), np.zeros(categories, np.int32)
    since = np.full(categories, np.iinfo(np.int64).min)
    bad = np.zeros(left[2].size, np.bool_)
    overdrawn = _replay(*came, *left, *gone, k, tokens, present, since, bad)
    return bad, bool(overdrawn)
