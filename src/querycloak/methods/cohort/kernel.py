"""Kernels of `cohort`: assignment to slots, records held until a cohort is full, and drawing of labels.

A cohort's number is formed[s] * shards + s: the shard it belongs to, and how many were full before it.

A slot whose user was erased is free. `free_slots` holds (cohort, place) of each, shard after shard and the
oldest first; for each shard its next free slot and their end; for each cohort its number of free slots and
its generation: how often it was complete again.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from querycloak.kernels.siphash import siphash, uniform_below

#: The purpose of the draws of labels.
LABEL = np.uint64(1)
#: Marks a user who has no slot yet, and a slot that has no user any more.
UNASSIGNED = EMPTY_SLOT = -1
#: What `full` says of a cohort that was full and misses somebody; 1: full; 0: not yet.
INCOMPLETE = -1


@njit(inline="always")
def _sit(u, c, k, cohort_of, size, members, start, ends):  # type: ignore[no-untyped-def]
    """Assign a user to the next slot of a cohort; `ends[0]` is the first slot that no cohort has."""
    if size[c] == 0:
        start[c] = ends[0]
        ends[0] += k
    members[start[c] + size[c]] = u
    cohort_of[u] = c
    size[c] += 1


@njit(cache=True, nogil=True)
def fill_free_slot(u, s, cohort_of, members, start, free_slots):  # type: ignore[no-untyped-def]
    """Assign a user to the oldest free slot of a shard; return the cohort if that completes it, or -1."""
    slots, coming, _, missing, generation = free_slots
    c, place = slots[coming[s]]
    coming[s] += 1
    members[start[c] + place] = u
    cohort_of[u] = c
    missing[c] -= 1
    if missing[c] > 0:
        return -1
    generation[c] += 1
    return c


@njit(cache=True, nogil=True)
def by_arrival(user, shard_of, k, shards, formed, cohort_of, size, members, start, ends, free_slots):  # type: ignore[no-untyped-def]
    """Assign new users to the next slots of the shard; return the cohort that each one completed, or -1."""
    coming, last = free_slots[1], free_slots[2]
    completed = np.full(user.size, -1, np.int64)
    for i in range(user.size):
        u = user[i]
        if cohort_of[u] == UNASSIGNED:
            s = shard_of[u]
            if coming[s] < last[s]:
                completed[i] = fill_free_slot(u, s, cohort_of, members, start, free_slots)
                continue
            c = formed[s] * shards + s
            _sit(u, c, k, cohort_of, size, members, start, ends)
            if size[c] == k:
                formed[s] += 1
                completed[i] = c
    return completed


@njit(cache=True, nogil=True)
def _apart(u, w, profile, count, rate, weight):  # type: ignore[no-untyped-def]
    """Return how unlike two users are: half the difference of their topics, and of their volumes."""
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
    """Choose the longest-waiting user and the k - 1 most similar ones; they need at least two topics."""
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
    """Assign the longest-waiting user of a shard with the most similar ones; return the cohort, or -1."""
    n = waiting[s]
    chosen, mixed = _nearest(pool[s, :n], n, k, profile, count, rate, weight)
    if not mixed:
        entered[s, 0] = now  # no user here has another topic: wait
        return -1
    c = formed[s] * shards + s
    for j in chosen:
        _sit(pool[s, j], c, k, cohort_of, size, members, start, ends)
    formed[s] += 1
    left = 0
    for j in range(n):
        if cohort_of[pool[s, j]] == UNASSIGNED:
            pool[s, left], entered[s, left] = pool[s, j], entered[s, j]
            left += 1
    waiting[s] = left
    return c


@njit(cache=True, nogil=True)
def fits(u, c, size, members, start, profile):  # type: ignore[no-untyped-def]
    """Whether the remaining members of a cohort and a new user have at least two topics."""
    slots = members[start[c] : start[c] + size[c]]
    return _topics_met(np.append(slots[slots != EMPTY_SLOT], u), profile) >= 2


@njit(cache=True, nogil=True)
def _fill_from_pool(s, pool, entered, waiting, profile, cohort_of, size, members, start, free_slots):  # type: ignore[no-untyped-def]
    """Assign a shard's oldest free slot to the longest-waiting user who fits; return user and cohort."""
    c = free_slots[0][free_slots[1][s], 0]
    for j in range(waiting[s]):
        u = pool[s, j]
        if fits(u, c, size, members, start, profile):
            waiting[s] -= 1
            pool[s, j : waiting[s]] = pool[s, j + 1 : waiting[s] + 1].copy()
            entered[s, j : waiting[s]] = entered[s, j + 1 : waiting[s] + 1].copy()
            return u, fill_free_slot(u, s, cohort_of, members, start, free_slots)
    return EMPTY_SLOT, -1


@njit(cache=True, nogil=True)
def by_similarity(  # type: ignore[no-untyped-def]
    user, topic, shard_of, k, shards, first, patience, weight, clock, born, pooled, pool, entered, waiting,
    profile, count, rate, formed, cohort_of, size, members, start, ends, free_slots,
):  # fmt: skip
    """Assign users to cohorts of similar users, once `first` searches show their topics.

    A cohort forms when a shard's pool is full, or when someone in it has waited for more than `patience`
    arrivals. Everything happens before any record of theirs has left. A free slot is filled first, one per
    arrival.
    """
    completed = np.full(user.size, -1, np.int64)
    for i in range(user.size):
        u = user[i]
        if cohort_of[u] != UNASSIGNED:
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
        if free_slots[1][s] < free_slots[2][s]:
            assigned, completed[i] = _fill_from_pool(
                s, pool, entered, waiting, profile, cohort_of, size, members, start, free_slots
            )
            if assigned != EMPTY_SLOT:
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
def assign_the_rest(  # type: ignore[no-untyped-def]
    users, shard_of, k, shards, weight, pool, entered, waiting, profile, count, rate,
    formed, cohort_of, size, members, start, ends,
):  # fmt: skip
    """Assign everyone who is left, in this order, by similarity; return the cohorts formed."""
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
    """Release the held records of a cohort's members."""
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
    user, slot, completed, cohort_of, full, size, members, start, newest, head, following, out
):  # fmt: skip
    """Release records of full cohorts, chain the others to their users; write (slot, arrival).

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
        if done >= 0 and newest.size and full[done] != INCOMPLETE:
            shard = done % newest.size
            done, newest[shard] = newest[shard], done
        if done >= 0:
            full[done] = 1
            n = _free_cohort(done, i, n, size, members, start, head, following, out)
    return n


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
        place = uniform_below(siphash(k0, k1, LABEL, np.uint64(record[i])), size[cohort[i]])
        out[i] = members[start[cohort[i]] + place]
