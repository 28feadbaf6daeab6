"""The randomisation of concepts by `dp-semantic`, as its certificate publishes it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numba import njit

from querycloak import accounting
from querycloak.kernels.exponential_mechanism import Candidates
from querycloak.log import FloatArray, IntArray
from querycloak.methods.dp_semantic.draws import LARGEST_EPSILON
from querycloak.protector import Channel
from querycloak.text.concept_space import ConceptModel, ConceptSpec
from querycloak.text.senses import ConceptMapper, ConceptSpans

_BINS = 64
_SAMPLE = 512  # candidates by which it is estimated how much else could have been drawn


@dataclass(frozen=True)
class ConceptChannel(Channel):
    """Replacement of concepts by the exponential mechanism with these settings."""

    settings: Any

    @cached_property
    def _model(self) -> ConceptModel:
        return ConceptModel(concept_spec(self.settings))

    @property
    def limits_guesses(self) -> bool:
        """Whether a released concept comes from one draw: rebuilt queries have concepts of their own."""
        return bool(self.settings.rebuild == "none")

    def read(self, texts: pl.Series) -> tuple[IntArray, IntArray]:
        """Return the concepts of original texts, without those that cannot be replaced."""
        return self._inside(self._model.reader.read(texts).concepts)

    def read_released(self, texts: pl.Series) -> tuple[IntArray, IntArray]:
        """Return the concepts of released texts."""
        return self._inside(ConceptMapper(self._model.concepts).read(texts))

    def _inside(self, read: ConceptSpans) -> tuple[IntArray, IntArray]:
        kept = self._model.is_candidate(read.concept)
        start = np.concatenate([[0], np.cumsum(kept)])[read.start].astype(np.int64)
        return read.concept[kept], start

    @property
    def _candidates(self) -> Candidates:
        return self._model.space.candidates

    def domain_of(self, concepts: IntArray) -> IntArray:
        """Return the domain of each concept."""
        return self._candidates.domain[concepts].astype(np.int64)

    @property
    def concepts(self) -> int:
        """The number of concepts that can be drawn."""
        return int(self._candidates.members.size)

    def draws(self, phrases: IntArray) -> IntArray:
        """Return the number of draws: phrases of a group share one."""
        chosen = self.settings
        return accounting.draw_count(phrases, int(chosen.group) if chosen.prior != "none" else 1)

    def epsilon_per_draw(self, draws: int) -> float:
        """Return the ε of one draw in a history of so many."""
        return epsilon_per_draw(self.settings, max(draws, 1))

    def likeliest(
        self, released: IntArray, epsilon: FloatArray, concepts: IntArray, log_prior: FloatArray
    ) -> IntArray:
        """Return the place of the likeliest original of each released concept, by Bayes."""
        levels, level = np.unique(epsilon, return_inverse=True)
        prior = Prior(concepts, log_prior)
        return best_guesses(released, level, levels / 2, prior, self._candidates, self._shares)

    @cached_property
    def _shares(self) -> FloatArray:
        return self._model.space.scaled_similarity()


def concept_spec(settings: Any) -> ConceptSpec:
    """Return the candidate space of `dp-semantic` with these settings."""
    own = settings.domain == "topic"
    return ConceptSpec(
        taxonomy=settings.taxonomy,
        phrases=settings.mapper,
        topics=settings.topics,
        criterion=settings.criterion,
        domains=(settings.domain_topics or settings.topics) if own else "",
        root=settings.root,
    )


def epsilon_per_draw(settings: Any, draws: int) -> float:
    """Return the ε of one draw of a history's ε, if the history has so many draws."""
    if settings.per == "query":
        return min(float(settings.epsilon), LARGEST_EPSILON)
    most = draws if settings.max_queries == "own" else int(settings.max_queries)
    share = accounting.per_draw(settings.epsilon, most, settings.composition, settings.delta)
    return min(share, LARGEST_EPSILON)


class Prior(NamedTuple):
    """Concepts in falling order of their prior, and its logarithms."""

    concept: IntArray
    log: FloatArray


@njit(cache=True, nogil=True)
def _likeness(support, sample, sample_start, candidates, share, out):  # type: ignore[no-untyped-def]
    """Count, for each concept, how alike a sample of its domain is to it: bins of equal width."""
    features, start, _, h_start, _, _, domain = candidates
    stamp = np.full(h_start.size - 1, -1, np.int64)
    for s in range(support.size):
        c = support[s]
        mine = start[c + 1] - start[c]
        stamp[features[start[c] : start[c + 1]]] = c
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
        stamp[features[start[o] : start[o + 1]]] = i
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


def totals(support: IntArray, half: FloatArray, candidates: Candidates, share: FloatArray) -> FloatArray:
    """Estimate, for each level and concept, the logarithm of the sum of all weights."""
    draws = np.random.default_rng(0)
    start = candidates.members_start
    domains = np.split(candidates.members, start[1:-1])
    chosen = [draws.permutation(members)[:_SAMPLE] for members in domains]
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
    seen: IntArray, level: IntArray, half: FloatArray, prior: Prior, candidates: Candidates, share: FloatArray
) -> IntArray:
    """Return the place in the prior of the likeliest original of each seen concept; -1 where none can be.

    `half` is half the epsilon of each level; `share[domain, union, common]` the likeness from 0 to 1.
    """
    total = totals(prior.concept, half, candidates, share)
    guess = np.full(seen.size, -1, np.int64)
    lowest = total.min(axis=1) if prior.concept.size else np.zeros(half.size)
    _best(seen, level, half, lowest, prior.concept, prior.log, total, candidates, share, guess)
    return guess
