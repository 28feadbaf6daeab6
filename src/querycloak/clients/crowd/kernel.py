"""Compiled walk of every query through the crowd: the rules of the protocol in one loop."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

from querycloak.clients.crowd import rules

_cut_weights: Any = njit(rules.cut_weights)
_draw_weighted: Any = njit(rules.draw_weighted)
_draw_forward: Any = njit(rules.draw_forward)
_accepts: Any = njit(rules.accepts)
_after_answer: Any = njit(rules.after_answer)
_after_loss: Any = njit(rules.after_loss)


def _record(**kinds: str) -> np.dtype[Any]:
    return np.dtype(list(kinds.items()), align=True)


#: Places of the totals over all queries.
REFUSED, SILENT, ALONE = range(3)
#: Outcome of each query: submitter, number of hops, and the member that sent it to the first colluding member
#: (-1: no colluding member saw it).
OUTCOME: Final = _record(submitter="i4", hops="i4", seen="i4")
#: Kinds of users, as bits.
SELFISH: Final = 1
COLLUDES: Final = 2
#: A user: first place of its friends, own weight and the turn for which weights were computed; numbers of
#: queries sent, submitted (own ones included) and forwarded; and kind.
USER: Final = _record(
    start="i8", turn="i4", weight="u4", sent="u4", submitted="u4", own="u4", passed="u4", kind="u4"
)
#: A friend of a user: number, number of friends, place of the user among its friends, trust, weight in the
#: vector, and number of the user's queries that it submitted.
FRIEND: Final = _record(user="i4", friends="u4", back="i4", trust="f4", weight="u4", submitted="u4")
#: A query in flight: author, current member, sender to the first colluding member, hops, number, friend that
#: is being asked, number of refusals, and next step.
_IN_FLIGHT: Final = _record(
    source="i4", at="i4", seen="i4", steps="i4", number="i8", who="i8", refused="i4", next="i4"
)
_SEARCH, _ASK, _MEET, _DECIDE, _DONE = range(5)
#: Queries in flight at a time among many users: data of one are prefetched from memory while others move.
#: Few users fit into the processor's cache: there one query follows the other.
IN_FLIGHT: Final = 24
FEW: Final = 30_000
#: Purposes of draws that belong to a user and not to a query.
_COPIES, _SHARE, _BEGIN, _AWAY = (np.uint64(purpose) for purpose in range(1, 5))
_ULP: Final = 1.0 / (1 << 53)


class Settings(NamedTuple):
    """Behaviour of the members as numbers, for the compiled loop."""

    penalty: float
    least_cut: float
    most_cut: float
    copies: int
    renew: int
    churn: float
    stay: int
    back: bool
    seed: np.uint64


def _prefetch(typing: Any, array: Any, place: Any) -> Any:
    """Prefetch an element of an array from main memory before it is read; the place is not checked."""

    def ask(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        made = context.make_array(kind)(context, builder, arguments[0])
        at = cgutils.get_item_pointer(context, builder, kind, made, [arguments[1]])  # type: ignore[no-untyped-call]
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        form = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        call = builder.module.declare_intrinsic("llvm.prefetch", [byte], form)
        # for reading, in all caches, data
        builder.call(call, [builder.bitcast(at, byte), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, place), ask


prefetch: Any = intrinsic(_prefetch)


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
    return np.int64(_mixed(state[0]) >> np.uint64(11)) * _ULP


@njit(inline="always")
def _fixed(seed, purpose, user, period):  # type: ignore[no-untyped-def]
    """Draw a number that stays the same for a user in a period."""
    mixed = _mixed(seed + purpose * np.uint64(0x9E3779B97F4A7C15) + np.uint64(user))
    return np.int64(_mixed(mixed + np.uint64(period)) >> np.uint64(11)) * _ULP


@njit(cache=True, nogil=True)
def _weigh(at, turn, users, friends, settings, scratch):  # type: ignore[no-untyped-def]
    """Compute the weights of a searcher and its friends for a turn."""
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
    if settings.churn <= 0.0:
        return False
    return _fixed(settings.seed, _AWAY, user, searched // settings.stay) < settings.churn


@njit(inline="always")
def _begin(query, number, author, users):  # type: ignore[no-untyped-def]
    """Start the next query, if there is one; return the number of started queries."""
    if number >= author.size:
        query.next = _DONE
        return number
    query.source = query.at = author[number]
    query.seen, query.steps, query.number, query.refused, query.next = -1, 0, number, 0, _SEARCH
    prefetch(users, author[number])
    return number + 1


@njit(inline="always")
def _ask(query, users, friends, settings, weights, friends_of, asked, state):  # type: ignore[no-untyped-def]
    """Draw the next member; 0 or less if the current one submits the query."""
    at = query.at
    low, size = users[at].start, users[at + 1].start - users[at].start
    if query.steps > 0:
        return _draw_forward(size, asked, query.refused, _next(state))
    if query.refused == 0:
        turn = users[at].sent // settings.renew if settings.renew > 0 else 0
        if users[at].turn != turn:
            _weigh(at, turn, users, friends, settings, (weights, friends_of))
        users[at].sent += 1
        asked[0] = users[at].kind & SELFISH != 0
    weights[0] = users[at].weight
    for i in range(size):
        weights[i + 1] = friends[low + i].weight
    return _draw_weighted(weights[: size + 1], asked[: size + 1], _next(state))


@njit(inline="always")
def _forget(query, users, asked):  # type: ignore[no-untyped-def]
    """Clear the exclusions, if there are any."""
    if query.refused > 0 or users[query.at].kind & SELFISH != 0:
        asked[: users[query.at + 1].start - users[query.at].start + 1] = False
        query.refused = 0


@njit(inline="always")
def _refused(query, place, friends, settings, asked):  # type: ignore[no-untyped-def]
    friends[place].trust = _after_loss(friends[place].trust, settings.penalty)
    asked[query.who] = True
    query.refused += 1
    query.next = _ASK


@njit(inline="always")
def _submitted(query, users, friends, outcome):  # type: ignore[no-untyped-def]
    at, source = query.at, query.source
    users[at].submitted += 1
    if at == source:
        users[at].own += 1
    else:
        for i in range(users[source].start, users[source + 1].start):
            if friends[i].user == at:
                friends[i].submitted += 1
    outcome[query.number].submitter, outcome[query.number].hops = at, query.steps
    outcome[query.number].seen = query.seen


@njit(cache=True, nogil=True)
def walk(author, first, users, friends, settings, longest, state, totals, outcome):  # type: ignore[no-untyped-def]  # noqa: PLR0912, PLR0915 - calls would cost more than they do
    """Send queries of these authors in this order, with numbers from `first`; all tables are updated."""
    many = IN_FLIGHT if users.size > FEW else 1
    queries, asked = np.zeros(many, _IN_FLIGHT), np.zeros((many, longest + 1), np.bool_)
    weights, friends_of = np.zeros(longest + 1, np.int64), np.zeros(longest, np.int64)
    begun, done = 0, 0
    for x in range(many):
        begun = _begin(queries[x], begun, author, users)
    while done < author.size:
        for x in range(many):
            query = queries[x]
            if query.next == _SEARCH:
                query.next = _ASK
                if many > 1:
                    prefetch(friends, users[query.at].start)
                    continue
            if query.next == _ASK:
                query.who = _ask(query, users, friends, settings, weights, friends_of, asked[x], state)
                if query.who <= 0:
                    totals[ALONE] += query.who < 0
                    _forget(query, users, asked[x])
                    _submitted(query, users, friends, outcome)
                    done += 1
                    begun = _begin(query, begun, author, users)
                    continue
                query.next = _MEET
                if many > 1:
                    prefetch(users, friends[users[query.at].start + query.who - 1].user)
                    continue
            place = users[query.at].start + query.who - 1
            other = friends[place].user
            if query.next == _MEET:
                if users[other].kind & SELFISH != 0 or _away(other, first + query.number, settings):
                    totals[SILENT] += 1
                    _refused(query, place, friends, settings, asked[x])
                    continue
                query.next = _DECIDE
                if many > 1:
                    prefetch(friends, users[other].start)
                    prefetch(friends, users[other].start + friends[place].back)
                    continue
            if query.next == _DECIDE:
                reverse = users[other].start + friends[place].back
                if query.seen < 0 and users[other].kind & COLLUDES != 0:  # also if it refuses the query
                    query.seen = query.at
                if _accepts(friends[reverse].trust, _next(state)):
                    friends[reverse].trust = _after_loss(friends[reverse].trust, settings.penalty)
                    friends[place].trust = _after_answer(friends[place].trust, settings.penalty)
                    users[query.at].passed += query.steps > 0
                    _forget(query, users, asked[x])
                    query.at, query.steps = other, query.steps + 1
                    query.next = _ASK
                    if not settings.back:
                        asked[x][friends[place].back + 1], query.refused = True, 1
                else:
                    totals[REFUSED] += 1
                    _refused(query, place, friends, settings, asked[x])
