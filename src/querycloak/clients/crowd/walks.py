"""The way of every query through the crowd, many millions of them: the rules, compiled, in one loop."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numba import njit

from querycloak.clients.crowd import rules
from querycloak.clients.crowd.prefetch import prefetch

_cut_weights: Any = njit(rules.cut_weights)
_drawn: Any = njit(rules.drawn)
_forwarded: Any = njit(rules.forwarded)
_accepts: Any = njit(rules.accepts)
_after_taking: Any = njit(rules.after_taking)
_after_answer: Any = njit(rules.after_answer)
_after_refusal: Any = njit(rules.after_refusal)

#: What is counted of all queries together.
REFUSED, SILENT, ALONE = range(3)
#: What is told of each query: who submitted it, over how many hops it came, and who handed it to the first of
#: those who collude (-1: none of them saw it).
TOLD: Final = np.dtype([("submitter", "i4"), ("hops", "i4"), ("seen", "i4")])
#: Kinds of users, as bits.
SELFISH: Final = 1
COLLUDES: Final = 2
#: What is known of everybody: where her friends begin, her own weight and the turn for which weights were
#: made; how many queries she has sent, submitted (her own among them) and passed on; and her kind.
USER: Final = np.dtype(
    [
        ("start", "i8"),
        ("turn", "i4"),
        ("weight", "u4"),
        ("sent", "u4"),
        ("submitted", "u4"),
        ("own", "u4"),
        ("passed", "u4"),
        ("kind", "u4"),
    ],
    align=True,
)
#: What a user knows of a friend: her number, how many friends she has, at which place she has the user, how
#: far she is trusted, how often she stands in the vector, and how many of the user's queries she submitted.
FRIEND: Final = np.dtype(
    [
        ("user", "i4"),
        ("friends", "u4"),
        ("back", "i4"),
        ("trust", "f4"),
        ("weight", "u4"),
        ("submitted", "u4"),
    ],
    align=True,
)
#: A query on its way: whose it is, who has it, who handed it to the first who colludes, how far it has come,
#: which number it has, which friend is being asked, how many have refused, and what to do next.
_LANE: Final = np.dtype(
    [
        ("source", "i4"),
        ("at", "i4"),
        ("seen", "i4"),
        ("steps", "i4"),
        ("number", "i8"),
        ("who", "i8"),
        ("refused", "i4"),
        ("next", "i4"),
    ],
    align=True,
)
_SEARCH, _ASK, _MEET, _DECIDE, _DONE = range(5)
#: Queries that are on their way at a time among many users: what one needs next comes from memory while
#: others are moved. Few users are in the processor's cache anyway: there one query goes after the other.
LANES: Final = 24
FEW: Final = 30_000
#: Purposes of draws that belong to a user and not to a query.
_COPIES, _SHARE, _BEGIN, _AWAY = (np.uint64(purpose) for purpose in range(1, 5))
_LARGEST: Final = 1.0 / (1 << 53)


class Settings(NamedTuple):
    """How the crowd behaves; all numbers, for the loop."""

    penalty: float
    least_cut: float
    most_cut: float
    copies: int
    renew: int
    churn: float
    stay: int
    back: bool
    seed: np.uint64


@njit(inline="always")
def _mixed(number):  # type: ignore[no-untyped-def]
    """Scatter a number over 64 bits (the finaliser of splitmix64)."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


@njit(inline="always")
def _next(state):  # type: ignore[no-untyped-def]
    """Draw a number from 0 to below 1 (splitmix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    return np.int64(_mixed(state[0]) >> np.uint64(11)) * _LARGEST


@njit(inline="always")
def _fixed(seed, purpose, user, period):  # type: ignore[no-untyped-def]
    """Draw a number that stays the same for a user in a period."""
    mixed = _mixed(seed + purpose * np.uint64(0x9E3779B97F4A7C15) + np.uint64(user))
    return np.int64(_mixed(mixed + np.uint64(period)) >> np.uint64(11)) * _LARGEST


@njit(cache=True, nogil=True)
def _weigh(at, turn, users, friends, settings, scratch):  # type: ignore[no-untyped-def]
    """Make the weights of a searcher and her friends for a turn."""
    weights, friends_of = scratch
    low, size = users[at].start, users[at + 1].start - users[at].start
    for i in range(size):
        friends_of[i] = friends[low + i].friends
    copies = 1 + int(_fixed(settings.seed, _COPIES, at, turn) * settings.copies)
    share = _fixed(settings.seed, _SHARE, at, turn)
    share = settings.least_cut + (settings.most_cut - settings.least_cut) * share
    begin = _fixed(settings.seed, _BEGIN, at, turn)
    _cut_weights(friends_of[:size], copies, share, begin, weights[: size + 1])
    users[at].turn, users[at].weight = turn, weights[0]
    for i in range(size):
        friends[low + i].weight = weights[i + 1]


@njit(inline="always")
def _away(user, searched, settings):  # type: ignore[no-untyped-def]
    """Say whether somebody is away while this query is sent."""
    if settings.churn <= 0.0:
        return False
    return _fixed(settings.seed, _AWAY, user, searched // settings.stay) < settings.churn


@njit(inline="always")
def _begin(lane, number, author, users):  # type: ignore[no-untyped-def]
    """Put the next query on its way, if there is one."""
    if number >= author.size:
        lane.next = _DONE
        return number
    lane.source = lane.at = author[number]
    lane.seen, lane.steps, lane.number, lane.refused, lane.next = -1, 0, number, 0, _SEARCH
    prefetch(users, author[number])
    return number + 1


@njit(inline="always")
def _ask(lane, users, friends, settings, weights, friends_of, asked, state):  # type: ignore[no-untyped-def]
    """Draw whom to ask; 0 or less: nobody else will submit it."""
    at = lane.at
    low, size = users[at].start, users[at + 1].start - users[at].start
    if lane.steps > 0:
        return _forwarded(size, asked, lane.refused, _next(state))
    if lane.refused == 0:
        turn = users[at].sent // settings.renew if settings.renew > 0 else 0
        if users[at].turn != turn:
            _weigh(at, turn, users, friends, settings, (weights, friends_of))
        users[at].sent += 1
        asked[0] = users[at].kind & SELFISH != 0
    weights[0] = users[at].weight
    for i in range(size):
        weights[i + 1] = friends[low + i].weight
    return _drawn(weights[: size + 1], asked[: size + 1], _next(state))


@njit(inline="always")
def _forget(lane, users, asked):  # type: ignore[no-untyped-def]
    """Clear the list of those who were asked, if there is anybody on it."""
    if lane.refused > 0 or users[lane.at].kind & SELFISH != 0:
        asked[: users[lane.at + 1].start - users[lane.at].start + 1] = False
        lane.refused = 0


@njit(inline="always")
def _refused(lane, place, friends, settings, asked):  # type: ignore[no-untyped-def]
    """Remember that a friend did not take it, and ask another."""
    friends[place].trust = _after_refusal(friends[place].trust, settings.penalty)
    asked[lane.who] = True
    lane.refused += 1
    lane.next = _ASK


@njit(inline="always")
def _submitted(lane, users, friends, told):  # type: ignore[no-untyped-def]
    """Count a query that has come to its end."""
    at, source = lane.at, lane.source
    users[at].submitted += 1
    if at == source:
        users[at].own += 1
    else:
        for i in range(users[source].start, users[source + 1].start):
            if friends[i].user == at:
                friends[i].submitted += 1
    told[lane.number].submitter, told[lane.number].hops = at, lane.steps
    told[lane.number].seen = lane.seen


@njit(cache=True, nogil=True)
def walk(author, first, users, friends, settings, longest, state, everything, told):  # type: ignore[no-untyped-def]  # noqa: PLR0912, PLR0915, calls would cost more than what they do
    """Send queries of these authors, in this order, from the number `first` on; everything is updated."""
    many = LANES if users.size > FEW else 1
    lanes, asked = np.zeros(many, _LANE), np.zeros((many, longest + 1), np.bool_)
    weights, friends_of = np.zeros(longest + 1, np.int64), np.zeros(longest, np.int64)
    begun, done = 0, 0
    for x in range(many):
        begun = _begin(lanes[x], begun, author, users)
    while done < author.size:
        for x in range(many):
            lane = lanes[x]
            if lane.next == _SEARCH:
                lane.next = _ASK
                if many > 1:
                    prefetch(friends, users[lane.at].start)
                    continue
            if lane.next == _ASK:
                lane.who = _ask(lane, users, friends, settings, weights, friends_of, asked[x], state)
                if lane.who <= 0:
                    everything[ALONE] += lane.who < 0
                    _forget(lane, users, asked[x])
                    _submitted(lane, users, friends, told)
                    done += 1
                    begun = _begin(lane, begun, author, users)
                    continue
                lane.next = _MEET
                if many > 1:
                    prefetch(users, friends[users[lane.at].start + lane.who - 1].user)
                    continue
            place = users[lane.at].start + lane.who - 1
            other = friends[place].user
            if lane.next == _MEET:
                if users[other].kind & SELFISH != 0 or _away(other, first + lane.number, settings):
                    everything[SILENT] += 1
                    _refused(lane, place, friends, settings, asked[x])
                    continue
                lane.next = _DECIDE
                if many > 1:
                    prefetch(friends, users[other].start)
                    prefetch(friends, users[other].start + friends[place].back)
                    continue
            if lane.next == _DECIDE:
                hers = users[other].start + friends[place].back
                if lane.seen < 0 and users[other].kind & COLLUDES != 0:  # also if she refuses it
                    lane.seen = lane.at
                if _accepts(friends[hers].trust, _next(state)):
                    friends[hers].trust = _after_taking(friends[hers].trust, settings.penalty)
                    friends[place].trust = _after_answer(friends[place].trust, settings.penalty)
                    users[lane.at].passed += lane.steps > 0
                    _forget(lane, users, asked[x])
                    lane.at, lane.steps = other, lane.steps + 1
                    lane.next = _ASK
                    if not settings.back:
                        asked[x][friends[place].back + 1], lane.refused = True, 1
                else:
                    everything[REFUSED] += 1
                    _refused(lane, place, friends, settings, asked[x])
