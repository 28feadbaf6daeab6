"""Expectation–maximisation over groups of records that few people wrote.

Each record has candidates: the labels near it, each with a weight. The records of a group vote for each
other: a candidate who is also likely to have written the others gains, by as much as it would be strange
to meet that label near all of them by chance. Two records that stand close together meet the same labels
independently of their authors, so there a label counts only if it is seen more than once: one token, one
record.

All state of a group is in a `Workspace`, which compiled functions share.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.attacks.release_order.windows import NOBODY, bounds, weight

FloatArray = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int32]


class Workspace(NamedTuple):
    """Room to work on one group: reused for all, so that memory does not grow with the log.

    By label: `sums`, `times` and `slot` (which candidate of the group it is). By candidate: `who`, `rarity`,
    `votes` and those from one cluster, `close`. By entry (a record's candidate): `one` (which candidate),
    `base` (its weight), `belief`, `spare` (whether a second token is seen, 0 to 1). By record: where its
    entries begin, and where its cluster ends.
    """

    sums: FloatArray
    times: Codes
    slot: Codes
    who: Codes
    rarity: FloatArray
    votes: FloatArray
    close: FloatArray
    one: Codes
    base: FloatArray
    belief: FloatArray
    spare: FloatArray
    begins: npt.NDArray[np.int64]
    cluster_end: npt.NDArray[np.int64]


def workspace(labels: int, records: int, width: int) -> Workspace:
    """Make room for groups of so many records with so many candidates each."""
    entries = records * width
    floats = ("rarity", "votes", "close", "base", "belief", "spare")
    arrays: dict[str, Any] = {name: np.zeros(entries, np.float32) for name in floats}
    arrays |= {name: np.zeros(entries, np.int32) for name in ("who", "one")}
    arrays |= {name: np.zeros(records + 1, np.int64) for name in ("begins", "cluster_end")}
    arrays |= {"sums": np.zeros(labels, np.float32), "times": np.zeros(labels, np.int32)}
    return Workspace(slot=np.full(labels, -1, np.int32), **arrays)


@njit(cache=True, nogil=True)
def enter(d, entry, known, label, share, base, spare):  # type: ignore[no-untyped-def]
    """Note a candidate of a record; give the number of different candidates in the group."""
    if d.slot[label] < 0:
        d.slot[label], d.who[known], d.rarity[known] = known, label, 1 / share
        known += 1
    d.one[entry], d.base[entry], d.belief[entry] = d.slot[label], base, base
    d.spare[entry] = spare
    return known


@njit(cache=True, nogil=True)
def scale_to_one(values, begin, end):  # type: ignore[no-untyped-def]
    """Make weights sum to one."""
    total = np.float32(0)
    for e in range(begin, end):
        total += values[e]
    if total > 0:
        for e in range(begin, end):
            values[e] /= total


@njit(cache=True, nogil=True)
def _window(d, place, begin, end, centre, before, after, label, share, barred, entry, known):  # type: ignore[no-untyped-def]
    """Enter the labels near one record as its candidates."""
    for near in range(begin, end):
        d.sums[label[near]] += weight(near, centre, before, after)
        d.times[label[near]] += 1
    if barred:
        d.sums[label[place]] = 0
    first = entry
    for near in range(begin, end):
        who = label[near]
        if d.sums[who] > 0:
            spare = 1 - np.float32(1) / d.times[who]
            known = enter(d, entry, known, who, share[near], d.sums[who], spare)
            entry += 1
        d.sums[who], d.times[who] = 0, 0
    scale_to_one(d.base, first, entry)
    scale_to_one(d.belief, first, entry)
    return entry, known


@njit(cache=True, nogil=True)
def mark_clusters(d, position, first, size, apart):  # type: ignore[no-untyped-def]
    """Find records of a group that stand so close that they see the same labels."""
    for r in range(size - 1, -1, -1):
        alone = r == size - 1 or position[first + r + 1] - position[first + r] > apart
        d.cluster_end[r] = r + 1 if alone else d.cluster_end[r + 1]


@njit(cache=True, nogil=True)
def _vote_cluster(d, begin, end, spread):  # type: ignore[no-untyped-def]
    """Renew the beliefs of the records of one cluster from what all others believe."""
    for e in range(d.begins[begin], d.begins[end]):
        d.close[d.one[e]] += d.belief[e]
    for r in range(begin, end):
        for e in range(d.begins[r], d.begins[r + 1]):
            i = d.one[e]
            near = max(np.float32(0), d.close[i] - d.belief[e]) * d.spare[e]
            far = max(np.float32(0), d.votes[i] - d.close[i])
            d.belief[e] = d.base[e] * (spread + (far + near) * d.rarity[i])
        scale_to_one(d.belief, d.begins[r], d.begins[r + 1])
    for e in range(d.begins[begin], d.begins[end]):
        d.close[d.one[e]] = 0


@njit(cache=True, nogil=True)
def run_em(d, size, known, spread, rounds):  # type: ignore[no-untyped-def]
    """Run rounds of expectation–maximisation on the records of a group."""
    for _ in range(rounds):
        for i in range(known):
            d.votes[i] = 0
        for e in range(d.begins[size]):
            d.votes[d.one[e]] += d.belief[e]
        r = 0
        while r < size:
            _vote_cluster(d, r, d.cluster_end[r], spread)
            r = d.cluster_end[r]


@njit(cache=True, nogil=True)
def _take_best(d, r, who, belief):  # type: ignore[no-untyped-def]
    """Write the likeliest candidates of a record, best first; equal ones as they were entered."""
    who[:], belief[:] = NOBODY, 0
    last = who.size - 1
    for e in range(d.begins[r], d.begins[r + 1]):
        if d.belief[e] > belief[last]:
            rank = last
            while rank > 0 and d.belief[e] > belief[rank - 1]:
                who[rank], belief[rank] = who[rank - 1], belief[rank - 1]
                rank -= 1
            who[rank], belief[rank] = d.who[d.one[e]], d.belief[e]


@njit(cache=True, nogil=True)
def finish(d, records, known, who, belief):  # type: ignore[no-untyped-def]
    """Write the likeliest candidates of these records, and forget those of the group."""
    for r in range(records.size):
        _take_best(d, r, who[records[r]], belief[records[r]])
    for i in range(known):
        d.slot[d.who[i]] = -1


@njit(cache=True, nogil=True)
def settle_windows(  # type: ignore[no-untyped-def]
    d, members, groups, label, category, starts, share, centre, before, after, barred, apart, spread, rounds,
    who, belief,
):  # fmt: skip
    """Settle every group of places (`members` from `groups[g]` to `groups[g + 1]`, in stream order).

    A group larger than the workspace is settled in pieces. `who` and `belief` get the best of each place.
    """
    room = d.begins.size - 1
    for g in range(groups.size - 1):
        for first in range(groups[g], groups[g + 1], room):
            size = min(room, groups[g + 1] - first)
            entry, known = 0, 0
            for r in range(size):
                place = members[first + r]
                c = category[place]
                begin, end = bounds(starts[c], starts[c + 1], centre[place], before, after)
                d.begins[r] = entry
                entry, known = _window(
                    d, place, begin, end, centre[place], before, after, label, share, barred, entry, known
                )
            d.begins[size] = entry
            if size > 1:
                mark_clusters(d, members, first, size, apart)
                run_em(d, size, known, spread, rounds)
            finish(d, members[first : first + size], known, who, belief)
