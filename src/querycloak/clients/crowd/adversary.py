"""Who wrote a query? The search engine guesses from who submits what, colluding peers from who hands it on.

The engine is given much: it knows which queries are of one author. If it knows the friendships too, it takes
the author under whom what it saw is likeliest, which is the centroid of paper 003, 4.3.4, made exact.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.clients.crowd import knowing
from querycloak.clients.crowd.network import Network
from querycloak.clients.crowd.simulator import Trace
from querycloak.intervals import wilson

Longs = npt.NDArray[np.int64]
#: Authors that the engine goes after; all, if there are fewer.
TARGETS: Final = 500
#: Those who submitted most, and their friends, are who the engine thinks of.
_FIRST: Final = 8
_STEPS: Final = 15
_NEGLIGIBLE: Final = 1e-4
_UNLIKELY: Final = 1e-6
_SHARE, _HERE, _NEXT, _MET = range(4)


@njit(inline="always")
def _meet(u, state, met, many):  # type: ignore[no-untyped-def]
    """Put somebody on the list, if she is not there; give how many are."""
    if state[u, _MET] == 0.0:
        state[u, _MET], met[many] = 1.0, u
        return many + 1
    return many


@njit(cache=True, nogil=True)
def _reached(source, start, friend, state, met):  # type: ignore[no-untyped-def]
    """Work out the chance that each one submits a query of the source; `met` lists those who may.

    Nothing is cut out and nobody refuses: that is what an engine can reckon with. Give how many are met.
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
    """Give the log-likelihood of what was seen under each candidate; `state` is zero before and after."""
    found = np.zeros(candidate.size)
    for c in range(candidate.size):
        many = _reached(candidate[c], start, friend, state, met)
        for s in range(submitter.size):
            found[c] += count[s] * np.log(state[submitter[s], _SHARE] + _UNLIKELY)
        for x in range(many):
            state[met[x]] = 0.0
    return found


def _candidates(submitter: Longs, count: Longs, network: Network) -> Longs:
    """List those who submitted most, and their friends."""
    first = submitter[np.argsort(-count, kind="stable")[:_FIRST]]
    friends = [network.friend[network.start[s] : network.start[s + 1]] for s in first.tolist()]
    return np.unique(np.concatenate([first, *friends])).astype(np.int64)


def _best(scores: Any, who: Longs, author: int) -> float:
    """Give the chance that a guess among the best is right."""
    best = who[scores >= scores.max() - 1e-9]
    return float((best == author).sum() / best.size)


def targets(trace: Trace, seed: int) -> Longs:
    """Choose the authors that an engine goes after, among those who are not selfish."""
    sent = np.flatnonzero(np.bincount(trace.author, minlength=trace.network.users) > 0)
    return np.random.default_rng([seed, 3]).permutation(sent[~trace.selfish[sent]])[:TARGETS]


def engine(trace: Trace, seed: int) -> dict[str, Any]:
    """Let the engine guess authors of linked queries, with the network or without, and of single ones."""
    chosen = targets(trace, seed)
    mine = np.flatnonzero(np.isin(trace.author, chosen))
    wide = trace.network.users
    pair, count = np.unique(
        trace.author[mine].astype(np.int64) * wide + trace.told["submitter"][mine], return_counts=True
    )
    alone, graph = 0.0, 0.0
    scratch = np.zeros((wide, 4)), np.empty(wide, np.int64)
    for author in chosen.tolist():
        part = slice(*np.searchsorted(pair, [author * wide, (author + 1) * wide]))
        submitter, many = pair[part] % wide, count[part]
        alone += _best(many, submitter, author)
        who = _candidates(submitter, many, trace.network)
        scores = _likelihoods(submitter, many, who, trace.network.start, trace.network.friend, *scratch)
        graph += _best(scores, who, author)
    own = trace.told["submitter"][mine] == trace.author[mine]
    found = {
        "targets": int(chosen.size),
        "linked": _finding(alone, chosen.size),
        "linked_with_network": _finding(graph, chosen.size),
        "single": _finding(float(own.sum()), own.size),
    }
    if trace.network.friend.size <= knowing.MOST_ENDS:
        best = knowing.exact(trace, chosen, seed)
        found["linked_with_rules"] = _finding(best["success"] * best["n"], best["n"])
    return found


def predecessor(trace: Trace) -> dict[str, Any]:
    """Let those who collude take whoever handed a query to the first of them for its author.

    `success` is for queries that one of them saw, `of_all` for all; by how many friends the author has.
    """
    honest = ~trace.colluding[trace.author]
    seen = trace.told["seen"][honest]
    author = trace.author[honest]
    right = seen == author
    friends = trace.network.friends[author]
    by_friends = {
        str(many): _finding(float(right[who].sum()), int(who.sum()))
        for many in range(1, min(int(friends.max(initial=0)), 10) + 1)
        if (who := (seen >= 0) & (friends == many)).any()
    }
    return {
        "seen": float((seen >= 0).mean()) if seen.size else 0.0,
        "success": _finding(float(right.sum()), int((seen >= 0).sum())),
        "of_all": _finding(float(right.sum()), int(seen.size)),
        "by_friends": by_friends,
    }


def _finding(right: float, n: int) -> dict[str, Any]:
    """Give a share with its 95 % interval."""
    if not n:
        return {"success": None, "low": None, "high": None, "n": 0}
    low, high = wilson(right / n, n)
    return {"success": right / n, "low": low, "high": high, "n": n}
