"""The one reading of a query: its entities, its concepts, its category."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import polars as pl

from querycloak.text.classifier import Classification, LexicalClassifier
from querycloak.text.classify import default_classifier
from querycloak.text.entities import find_entities
from querycloak.text.normalise import BoolArray, IntArray
from querycloak.text.noun_phrases import require
from querycloak.text.senses import ConceptLexicon, ConceptMapper, ConceptSpans, concept_lexicon


@dataclass(frozen=True)
class TextSpec:
    """What determines the reading of a query."""

    taxonomy: str = ""  # a file; empty: the one of the package
    phrases: str = "lexical"  # how concepts' phrases are found: by stop words, or `linguistic`, by a parser
    entities: tuple[str, ...] = ()  # kinds, see `querycloak.text.entities.KINDS`
    listed: frozenset[str] = frozenset()  # phrases that are entities of kind `listed`


class TextReader:
    """Reads queries by one spec. Parts are loaded when they are first used."""

    def __init__(self, spec: TextSpec | None = None) -> None:
        self.spec = spec or TextSpec()

    def check_ready(self) -> None:
        """Raise MissingExtra if the spec needs a parser that is not installed."""
        if self.spec.phrases == "linguistic":
            require()

    @cached_property
    def lexicon(self) -> ConceptLexicon:
        """The concepts and their phrases."""
        return concept_lexicon(self.spec.taxonomy)

    @cached_property
    def mapper(self) -> ConceptMapper:
        """The reader of concepts."""
        return ConceptMapper(self.lexicon, self.spec.phrases)

    @property
    def classifier(self) -> LexicalClassifier:
        """The classifier of the taxonomy."""
        return default_classifier(self.lexicon.tree if self.spec.taxonomy else None)

    def read(self, queries: pl.Series) -> Readings:
        """Return the readings of queries; each distinct query should be given once."""
        return Readings(self, queries)


class Readings:
    """Readings of a column of queries; each kind is computed when it is first used."""

    def __init__(self, reader: TextReader, queries: pl.Series) -> None:
        self._reader, self._queries = reader, queries

    @cached_property
    def entities(self) -> BoolArray:
        """Row per query: which kinds of the spec's entities it contains."""
        spec = self._reader.spec
        return find_entities(self._queries, spec.entities, spec.listed)

    @cached_property
    def concepts(self) -> ConceptSpans:
        """The phrases of each query that mean a concept."""
        return self._reader.mapper.read(self._queries)

    @cached_property
    def _classification(self) -> Classification:
        return self._reader.classifier.classify(self._queries)

    @property
    def category(self) -> IntArray:
        """The category of each query as a node of the taxonomy, -1 for none."""
        return self._classification.category
