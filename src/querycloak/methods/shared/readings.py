"""Readings of queries by dictionary code, and the settings of methods that read concepts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from querycloak.dictionary import Dictionary
from querycloak.kernels.arrays import grown, ranks_in_groups
from querycloak.log import Flags, IntArray
from querycloak.settings import setting
from querycloak.text.reader import TextReader
from querycloak.text.senses import Phrase

#: Declarations of settings that several methods have.
topics_setting = partial(
    setting,
    "categories",
    help="`categories`, `paper-4`, `paper-19`, or concepts such as `disease.n.01,sport.n.01`",
)
root_setting = partial(setting, "", help="only concepts at and below this one, as `abstraction.n.06`")
taxonomy_setting = partial(setting, "", file=True, help="a taxonomy file instead of WordNet")
mapper_setting = partial(
    setting,
    "lexical",
    choices=("lexical", "linguistic"),
    help="find phrases by words, or by a parser (extra `nlp`)",
)


class ConceptSlots(NamedTuple):
    """One slot for each concept of a record: the record in the batch, the rank in it, and the concept."""

    record: IntArray
    turn: IntArray
    concept: IntArray


def unread(known: Any, codes: IntArray) -> tuple[Any, IntArray]:
    """Return an array by code with room for all codes, and the codes whose entry is still -1."""
    known = grown(known, int(codes.max(initial=-1)) + 1, -1)
    new = np.unique(codes[codes >= 0])
    return known, new[known[new] < 0]


class CodedReadings:
    """Readings of queries by their dictionary codes; each distinct query is read once."""

    def __init__(
        self, reader: TextReader, queries: Dictionary, inside: Callable[[IntArray], Flags] | None = None
    ) -> None:
        self._reader, self._queries = reader, queries
        self._inside = inside  # which concepts count; None: all
        self._begin = np.zeros(0, np.int64)  # by query code: where its concepts are, -1 if not yet read
        self._size = np.zeros(0, np.int64)
        self._concept = np.zeros(0, np.int64)
        self._phrases: list[Phrase] = []
        self._entity = np.zeros(0, np.int64)  # by query code: first kind of entity, -1 if not yet read

    def learn(self, codes: IntArray) -> None:
        """Read the concepts of the queries whose codes are new."""
        self._begin, new = unread(self._begin, codes)
        self._size = grown(self._size, self._begin.size)
        if not new.size:
            return
        read = self._reader.read(self._queries.decode(new)).concepts
        inside = self._inside(read.concept) if self._inside else np.ones(len(read.phrases), np.bool_)
        start = np.concatenate([[0], np.cumsum(inside)])[read.start]
        known, more = len(self._phrases), read.concept[inside]
        self._begin[new] = known + start[:-1]
        self._size[new] = np.diff(start)
        self._concept = grown(self._concept, known + more.size)
        self._concept[known : known + more.size] = more
        self._phrases += [phrase for phrase, yes in zip(read.phrases, inside, strict=True) if yes]

    def sizes(self, codes: IntArray) -> IntArray:
        """Return the number of concepts of each query."""
        return np.where(codes >= 0, self._size[codes], 0) if self._size.size else np.zeros_like(codes)

    def concepts(self, codes: IntArray) -> ConceptSlots:
        """Return the concepts of all queries in sequence."""
        sizes = self.sizes(codes)
        record = np.repeat(np.arange(codes.size), sizes)
        turn = ranks_in_groups(sizes)
        return ConceptSlots(record, turn, self._concept[self._begin[codes[record]] + turn])

    def phrases(self, code: int) -> list[Phrase]:
        """Return the phrases of one query."""
        return self._phrases[self._begin[code] : self._begin[code] + self._size[code]]

    def first_entity(self, codes: IntArray) -> IntArray:
        """Return the first of the reader's kinds that each query contains, counted from 1; 0 for none."""
        self._entity, new = unread(self._entity, codes)
        if new.size:
            found = self._reader.read(self._queries.decode(new)).entities
            first = found.argmax(axis=1) + 1 if found.shape[1] else np.zeros(new.size, np.int64)
            self._entity[new] = np.where(found.any(axis=1), first, 0)
        return np.where(codes >= 0, self._entity[codes], 0) if self._entity.size else np.zeros_like(codes)
