"""Concepts of queries, and the settings of methods that read them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from querycloak.dictionary import Dictionaries
from querycloak.kernels.arrays import grown, ranks_in_groups
from querycloak.log import IntArray
from querycloak.settings import setting
from querycloak.text.concepts.field import Field
from querycloak.text.concepts.mapper import Phrase


def topics_setting() -> Any:
    """Declare `topics`."""
    return setting(
        "categories",
        kind=str,
        help="`categories`, `paper-4`, `paper-19`, or concepts such as `disease.n.01,sport.n.01`",
    )


def root_setting() -> Any:
    """Declare `root`."""
    return setting("", kind=str, help="only concepts at and below this one, as `abstraction.n.06`")


def taxonomy_setting() -> Any:
    """Declare `taxonomy`."""
    return setting("", kind=str, file=True, help="a taxonomy file instead of WordNet")


def mapper_setting() -> Any:
    """Declare `mapper`."""
    return setting(
        "lexical",
        kind=str,
        choices=("lexical", "linguistic"),
        help="find phrases by words, or by a parser (extra `nlp`)",
    )


class ConceptSlots(NamedTuple):
    """One slot for each concept of a record: the record in the batch, the rank in it, and the concept."""

    record: IntArray
    turn: IntArray
    concept: IntArray


class ConceptReader:
    """Concepts of each query code; a query is read when its code first comes."""

    def __init__(self, field: Field, texts: Dictionaries, *, all_concepts: bool = False) -> None:
        self._field = field
        self._all = all_concepts  # or only those that can be drawn
        self._texts = texts
        self._begin = np.zeros(0, np.int64)  # by query code: where its concepts stand, -1 if not yet read
        self._size = np.zeros(0, np.int64)
        self._concept = np.zeros(0, np.int64)
        self._phrases: list[Phrase] = []

    def learn(self, queries: IntArray) -> None:
        """Read the queries whose codes are new."""
        self._begin = grown(self._begin, int(queries.max(initial=-1)) + 1, -1)
        self._size = grown(self._size, self._begin.size)
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
        known, more = len(self._phrases), mapped.concept[inside]
        self._begin[new] = known + start[:-1]
        self._size[new] = np.diff(start)
        self._concept = grown(self._concept, known + more.size)
        self._concept[known : known + more.size] = more
        self._phrases += [phrase for phrase, yes in zip(mapped.phrases, inside, strict=True) if yes]

    def sizes(self, queries: IntArray) -> IntArray:
        """Count the concepts that each query means."""
        return np.where(queries >= 0, self._size[queries], 0) if self._size.size else np.zeros_like(queries)

    def slots(self, queries: IntArray) -> ConceptSlots:
        """List the concepts of all queries, one after the other."""
        sizes = self.sizes(queries)
        record = np.repeat(np.arange(queries.size), sizes)
        turn = ranks_in_groups(sizes)
        return ConceptSlots(record, turn, self._concept[self._begin[queries[record]] + turn])

    def phrases(self, query: int) -> list[Phrase]:
        """Return the phrases of one query."""
        return self._phrases[self._begin[query] : self._begin[query] + self._size[query]]
