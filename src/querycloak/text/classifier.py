"""The default classifier: known phrases and character n-grams, then the form of a query and clicked URLs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from threading import RLock
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.text import _ngrams
from querycloak.text import _phrases as kernel
from querycloak.text.lexicon import UNKNOWN, FloatArray, PhraseIndex
from querycloak.text.normalise import BoolArray, IntArray, normalise, tokens_of
from querycloak.text.spelling import TokenResolver, as_bytes
from querycloak.text.taxonomy import Taxonomy, load
from querycloak.text.urls import url_words

#: Answers from this confidence on are right at level 1 at least six times in ten.
CONFIDENT: Final = 0.6
FORM, URL, SPELLING = 0.9, 0.8, 0.85  # confidence by form; factors of answers by URL and corrected words
HEAD, TAIL, OTHER = 1.25, 0.7, 0.9  # weight of a phrase by its place
LONGER = np.array([1.0, 1.0, 1.6, 2.2, 2.6])  # by the number of its words
PHRASES, NGRAMS = 3.5, 0.7  # weights of the two kinds of evidence
PIECE = 20_000  # queries that are classified at once, each piece in a thread
_PLACES = (HEAD, TAIL, OTHER, LONGER)

#: Confidence by the model's probability: the share of right answers on the development half of the labelled
#: set and on phrases that were hidden from the classifier, rounded. `python -m benchmarks
#: classify-reliability` checks it.
_MODEL = np.array([0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 1.0])
_RIGHT = np.array([0.10, 0.24, 0.30, 0.38, 0.45, 0.50, 0.55, 0.66, 0.72, 0.85, 0.95])

BUCKETS = 1 << 17
RATES = np.array([2.0, 1.5, 1.0, 0.7, 0.5])  # one round over the lexicon each
UNSEEN = 1e-4  # probability of a topic for which the lexicon has no phrase
SEED = 7  # of the order of the training phrases

#: Categories by the form of a query: an e-mail address, a phone number, a postal code. No query has two.
FORMS: Final = {
    r"[^\s@]+@[^\s@]+\.[a-z]{2,}": "Computers/Email",
    r"^\s*\(?\d{3}\)?[-. ]?\d{3}[-. ]?\d{4}\s*$": "Reference/Phone Directories",
    r"^\s*\d{5}(-\d{4})?\s*$": "Regional/United States",
}


class Evidence(IntEnum):
    """How an answer was found."""

    NONE = 0
    LEXICAL = 1
    SPELLING = 2
    FORM = 3
    URL = 4
    NGRAMS = 5
    REMOTE = 6


#: Answers without a known phrase of their topic; a clicked URL may know better.
WEAK_EVIDENCE: Final = (Evidence.NONE, Evidence.NGRAMS)
_KNOWN: Final = (Evidence.LEXICAL, Evidence.SPELLING)


@dataclass(frozen=True)
class Classification:
    """One answer per query: a node of the taxonomy (-1: none), a confidence in 0..1, and its evidence."""

    category: IntArray
    confidence: FloatArray
    evidence: npt.NDArray[np.int8]

    @classmethod
    def empty(cls, size: int) -> Classification:
        """Return so many answers without a category."""
        return cls(np.full(size, UNKNOWN, np.int64), np.zeros(size), np.zeros(size, np.int8))

    @classmethod
    def concat(cls, pieces: Sequence[Classification]) -> Classification:
        """Return the answers of several pieces in sequence."""
        return cls(
            np.concatenate([piece.category for piece in pieces]),
            np.concatenate([piece.confidence for piece in pieces]),
            np.concatenate([piece.evidence for piece in pieces]),
        )

    def __len__(self) -> int:
        return int(self.category.size)

    def take(self, rows: npt.NDArray[np.integer]) -> Classification:
        """Return some of the answers."""
        return Classification(self.category[rows], self.confidence[rows], self.evidence[rows])


def calibrate(chance: FloatArray, evidence: npt.NDArray[np.int8]) -> FloatArray:
    """Return the confidence: the share of right answers at this probability of the model."""
    right = np.interp(chance, _MODEL, _RIGHT)
    right = np.where(evidence == Evidence.SPELLING, right * SPELLING, right)
    return np.where(evidence > 0, right, 0.0)


class NgramModel:
    """Logistic regression over hashed words and character n-grams of the curated phrases."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        lexicon = taxonomy.lexicon
        chosen = np.flatnonzero(lexicon.curated_category > 0)
        topics, topic = np.unique(taxonomy.at_level(lexicon.curated_category[chosen], 1), return_inverse=True)
        self._topics = topics.astype(np.int64)
        self._table = np.zeros((BUCKETS, topics.size), np.float32)
        if chosen.size:
            weight = np.sqrt(lexicon.weight[lexicon.start[chosen]].astype(np.float64))
            letters, bounds = as_bytes([f" {lexicon.texts[i]} " for i in chosen.tolist()])
            order = np.random.default_rng(SEED).permutation(chosen.size)
            _ngrams.learn(letters, bounds, topic, weight, order, RATES, self._table)

    def log_probabilities(self, texts: pl.Series, topics: IntArray) -> tuple[FloatArray, BoolArray]:
        """Return the logarithms of the topics' probabilities, and which texts could be read."""
        found = np.full((texts.len(), topics.size), np.log(UNSEEN))
        if not self._topics.size:
            return found, np.zeros(texts.len(), np.bool_)
        letters, bounds = as_bytes((" " + texts + " ").to_list())
        chances, counts = _ngrams.score(letters, bounds, self._table)
        found[:, np.searchsorted(topics, self._topics)] = chances
        return found, counts > 0


class LexicalClassifier:
    """Maps queries to categories by words and phrases of the taxonomy."""

    reads_urls = True

    def __init__(self, taxonomy: Taxonomy | None = None) -> None:
        self.taxonomy = taxonomy or load()
        self._index = PhraseIndex(self.taxonomy)
        self._resolver = TokenResolver(self._index.vocabulary)
        self._tree = _tree_arrays(self.taxonomy)
        self._lock = RLock()

    @cached_property
    def _model(self) -> NgramModel:
        return NgramModel(self.taxonomy)

    def classify(self, queries: pl.Series) -> Classification:
        """Return an answer for each query, which depends on that query alone."""
        return _in_pieces(self._classify, queries)

    def classify_urls(self, urls: pl.Series) -> Classification:
        """Return answers by the words of clicked URLs; those without a known word get none."""
        found = _in_pieces(self._by_words, url_words(urls))
        known = np.isin(found.evidence, _KNOWN)
        evidence = np.where(known, Evidence.URL, Evidence.NONE).astype(np.int8)
        confidence = np.where(known, found.confidence * URL, 0.0)
        return Classification(np.where(known, found.category, UNKNOWN), confidence, evidence)

    def scores(self, text: str) -> tuple[IntArray, FloatArray]:
        """Return the nodes of a text's known phrases, and their weights."""
        tokens = self._resolver.resolve(tokens_of(normalise(pl.Series([text], dtype=pl.String))))
        nodes, scores = kernel.evidence(tokens.arrays, 0, int(tokens.bounds[1]), self._index.arrays, _PLACES)
        return nodes, scores

    def _classify(self, queries: pl.Series) -> Classification:
        answer = self._by_words(queries)
        for pattern, path in FORMS.items():
            if path in self.taxonomy:
                rows = queries.str.contains(pattern).fill_null(False).to_numpy()
                answer.category[rows] = self.taxonomy.node(path)
                answer.evidence[rows] = Evidence.FORM
                answer.confidence[rows] = FORM
        return answer

    def _by_words(self, queries: pl.Series) -> Classification:
        """Choose a topic by all evidence, and in it the deepest node of a known phrase."""
        texts = normalise(queries)
        with self._lock:  # threads would each train it
            model = self._model
        prior, readable = model.log_probabilities(texts, self._tree[1])
        tokens = self._resolver.resolve(tokens_of(texts))
        topic, chance, node, corrected = kernel.decide(
            tokens.arrays, tokens.bounds, self._index.arrays, (*_PLACES, PHRASES), self._tree, prior * NGRAMS
        )
        evidence = np.where(corrected, Evidence.SPELLING, Evidence.LEXICAL)
        evidence = np.where(node >= 0, evidence, Evidence.NGRAMS)
        evidence = np.where((node >= 0) | readable, evidence, Evidence.NONE).astype(np.int8)
        category = np.where(evidence == Evidence.NGRAMS, topic, node)
        return Classification(category, calibrate(chance, evidence), evidence)


def _in_pieces(classify: Callable[[pl.Series], Classification], texts: pl.Series) -> Classification:
    """Classify a long column piece by piece in threads."""
    texts = texts.cast(pl.String)
    if texts.len() <= PIECE:
        return classify(texts)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return Classification.concat(
            list(threads.map(classify, [texts[i : i + PIECE] for i in range(0, texts.len(), PIECE)]))
        )


def _tree_arrays(taxonomy: Taxonomy) -> tuple[IntArray, ...]:
    """Return the tree for the kernel: each node's place among the topics, the topics, and per node its
    domain, parent and depth (-1 where there is none)."""
    nodes = np.arange(taxonomy.size)
    depth = taxonomy.depth.astype(np.int64)
    topics = np.flatnonzero(depth == 1)
    column = np.where(depth >= 1, np.searchsorted(topics, taxonomy.at_level(nodes, 1)), UNKNOWN)
    domain = np.where(depth >= 2, taxonomy.at_level(nodes, 2), UNKNOWN).astype(np.int64)
    return column.astype(np.int64), topics, domain, taxonomy.parent.astype(np.int64), depth
