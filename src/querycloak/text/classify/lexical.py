"""The default classifier: known phrases and character n-grams, then form and clicked address."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from querycloak.text.classify import confidence, navigational
from querycloak.text.classify import phrases as kernel
from querycloak.text.classify.examples import Examples, examples
from querycloak.text.classify.index import Index, tree_arrays
from querycloak.text.classify.letters import Letters
from querycloak.text.classify.reader import Reader, Reading
from querycloak.text.classify.result import (
    GUESSED,
    HOW,
    Classified,
    Dictionaries,
    FloatArray,
    IntArray,
    Urls,
)
from querycloak.text.normalise import normalise, tokens_of
from querycloak.text.taxonomy import Taxonomy, load

HEAD, TAIL, OTHER = 1.25, 0.7, 0.9  # what a phrase counts by its place
LONGER = np.array([1.0, 1.0, 1.6, 2.2, 2.6])  # by the number of its words
PHRASES, LETTERS = 3.5, 0.7  # what each kind of evidence counts beside the others
PIECE = 20_000  # queries classified at once, each piece in a thread: kernels and polars let others run
_PLACES = (HEAD, TAIL, OTHER, LONGER)


@dataclass(frozen=True)
class _Asked:
    """Queries in plain form, as words, and what their letters say about each topic."""

    texts: pl.Series
    reading: Reading
    prior: FloatArray
    readable: Any


class Lexical:
    """Maps queries to categories by the words that the taxonomy knows."""

    def __init__(self, taxonomy: Taxonomy | None = None) -> None:
        self.taxonomy = taxonomy or load()
        self._index = Index(self.taxonomy)
        self._reader = Reader(self._index.vocabulary)
        self._tree = tree_arrays(self.taxonomy)

    @cached_property
    def examples(self) -> Examples:
        """The lexicon's phrases, which the model of letters learns from."""
        return examples(self.taxonomy)

    @cached_property
    def _letters(self) -> Letters:
        return Letters(self.examples)

    def classify(self, queries: Dictionaries | pl.Series, urls: Urls | pl.Series | None = None) -> Classified:
        """Answer each query; the answer depends on that query and address alone."""
        texts = _series(queries)
        addresses = None if urls is None else _series(urls)
        if addresses is None:
            return in_pieces(self._classify, texts)
        return in_pieces(self._classify, texts, addresses)

    def _classify(self, texts: pl.Series, urls: pl.Series | None = None) -> Classified:
        asked = self._ask(texts)
        answer = self._decide(asked)
        self._by_form(texts, answer)
        if urls is not None:
            self._by_url(urls, answer)
        return answer

    def by_words(self, queries: pl.Series) -> Classified:
        """Answer by words and letters alone."""
        return in_pieces(lambda texts: self._decide(self._ask(texts)), queries)

    def evidence(self, text: str) -> tuple[IntArray, FloatArray]:
        """Give the nodes that a text's known phrases speak for, and how strongly."""
        reading = self._reader.read(tokens_of(normalise(_series([text]))))
        end = int(reading.bounds[1])
        nodes, scores = kernel.evidence(reading.arrays, 0, end, self._index.arrays, _PLACES)
        return nodes, scores

    def _ask(self, queries: pl.Series) -> _Asked:
        texts = normalise(queries)
        prior, readable = self._letters.evidence(texts, self._tree[1])
        return _Asked(texts, self._reader.read(tokens_of(texts)), prior * LETTERS, readable)

    def _decide(self, asked: _Asked) -> Classified:
        """Choose a topic by all evidence, and inside it the deepest node that a phrase speaks for."""
        topic, chance, node, corrected = kernel.decide(
            asked.reading.arrays,
            asked.reading.bounds,
            self._index.arrays,
            (*_PLACES, PHRASES),
            self._tree,
            asked.prior,
        )
        how = np.where(corrected, HOW.index("spelling"), HOW.index("lexical"))
        how = np.where(node >= 0, how, HOW.index("letters"))
        how = np.where((node >= 0) | asked.readable, how, 0).astype(np.int8)
        category = np.where(how == HOW.index("letters"), topic, node)
        return Classified(category, confidence.calibrate(chance, how), how)

    def _by_form(self, texts: pl.Series, answer: Classified) -> None:
        """Let a query that is an e-mail address or a number speak by that alone."""
        paths = navigational.forms(texts)
        for path in paths.unique().drop_nulls().to_list():
            if path in self.taxonomy:
                rows = (paths == path).fill_null(False).to_numpy()
                answer.category[rows] = self.taxonomy.node(path)
                answer.how[rows] = HOW.index("form")
                answer.confidence[rows] = confidence.FORM

    def by_address(self, urls: Urls | pl.Series) -> Classified:
        """Answer by the words of clicked addresses; those of which no word is known get no answer."""
        found = self.by_words(navigational.address_words(_series(urls)))
        known = np.isin(found.how, _KNOWN)
        how = np.where(known, HOW.index("url"), 0).astype(np.int8)
        sure = np.where(known, found.confidence * confidence.URL, 0.0)
        return Classified(np.where(known, found.category, -1), sure, how)

    def _by_url(self, urls: pl.Series, answer: Classified) -> None:
        """Let the clicked address speak where the query alone is not known."""
        rows = np.flatnonzero(np.isin(answer.how, GUESSED) & urls.is_not_null().to_numpy())
        found = self.by_address(urls[rows])
        known = np.flatnonzero(found.how)
        answer.put(rows[known], found.only(known))


_KNOWN = [HOW.index("lexical"), HOW.index("spelling")]


def in_pieces(classify: Callable[..., Classified], *columns: pl.Series) -> Classified:
    """Classify long columns piece by piece in threads; an answer never depends on its neighbours."""
    size = columns[0].len()
    if size <= PIECE:
        return classify(*columns)
    pieces = [[column[i : i + PIECE] for column in columns] for i in range(0, size, PIECE)]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return Classified.together(list(threads.map(lambda piece: classify(*piece), pieces)))


def _series(texts: Any) -> pl.Series:
    return texts if isinstance(texts, pl.Series) else pl.Series(list(texts), dtype=pl.String)
