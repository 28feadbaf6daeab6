"""The likeliest original of a replaced concept, by Bayes: prior, likeness, and how much else was possible."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.kernels.concept_draws import Candidates

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_BINS = 64
_SAMPLE = 512  # candidates by which it is estimated how much else could have been drawn


class Prior(NamedTuple):
    """Concepts in falling order of their prior, and its logarithms."""

    concept: Longs
    log: Floats


@njit(cache=True, nogil=True)
def _likeness(support, sample, sample_start, candidates, share, out):  # type: ignore[no-untyped-def]
    """Count, for each concept, how alike a sample of its domain is to it: bins of equal width."""
    features, start, _, h_start, _, _, domain = candidates
    stamp = np.full(h_start.size - 1, -1, np.int64)
    for s in range(support.size):
        c = support[s]
        mine = start[c + 1] - start[c]
        for place in range(start[c], start[c + 1]):
            stamp[features[place]] = c
        d = domain[c]
        for p in range(sample_start[d], sample_start[d + 1]):
            o = sample[p]
            if o == c:
                continue
            common = 0
            for place in range(start[o], start[o + 1]):
                common += stamp[features[place]] == c
            alike = share[d, mine + start[o + 1] - start[o] - common, common]
            out[s, min(int(alike * _BINS), _BINS - 1)] += 1


@njit(cache=True, nogil=True)
def _best(shown, level, half, lowest, support, log_prior, log_total, candidates, share, guess):  # type: ignore[no-untyped-def]
    """Go through concepts from the likeliest on, until none that follows can be likelier."""
    features, start, _, h_start, _, _, domain = candidates
    stamp = np.full(h_start.size - 1, -1, np.int64)
    for i in range(shown.size):
        o, v = shown[i], level[i]
        theirs = start[o + 1] - start[o]
        for place in range(start[o], start[o + 1]):
            stamp[features[place]] = i
        best = -np.inf
        for s in range(support.size):
            if log_prior[s] - lowest[v] + half[v] <= best:
                break
            c = support[s]
            if domain[c] != domain[o]:
                continue
            common = 0
            for place in range(start[c], start[c + 1]):
                common += stamp[features[place]] == i
            alike = share[domain[o], theirs + start[c + 1] - start[c] - common, common]
            score = log_prior[s] - log_total[v, s] + half[v] * alike
            if score > best:
                best = score
                guess[i] = s


def totals(support: Longs, half: Floats, candidates: Candidates, share: Floats) -> Floats:
    """Estimate, for each level and concept, the logarithm of the sum of all weights."""
    draws = np.random.default_rng(0)
    start = candidates.members_start
    chosen = [
        draws.permutation(candidates.members[start[d] : start[d + 1]])[:_SAMPLE]
        for d in range(start.size - 1)
    ]
    bounds = np.concatenate([[0], np.cumsum([some.size for some in chosen])])
    counts = np.zeros((support.size, _BINS))
    _likeness(support, np.concatenate(chosen).astype(np.int64), bounds, candidates, share, counts)
    seen = np.maximum(counts.sum(axis=1), 1)
    others = np.diff(start)[candidates.domain[support]] - 1
    middle = (np.arange(_BINS) + 0.5) / _BINS
    middle[0] = 0.0  # most are not alike at all
    weight = np.exp(np.multiply.outer(half, middle))
    sums = weight @ (counts / seen[:, None]).T * others + np.exp(half)[:, None]
    return np.asarray(np.log(sums))


def best_guesses(
    shown: Longs, level: Longs, half: Floats, prior: Prior, candidates: Candidates, share: Floats
) -> Longs:
    """Give the place in the prior of the likeliest original of each shown concept; -1 where none can be.

    `half` is half the epsilon of each level; `share[domain, union, common]` the likeness from 0 to 1.
    """
    total = totals(prior.concept, half, candidates, share)
    guess = np.full(shown.size, -1, np.int64)
    lowest = total.min(axis=1) if prior.concept.size else np.zeros(half.size)
    _best(shown, level, half, lowest, prior.concept, prior.log, total, candidates, share, guess)
    return guess
