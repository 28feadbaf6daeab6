"""Puts deleted terms back where they do no harm: where every combination they make is frequent anyway."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.kernels.combos import by_term
from querycloak.log import IntArray

#: Longer combinations are not looked at, so nothing may be put back there.
LARGEST = 3


@njit(cache=True, nogil=True)
def _company(e, start, end, item, person, alive, count, latest):  # type: ignore[no-untyped-def]
    """Count the other terms of an entry's history, once for each person: her histories stand together."""
    for f in range(start[e], end[e]):
        if f != e and alive[f]:
            count[item[f]] += latest[item[f]] != person[e]
            latest[item[f]] = person[e]


@njit(cache=True, nogil=True)
def _is_welcome(e, start, end, item, alive, count, k):  # type: ignore[no-untyped-def]
    """Say whether enough hold the term with each other term of a history."""
    welcome = True
    for f in range(start[e], end[e]):
        welcome = welcome and (f == e or not alive[f] or count[item[f]] >= k)
    return welcome


@njit(cache=True, nogil=True)
def _people(mine, person, alive):  # type: ignore[no-untyped-def]
    """Count the people who hold a term, its entries standing person by person."""
    people, before = 0, np.int64(-1)
    for e in mine:
        if alive[e]:
            people += person[e] != before
            before = person[e]
    return people


@njit(cache=True, nogil=True)
def _forget(these, start, end, item, count, latest):  # type: ignore[no-untyped-def]
    for e in these:
        for f in range(start[e], end[e]):
            count[item[f]], latest[item[f]] = 0, -1


@njit(cache=True, nogil=True)
def _welcome_back(mine, start, end, item, person, alive, count, latest, k):  # type: ignore[no-untyped-def]
    """Give the deleted entries of a term that make only pairs that k people have."""
    for e in mine:
        if alive[e]:
            _company(e, start, end, item, person, alive, count, latest)
    guests, wanted = np.empty(mine.size, np.int64), 0
    for e in mine:
        if not alive[e] and _is_welcome(e, start, end, item, alive, count, k):
            guests[wanted] = e
            wanted += 1
    _forget(mine, start, end, item, count, latest)
    return guests[:wanted]


@njit(cache=True, nogil=True)
def _regrow(start, end, item, person, alive, lead, entries, k, m):  # type: ignore[no-untyped-def]
    terms, back = lead.size - 1, 0
    count, latest = np.zeros(terms, np.int64), np.full(terms, np.int64(-1))
    first, place = np.full(terms, np.int64(-1)), np.zeros(terms, np.int64)
    for x in range(terms):
        mine = entries[lead[x] : lead[x + 1]]
        if _people(mine, person, alive) < k:
            continue
        guests = _welcome_back(mine, start, end, item, person, alive, count, latest, k)
        if m > 2 and guests.size > 0:
            _turn_away(mine, guests, start, end, item, person, alive, count, latest, first, place, k)
        for e in guests:
            if e >= 0:
                alive[e] = 1
                back += 1
    return back


@njit(cache=True, nogil=True)
def _by_companion(mine, guests, start, end, item, alive, first, place):  # type: ignore[no-untyped-def]
    """List a term's holders by each other term that a guest has: those with y stand from first[y] on."""
    for e in guests:
        for f in range(start[e], end[e]):
            if alive[f]:
                first[item[f]] = 0
    for e in mine:
        for f in range(start[e], end[e]):
            place[item[f]] += alive[e] and f != e and alive[f] and first[item[f]] >= 0
    size = 0
    for e in mine:
        for f in range(start[e], end[e]):
            y = item[f]
            if place[y] > 0:
                first[y], size, place[y] = size, size + place[y], 0
    near = np.empty(size, np.int64)
    for e in mine:
        for f in range(start[e], end[e]):
            y = item[f]
            if alive[e] and f != e and alive[f] and first[y] >= 0:
                near[first[y] + place[y]] = e
                place[y] += 1
    return near


@njit(cache=True, nogil=True)
def _turn_away(  # type: ignore[no-untyped-def]
    mine, guests, start, end, item, person, alive, count, latest, first, place, k
):  # fmt: skip
    """Turn away (-1) the guests that would make a triple with two others that fewer than k people have."""
    near = _by_companion(mine, guests, start, end, item, alive, first, place)
    for g in range(guests.size):
        e = guests[g]
        for f in range(start[e], end[e]):
            if f == e or not alive[f] or guests[g] < 0:
                continue
            these = near[first[item[f]] : first[item[f]] + place[item[f]]]
            for h in these:
                _company(h, start, end, item, person, alive, count, latest)
            for w in range(f + 1, end[e]):
                if w != e and alive[w] and count[item[w]] < k:
                    guests[g] = -1
            _forget(these, start, end, item, count, latest)
    for e in mine:
        for f in range(start[e], end[e]):
            first[item[f]], place[item[f]] = -1, 0


def regrow(
    history_start: IntArray,
    item: IntArray,
    person: IntArray,
    alive: npt.NDArray[np.bool_],
    terms: int,
    k: int,
    m: int,
) -> int:
    """Put entries back, in order of rank, as long as k people have every combination of at most m."""
    sizes = np.diff(history_start)
    start, end = np.repeat(history_start[:-1], sizes), np.repeat(history_start[1:], sizes)
    lead = np.concatenate([[0], np.cumsum(np.bincount(item, minlength=terms))])
    entries = by_term(item, lead)
    return int(_regrow(start, end, item, person, alive.view(np.uint8), lead, entries, k, m))
