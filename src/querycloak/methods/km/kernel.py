"""Finds and deletes rare combinations of terms without listing all combinations.

A history is a range of entries, one per term, sorted by the term's rank: the highest priority comes first.
For one leading term at a time, all terms behind it in the histories that hold it are counted in an array
with a place for every term. Rare ones are deleted there, and the others are extended in the same way.
No table of combinations is ever built, so memory is that of the histories.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.kernels.order import group
from querycloak.log import IntArray

#: Combinations have at most so many terms.
LARGEST = 4

Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]


@njit(cache=True, nogil=True)
def _weakest(path, depth, last, draw):  # type: ignore[no-untyped-def]
    """Return the entry of a combination that drew the smallest number."""
    weakest = last
    for part in range(depth - 1):
        if draw[path[part]] < draw[weakest]:
            weakest = path[part]
    return weakest


@njit(cache=True, nogil=True)
def _whole(path, depth, kept):  # type: ignore[no-untyped-def]
    whole = True
    for part in range(depth - 1):
        whole = whole and kept[path[part]] != 0
    return whole


@njit(cache=True, nogil=True)
def _count_combinations(  # type: ignore[no-untyped-def]
    paths, depth, deepest, k, changed, item, person, end, kept, touched, last, draw, by_chance, count_only,
    count, people, latest, terms, deleted,
):  # fmt: skip
    """Count the last terms of the combinations that begin as `paths` do; delete in the rare ones.

    Each path names the entries of a beginning of `depth - 1` terms in one history. `changed`: one of these
    terms has been deleted somewhere since the last pass. If none has, only a combination that ends in such
    a term can have become rare, and only histories that hold one are read. Histories of one user are
    adjacent, and count once.
    """
    tail, found = depth - 2, 0
    for path in paths:
        e = path[tail]
        if (changed or last[e] > e) and _whole(path, depth, kept):
            for f in range(e + 1, end[e]):
                b = item[f]
                if kept[f] and (changed or depth < deepest or touched[b]):
                    if count[b] == 0:
                        terms[found] = b
                        found += 1
                        people[b] = 0
                        latest[b] = -1
                    count[b] += 1
                    people[b] += latest[b] != person[e]
                    latest[b] = person[e]
    if count_only:
        return found
    for path in paths:
        e = path[tail]
        if not ((changed or last[e] > e) and _whole(path, depth, kept)):
            continue
        for f in range(e + 1, end[e]):
            b = item[f]
            if kept[f] and count[b] > 0 and people[b] < k and (changed or touched[b]):
                gone = _weakest(path, depth, f, draw) if by_chance else f
                kept[gone] = 0
                deleted[depth] += 1
                if gone != f:
                    break
    return found


@njit(cache=True, nogil=True)
def _gather(paths, depth, k, changed, item, end, kept, touched, last, count, people, place, terms, longer):  # type: ignore[no-untyped-def]
    """Write the combinations that stay, longer by one term, grouped by their last term."""
    size = 0
    for b in terms:
        place[b] = size
        size += count[b]
    for path in paths:
        e = path[depth - 2]
        if (changed or last[e] > e) and _whole(path, depth, kept):
            for f in range(e + 1, end[e]):
                b = item[f]
                if kept[f] and count[b] > 0 and not (people[b] < k and (changed or touched[b])):
                    for part in range(depth - 1):
                        longer[place[b], part] = path[part]
                    longer[place[b], depth - 1] = f
                    place[b] += 1


@njit(cache=True, nogil=True)
def _wait(row, depth, begin, stop, changed):  # type: ignore[no-untyped-def]
    row[0], row[1], row[2], row[3] = depth, begin, stop, changed


@njit(cache=True, nogil=True)
def _delete_rare(  # type: ignore[no-untyped-def]
    deepest, k, item, person, end, first, entries, kept, touched, last, draw, by_chance, count_only, deleted,
    frequent, room,
):  # fmt: skip
    """Go through leading terms by rank, and for each through what follows, deeper before further."""
    terms = first.size - 1
    count, place = np.zeros(terms, np.int64), np.zeros(terms, np.int64)
    people, latest = np.zeros(terms, np.int64), np.zeros(terms, np.int64)
    found = np.empty(terms, np.int64)
    pool = np.empty((deepest + 1, room if deepest > 2 else 0, deepest), np.int64)
    waiting = np.empty((1 + terms * (deepest - 1), 4), np.int64)  # depth, from, to, hot
    for a in range(terms):
        if first[a + 1] == first[a]:
            continue
        _wait(waiting[0], 2, 0, first[a + 1] - first[a], touched[a] != 0)
        left = 1
        while left > 0:
            left -= 1
            depth, begin, stop = waiting[left, 0], waiting[left, 1], waiting[left, 2]
            changed = waiting[left, 3] != 0
            if depth == 2:
                paths = entries[first[a] : first[a + 1]].copy().reshape(-1, 1)
            else:
                paths = pool[depth, begin:stop]
            n = _count_combinations(
                paths, depth, deepest, k, changed, item, person, end, kept, touched, last, draw, by_chance,
                count_only, count, people, latest, found, deleted,
            )  # fmt: skip
            ends = found[:n]
            if depth < deepest:
                ends.sort()
                _gather(
                    paths, depth, k, changed, item, end, kept, touched, last, count, people, place, ends,
                    pool[depth + 1],
                )  # fmt: skip
                offset = 0
                for b in ends:
                    offset += count[b]
                for b in ends[::-1]:  # the last one in is looked at first
                    offset -= count[b]
                    if place[b] > offset:
                        _wait(waiting[left], depth + 1, offset, place[b], changed or touched[b] != 0)
                        left += 1
            for b in ends:
                if people[b] >= k and changed:
                    frequent[depth, b] += 1
                    for part in range(depth - 1):
                        frequent[depth, item[paths[0, part]]] += 1
                count[b] = 0


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


@dataclass
class SweepResult:
    """The result of one pass over all combinations: deletions, and frequent combinations by term.

    `frequent[size, term]` counts the combinations of a size that are frequent and hold the term (complete
    only if everything was touched).
    """

    kept: npt.NDArray[np.bool_]
    deleted: IntArray
    frequent: IntArray


def delete_rare_combinations(
    start: IntArray,
    item: IntArray,
    person: IntArray,
    terms: int,
    k: int,
    m: int,
    touched: Bytes,
    *,
    draw: Words | None = None,
    count_only: bool = False,
) -> SweepResult:
    """Pass once over the combinations of 2 to m terms; delete the last term of each rare one.

    `item[start[h]:start[h + 1]]` are the ranks of a history's terms, rising; `person` is the user of an
    entry. With `draw`, a number for each entry, the term with the smallest is deleted instead of the last.
    """
    deleted, frequent = np.zeros(LARGEST + 1, np.int64), np.zeros((LARGEST + 1, terms), np.int64)
    result = SweepResult(np.ones(item.size, np.uint8), deleted, frequent)
    end, last = np.empty(item.size, np.int64), np.empty(item.size, np.int64)
    _last_touched(item, start, touched, end, last)
    entries, first = group(item, terms)
    behind = np.bincount(item, end - np.arange(item.size) - 1, minlength=terms)
    _delete_rare(
        m, k, item, person, end, first, entries, result.kept, touched, last,
        np.empty(0, np.uint64) if draw is None else draw, draw is not None, count_only,
        result.deleted, result.frequent, int(behind.max(initial=0)),
    )  # fmt: skip
    result.kept = result.kept.view(np.bool_)
    return result
