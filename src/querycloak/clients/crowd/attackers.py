"""Attackers on a simulated crowd: a search engine that sees submitters, and members that collude.

The engine knows which queries have the same author (linked queries). It can also know the graph: then it
takes the author that makes its observations most likely, which is the centroid of paper 003, 4.3.4, made
exact. The informed engine also knows the protocol's settings, and marginalises over the members' random
vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numba import njit

from querycloak.clients.crowd import rules
from querycloak.clients.crowd.metrics import by_friends
from querycloak.clients.crowd.network import Network
from querycloak.clients.crowd.simulator import Behaviour, Trace
from querycloak.intervals import wilson
from querycloak.log import FloatArray, IntArray

#: Authors that the engine attacks; all, if there are fewer.
TARGETS: Final = 500
#: Largest number of directed friendships for the informed engine, which solves as many equations.
MAX_FRIENDSHIPS: Final = 5000
#: Vectors that the informed engine draws for each candidate.
VECTORS: Final = 1000
#: The candidates are this number of members that submitted most, and their friends.
_FIRST: Final = 8
_STEPS: Final = 15
_NEGLIGIBLE: Final = 1e-4
_UNLIKELY: Final = 1e-6
_TIE: Final = 1e-9
_SHARE, _HERE, _NEXT, _MET = range(4)
_cut_weights: Any = njit(rules.cut_weights)


class Observed(NamedTuple):
    """What the engine observes of one author: submitters with counts, and the candidates it considers."""

    author: int
    submitter: IntArray
    times: IntArray
    candidate: IntArray


@njit(inline="always")
def _meet(u, state, met, many):  # type: ignore[no-untyped-def]
    """Add a member to the list, if it is not there; return the length."""
    if state[u, _MET] == 0.0:
        state[u, _MET], met[many] = 1.0, u
        return many + 1
    return many


@njit(cache=True, nogil=True)
def _reached(source, start, friend, state, met):  # type: ignore[no-untyped-def]
    """Compute the probability that each member submits a query of the source; `met` lists those members.

    The engine assumes that nothing is cut out and nobody refuses. Return the number of members in `met`.
    """
    low, high, whole = start[source], start[source + 1], 1.0
    for i in range(low, high):
        whole += start[friend[i] + 1] - start[friend[i]]
    many = _meet(source, state, met, 0)
    state[source, _SHARE] = 1.0 / whole
    for i in range(low, high):
        u = friend[i]
        many = _meet(u, state, met, many)
        state[u, _HERE] = (start[u + 1] - start[u]) / whole
    for _ in range(_STEPS):
        for x in range(many):
            u = met[x]
            each = state[u, _HERE] / (start[u + 1] - start[u] + 1)
            state[u, _SHARE] += each
            if each >= _NEGLIGIBLE:
                for i in range(start[u], start[u + 1]):
                    many = _meet(friend[i], state, met, many)
                    state[friend[i], _NEXT] += each
        for x in range(many):
            state[met[x], _HERE], state[met[x], _NEXT] = state[met[x], _NEXT], 0.0
    return many


@njit(cache=True, nogil=True)
def _likelihoods(submitter, count, candidate, start, friend, state, met):  # type: ignore[no-untyped-def]
    """Return the log-likelihood of the observations for each candidate; `state` is zero before and after."""
    found = np.zeros(candidate.size)
    for c in range(candidate.size):
        many = _reached(candidate[c], start, friend, state, met)
        for s in range(submitter.size):
            found[c] += count[s] * np.log(state[submitter[s], _SHARE] + _UNLIKELY)
        for x in range(many):
            state[met[x]] = 0.0
    return found


def _candidates(submitter: IntArray, count: IntArray, network: Network) -> IntArray:
    """Return the members that submitted most, and their friends."""
    first = submitter[np.argsort(-count, kind="stable")[:_FIRST]]
    friends = [network.friend[network.start[s] : network.start[s + 1]] for s in first.tolist()]
    return np.unique(np.concatenate([first, *friends])).astype(np.int64)


def _success(scores: Any, who: IntArray, author: int) -> float:
    """Return the probability that a guess among the best is right."""
    best = who[scores >= scores.max() - _TIE]
    return float((best == author).sum() / best.size)


def targets(trace: Trace, seed: int) -> IntArray:
    """Draw the authors that an engine attacks, among those that are not selfish."""
    sent = np.flatnonzero(np.bincount(trace.author, minlength=trace.network.users) > 0)
    return np.random.default_rng([seed, 3]).permutation(sent[~trace.selfish[sent]])[:TARGETS]


def observations(trace: Trace, authors: IntArray) -> Iterator[Observed]:
    """Yield what the engine observes of each of these authors."""
    mine, wide = np.isin(trace.author, authors), trace.network.users
    pair, count = np.unique(
        trace.author[mine].astype(np.int64) * wide + trace.outcomes["submitter"][mine], return_counts=True
    )
    for author in authors.tolist():
        part = slice(*np.searchsorted(pair, [author * wide, (author + 1) * wide]))
        submitter = pair[part] % wide
        yield Observed(author, submitter, count[part], _candidates(submitter, count[part], trace.network))


def engine(trace: Trace, seed: int) -> dict[str, Any]:
    """Return how often an engine finds the author of linked queries, by its knowledge, and of single ones."""
    network, chosen = trace.network, targets(trace, seed)
    observed = list(observations(trace, chosen))
    scratch = np.zeros((network.users, 4)), np.empty(network.users, np.int64)
    edges = network.start, network.friend
    alone = sum(_success(one.times, one.submitter, one.author) for one in observed)
    graph = sum(
        _success(_likelihoods(submitter, times, who, *edges, *scratch), who, author)
        for author, submitter, times, who in observed
    )
    mine = np.isin(trace.author, chosen)
    own = trace.outcomes["submitter"][mine] == trace.author[mine]
    found = {
        "targets": int(chosen.size),
        "linked": _finding(alone, chosen.size),
        "linked_with_network": _finding(graph, chosen.size),
        "single": _finding(own.sum(), own.size),
    }
    if network.friend.size <= MAX_FRIENDSHIPS:
        best = informed_engine(trace, observed, seed)
        found["linked_with_rules"] = _finding(best["success"] * best["n"], best["n"])
    return found


def absorption(net: Network, back: bool) -> FloatArray:
    """Return the probability that each user submits a query that was sent over a friendship, place by place.

    Row i is for the query that the owner of place i sent to `net.friend[i]`.
    """
    owner = np.repeat(np.arange(net.users), net.friends)
    if back:  # a forwarded query has no memory: one equation per user
        moves, submits = np.diag(net.friends + 1.0), np.eye(net.users)
        moves[owner, net.friend] = -1.0
        return np.asarray(np.linalg.solve(moves, submits)[net.friend], np.float64)
    places = net.friend.size
    moves, submits = np.eye(places), np.zeros((places, net.users))
    for i, (sender, taker) in enumerate(zip(owner.tolist(), net.friend.tolist(), strict=True)):
        onward = np.arange(net.start[taker], net.start[taker + 1])
        onward = onward[net.friend[onward] != sender]
        submits[i, taker] = 1 / (onward.size + 1)
        moves[i, onward] -= 1 / (onward.size + 1)
    return np.asarray(np.linalg.solve(moves, submits), np.float64)


@njit(cache=True, nogil=True)
def _vectors(friends_of, copies, share, begin):  # type: ignore[no-untyped-def]
    """Return one vector after the other, as shares that sum to 1."""
    weights, found = np.zeros(friends_of.size + 1, np.int64), np.zeros((copies.size, friends_of.size + 1))
    for i in range(copies.size):
        _cut_weights(friends_of, copies[i], share[i], begin[i], weights)
        found[i] = weights / weights.sum()
    return found


def vectors(friends_of: IntArray, behaviour: Behaviour, seed: int) -> tuple[FloatArray, FloatArray]:
    """Draw vectors as members do; return the distinct ones and the share of each."""
    rng = np.random.default_rng([seed, 6])
    width = behaviour.most_cut - behaviour.least_cut
    share = behaviour.least_cut + width * rng.random(VECTORS)
    copies = rng.integers(1, behaviour.copies + 1, VECTORS)
    drawn = np.asarray(_vectors(friends_of, copies, share, rng.random(VECTORS)))
    distinct, many = np.unique(drawn, axis=0, return_counts=True)
    return distinct, many / VECTORS


def _product(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the product of two small matrices; the threads of BLAS would cost more than they save."""
    return np.asarray(np.einsum("ij,jk->ik", one, other))


def informed_engine(trace: Trace, observed: list[Observed], seed: int) -> dict[str, Any]:
    """Return how often an engine that knows graph and settings finds the author of linked queries.

    It knows the cut, the number of copies, whether queries may return, and how often a query finds no taker
    on average; draws and single refusals are unknown to it. Each candidate's probabilities are computed once
    for all authors that it may be.
    """
    net, behaviour = trace.network, trace.behaviour
    reached, alone = absorption(net, behaviour.back), trace.alone / trace.author.size

    @lru_cache(maxsize=1024)
    def drawn(friends_of: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
        return vectors(np.array(friends_of, np.int64), behaviour, seed)

    def scores(who: int, of: list[Observed]) -> FloatArray:
        """Return the log-likelihood of the observations of each author, if `who` were the author."""
        places = slice(net.start[who], net.start[who + 1])
        vector, share = drawn(tuple(net.friends[net.friend[places]].tolist()))
        seen = np.unique(np.concatenate([one.submitter for one in of]))
        counts = np.zeros((seen.size, len(of)))
        for column, one in enumerate(of):
            counts[np.searchsorted(seen, one.submitter), column] = one.times
        chances = _product(vector[:, 1:], reached[places][:, seen])
        chances += vector[:, :1] * (seen == who)
        chances = (1 - alone) * chances + alone * (seen == who)
        logs = _product(np.log(chances + _UNLIKELY), counts)
        top = logs.max(axis=0)
        return np.asarray(top + np.log(share @ np.exp(logs - top)))

    possible: dict[int, list[Observed]] = {}
    for one in observed:
        for who in one.candidate.tolist():
            possible.setdefault(who, []).append(one)
    found = {
        (who, one.author): score
        for who, of in possible.items()
        for one, score in zip(of, scores(who, of).tolist(), strict=True)
    }
    right = 0.0
    for one in observed:
        mine = np.array([found[who, one.author] for who in one.candidate.tolist()])
        right += _success(mine, one.candidate, one.author)
    return {"success": right / len(observed), "n": len(observed)}


def predecessor(trace: Trace) -> dict[str, Any]:
    """Return how often colluding members are right if they name the sender to the first of them as author.

    `success` is for queries that one of them saw, `of_all` for all; also by number of the author's friends.
    """
    honest = ~trace.colluding[trace.author]
    first, author = trace.outcomes["seen"][honest], trace.author[honest]
    seen, right = first >= 0, first == author
    return {
        "seen": float(seen.mean()) if seen.size else 0.0,
        "success": _finding(right.sum(), int(seen.sum())),
        "of_all": _finding(right.sum(), seen.size),
        "by_friends": {
            str(many): _finding(right[who].sum(), int(who.sum()))
            for many, who in by_friends(trace.network.friends[author], seen)
        },
    }


def _finding(right: Any, n: int) -> dict[str, Any]:
    if not n:
        return {"success": None, "low": None, "high": None, "n": 0}
    share = float(right) / n
    low, high = wilson(share, n)
    return {"success": share, "low": low, "high": high, "n": n}
