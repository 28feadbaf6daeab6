"""Cuts of histories into short sessions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from querycloak.kernels.arrays import ranks_in_groups
from querycloak.log import IntArray
from querycloak.methods.shared.sessions import DAY


class Parts(NamedTuple):
    """Part of a session and rank in it, of each element; first element of each part."""

    part: IntArray
    turn: IntArray
    first: IntArray


def sessions(user: IntArray, time: IntArray, gap: int) -> IntArray:
    """Number sessions from 0: one person's searches of one day, without a silence of more than `gap`."""
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
    """Number the elements of each group from 0, for groups that stand together."""
    starts = np.flatnonzero(np.diff(grouped, prepend=-1))
    return ranks_in_groups(np.diff(starts, append=grouped.size))


def shuffled(draw: Any, found: Parts, day: IntArray) -> IntArray:
    """Return the order by day, parts of a day by the draw of each, elements of a part by their turn."""
    return np.lexsort((found.turn, found.part, draw[found.part], day))
