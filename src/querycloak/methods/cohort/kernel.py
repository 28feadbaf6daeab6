"""Kernels of `cohort`: assignment to slots, records held until a cohort is full, and drawing of labels.

A cohort's number is formed[s] * shards + s: the shard it belongs to, and how many were full before it.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from querycloak.kernels.siphash import siphash, uniform_below

#: The purpose of the draws of labels.
LABEL = np.uint64(1)
#: Marks a user who has no slot yet, and a slot that has no user any more.
UNASSIGNED = EMPTY_SLOT = -1
#: What `full` says of a cohort that was full and misses somebody; 1: full; 0: not yet.
INCOMPLETE = -1
#: Share of the difference of volumes in the distance of two users.
VOLUME_WEIGHT = 0.5


#: Shard and cohort of each user; by shard, the cohorts that were full; by cohort, its size and first slot;
#: the user of each slot; the first slot that no cohort has. A slot whose user was erased is free: (cohort,
#: place) of each, shard after shard and the oldest first, and by shard the next one and their end; by cohort,
#: how many are missing, and its generation: how often it was complete again.
Cohorts = namedtuple(
    "Cohorts",
    "k shards shard_of cohort_of formed size start members ends free coming last missing generation",
)
#: By shard: users who wait for similar ones, since which arrival, how many, and the arrivals so far. By user:
#: topics and number of searches, searches in proportion to arrivals, first arrival, and whether in the pool.
Pool = namedtuple("Pool", "first patience user entered waiting clock profile count rate born pooled")


@njit(inline="always")
def _sit(u, c, cohorts):  # type: ignore[no-untyped-def]
    """Assign a user to the next slot of a cohort."""
    size, start, ends = cohorts.size, cohorts.start, cohorts.ends
    if size[c] == 0:
        start[c] = ends[0]
        ends[0] += cohorts.k
    cohorts.members[start[c] + size[c]] = u
    cohorts.cohort_of[u] = c
    size[c] += 1


@njit(cache=True, nogil=True)
def fill_free_slot(u, s, cohorts):  # type: ignore[no-untyped-def]
    """Assign a user to the oldest free slot of a shard; return the cohort if that completes it, or -1."""
    c, place = cohorts.free[cohorts.coming[s]]
    cohorts.coming[s] += 1
    cohorts.members[cohorts.start[c] + place] = u
    cohorts.cohort_of[u] = c
    cohorts.missing[c] -= 1
    if cohorts.missing[c] > 0:
        return -1
    cohorts.generation[c] += 1
    return c


@njit(cache=True, nogil=True)
def by_arrival(user, cohorts):  # type: ignore[no-untyped-def]
    """Assign new users to the next slots of the shard; return the cohort that each one completed, or -1."""
    completed = np.full(user.size, -1, np.int64)
    for i in range(user.size):
        u = user[i]
        if cohorts.cohort_of[u] == UNASSIGNED:
            s = cohorts.shard_of[u]
            if cohorts.coming[s] < cohorts.last[s]:
                completed[i] = fill_free_slot(u, s, cohorts)
                continue
            c = cohorts.formed[s] * cohorts.shards + s
            _sit(u, c, cohorts)
            if cohorts.size[c] == cohorts.k:
                cohorts.formed[s] += 1
                completed[i] = c
    return completed


@njit(cache=True, nogil=True)
def _apart(u, w, profile, count, rate):  # type: ignore[no-untyped-def]
    """Return how unlike two users are: half the difference of their topics, and of their volumes."""
    total = 0.0
    for t in range(profile.shape[1]):
        total += abs(profile[u, t] / count[u] - profile[w, t] / count[w])
    return total / 2 + VOLUME_WEIGHT * min(abs(rate[u] - rate[w]) / 8, 1.0)


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
def _nearest(users, k, pool):  # type: ignore[no-untyped-def]
    """Choose the longest-waiting user and the k - 1 most similar ones; they need at least two topics."""
    distance = np.empty(users.size, np.float64)
    for j in range(users.size):
        distance[j] = _apart(users[0], users[j], pool.profile, pool.count, pool.rate)
    distance[0] = -1.0
    order = np.argsort(distance, kind="mergesort")
    chosen = order[:k].copy()
    last = k
    while _topics_met(users[chosen], pool.profile) < 2 and last < users.size:
        chosen[k - 1] = order[last]
        last += 1
    return chosen, _topics_met(users[chosen], pool.profile) >= 2


@njit(cache=True, nogil=True)
def _form(s, now, cohorts, pool):  # type: ignore[no-untyped-def]
    """Assign the longest-waiting user of a shard with the most similar ones; return the cohort, or -1."""
    n, users, entered = pool.waiting[s], pool.user[s], pool.entered[s]
    chosen, mixed = _nearest(users[:n], cohorts.k, pool)
    if not mixed:
        entered[0] = now  # no user here has another topic: wait
        return -1
    c = cohorts.formed[s] * cohorts.shards + s
    for j in chosen:
        _sit(users[j], c, cohorts)
    cohorts.formed[s] += 1
    left = 0
    for j in range(n):
        if cohorts.cohort_of[users[j]] == UNASSIGNED:
            users[left], entered[left] = users[j], entered[j]
            left += 1
    pool.waiting[s] = left
    return c


@njit(cache=True, nogil=True)
def fits(u, c, cohorts, profile):  # type: ignore[no-untyped-def]
    """Whether the remaining members of a cohort and a new user have at least two topics."""
    slots = cohorts.members[cohorts.start[c] : cohorts.start[c] + cohorts.size[c]]
    return _topics_met(np.append(slots[slots != EMPTY_SLOT], u), profile) >= 2


@njit(cache=True, nogil=True)
def _leave_pool(s, j, pool):  # type: ignore[no-untyped-def]
    """Remove a user from the pool of a shard: later ones move up."""
    pool.waiting[s] -= 1
    last = pool.waiting[s]
    pool.user[s, j:last] = pool.user[s, j + 1 : last + 1].copy()
    pool.entered[s, j:last] = pool.entered[s, j + 1 : last + 1].copy()


@njit(cache=True, nogil=True)
def _fill_from_pool(s, cohorts, pool):  # type: ignore[no-untyped-def]
    """Assign a shard's oldest free slot to the longest-waiting user who fits; return user and cohort."""
    c = cohorts.free[cohorts.coming[s], 0]
    for j in range(pool.waiting[s]):
        u = pool.user[s, j]
        if fits(u, c, cohorts, pool.profile):
            _leave_pool(s, j, pool)
            return u, fill_free_slot(u, s, cohorts)
    return EMPTY_SLOT, -1


@njit(cache=True, nogil=True)
def by_similarity(user, topic, cohorts, pool):  # type: ignore[no-untyped-def]
    """Assign users to cohorts of similar users, once `first` searches show their topics.

    A cohort forms when a shard's pool is full, or when someone in it has waited for more than `patience`
    arrivals. Everything happens before any record of theirs has left. A free slot is filled first, one per
    arrival.
    """
    completed = np.full(user.size, -1, np.int64)
    clock, count, waiting, room = pool.clock, pool.count, pool.waiting, pool.user.shape[1]
    for i in range(user.size):
        u = user[i]
        if cohorts.cohort_of[u] != UNASSIGNED:
            continue
        s = cohorts.shard_of[u]
        clock[s] += 1
        count[u] += 1
        pool.profile[u, topic[i]] += 1
        if count[u] == 1:
            pool.born[u] = clock[s]
        if count[u] >= pool.first and not pool.pooled[u]:
            pool.rate[u] = np.log2(count[u] / (clock[s] - pool.born[u] + count[u]))
            pool.user[s, waiting[s]], pool.entered[s, waiting[s]] = u, clock[s]
            pool.pooled[u] = 1
            waiting[s] += 1
        if cohorts.coming[s] < cohorts.last[s]:
            assigned, completed[i] = _fill_from_pool(s, cohorts, pool)
            if assigned != EMPTY_SLOT:
                continue
        tired = waiting[s] >= cohorts.k and clock[s] - pool.entered[s, 0] > pool.patience
        if waiting[s] == room or tired:
            completed[i] = _form(s, clock[s], cohorts, pool)
            if waiting[s] == room:  # all have one topic: the longest-waiting makes room
                pool.pooled[pool.user[s, 0]] = 0
                _leave_pool(s, 0, pool)
    return completed


@njit(cache=True, nogil=True)
def assign_the_rest(users, cohorts, pool):  # type: ignore[no-untyped-def]
    """Assign everyone who is left, in this order, by similarity; return the cohorts formed."""
    waiting, (shards, room) = pool.waiting, pool.user.shape
    completed = np.full(users.size + shards * room, -1, np.int64)
    n = 0
    for u in users:
        s = cohorts.shard_of[u]
        pool.user[s, waiting[s]] = u
        waiting[s] += 1
        if waiting[s] == room:
            completed[n] = _form(s, 0, cohorts, pool)
            if completed[n] < 0:
                waiting[s] -= 1  # all alike: the newest is left over
            else:
                n += 1
    for s in range(shards):
        while waiting[s] >= cohorts.k:
            completed[n] = _form(s, 0, cohorts, pool)
            if completed[n] < 0:
                break
            n += 1
    return completed[:n]


@njit(cache=True, nogil=True)
def _free_cohort(c, now, n, cohorts, head, following, out):  # type: ignore[no-untyped-def]
    """Release the held records of a cohort's members."""
    for place in range(cohorts.start[c], cohorts.start[c] + cohorts.size[c]):
        slot = head[cohorts.members[place]]
        while slot >= 0:
            out[n, 0], out[n, 1] = slot, now
            n += 1
            slot = following[slot]
        head[cohorts.members[place]] = -1
    return n


@njit(cache=True, nogil=True)
def release(user, slot, completed, full, cohorts, newest, head, following, out):  # type: ignore[no-untyped-def]
    """Release records of full cohorts, chain the others to their users; write (slot, arrival).

    With a `newest` for each shard, a full cohort waits until the next one of its shard is full; one that
    is whole again does not.
    """
    n = 0
    for i in range(user.size):
        c = cohorts.cohort_of[user[i]]
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
            n = _free_cohort(done, i, n, cohorts, head, following, out)
    return n


@njit(cache=True, nogil=True)
def release_rest(completed, full, cohorts, head, following, out):  # type: ignore[no-untyped-def]
    """At the end let go what waited for the cohorts that were formed last."""
    n = 0
    for c in completed:
        full[c] = 1
        n = _free_cohort(c, -1, n, cohorts, head, following, out)
    return n


@njit(cache=True, nogil=True)
def draw_labels(k0, k1, record, cohort, cohorts, out):  # type: ignore[no-untyped-def]
    """Draw whose label each record gets: uniform over its cohort, by the record's id and the key alone."""
    for i in range(record.size):
        place = uniform_below(siphash(k0, k1, LABEL, np.uint64(record[i])), cohorts.size[cohort[i]])
        out[i] = cohorts.members[cohorts.start[cohort[i]] + place]
