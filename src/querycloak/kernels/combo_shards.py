"""Seldom combinations whose last term is in one stretch of ranks, where what went before it is known.

A sweep of `combos` goes through combinations in the order of their beginnings, and deletes the last term of
those that are too seldom. So what becomes of a term depends on terms of better rank only: a stretch of ranks,
its targets, can be worked out apart from the others as soon as it is known when the entries before it went.
"When" is the beginning at which an entry was deleted, of which the first two terms matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.kernels.combos import LARGEST, by_term
from querycloak.log import IntArray

#: Stands for the beginning at which an entry was deleted that was not; greater than every rank.
NEVER = np.iinfo(np.int64).max
#: Stands for the second term of a beginning that has one.
NONE = -1

Flags = npt.NDArray[np.uint8]


@njit(cache=True, nogil=True)
def _there(e, place, a, b, target, alive, first, second):  # type: ignore[no-untyped-def]
    """Say whether an entry is left for the beginning a, b …, of which it is the term at `place`."""
    if target[e]:
        return alive[e] != 0
    if place == 0:
        return first[e] == NEVER
    if place == 1:
        return first[e] > a
    return first[e] > a or (first[e] == a and second[e] > b)


@njit(cache=True, nogil=True)
def _whole(path, depth, item, target, alive, first, second):  # type: ignore[no-untyped-def]
    a, b = item[path[0]], item[path[1]] if depth > 2 else NONE
    whole = True
    for part in range(depth - 1):
        whole = whole and _there(path[part], part, a, b, target, alive, first, second)
    return whole


@njit(cache=True, nogil=True)
def _look(  # type: ignore[no-untyped-def]
    paths, depth, k, hot, item, person, end, target, alive, first, second, size, touched, last, only_look,
    people, latest, terms,
):  # fmt: skip
    """Count the targets behind beginnings, and delete them where they are too seldom."""
    tail, found = depth - 2, 0
    for path in paths:
        e = path[tail]
        if (hot or last[e] > e) and _whole(path, depth, item, target, alive, first, second):
            for f in range(end[e] - 1, e, -1):
                if not target[f]:
                    break
                b = item[f]
                if alive[f] and (hot or touched[b]):
                    if people[b] == 0:
                        terms[found] = b
                        found += 1
                    people[b] += latest[b] != person[e]
                    latest[b] = person[e]
    for path in paths:
        e = path[tail]
        if only_look or not (
            (hot or last[e] > e) and _whole(path, depth, item, target, alive, first, second)
        ):
            continue
        for f in range(end[e] - 1, e, -1):
            if not target[f]:
                break
            b = item[f]
            if alive[f] and 0 < people[b] < k and (hot or touched[b]):
                alive[f] = 0
                first[f], second[f] = item[path[0]], item[path[1]] if depth > 2 else NONE
                size[f] = depth
    return found


@njit(cache=True, nogil=True)
def _note(paths, depth, k, hot, item, only_look, people, latest, terms, frequent):  # type: ignore[no-untyped-def]
    """Count the combinations that are frequent; what is not need not be gone into."""
    for b in terms:
        if people[b] >= k and hot:
            frequent[depth, b] += 1
            for part in range(depth - 1):
                frequent[depth, item[paths[0, part]]] += 1
        latest[b] = -1
        if not (only_look and people[b] < k):
            people[b] = 0


@njit(cache=True, nogil=True)
def _stays(f, depth, a, b, item, target, alive, first, second, people):  # type: ignore[no-untyped-def]
    """Say whether a beginning that is longer by this entry need be gone into."""
    return _there(f, depth - 1, a, b, target, alive, first, second) and people[item[f]] == 0


@njit(cache=True, nogil=True)
def _gather(  # type: ignore[no-untyped-def]
    paths, depth, hot, item, end, target, alive, first, second, last, people, count, terms, longer
):  # fmt: skip
    """Write down beginnings that are longer by one, those with the same last term together."""
    found = size = 0
    for path in paths:
        e = path[depth - 2]
        if (hot or last[e] > e) and _whole(path, depth, item, target, alive, first, second):
            a, b = item[path[0]], item[path[1]] if depth > 2 else NONE
            for f in range(e + 1, end[e] - 1):
                if _stays(f, depth, a, b, item, target, alive, first, second, people):
                    if count[item[f]] == 0:
                        terms[found] = item[f]
                        found += 1
                    count[item[f]] += 1
    ends = terms[:found]
    ends.sort()
    for x in ends:
        count[x], size = size, size + count[x]
    for path in paths:
        e = path[depth - 2]
        if (hot or last[e] > e) and _whole(path, depth, item, target, alive, first, second):
            a, b = item[path[0]], item[path[1]] if depth > 2 else NONE
            for f in range(e + 1, end[e] - 1):
                if _stays(f, depth, a, b, item, target, alive, first, second, people):
                    for part in range(depth - 1):
                        longer[count[item[f]], part] = path[part]
                    longer[count[item[f]], depth - 1] = f
                    count[item[f]] += 1
    return found


@njit(cache=True, nogil=True)
def _sweep(  # type: ignore[no-untyped-def]
    deepest, k, item, person, end, place, entries, target, alive, first, second, size, touched, last,
    only_look, frequent, room,
):  # fmt: skip
    """Go through leading terms by rank, and for each through what follows, deeper before further."""
    terms = place.size - 1
    count, people = np.zeros(terms, np.int64), np.zeros(terms, np.int64)
    latest, found, ends = np.full(terms, -1), np.empty(terms, np.int64), np.empty(terms, np.int64)
    pool = np.empty((deepest + 1, room if deepest > 2 else 0, deepest), np.int64)
    waiting = np.empty((1 + terms * (deepest - 1), 4), np.int64)  # depth, from, to, hot
    for a in range(terms):
        waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3] = 2, place[a], place[a + 1], touched[a]
        left = 1
        while left > 0:
            left -= 1
            depth, begin, stop, hot = (
                waiting[left, 0],
                waiting[left, 1],
                waiting[left, 2],
                waiting[left, 3] != 0,
            )
            if depth == 2:
                paths = entries[begin:stop].copy().reshape(-1, 1)
            else:
                paths = pool[depth, begin:stop]
            n = _look(
                paths, depth, k, hot, item, person, end, target, alive, first, second, size, touched,
                last, only_look, people, latest, found,
            )  # fmt: skip
            _note(paths, depth, k, hot, item, only_look, people, latest, found[:n], frequent)
            if depth < deepest:
                longer = _gather(
                    paths, depth, hot, item, end, target, alive, first, second, last, people, count,
                    ends, pool[depth + 1],
                )  # fmt: skip
                for i in range(longer - 1, -1, -1):  # the last one in is looked at first
                    b = ends[i]
                    waiting[left, 0], waiting[left, 1] = depth + 1, count[ends[i - 1]] if i else 0
                    waiting[left, 2], waiting[left, 3] = count[b], hot or touched[b] != 0
                    left += 1
                for b in ends[:longer]:
                    count[b] = 0
            for b in found[:n]:
                people[b] = 0


@njit(cache=True, nogil=True)
def _pairs(place, behind, history, end, k, item, person, target, alive, touched, first, size):  # type: ignore[no-untyped-def]
    """Do what `_sweep` does where combinations are pairs, on arrays of targets alone, which are few.

    The entries of lead `a`, `place[a]` to `place[a + 1]`, each have their `history` and where among all
    targets those behind it begin; a lead that is a target itself stands right before them.
    """
    people, latest = np.zeros(place.size, np.int64), np.full(place.size, np.int64(-1))
    found = np.empty(place.size, np.int64)
    for a in range(place.size - 1):
        met = 0
        for i in range(place[a], place[a + 1]):
            if target[a] and not alive[behind[i] - 1]:
                continue
            h = history[i]
            for f in range(behind[i], end[h]):
                b = item[f]
                if alive[f] and (touched[a] or touched[b]):
                    if people[b] == 0:
                        found[met] = b
                        met += 1
                    people[b] += latest[b] != person[h]
                    latest[b] = person[h]
        for i in range(place[a], place[a + 1]):
            if target[a] and not alive[behind[i] - 1]:
                continue
            for f in range(behind[i], end[history[i]]):
                if alive[f] and 0 < people[item[f]] < k:
                    alive[f], first[f], size[f] = 0, a, 2
        for b in found[:met]:
            people[b], latest[b] = 0, -1


@njit(cache=True, nogil=True)
def _last_touched(item, start, touched, end, last):  # type: ignore[no-untyped-def]
    """Note for every entry where the last touched term of its history stands, and where it ends."""
    for h in range(start.size - 1):
        place = -1
        for e in range(start[h], start[h + 1]):
            if touched[item[e]]:
                place = e
        for e in range(start[h], start[h + 1]):
            last[e], end[e] = place, start[h + 1]


@njit(cache=True, nogil=True)
def _cuts(by_rank, item, history, start, opens, room):  # type: ignore[no-untyped-def]
    """Take in term after term, and begin a new stretch where the histories up to it would be too much."""
    ends = np.empty(item.size, np.int64)
    counted, seen_in = np.zeros(start.size, np.int64), np.full(start.size, -1)
    found, i, load = 0, 0, 0.0
    while i < by_rank.size:
        j, more, whole = i, 0.0, 0.0
        while j < by_rank.size and item[by_rank[j]] == item[by_rank[i]]:
            e, h = by_rank[j], history[by_rank[j]]
            if e >= opens[h]:
                reach = e - start[h] + 1
                more += reach - (counted[h] if seen_in[h] == found else 0)
                whole += reach
            j += 1
        if load > 0 and load + more > room:
            ends[found], found, load = item[by_rank[i]], found + 1, 0.0
            more = whole
        load += more
        for place in range(i, j):
            e, h = by_rank[place], history[by_rank[place]]
            if e >= opens[h]:
                counted[h], seen_in[h] = e - start[h] + 1, found
        i = j
    return ends[:found]


def cuts(start: IntArray, rank: IntArray, touched: npt.NDArray[np.bool_], room: float) -> IntArray:
    """Say at which ranks stretches of targets begin, the first one aside.

    What a stretch takes is the histories that hold one of its targets, up to the last of them; that is at
    most `room` entries, unless one term alone takes more. Histories without a touched term up to there do
    not count.
    """
    history = np.repeat(np.arange(start.size - 1), np.diff(start))
    opens = np.full(start.size, rank.size)
    marked = np.flatnonzero(touched)[::-1]
    opens[history[marked]] = marked
    found: IntArray = _cuts(np.argsort(rank, kind="stable"), rank, history, start, opens, float(room))
    return found


@dataclass(frozen=True)
class Gone:
    """When each entry went (`first` and `second` term of the beginning, as ranks) and at which size.

    Entries that are no targets have what was given, those that stayed `NEVER`. `frequent[size, term]` counts
    the combinations of a size that are frequent, hold the term, and end in a target.
    """

    first: IntArray
    second: IntArray
    size: IntArray
    frequent: IntArray
    names: IntArray


def sweep(
    start: IntArray,
    rank: IntArray,
    person: IntArray,
    targets: int,
    k: int,
    m: int,
    touched: IntArray | None,
    gone: tuple[IntArray, IntArray],
    *,
    only_look: bool = False,
) -> Gone:
    """Work out which targets go: the entries whose rank is at least `targets`.

    `rank[start[h]:start[h + 1]]` are the ranks of a history's terms, rising, up to its last target; histories
    of one person stand together. `touched` are the ranks, rising, of terms of which one must be in each
    combination that is looked at; None: all. `gone` says for entries before the targets when they went.
    """
    there = np.bincount(rank) > 0
    names, item = np.flatnonzero(there), (np.cumsum(there) - 1)[rank]
    marked = np.ones(names.size, np.uint8) if touched is None else np.isin(names, touched).view(np.uint8)
    target = rank >= targets
    if m == 2 and not only_look:
        return _swept_pairs(start, names, item, person, target, k, marked, gone)
    first, second = (_coded(names, part, target) for part in gone)
    end, last = np.empty(item.size, np.int64), np.empty(item.size, np.int64)
    _last_touched(item, start, marked, end, last)
    place = np.concatenate([[0], np.cumsum(np.bincount(item, minlength=names.size))]).astype(np.int64)
    room = np.bincount(item, end - np.arange(item.size) - 1, minlength=names.size)
    size, frequent = np.zeros(item.size, np.int64), np.zeros((LARGEST + 1, names.size), np.int64)
    _sweep(
        m, k, item, person, end, place, by_term(item, place), target.view(np.uint8),
        np.ones(item.size, np.uint8), first, second, size, marked, last, only_look, frequent,
        int(room.max(initial=0)),
    )  # fmt: skip
    return Gone(_named(names, first), _named(names, second), size, frequent, names)


def _swept_pairs(
    start: IntArray,
    names: IntArray,
    item: IntArray,
    person: IntArray,
    target: npt.NDArray[np.bool_],
    k: int,
    marked: Flags,
    gone: tuple[IntArray, IntArray],
) -> Gone:
    """Lay entries out by lead, and targets by history, for `_pairs`."""
    history = np.repeat(np.arange(start.size - 1), np.diff(start))
    before = np.concatenate([[0], np.cumsum(target)])  # how many targets come before an entry
    leads = np.flatnonzero(target | (gone[0] == NEVER))
    place = np.concatenate([[0], np.cumsum(np.bincount(item[leads], minlength=names.size))]).astype(np.int64)
    leads = leads[by_term(item[leads], place)]
    own = np.flatnonzero(target)
    alive, size = np.ones(own.size, np.uint8), np.zeros(item.size, np.int64)
    first, went = np.full(own.size, NEVER), np.zeros(own.size, np.int64)
    is_target = np.zeros(names.size, np.uint8)
    is_target[item[own]] = 1
    _pairs(
        place, before[leads + 1], history[leads], before[start[1:]], k, item[own], person[start[:-1]],
        is_target, alive, marked, first, went,
    )  # fmt: skip
    size[own] = went
    result = gone[0].copy(), gone[1].copy()
    result[0][own], result[1][own] = _named(names, first), NONE
    return Gone(*result, size, np.zeros((LARGEST + 1, names.size), np.int64), names)


def _coded(names: IntArray, when: IntArray, target: npt.NDArray[np.bool_]) -> IntArray:
    """Put ranks into places among those that there are; targets have not gone yet."""
    place = np.searchsorted(names, when)
    return np.where(target | (when == NEVER), NEVER, np.where(when == NONE, NONE, place))


def _named(names: IntArray, place: IntArray) -> IntArray:
    known = (place >= 0) & (place < NEVER)
    return np.where(known, names[np.where(known, place, 0)] if names.size else place, place)
