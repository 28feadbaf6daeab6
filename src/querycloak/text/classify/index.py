"""Prepares the taxonomy's phrases for lookup: forms of each phrase, their weights, and the trie of words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.kernels.hash_table import PairTable
from querycloak.text.classify import phrases as kernel
from querycloak.text.classify.backoff import words_of_phrases
from querycloak.text.classify.forms import Forms, all_forms, single_words, together
from querycloak.text.classify.result import FloatArray, IntArray
from querycloak.text.normalise import BoolArray, Tokens, is_stop, normalise, tokens_of
from querycloak.text.taxonomy import Taxonomy

LEXICON_DEPTH = 2  # the lexicon speaks of topics and domains; what lies deeper comes from WordNet
WORDNET = 0.3  # what a WordNet lemma weighs beside a term that a person wrote down
BESIDE_LEXICON = 0.15  # ... and where the lexicon knows the same phrase
AMBIGUOUS = 0.5  # a phrase of many meanings counts less for each: weight x (weight / sum) ** this
BY_TOPIC = {
    "Regional": 0.5,  # a place is where, not what: `hotels in boston` is about travel
    "Adult": 1.5,  # the other way round: an adult word makes the whole query so
}
STEMMED = 0.85  # a match by stems only


@dataclass(frozen=True)
class Entries:
    """What phrases say: phrase number, node, weight."""

    phrase: IntArray
    node: IntArray
    weight: FloatArray


def weigh(taxonomy: Taxonomy) -> Entries:
    """Weigh each phrase's categories by where they come from and how ambiguous the phrase is."""
    terms = taxonomy.terms
    phrase = np.repeat(np.arange(len(terms)), np.diff(terms.start)).astype(np.int64)
    node, weight = terms.node.astype(np.int64), terms.weight.astype(np.float64)
    lexicon = taxonomy.depth[node] <= LEXICON_DEPTH
    known = np.bincount(phrase, lexicon, len(terms)) > 0
    weight = weight * np.where(lexicon, 1.0, np.where(known[phrase], BESIDE_LEXICON, WORDNET))
    everything = np.bincount(phrase, weight, len(terms))[phrase]
    weight = weight * (weight / np.maximum(everything, 1e-9)) ** AMBIGUOUS
    return Entries(phrase, node, weight * _topic_factor(taxonomy, node))


def _topic_factor(taxonomy: Taxonomy, nodes: IntArray) -> FloatArray:
    factor = np.ones(taxonomy.size)
    for topic, value in BY_TOPIC.items():
        if topic in taxonomy:
            factor[taxonomy.node(topic)] = value
    return np.asarray(factor[taxonomy.at_level(nodes, 1)], np.float64)


class Index:
    """The phrases of a taxonomy as arrays that the kernel walks."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        entries, own = weigh(taxonomy), strongest(taxonomy)
        texts = normalise(pl.Series(taxonomy.terms.texts, dtype=pl.String))
        phrases = tokens_of(texts)
        stop = is_stop(phrases.words)
        self.vocabulary, forms = all_forms(texts, phrases, stop, own >= 0)
        words, more = _backoff(taxonomy, phrases, stop, own)
        self.arrays = self._build(together(forms, words), _appended(entries, more))

    def _build(self, forms: Forms, entries: Entries) -> tuple[Any, ...]:
        """Plant all forms twice, as spelt and as stems, and lay out what each end says."""
        table = PairTable()
        table.reserve(2 * forms.words.size)
        stems = self.vocabulary.stem[forms.words]
        spelt, state = kernel.grow(forms.words, forms.bounds, kernel.SPELT, 2, table.arrays)
        stemmed, states = kernel.grow(stems, forms.bounds, kernel.STEMMED, state, table.arrays)
        ends = np.concatenate([spelt, stemmed])
        factor = np.concatenate([forms.factor, forms.factor * STEMMED])
        phrase = np.concatenate([forms.phrase, forms.phrase])
        length = np.zeros(states, np.int64)
        length[ends] = np.tile(np.diff(forms.bounds), 2)
        starts, nodes, weights = _per_state(ends, factor, phrase, entries, states)
        return table.arrays, starts, nodes, weights, length


def strongest(taxonomy: Taxonomy) -> IntArray:
    """Give for each phrase the category that the lexicon gives it, -1 for phrases of WordNet alone."""
    terms = taxonomy.terms
    phrase = np.repeat(np.arange(len(terms)), np.diff(terms.start))
    written = np.flatnonzero(taxonomy.depth[terms.node] <= LEXICON_DEPTH)
    weakest_first = written[np.lexsort((-terms.node[written], terms.weight[written]))]
    own = np.full(len(terms), -1, np.int64)
    own[phrase[weakest_first]] = terms.node[weakest_first]
    return own


def _backoff(taxonomy: Taxonomy, phrases: Tokens, stop: BoolArray, own: IntArray) -> tuple[Forms, Entries]:
    """Let words inside the lexicon's phrases speak, unless they are phrases of the lexicon themselves."""
    topic_of = taxonomy.at_level(np.arange(taxonomy.size), 1).astype(np.int64)
    word, node, weight = words_of_phrases(phrases, stop, own, np.ones(own.size), topic_of)
    alone = (np.diff(phrases.bounds) == 1) & (own >= 0)
    fresh = ~np.isin(word, phrases.codes[phrases.bounds[:-1][alone]])
    words, number = np.unique(word[fresh], return_inverse=True)
    weight = weight[fresh] * _topic_factor(taxonomy, node[fresh])
    entries = Entries(number + own.size, node[fresh], weight)
    return single_words(words, np.arange(words.size) + own.size), entries


def _appended(entries: Entries, more: Entries) -> Entries:
    """Put later phrases' entries after the others, in the order of phrases."""
    order = np.argsort(more.phrase, kind="stable")
    return Entries(
        np.concatenate([entries.phrase, more.phrase[order]]),
        np.concatenate([entries.node, more.node[order]]),
        np.concatenate([entries.weight, more.weight[order]]),
    )


def _per_state(
    ends: IntArray, factor: FloatArray, phrase: IntArray, entries: Entries, states: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Lay out what each state says; where two forms end in one state, the stronger weight counts."""
    first = np.searchsorted(entries.phrase, phrase)
    count = np.searchsorted(entries.phrase, phrase, side="right") - first
    row = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
    state, weight = np.repeat(ends, count), np.repeat(factor, count) * entries.weight[row]
    order = np.lexsort((-weight, entries.node[row], state))
    state, node, weight = state[order], entries.node[row][order], weight[order]
    fresh = np.ones(state.size, np.bool_)
    fresh[1:] = (state[1:] != state[:-1]) | (node[1:] != node[:-1])
    state, node, weight = state[fresh], node[fresh], weight[fresh]
    return np.searchsorted(state, np.arange(states + 1)), node, weight


Tree = tuple[npt.NDArray[np.int64], ...]


def tree_arrays(taxonomy: Taxonomy) -> Tree:
    """Give what the kernel reads of the tree: each node's place among the topics, the topics, and per node
    its domain, parent and depth (-1 where there is none)."""
    nodes = np.arange(taxonomy.size)
    depth = taxonomy.depth.astype(np.int64)
    topics = np.flatnonzero(depth == 1)
    column = np.where(depth >= 1, np.searchsorted(topics, taxonomy.at_level(nodes, 1)), -1)
    domain = np.where(depth >= 2, taxonomy.at_level(nodes, 2), -1).astype(np.int64)
    return column.astype(np.int64), topics, domain, taxonomy.parent.astype(np.int64), depth
