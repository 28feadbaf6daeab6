"""Counts the different users of each query until there are enough of them."""

from __future__ import annotations

import numpy as np
from numba import njit

from querycloak.kernels.tables import find, put


@njit(cache=True, nogil=True)
def admit(query, user, seq, k, qa, qb, qf, qv, pa, pb, pf, pv):  # type: ignore[no-untyped-def]
    """Note who asked what. A query's value counts its users; at k it turns into -1 - seq of that moment."""
    for i in range(query.size):
        slot = find(qa, qb, qf, query[i], 0)
        if not qf[slot]:
            put(qa, qb, qf, qv, slot, query[i], 0, 0)
        if qv[slot] >= 0:
            pair = find(pa, pb, pf, query[i], user[i])
            if not pf[pair]:
                put(pa, pb, pf, pv, pair, query[i], user[i], 0)
                qv[slot] = qv[slot] + 1 if qv[slot] + 1 < k else -1 - seq[i]


@njit(cache=True, nogil=True)
def opened_at(query, qa, qb, qf, qv):  # type: ignore[no-untyped-def]
    """Give the moment at which each query had enough users, or -1."""
    moment = np.full(query.size, -1, np.int64)
    for i in range(query.size):
        slot = find(qa, qb, qf, query[i], 0)
        if qf[slot] and qv[slot] < 0:
            moment[i] = -1 - qv[slot]
    return moment
