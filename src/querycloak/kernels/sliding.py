"""Counts the different users of a key within a sliding stretch of time, at constant cost a record."""

from __future__ import annotations

import numpy as np
from numba import njit

from querycloak.kernels.tables import find, put, remove


@njit(cache=True, nogil=True)
def _forget(i, q_key, q_user, q_number, ka, kb, kf, kv, pa, pb, pf, pv):  # type: ignore[no-untyped-def]
    """Take an expired event out, unless the same user asked the same again since."""
    pair = find(pa, pb, pf, q_key[i], q_user[i])
    if pf[pair] and pv[pair] == q_number[i]:
        remove(pa, pb, pf, pv, pair)
        slot = find(ka, kb, kf, q_key[i], 0)
        kv[slot] -= 1
        if kv[slot] == 0:
            remove(ka, kb, kf, kv, slot)


@njit(cache=True, nogil=True)
def expose(  # type: ignore[no-untyped-def]
    keys, user, time, span, z, clock, ends, q_time, q_key, q_user, q_number,
    ka, kb, kf, kv, pa, pb, pf, pv,
):  # fmt: skip
    """Choose for each record the first of its keys that z users had within `span`; -1 where none.

    `clock` (INOUT) holds the latest time and the number of events so far; `ends` (INOUT) the first
    live and the first free place of the queue of events `q_*`. A key of -1 stands for no key.
    """
    chosen = np.full(user.size, -1, np.int64)
    for i in range(user.size):
        clock[0] = max(clock[0], time[i])
        while ends[0] < ends[1] and q_time[ends[0]] <= clock[0] - span:
            _forget(ends[0], q_key, q_user, q_number, ka, kb, kf, kv, pa, pb, pf, pv)
            ends[0] += 1
        for j in range(keys.shape[1]):
            key = keys[i, j]
            if key < 0:
                continue
            slot = find(ka, kb, kf, key, 0)
            if not kf[slot]:
                put(ka, kb, kf, kv, slot, key, 0, 0)
            pair = find(pa, pb, pf, key, user[i])
            if not pf[pair]:
                put(pa, pb, pf, pv, pair, key, user[i], 0)
                kv[slot] += 1
            pv[pair] = clock[1]
            place = ends[1]
            q_time[place], q_key[place], q_user[place], q_number[place] = clock[0], key, user[i], clock[1]
            ends[1] += 1
            clock[1] += 1
            if chosen[i] < 0 and kv[slot] >= z:
                chosen[i] = j
    return chosen
