"""How searches follow each other: sessions, next pages, second thoughts, and coming back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from querycloak.synthetic.block import Block
from querycloak.synthetic.people import People
from querycloak.synthetic.streams import BoolArray, FloatArray, IntArray

#: A search opens a new session with this probability (so about 2.6 searches per session).
OPENS = 0.38
#: Within a session: ask for the next page, change the query, come back to an old one.
NEXT_PAGE, REFORMULATES, RETURNS = 0.09, 0.27, 0.19
#: A session opens with an old query this often.
OPENS_WITH_OLD = 0.33


@dataclass(frozen=True)
class Plan:
    """The skeleton of a block's searches, in order of user and time; no text yet.

    `source` is the search that this one goes back to (itself, when it is new). `copy_of` is the search
    whose text it shares; `origin` the one that the whole chain of changes began with.
    """

    user: IntArray
    session: IntArray
    opens_session: BoolArray
    next_page: BoolArray
    changes: BoolArray
    source: IntArray
    copy_of: IntArray
    origin: IntArray
    first_of_user: IntArray
    count_of_user: IntArray


def plan_searches(block: Block, people: People) -> Plan:
    """Lay out the searches of a block: who, in which session, new or going back to which."""
    rng = block.stream("sessions")
    counts = people.searches
    user = np.repeat(np.arange(counts.size), counts)
    first = np.cumsum(counts) - counts
    number = np.arange(user.size)
    position = number - first[user]
    opens = (rng.random(user.size) < OPENS) | (position == 0)
    next_page, changes, returns = _kinds(rng.random(user.size), opens, position)
    back = np.floor(rng.random(user.size) * position).astype(np.int64)
    source = np.where(returns, first[user] + back, np.where(next_page | changes, number - 1, number))
    return Plan(
        user=user,
        session=np.cumsum(opens) - 1,
        opens_session=opens,
        next_page=next_page,
        changes=changes,
        source=source,
        copy_of=_follow(np.where(changes, number, source)),
        origin=_follow(source),
        first_of_user=first,
        count_of_user=counts,
    )


def _kinds(
    uniform: FloatArray, opens: BoolArray, position: IntArray
) -> tuple[BoolArray, BoolArray, BoolArray]:
    within = ~opens
    next_page = within & (uniform < NEXT_PAGE)
    changes = within & ~next_page & (uniform < NEXT_PAGE + REFORMULATES)
    returns = within & ~next_page & ~changes & (uniform < NEXT_PAGE + REFORMULATES + RETURNS)
    returns |= opens & (position > 0) & (uniform < OPENS_WITH_OLD)
    return next_page, changes, returns


def _follow(pointer: IntArray) -> IntArray:
    """Follow pointers to their end, halving the way with every step."""
    while True:
        further = pointer[pointer]
        if np.array_equal(further, pointer):
            return pointer
        pointer = further
