"""A search engine that knows the network and the crowd's rules: it sums over all vectors that one may have.

It knows the interval θ, how often vectors are repeated at most, whether queries may go back, and how often,
on average, nobody takes a query; draws and single refusals are unknown to it. It solves a system as large
as the network, so it is for small ones.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.clients.crowd import rules
from querycloak.clients.crowd.network import Network
from querycloak.clients.crowd.simulator import Behaviour, Trace

Floats = npt.NDArray[np.float64]
#: Ends of friendships of a network that it can be used for: it solves as many equations.
MOST_ENDS: Final = 5000
#: Vectors that stand for all that somebody may have.
VECTORS: Final = 1000
#: Those who submitted most, and their friends, are who the engine thinks of.
FIRST: Final = 8
UNLIKELY: Final = 1e-6
_cut_weights: Any = njit(rules.cut_weights)


def ends(net: Network, back: bool) -> Floats:
    """Give the chance that each one submits a query which was handed over a friendship, place by place.

    Row i is for the query that the owner of place i has given to `net.friend[i]`.
    """
    owner = np.repeat(np.arange(net.users), net.friends)
    places = net.friend.size
    moves, submits = np.eye(places), np.zeros((places, net.users))
    for i, (giver, taker) in enumerate(zip(owner.tolist(), net.friend.tolist(), strict=True)):
        onward = np.arange(net.start[taker], net.start[taker + 1])
        if not back:
            onward = onward[net.friend[onward] != giver]
        submits[i, taker] = 1 / (onward.size + 1)
        moves[i, onward] -= 1 / (onward.size + 1)
    return np.asarray(np.linalg.solve(moves, submits), np.float64)


@njit(cache=True, nogil=True)
def _vectors(friends_of, copies, share, begin):  # type: ignore[no-untyped-def]
    """Make one vector after the other, as shares that sum to 1."""
    weights, found = np.zeros(friends_of.size + 1, np.int64), np.zeros((copies.size, friends_of.size + 1))
    for i in range(copies.size):
        _cut_weights(friends_of, copies[i], share[i], begin[i], weights)
        found[i] = weights / weights.sum()
    return found


def vectors(friends_of: npt.NDArray[np.int64], behaviour: Behaviour, seed: int) -> Floats:
    """Draw vectors as members do."""
    chance = np.random.default_rng([seed, 6])
    width = behaviour.most_cut - behaviour.least_cut
    share = behaviour.least_cut + width * chance.random(VECTORS)
    copies = chance.integers(1, behaviour.copies + 1, VECTORS)
    return np.asarray(_vectors(friends_of, copies, share, chance.random(VECTORS)))


def exact(trace: Trace, authors: npt.NDArray[np.int64], seed: int) -> dict[str, Any]:
    """Let the engine guess the author of linked queries: the one under whom what it saw is likeliest."""
    net, behaviour = trace.network, trace.behaviour
    ended, alone = ends(net, behaviour.back), trace.alone / trace.author.size

    @cache
    def drawn(who: int) -> Floats:
        friend = net.friend[net.start[who] : net.start[who + 1]]
        return vectors(net.friends[friend], behaviour, seed)

    def likelihood(who: int, submitter: npt.NDArray[np.int64], count: npt.NDArray[np.int64]) -> float:
        chances = drawn(who)[:, 1:] @ ended[net.start[who] : net.start[who + 1]][:, submitter]
        chances += drawn(who)[:, :1] * (submitter == who)
        chances = (1 - alone) * chances + alone * (submitter == who)
        logs = np.log(chances + UNLIKELY) @ count
        return float(logs.max() + np.log(np.exp(logs - logs.max()).mean()))

    right = 0.0
    for author in authors.tolist():
        submitter, count = np.unique(trace.told["submitter"][trace.author == author], return_counts=True)
        submitter = submitter.astype(np.int64)
        first = submitter[np.argsort(-count, kind="stable")[:FIRST]].tolist()
        near = {int(f) for s in first for f in net.friend[net.start[s] : net.start[s + 1]]} | set(first)
        scores = {who: likelihood(who, submitter, count) for who in near}
        best = [who for who, score in scores.items() if score >= max(scores.values()) - 1e-9]
        right += (author in best) / len(best)
    return {"success": right / authors.size, "n": int(authors.size)}
