"""`microagg-topic`: groups of k people with common topics share one history of their queries (003, 5.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from querycloak import settings as declared
from querycloak.dictionary import Texts
from querycloak.kernels import topic_groups
from querycloak.log import Batch, IntArray
from querycloak.methods.microagg_meanings import MicroaggMeanings
from querycloak.methods.microaggregation import EXACT, Representative
from querycloak.methods.sharing import ranked_picks
from querycloak.settings import setting
from querycloak.topics.concepts.field import Field

NO_TOPIC = "no phrase of any of the person's queries is known"
_COIN = 9  # the purpose of draws that round a share of copies


class MicroaggTopic(MicroaggMeanings):
    """Group people whose searches fall into the same categories, and show one history of their queries.

    Two people are as alike as they have categories in common, at all levels of the tree. The history of a
    group takes from each person her share of queries, those first that she asked most often.

    Promise: each released history, with all of its columns, is that of at least `k` people.

    Does not protect against:
        - what a query itself says: its text may name who asked it
        - what all k people of a group have in common, and that a person is in the log
        - k accounts that one attacker opened to be in one group with somebody
        - several releases of overlapping logs

    Reference: A. Erola, "Contributions to privacy in web search engines", section 5.4.
    """

    name = "microagg-topic"
    reads = MicroaggMeanings.reads | {"category"}

    @dataclass(frozen=True, kw_only=True)
    class Settings(MicroaggMeanings.Settings):
        """Settings of `microagg-topic`."""

        categories: int = setting(
            1, kind=int, at_least=1, at_most=5, help="categories of each phrase that count, the best first"
        )
        levels: int = setting(
            0, kind=int, at_least=0, at_most=100, help="levels of the tree that count, from the top; 0: all"
        )

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Texts) -> None:
        super().__init__(settings, key, texts)
        self._found: _Categories | None = None

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Name the settings that the conformance suite tries."""
        return [
            cls.Settings(k=2),
            cls.Settings(k=3, categories=5, levels=2, time="drop", labels="fresh"),
        ]

    def _usable(self, held: Batch) -> Batch:
        """Drop people without any category; a query without one may still stand for its person."""
        self.drop(held.row[held.query < 0], "no query")
        held = held[held.query >= 0]
        self._found = _Categories(held.query, self._field, self.texts, self.settings.categories)
        known = np.isin(held.user, held.user[self._found.sizes(held.query) > 0])
        self.drop(held.row[~known], NO_TOPIC)
        return held[known]

    def _groups(self, held: Batch, people: IntArray) -> IntArray:
        assert self._found is not None
        node, record = self._found.of(held.query)
        tree, chosen = self.tree, self.settings
        deepest = int(tree.depth.max())
        counts = topic_groups.counted(
            held.user[record],
            node - 1,  # without the root, which is common to all
            tree.parent[1:].astype(np.int64) - 1,
            min(chosen.levels or deepest, deepest),
            people.size,
        )
        return topic_groups.group(counts, chosen.k, self._ranks(people), most=EXACT)

    def _represented(self, theirs: Batch, members: IntArray) -> Representative:
        """Take from each person her share, the queries first that she asked most often."""
        draws, coins = self._draws(theirs), self._draws(theirs, _COIN)
        chosen = ranked_picks(np.searchsorted(members, theirs.user), theirs.query, draws, coins)
        shown = theirs[self._varied(chosen, theirs, draws)]
        return Representative.of(shown.query, time=shown.time, category=shown.category)


class _Categories:
    """The categories of each query's phrases, by the code of the query."""

    def __init__(self, queries: IntArray, field: Field, texts: Texts, most: int) -> None:
        self._query = np.unique(queries)
        mapped = field.mapper.read(texts.query.decode(self._query))
        found = [field.concepts.categories(phrase.known, most) for phrase in mapped.phrases]
        ends = np.cumsum([0, *map(len, found)])
        self._start = ends[mapped.start]
        self._node = np.array([node for own in found for node in own], np.int64)

    def sizes(self, queries: IntArray) -> IntArray:
        """Count the categories of each query."""
        return np.diff(self._start)[np.searchsorted(self._query, queries)]

    def of(self, queries: IntArray) -> tuple[IntArray, IntArray]:
        """Give the categories of all queries, and which of the queries each one is of."""
        sizes = self.sizes(queries)
        record = np.repeat(np.arange(queries.size), sizes)
        turn = np.arange(record.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        begin = self._start[np.searchsorted(self._query, queries)]
        return self._node[begin[record] + turn], record
