"""(k,m)-anonymity on plain sets: Algorithm 1 user by user, and our sweep by rank, slowly."""

from __future__ import annotations

from collections import Counter
from itertools import combinations


def support(histories, combination):
    return sum(combination <= history for history in histories)


def algorithm1(histories, k, m, utility):
    """The paper's greedy: for each user, each infrequent combination loses its term of least utility."""
    histories = [set(history) for history in histories]
    while True:
        before = [set(history) for history in histories]
        for history in histories:
            for size in range(1, m + 1):
                for combination in combinations(sorted(history), size):
                    if set(combination) <= history and support(histories, set(combination)) < k:
                        history.discard(min(combination, key=utility.get))
        if histories == before:
            return histories


def fis_victim(combination, frequent):
    """Example 10: the term in the fewest frequent combinations of the largest size, then of smaller ones."""
    left = list(combination)
    for size in sorted(frequent, reverse=True):
        counts = {term: frequent[size].get(term, 0) for term in left}
        left = [term for term in left if counts[term] == min(counts.values())]
    return left


def swept(histories, k, m, rank):
    """Our order: singles, then pairs to the end, then triples …; leading terms by rank, deeper first."""
    histories = [set(history) for history in histories]
    _singles(histories, k)
    for size in range(2, m + 1):
        while True:
            before = [set(history) for history in histories]
            for lead in sorted(set().union(*histories), key=rank.get):
                _under(histories, [lead], size, k, rank)
            _singles(histories, k)
            if histories == before:
                break
    return histories


def _singles(histories, k):
    counts = Counter(term for history in histories for term in history)
    for history in histories:
        history -= {term for term in history if counts[term] < k}


def _under(histories, prefix, deepest, k, rank):
    holders = [history for history in histories if set(prefix) <= history]
    behind = Counter(term for h in holders for term in h if rank[term] > rank[prefix[-1]])
    for history in holders:
        history -= {term for term, count in behind.items() if count < k}
    if len(prefix) + 1 < deepest:
        for term in sorted((t for t, count in behind.items() if count >= k), key=rank.get):
            _under(histories, [*prefix, term], deepest, k, rank)
