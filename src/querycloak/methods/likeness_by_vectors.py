"""Likeness of word vectors: no knowledge base, only how words are used (extra `embeddings`)."""

from __future__ import annotations

import numpy as np

from querycloak.dictionary import Texts
from querycloak.kernels import alike, siphash, vector_distance
from querycloak.kernels import vectors as kernel
from querycloak.log import NOTHING, Batch, IntArray
from querycloak.methods.likeness import PICK, Drop, Floats, Likeness
from querycloak.topics import embeddings
from querycloak.topics.classify.normalise import plain

WORDLESS = "no word of it is known"
TOO_RARE = "no query of the log is of enough people to be shown"


class ByVectors(Likeness):
    """Things are the log's distinct queries, each with a vector; its nearest ones say the same."""

    empties = frozenset({"category"})

    def __init__(self, settings: object, key: bytes, texts: Texts) -> None:
        super().__init__(settings, key, texts)
        self._values = np.empty((0, 0), np.int16)  # of each thing
        self._query = np.empty(0, np.int64)  # of each thing, ordered by a keyed hash of its text
        self._number = np.empty(0, np.int64)  # by query code: the thing that it is
        self._blocks: alike.Blocks | None = None  # of the queries that may be shown

    def prepare(self) -> None:
        """Ask for the vectors."""
        embeddings.require("`similarity=embedding`")

    def usable(self, held: Batch, drop: Drop) -> Batch:
        """Embed all queries; those without any known word are dropped."""
        self._learn(np.unique(held.query[held.query >= 0]))
        known = held.query >= 0
        known[known] = self._number[held.query[known]] >= 0
        drop(held.row[~known], WORDLESS)
        held = held[known]
        if not len(held):
            return held
        shown = np.flatnonzero(self._often(self._number[held.query], held.user))
        if not shown.size:
            drop(held.row, TOO_RARE)
            return held[:0]
        self._blocks = alike.cut(self._values, shown, max(alike.MOST, 4 * self.settings.k))
        return held

    def _learn(self, queries: IntArray) -> None:
        self.prepare()
        order = np.argsort(self.texts.query.fingerprints(queries, self._shelf_key))
        queries = queries[order]
        words = plain(self.texts.query.decode(queries)).to_list()
        size = embeddings.PIECE
        pieces = [
            embeddings.vectors(words[i : i + size]).astype(np.int16) for i in range(0, len(words), size)
        ]
        values = np.concatenate(pieces) if pieces else self._values
        said = values.any(axis=1)
        self._values, self._query = values[said], queries[said]
        self._number = np.full(int(queries.max(initial=-1)) + 1, NOTHING)
        self._number[self._query] = np.arange(self._query.size)

    def things(self, queries: IntArray) -> tuple[IntArray, IntArray]:
        """Take each query as it is."""
        return self._number[queries], np.arange(queries.size)

    def people(self, thing: IntArray, start: IntArray) -> vector_distance.Vectors:
        """Compare people by the angle of their mean vectors, in which each query counts as often as asked."""
        sums = kernel.sum_rows(thing, start, self._values)
        return vector_distance.by_angle(sums.astype(np.float64))

    def apart(self, thing: IntArray) -> Floats:
        """Give 1 - cosine to the mean, which of all directions has the least sum of these to all queries."""
        values = self._values[thing].astype(np.float64)  # of whole numbers: all sums are exact
        middle = values.sum(axis=0)
        lengths = np.sqrt((values**2).sum(axis=1) * (middle**2).sum())
        return np.asarray(1 - values @ middle / np.maximum(lengths, 1))

    def picked(self, thing: IntArray, names: IntArray) -> IntArray:
        """Pick one of the k nearest queries that may be shown, itself among them, by chance."""
        assert self._blocks is not None
        chance = siphash.draw(self._pick_key, PICK, names)
        return self._query[self._blocks.drawn(self._values[thing], chance, self.settings.k)]
