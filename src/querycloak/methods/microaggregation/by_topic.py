"""`microagg-topic`: users with common topics are grouped and share a history of their queries (003, 5.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from querycloak import settings as declared
from querycloak.dictionary import Dictionaries
from querycloak.log import Batch, IntArray
from querycloak.methods.microaggregation import (
    Grouping,
    GroupSettings,
    Microaggregation,
    ReleaseSettings,
    Representative,
    TaxonomySettings,
    mdav,
    topic_groups,
)
from querycloak.methods.microaggregation.representatives import RecordPicker
from querycloak.settings import setting
from querycloak.text.reader import TextReader, TextSpec

NO_TOPIC = "no phrase of any of the person's queries is known"


class TopicGrouping:
    """Users are as similar as they have categories in common, at all levels of the taxonomy."""

    _categories: _QueryCategories

    def __init__(self, settings: Any, picker: RecordPicker, texts: Dictionaries) -> None:
        self._settings, self._picker, self._texts = settings, picker, texts
        self._reader = TextReader(TextSpec(taxonomy=settings.taxonomy, phrases=settings.mapper))

    def prepare(self, held: Batch) -> tuple[Batch, dict[str, IntArray]]:
        """Return the records of users with a category; a query without one can still represent its user."""
        empty = held.row[held.query < 0]
        held = held[held.query >= 0]
        self._categories = _QueryCategories(held.query, self._reader, self._texts, self._settings.categories)
        known = np.isin(held.user, held.user[self._categories.sizes(held.query) > 0])
        return held[known], {"no query": empty, NO_TOPIC: held.row[~known]}

    def groups(self, held: Batch, users: int) -> IntArray:
        """Return the groups of users with most categories in common."""
        node, record = self._categories.of(held.query)
        tree = self._reader.lexicon.tree
        deepest = self._settings.levels or int(tree.depth.max())
        counts = topic_groups.count_categories(held.user[record], node, tree, deepest, users)
        return topic_groups.group(
            counts, self._settings.k, np.arange(users, dtype=np.uint64), most=mdav.EXACT
        )

    def representative(self, records: Batch, members: IntArray) -> Representative:
        """Return each user's share of records, the most frequent queries first."""
        chosen = records[self._picker.ranked(records, members)]
        return Representative.of(chosen.query, time=chosen.time, category=chosen.category)


class _QueryCategories:
    """Categories of the phrases of each query, by the code of the query."""

    def __init__(self, queries: IntArray, reader: TextReader, texts: Dictionaries, most: int) -> None:
        self._query = np.unique(queries)
        read = reader.read(texts.query.decode(self._query)).concepts
        found = [reader.lexicon.categories(phrase.lexicon_phrase, most) for phrase in read.phrases]
        ends = np.cumsum([0, *map(len, found)])
        self._start = ends[read.start]
        self._node = np.array([node for own in found for node in own], np.int64)

    def sizes(self, queries: IntArray) -> IntArray:
        """Return the number of categories of each query."""
        return np.diff(self._start)[np.searchsorted(self._query, queries)]

    def of(self, queries: IntArray) -> tuple[IntArray, IntArray]:
        """Return the categories of all queries, and the place of the query of each."""
        sizes = self.sizes(queries)
        record = np.repeat(np.arange(queries.size), sizes)
        turn = np.arange(record.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        begin = self._start[np.searchsorted(self._query, queries)]
        return self._node[begin[record] + turn], record


class MicroaggTopic(Microaggregation):
    """Group people whose searches fall into the same categories, and show one history of their queries.

    Two users are as similar as they have categories in common, at all levels of the tree. The history of a
    group has a share of each user's queries, the user's most frequent queries first.

    Guarantee: each released history, with all of its columns, is that of at least `k` people.

    Reference: A. Erola, "Contributions to privacy in web search engines", section 5.4.
    """

    name = "microagg-topic"
    reads = Microaggregation.reads | {"category"}

    @dataclass(frozen=True, kw_only=True)
    class Settings(ReleaseSettings, TaxonomySettings, GroupSettings):
        """Settings of `microagg-topic`."""

        categories: int = setting(
            1, at_least=1, at_most=5, help="categories of each phrase that count, the best first"
        )
        levels: int = setting(
            0, at_least=0, at_most=100, help="levels of the tree that count, from the top; 0: all"
        )

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Return the settings that the conformance suite tries."""
        return [
            cls.Settings(k=2),
            cls.Settings(k=3, categories=5, levels=2, time="drop", labels="fresh"),
        ]

    def grouping(self) -> Grouping:
        """Return the strategy that groups users."""
        return TopicGrouping(self.settings, self.picker(), self.texts)
