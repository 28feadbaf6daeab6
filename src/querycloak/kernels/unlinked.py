"""Cuts histories into short sessions, and counts the different people behind queries and terms."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]

#: A day in microseconds; days begin at midnight UTC.
DAY: Final = 86_400 * 1_000_000


class Parts(NamedTuple):
    """For each element the part of a session that it is in and its turn there; for each part its first."""

    part: IntArray
    turn: IntArray
    first: IntArray


def sessions(user: IntArray, time: IntArray, gap: int) -> IntArray:
    """Number sessions from nought: one person's searches of one day, without a silence of more than `gap`."""
    order = np.lexsort((time, user))
    u, t = user[order], time[order]
    new = np.ones(u.size, np.bool_)
    new[1:] = (u[1:] != u[:-1]) | (t[1:] - t[:-1] > gap) | (t[1:] // DAY != t[:-1] // DAY)
    number = np.empty(u.size, np.int64)
    number[order] = np.cumsum(new) - 1
    return number


def parts(session: IntArray, time: IntArray, most: int) -> Parts:
    """Cut sessions into parts of at most `most` elements each, by time, ties by their place."""
    order = np.lexsort((time, session))
    turn = _turns(session[order]) % most
    begins = turn == 0
    found = Parts(np.empty_like(order), np.empty_like(order), order[begins])
    found.part[order] = np.cumsum(begins) - 1
    found.turn[order] = turn
    return found


def _turns(grouped: IntArray) -> IntArray:
    """Number the elements of each group from nought, for groups that stand together."""
    starts = np.flatnonzero(np.diff(grouped, prepend=-1))
    return np.arange(grouped.size) - np.repeat(starts, np.diff(np.append(starts, grouped.size)))


def people(thing: IntArray, person: IntArray, things: int) -> IntArray:
    """Count the different people of each thing; things have numbers from nought."""
    pairs = np.unique((thing << 32) + person)
    return np.bincount(pairs >> 32, minlength=things)


def latest(pair: IntArray, day: IntArray) -> tuple[IntArray, IntArray]:
    """Give each pair once, sorted, with the last of its days."""
    order = np.lexsort((day, pair))
    ends = np.flatnonzero(np.diff(pair[order], append=-1))
    return pair[order][ends], day[order][ends]


def shuffled(draw: Any, found: Parts, day: IntArray) -> IntArray:
    """Give the order by day, parts of a day by the draw of each, elements of a part by their turn."""
    return np.lexsort((found.turn, found.part, draw[found.part], day))
