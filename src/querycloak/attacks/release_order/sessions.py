"""Sessions: records close in time that share a word, and the author that they have in common.

The vote for an author is that of `author_em`, in the same `Workspace`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from querycloak.attacks.release_order.author_em import enter, finish, run_em
from querycloak.attacks.release_order.cohort_recovery import root


@njit(cache=True, nogil=True)
def chain(by_time, time, string, begins, words, frequency, gap, chance, most):  # type: ignore[no-untyped-def]
    """Join each record to the last one before it with the same word, unless that may well be chance.

    `begins` and `words` hold the words of each string. Two records are joined when the later one came
    within `gap`, and within the time in which `chance` other records with the word are expected
    (`frequency` per unit of time). A session holds at most `most` records. Gives each record its session.
    """
    parent, size = np.arange(time.size), np.ones(time.size, np.int64)
    last = np.full(frequency.size, -1, np.int64)
    for i in by_time:
        s = string[i]
        if s < 0:
            continue
        for w in words[begins[s] : begins[s + 1]]:
            j = last[w]
            last[w] = i
            if j < 0 or time[i] - time[j] > gap or (time[i] - time[j]) * frequency[w] > chance:
                continue
            a, b = root(parent, i), root(parent, j)
            if a != b and size[a] + size[b] <= most:
                parent[b] = a
                size[a] += size[b]
    for i in range(parent.size):
        parent[i] = root(parent, i)
    return parent


@njit(cache=True, nogil=True)
def settle_lists(d, members, groups, who, belief, share, spread, rounds):  # type: ignore[no-untyped-def]
    """Settle groups of records that have lists of candidates, best first; the lists are put in new order.

    `share` is how likely a candidate is met by chance in a record's list, the same for all.
    """
    for g in range(groups.size - 1):
        first, size = groups[g], groups[g + 1] - groups[g]
        if size < 2:
            continue
        entry, known = 0, 0
        for r in range(size):
            d.begins[r], d.cluster_end[r] = entry, r + 1
            for rank in range(who.shape[1]):
                label = who[members[first + r], rank]
                if label >= 0:
                    known = enter(d, entry, known, label, share, belief[members[first + r], rank], 1)
                    entry += 1
        d.begins[size] = entry
        run_em(d, size, known, spread, rounds)
        finish(d, members[first : first + size], known, who, belief)


@njit(cache=True, nogil=True)
def entries(arrival):  # type: ignore[no-untyped-def]
    """Return for each record the first place at which something that came no earlier had left.

    `arrival` ranks the records of a stream by time, categories apart. Nothing leaves before it came, so
    the largest rank that has left so far tells how far the input had been read.
    """
    reached = np.empty(arrival.size, np.int64)
    so_far = 0
    for place in range(arrival.size):
        while so_far <= arrival[place]:
            reached[so_far] = place
            so_far += 1
    return reached[arrival]
