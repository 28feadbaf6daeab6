"""Sessions, repeated and reformulated searches, next pages, and the times of all searches."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np

from querycloak.synthetic.people import People
from querycloak.synthetic.rng import BoolArray, FloatArray, IntArray
from querycloak.synthetic.world import Block

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


DAY = 86_400
#: Searches per hour of the day, midnight first: a quiet night, a long evening.
HOURS = (28, 18, 11, 8, 6, 8, 14, 24, 36, 46, 54, 58, 60, 62, 64, 66, 67, 68, 70, 76, 82, 80, 66, 45)
#: Searches per day of the week, Monday first.
WEEKDAYS = (108, 107, 104, 101, 92, 90, 98)
#: Seconds between two searches of a session: median and log spread; a longer pause ends the session.
PAUSE, PAUSE_SPREAD, LONGEST_PAUSE = 55.0, 1.1, 1_500
PAGE_PAUSE = 25.0


def activity_times(block: Block, people: People, plan: Plan, days: int, start: date) -> IntArray:
    """Return the second, counted from the start, of every search; strictly increasing within a user."""
    rng = block.stream("rhythm")
    begin = _session_starts(rng, people, plan, days, start)
    pauses = np.exp(PAUSE_SPREAD * rng.standard_normal(plan.user.size))
    pauses *= np.where(plan.next_page, PAGE_PAUSE, PAUSE)
    pauses = pauses.clip(2, LONGEST_PAUSE)
    pauses[plan.opens_session] = 0.0
    elapsed = np.cumsum(pauses)
    since_start = elapsed - elapsed[plan.opens_session][plan.session]
    return _strictly_growing(begin[plan.session] + np.rint(since_start).astype(np.int64), plan, days)


def _session_starts(rng: np.random.Generator, people: People, plan: Plan, days: int, start: date) -> IntArray:
    """Draw a starting second for each session and put each user's in order."""
    owner = plan.user[plan.opens_session]
    moment = rng.random(owner.size)
    low, high = people.active[owner].T
    day = _day_of(low + moment * (high - low), days, start)
    hour = (_hour_of(rng.random(owner.size)) + people.chronotype[owner]) % 24.0
    seconds = day * DAY + (hour * 3_600).astype(np.int64)
    return seconds[np.lexsort((seconds, owner))]


def _day_of(share: FloatArray, days: int, start: date) -> IntArray:
    weights = np.array([WEEKDAYS[(start.weekday() + day) % 7] for day in range(days)], np.float64)
    edges = np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
    return np.searchsorted(edges[1:-1], share, side="right").astype(np.int64)


def _hour_of(uniform: FloatArray) -> FloatArray:
    weights = np.array(HOURS, np.float64)
    edges = np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
    return np.asarray(np.interp(uniform, edges, np.arange(25.0)), np.float64)


def _strictly_growing(seconds: IntArray, plan: Plan, days: int) -> IntArray:
    """Part searches that fell on one second or ran past the last day."""
    number = np.arange(seconds.size)
    apart = plan.user * ((days + 30) * DAY) - number  # no session runs 30 days past the end
    grown = np.maximum.accumulate(seconds + apart) - apart
    last = plan.first_of_user[plan.user] + plan.count_of_user[plan.user] - 1
    return np.asarray(np.minimum(grown, days * DAY - 1 - (last - number)), np.int64)
