"""Cohorts on integers: who sits where, which records wait for the seats to fill, and whose label is drawn.

A cohort's number is formed[s] * shards + s: the shard it belongs to, and how many were full before it.

A seat whose user was erased is a gap. `gaps` holds (cohort, place) of each gap, shard after shard and the
oldest first; for each shard its next gap and the end of its gaps; for each cohort how many of its seats are
gaps, and its generation: how often it was whole again.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from querycloak.kernels.draws import below
from querycloak.kernels.siphash import siphash

#: The purpose of the draws of labels.
LABEL = np.uint64(1)
#: Marks a user who has no seat yet, and a seat that has no user any more.
NOWHERE = NOBODY = -1
#: What `full` says of a cohort that was full and misses somebody; 1: full; 0: not yet.
BROKEN = -1


@njit(inline="always")
def _sit(u, c, k, cohort_of, size, members, start, ends):  # type: ignore[no-untyped-def]
    """Give a user the next seat of a cohort; `ends[0]` is the first seat that no cohort has."""
    if size[c] == 0:
        start[c] = ends[0]
        ends[0] += k
    members[start[c] + size[c]] = u
    cohort_of[u] = c
    size[c] += 1


@njit(cache=True, nogil=True)
def fill_gap(u, s, cohort_of, members, start, gaps):  # type: ignore[no-untyped-def]
    """Give a user the oldest gap of a shard; give the cohort if that makes it whole again, or -1."""
    seats, coming, _, missing, generation = gaps
    c, place = seats[coming[s]]
    coming[s] += 1
    members[start[c] + place] = u
    cohort_of[u] = c
    missing[c] -= 1
    if missing[c] > 0:
        return -1
    generation[c] += 1
    return c


@njit(cache=True, nogil=True)
def by_arrival(user, shard_of, k, shards, formed, cohort_of, size, members, start, ends, gaps):  # type: ignore[no-untyped-def]
    """Give every new user the next seat of her shard; say which cohort each arrival completed, or -1."""
    coming, last = gaps[1], gaps[2]
    completed = np.full(user.size, -1, np.int64)
    for i in range(user.size):
        u = user[i]
        if cohort_of[u] == NOWHERE:
            s = shard_of[u]
            if coming[s] < last[s]:
                completed[i] = fill_gap(u, s, cohort_of, members, start, gaps)
                continue
            c = formed[s] * shards + s
            _sit(u, c, k, cohort_of, size, members, start, ends)
            if size[c] == k:
                formed[s] += 1
                completed[i] = c
    return completed


@njit(cache=True, nogil=True)
def _apart(u, w, profile, count, rate, weight):  # type: ignore[no-untyped-def]
    """Say how unlike two users are: half the difference of their topics, and of their volumes."""
    total = 0.0
    for t in range(profile.shape[1]):
        total += abs(profile[u, t] / count[u] - profile[w, t] / count[w])
    return total / 2 + weight * min(abs(rate[u] - rate[w]) / 8, 1.0)


@njit(cache=True, nogil=True)
def _topics_met(chosen, profile):  # type: ignore[no-untyped-def]
    met = 0
    for t in range(profile.shape[1]):
        for u in chosen:
            if profile[u, t] > 0:
                met += 1
                break
    return met


@njit(cache=True, nogil=True)
def _nearest(pool, n, k, profile, count, rate, weight):  # type: ignore[no-untyped-def]
    """Choose the longest-waiting user and the k - 1 most like her; two topics at least must meet."""
    distance = np.empty(n, np.float64)
    for j in range(n):
        distance[j] = _apart(pool[0], pool[j], profile, count, rate, weight)
    distance[0] = -1.0
    order = np.argsort(distance, kind="mergesort")
    chosen = order[:k].copy()
    last = k
    while _topics_met(pool[chosen], profile) < 2 and last < n:
        chosen[k - 1] = order[last]
        last += 1
    return chosen, _topics_met(pool[chosen], profile) >= 2


@njit(cache=True, nogil=True)
def _form(  # type: ignore[no-untyped-def]
    s, k, shards, pool, entered, waiting, profile, count, rate, weight, formed, cohort_of, size, members,
    start, ends, now,
):  # fmt: skip
    """Seat the longest-waiting user of a shard with those most like her; give the cohort, or -1."""
    n = waiting[s]
    chosen, mixed = _nearest(pool[s, :n], n, k, profile, count, rate, weight)
    if not mixed:
        entered[s, 0] = now  # nobody here has another topic: wait on
        return -1
    c = formed[s] * shards + s
    for j in chosen:
        _sit(pool[s, j], c, k, cohort_of, size, members, start, ends)
    formed[s] += 1
    left = 0
    for j in range(n):
        if cohort_of[pool[s, j]] == NOWHERE:
            pool[s, left], entered[s, left] = pool[s, j], entered[s, j]
            left += 1
    waiting[s] = left
    return c


@njit(cache=True, nogil=True)
def fits(u, c, size, members, start, profile):  # type: ignore[no-untyped-def]
    """Say whether two topics at least meet in a cohort once a user has joined who is left of it."""
    seats = members[start[c] : start[c] + size[c]]
    return _topics_met(np.append(seats[seats != NOBODY], u), profile) >= 2


@njit(cache=True, nogil=True)
def _fill_from_pool(s, pool, entered, waiting, profile, cohort_of, size, members, start, gaps):  # type: ignore[no-untyped-def]
    """Give a shard's oldest gap to the longest-waiting user who fits; say who, and what is whole by that."""
    c = gaps[0][gaps[1][s], 0]
    for j in range(waiting[s]):
        u = pool[s, j]
        if fits(u, c, size, members, start, profile):
            waiting[s] -= 1
            pool[s, j : waiting[s]] = pool[s, j + 1 : waiting[s] + 1].copy()
            entered[s, j : waiting[s]] = entered[s, j + 1 : waiting[s] + 1].copy()
            return u, fill_gap(u, s, cohort_of, members, start, gaps)
    return NOBODY, -1


@njit(cache=True, nogil=True)
def by_likeness(  # type: ignore[no-untyped-def]
    user, topic, shard_of, k, shards, first, patience, weight, clock, born, pooled, pool, entered, waiting,
    profile, count, rate, formed, cohort_of, size, members, start, ends, gaps,
):  # fmt: skip
    """Let users wait until `first` searches tell what they are like, then seat like with like.

    A cohort forms when a shard's pool is full, or when someone in it has waited for more than `patience`
    arrivals. Everything happens before any record of theirs has left. A gap is filled first, one an arrival.
    """
    completed = np.full(user.size, -1, np.int64)
    for i in range(user.size):
        u = user[i]
        if cohort_of[u] != NOWHERE:
            continue
        s = shard_of[u]
        clock[s] += 1
        count[u] += 1
        profile[u, topic[i]] += 1
        if count[u] == 1:
            born[u] = clock[s]
        if count[u] >= first and not pooled[u]:
            rate[u] = np.log2(count[u] / (clock[s] - born[u] + count[u]))
            pool[s, waiting[s]], entered[s, waiting[s]] = u, clock[s]
            pooled[u] = 1
            waiting[s] += 1
        if gaps[1][s] < gaps[2][s]:
            seated, completed[i] = _fill_from_pool(
                s, pool, entered, waiting, profile, cohort_of, size, members, start, gaps
            )
            if seated != NOBODY:
                continue
        tired = waiting[s] >= k and clock[s] - entered[s, 0] > patience
        if waiting[s] == pool.shape[1] or tired:
            completed[i] = _form(
                s, k, shards, pool, entered, waiting, profile, count, rate, weight, formed, cohort_of, size,
                members, start, ends, clock[s],
            )  # fmt: skip
            if waiting[s] == pool.shape[1]:  # all have one topic: the longest-waiting makes room
                pooled[pool[s, 0]] = 0
                pool[s, :-1] = pool[s, 1:].copy()
                entered[s, :-1] = entered[s, 1:].copy()
                waiting[s] -= 1
    return completed


@njit(cache=True, nogil=True)
def seat_the_rest(  # type: ignore[no-untyped-def]
    users, shard_of, k, shards, weight, pool, entered, waiting, profile, count, rate,
    formed, cohort_of, size, members, start, ends,
):  # fmt: skip
    """At the end seat everyone who is left, in this order, like with like; give the cohorts formed."""
    completed = np.full(users.size + pool.shape[0] * pool.shape[1], -1, np.int64)
    n = 0
    for u in users:
        s = shard_of[u]
        pool[s, waiting[s]] = u
        waiting[s] += 1
        if waiting[s] == pool.shape[1]:
            c = _form(
                s, k, shards, pool, entered, waiting, profile, count, rate, weight, formed, cohort_of, size,
                members, start, ends, 0,
            )  # fmt: skip
            if c < 0:
                waiting[s] -= 1  # all alike: the newest is left over
            else:
                completed[n] = c
                n += 1
    for s in range(pool.shape[0]):
        while waiting[s] >= k:
            c = _form(
                s, k, shards, pool, entered, waiting, profile, count, rate, weight, formed, cohort_of, size,
                members, start, ends, 0,
            )  # fmt: skip
            if c < 0:
                break
            completed[n] = c
            n += 1
    return completed[:n]


@njit(cache=True, nogil=True)
def _free_cohort(c, now, n, size, members, start, head, following, out):  # type: ignore[no-untyped-def]
    """Let go what the members of a cohort were waiting with."""
    for place in range(start[c], start[c] + size[c]):
        slot = head[members[place]]
        while slot >= 0:
            out[n, 0], out[n, 1] = slot, now
            n += 1
            slot = following[slot]
        head[members[place]] = -1
    return n


@njit(cache=True, nogil=True)
def release(  # type: ignore[no-untyped-def]
    user, slot, completed, cohort_of, k, full, size, members, start, newest, head, following, out
):  # fmt: skip
    """Let records of full cohorts go, chain the others to their users; write (slot, arrival), count them.

    With a `newest` for each shard, a full cohort waits until the next one of its shard is full; one that
    is whole again does not.
    """
    n = 0
    for i in range(user.size):
        c = cohort_of[user[i]]
        if c >= 0 and full[c] > 0:
            out[n, 0], out[n, 1] = slot[i], i
            n += 1
        else:
            following[slot[i]] = head[user[i]]
            head[user[i]] = slot[i]
        done = completed[i]
        if done >= 0 and newest.size and full[done] != BROKEN:
            shard = done % newest.size
            done, newest[shard] = newest[shard], done
        if done >= 0:
            full[done] = 1
            n = _free_cohort(done, i, n, size, members, start, head, following, out)
    return n


@njit(cache=True, nogil=True)
def chain(user, slot, head, following):  # type: ignore[no-untyped-def]
    """Chain waiting records to their users anew, in this order."""
    head[:] = -1
    for i in range(user.size):
        following[slot[i]] = head[user[i]]
        head[user[i]] = slot[i]


@njit(cache=True, nogil=True)
def release_rest(completed, full, size, members, start, head, following, out):  # type: ignore[no-untyped-def]
    """At the end let go what waited for the cohorts that were formed last."""
    n = 0
    for c in completed:
        full[c] = 1
        n = _free_cohort(c, -1, n, size, members, start, head, following, out)
    return n


@njit(cache=True, nogil=True)
def draw_labels(k0, k1, record, cohort, size, members, start, out):  # type: ignore[no-untyped-def]
    """Draw whose label each record gets: uniform over its cohort, by the record's id and the key alone."""
    for i in range(record.size):
        place = below(siphash(k0, k1, LABEL, np.uint64(record[i])), size[cohort[i]])
        out[i] = members[start[cohort[i]] + place]
