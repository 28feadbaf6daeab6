"""The rules of the crowd (paper 003, 4.3) as functions of numbers: no input, no clock, no chance of its own.

Whoever needs a chance passes a draw in: a number from 0 to below 1. A real peer calls these functions as
they are; the simulator compiles the very same ones. Everybody numbers herself 0 and her friends from 1.
"""

from __future__ import annotations

from typing import Any, Final

#: What a refusal costs a friend, and half of what an acceptance earns her; the thesis's best value.
PENALTY: Final = 0.03
#: The share of the vector that is cut out lies between these; the thesis's best interval.
LEAST_CUT: Final = 0.6
MOST_CUT: Final = 0.8
#: The vector is repeated up to so many times before the cut; the thesis says only that it is by chance.
MOST_COPIES: Final = 3


def cut_weights(friends_of: Any, copies: int, share: float, begin: float, weights: Any) -> None:
    """Fill in how often everybody is left in the vector from which the next to send to is drawn (Ψ, 4.3.4).

    The vector has the searcher once and each friend as often as that friend has friends (`friends_of`),
    repeated `copies` times. An interval of it is cut out: `share` of its length, from the place `begin` of
    the whole on, and on from the beginning if it passes the end. What is left decides: uneven on purpose,
    so that how many of her queries each one submits does not show who is in the middle.
    """
    period = 1
    for many in friends_of:
        period += many
    size = copies * period
    first = int(begin * size)
    last = first + int(share * size)
    place = 0
    for who in range(len(weights)):
        own = 1 if who == 0 else friends_of[who - 1]
        weights[who] = copies * own
        for copy in range(copies):
            low = copy * period + place
            weights[who] -= max(0, min(low + own, last) - max(low, first))
            weights[who] -= max(0, min(low + own, last - size) - low)
        place += own


def sending_chance(friends_of: Any, friend: int) -> float:
    """Give the chance Ps that a query goes to a friend if nothing is cut out (4.3.2)."""
    whole = 1
    for many in friends_of:
        whole += many
    return float(friends_of[friend - 1]) / whole


def drawn(weights: Any, asked: Any, draw: float) -> int:
    """Draw one of those who have not been asked yet, in proportion to the weights; -1 if nobody is left."""
    whole = 0
    for who in range(len(weights)):
        if not asked[who]:
            whole += weights[who]
    if whole == 0:
        return -1
    rest = int(draw * whole)
    for who in range(len(weights)):
        if not asked[who]:
            rest -= weights[who]
            if rest < 0:
                return who
    return -1


def forwarded(friends: int, asked: Any, refused: int, draw: float) -> int:
    """Draw who submits a query that came from somebody else: all alike, herself too (Ψf, 4.3.3).

    Friends who refused it, as many as `refused` says, are not asked again.
    """
    rest = int(draw * (friends + 1 - refused))
    if refused == 0:
        return rest
    for who in range(friends + 1):
        if not asked[who]:
            if rest == 0:
                return who
            rest -= 1
    return -1


def accepts(trust: float, draw: float) -> bool:
    """Decide whether to take a query from a friend (Υ, 4.3.5): by chance, with the trust she has left."""
    return draw < trust


def after_taking(trust: float, penalty: float) -> float:
    """Trust a friend less when a query of hers was taken: she owes one."""
    return max(0.0, trust - penalty)


def after_answer(trust: float, penalty: float) -> float:
    """Trust a friend more who has taken a query."""
    return min(1.0, trust + 2.0 * penalty)


def after_refusal(trust: float, penalty: float) -> float:
    """Trust a friend less who has refused a query, or let its time run out."""
    return max(0.0, trust - penalty)
