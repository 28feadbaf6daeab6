"""Replaces the concepts of queries: reads them, draws others, and writes them anew."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from querycloak.dictionary import Texts
from querycloak.errors import BrokenPromise
from querycloak.kernels import concept_draws
from querycloak.log import Batch, IntArray
from querycloak.topics.concepts.field import Field
from querycloak.topics.concepts.mapper import Phrase, say
from querycloak.topics.concepts.space import spent

_TABLES = 1024  # of weights in memory at a time


class Slots(NamedTuple):
    """One place in a record for each concept that it means: which record of the batch, and its turn."""

    record: IntArray
    turn: IntArray
    concept: IntArray


class Reader:
    """Knows what each query code means; reads a query when its code first comes."""

    def __init__(self, field: Field, texts: Texts, *, all_concepts: bool = False) -> None:
        self._field = field
        self._all = all_concepts  # or only those that can be drawn
        self._texts = texts
        self._begin = np.zeros(0, np.int64)  # by query code: where its concepts stand, -1 if not yet read
        self._size = np.zeros(0, np.int64)
        self._concept = np.zeros(0, np.int64)
        self._phrases: list[Phrase] = []

    def learn(self, queries: IntArray) -> None:
        """Read the queries whose codes are new."""
        more = int(queries.max(initial=-1)) + 1 - self._begin.size
        if more > 0:
            self._begin = np.concatenate([self._begin, np.full(more, -1)])
            self._size = np.concatenate([self._size, np.zeros(more, np.int64)])
        new = np.unique(queries[queries >= 0])
        new = new[self._begin[new] < 0]
        if not new.size:
            return
        mapped = self._field.mapper.read(self._texts.query.decode(new))
        inside = (
            np.ones(len(mapped.phrases), np.bool_)
            if self._all
            else self._field.space.candidates.domain[mapped.concept] >= 0
        )
        start = np.concatenate([[0], np.cumsum(inside)])[mapped.start]
        self._begin[new] = self._concept.size + start[:-1]
        self._size[new] = np.diff(start)
        self._concept = np.concatenate([self._concept, mapped.concept[inside]])
        self._phrases += [phrase for phrase, yes in zip(mapped.phrases, inside, strict=True) if yes]

    def sizes(self, queries: IntArray) -> IntArray:
        """Count the concepts that each query means."""
        return np.where(queries >= 0, self._size[queries], 0) if self._size.size else np.zeros_like(queries)

    def slots(self, queries: IntArray) -> Slots:
        """List the concepts of all queries, one after the other."""
        sizes = self.sizes(queries)
        record = np.repeat(np.arange(queries.size), sizes)
        turn = np.arange(record.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return Slots(record, turn, self._concept[self._begin[queries[record]] + turn])

    def phrases(self, query: int) -> list[Phrase]:
        """Give the phrases of one query."""
        return self._phrases[self._begin[query] : self._begin[query] + self._size[query]]


def drawn(
    field: Field, slots: Slots, rows: IntArray, epsilon: npt.NDArray[np.float64], key: bytes
) -> IntArray:
    """Draw another concept for each slot with its own epsilon, which the integers are checked to keep."""
    out = np.empty(slots.concept.size, np.int64)
    candidates = field.space.candidates
    domain = candidates.domain[slots.concept]
    levels, level = np.unique(epsilon, return_inverse=True)
    tables, table = np.unique(domain * np.int64(levels.size) + level, return_inverse=True)
    for start in range(0, tables.size, _TABLES):
        some = tables[start : start + _TABLES]
        named = [(int(t // levels.size), float(levels[t % levels.size])) for t in some]
        weights = field.space.weights(named)
        if any(cost > asked for cost, (_, asked) in zip(spent(weights), named, strict=True)):
            raise BrokenPromise("the weights of a draw would spend more than was asked for")
        here = np.flatnonzero((table >= start) & (table < start + some.size))
        out[here] = concept_draws.draw(
            slots.concept[here], table[here] - start, rows[slots.record[here]], slots.turn[here],
            key, candidates, weights,
        )  # fmt: skip
    return out


def written(
    field: Field, reader: Reader, batch: Batch, slots: Slots, concept: IntArray, rebuild: str
) -> tuple[IntArray, IntArray]:
    """Write each record with its new concepts; give the codes of its query and of its first's category."""
    texts, spoken = batch.texts, field.concepts.spoken
    distinct, number = np.unique(concept, return_inverse=True)
    first = np.searchsorted(slots.record, np.arange(len(batch)))
    category = texts.category.intern([field.concepts.category[c] for c in distinct.tolist()])[number][first]
    sizes = np.bincount(slots.record, minlength=len(batch))
    query = texts.query.intern([spoken[c] for c in distinct.tolist()])[number][first]
    several = np.flatnonzero(sizes > 1) if rebuild == "none" else np.arange(len(batch))
    words = [spoken[c] for c in concept.tolist()]
    begin, end = first.tolist(), (first + sizes).tolist()
    plain = rebuild == "none"
    new = [
        say(() if plain else reader.phrases(int(batch.query[r])), words[begin[r] : end[r]], rebuild)
        for r in several.tolist()
    ]
    query[several] = texts.query.intern(new)
    return query, category
