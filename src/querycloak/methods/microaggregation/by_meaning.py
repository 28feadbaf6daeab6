"""`microagg-semantic` and `microagg-topic`: users are grouped by the meaning of searches (003, 5.4, 5.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from querycloak import settings as declared
from querycloak.dictionary import Dictionaries
from querycloak.kernels import siphash
from querycloak.kernels.arrays import spans
from querycloak.keys import derive
from querycloak.log import MISSING, Batch, FloatArray, IntArray
from querycloak.methods import microaggregation
from querycloak.methods.microaggregation import mdav, topic_groups
from querycloak.methods.microaggregation.representatives import diversify_picks, member_quotas, ranked_picks
from querycloak.methods.shared.readings import CodedReadings, mapper_setting, taxonomy_setting
from querycloak.settings import setting
from querycloak.text.reader import TextReader, TextSpec
from querycloak.text.taxonomy import Taxonomy

UNMAPPED: Final = "no phrase of it is known"
NO_TOPIC: Final = "no phrase of any of the person's queries is known"
COIN: Final = 9  # the purpose of draws that round a share of copies
_PICK: Final = 1  # the purpose of the draws that pick queries


@dataclass(frozen=True, kw_only=True)
class TaxonomySettings(declared.Settings):
    """Settings of a microaggregation that maps phrases to categories."""

    mapper: str = mapper_setting()
    taxonomy: str = taxonomy_setting()


class MicroaggMeanings(microaggregation.Microaggregation):
    """Microaggregation by the categories of phrases in a taxonomy."""

    def __init__(self, settings: Any, key: bytes, texts: Dictionaries) -> None:
        super().__init__(settings, key, texts)
        self._reader = TextReader(TextSpec(taxonomy=settings.taxonomy, phrases=settings.mapper))

    @property
    def _tree(self) -> Taxonomy:
        return self._reader.lexicon.tree

    def check_ready(self) -> None:
        """Raise MissingExtra without the parser that is asked for, before a long log is read."""
        self._reader.check_ready()


class MicroaggSemantic(MicroaggMeanings):
    """Group people whose searches mean alike things, and show one history of real queries for each group.

    Phrases are mapped to categories; users are as far apart as their categories are in the tree. The history
    of a group has the categories nearest to its centroid, from each user in proportion to the user's number
    of phrases. Each category is shown by a query of it, picked at random from the whole log.

    Guarantee: each released history, in all columns, is shared by at least `k` users.

    Limits: what a query itself says: its text may name who asked it (see `asked_by`); what all k people of
    a group have in common, and that a person is in the log; k accounts that one attacker opened to be in
    one group with somebody; several releases of overlapping logs.

    Reference: A. Erola, "Contributions to privacy in web search engines", section 5.5.
    """

    name = "microagg-semantic"
    sets_categories = True

    @dataclass(frozen=True, kw_only=True)
    class Settings(microaggregation.ReleaseSettings, TaxonomySettings, microaggregation.GroupSettings):
        """Settings of `microagg-semantic`."""

        asked_by: int = setting(
            1,
            at_least=1,
            stronger="larger",
            help="show only queries of so many people; else the category's own name",
        )

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Return the settings that the conformance suite tries."""
        return [cls.Settings(k=2), cls.Settings(k=3, asked_by=2, time="drop", labels="fresh")]

    def __init__(self, settings: Settings, key: bytes, texts: Dictionaries) -> None:
        super().__init__(settings, key, texts)
        self._shelf_key, self._pick_key = derive(key, "shelf"), derive(key, "pick")
        self._readings = CodedReadings(self._reader, texts.query)
        self._query = self._node = np.empty(0, np.int64)  # index: queries that may be shown, by category

    def _prepare(self, held: Batch) -> tuple[Batch, dict[str, IntArray]]:
        self._readings.learn(held.query)
        known = self._readings.sizes(held.query) > 0
        if known.any():
            self.index_queries(held[known])
        return held[known], {UNMAPPED: held.row[~known]}

    def index_queries(self, held: Batch) -> None:
        """Index by category the queries of at least `asked_by` users."""
        node, record = self.items(held.query)
        wide, users = int(held.query.max()) + 1, int(held.user.max()) + 1
        cells = np.unique(node * wide + held.query[record])
        askers = np.bincount(np.unique(held.query * users + held.user) // users)
        cells = cells[askers[cells % wide] >= self.settings.asked_by]
        prints = self.texts.query.fingerprints(cells % wide, self._shelf_key)
        order = np.lexsort((prints, cells // wide))  # by the text itself, not by its place in the log
        self._query, self._node = (cells % wide)[order], (cells // wide)[order]

    def items(self, queries: IntArray) -> tuple[IntArray, IntArray]:
        """Return the category of each phrase, and the place of its query."""
        slots = self._readings.concepts(queries)
        return self._reader.lexicon.node[slots.concept].astype(np.int64), slots.record

    def _groups(self, held: Batch, users: int) -> IntArray:
        """Return the groups of MDAV, by the distances of equations 5.10 to 5.13."""
        item, record = self.items(held.query)
        return self._mdav(self._tree.parent, held.user[record], item, users)

    def _representative(self, records: Batch, members: IntArray) -> Batch:
        """Return each user's share of the categories nearest to the centroid, with a query for each."""
        item, record = self.items(records.query)
        owner = np.searchsorted(members, records.user[record])
        apart = self.distance_to_centroid(item)
        quota = member_quotas(np.bincount(owner, minlength=members.size).tolist(), range(members.size))
        parts = [np.flatnonzero(owner == m) for m in range(members.size)]
        chosen = np.concatenate(
            [own[_nearest(item[own], apart[own])[:most]] for own, most in zip(parts, quota, strict=True)]
        )
        if self.settings.diversity > 1:
            topic = self._tree.at_level(item, 1).astype(np.int64)
            chosen = diversify_picks(chosen, topic, apart, self.settings.diversity, item)
        names = (members[0] << 32) + np.arange(chosen.size)  # the order of a file decides nothing
        query, paths = self.pick_queries(item[chosen], names), self._tree.paths
        category = self.texts.category.intern([paths[n] for n in item[chosen].tolist()])
        return self._shown(query, time=records.time[record[chosen]], category=category)

    def distance_to_centroid(self, item: IntArray) -> FloatArray:
        """Return the distance of each category to the one with the least sum of distances (5.14)."""
        distinct, number, count = np.unique(item, return_inverse=True, return_counts=True)
        tree = self._tree
        centroid = distinct[np.argmin(_sums(tree, distinct, count).round(9))]
        common = tree.depth[tree.common_ancestors(np.full(distinct.size, centroid), distinct)]
        return np.asarray(_delta(common, tree.depth[centroid], tree.depth[distinct])[number])

    def pick_queries(self, item: IntArray, names: IntArray) -> IntArray:
        """Return a random query of each category; the name of the category where there is none."""
        first, last = np.searchsorted(self._node, item, "left"), np.searchsorted(self._node, item, "right")
        found, there = np.full(item.size, MISSING, np.int64), last > first
        chance = siphash.draw(self._pick_key, _PICK, names[there]) % (last - first)[there].astype(np.uint64)
        found[there] = self._query[first[there] + chance.astype(np.int64)]
        called = [self._tree.names[n].lower() for n in item[~there].tolist()]
        found[~there] = self.texts.query.intern(called)
        return found


def _nearest(item: IntArray, apart: FloatArray) -> IntArray:
    """Return the order of one user's items by distance to the centroid, times their count (5.15)."""
    _, number, count = np.unique(item, return_inverse=True, return_counts=True)
    return np.lexsort((item, (apart * count[number]).round(9)))


def _delta(common: Any, one: Any, other: Any) -> FloatArray:
    """Return the distance of categories by their depths and the depth of their common ancestor (5.10)."""
    either = one + other - common
    return np.asarray((either - common) / np.maximum(either, 1))


def _sums(tree: Taxonomy, distinct: IntArray, count: IntArray) -> FloatArray:
    """Return the sum of the distances of each category to all of them, weighted by their counts.

    Categories below an ancestor and at one depth are equally far: counts by ancestor and depth are enough.
    """
    depth = tree.depth[distinct].astype(np.int64)
    levels = np.arange(int(depth.max()) + 1)
    reaches = depth[:, None] >= levels
    above = np.stack([tree.at_level(distinct, level) for level in levels.tolist()], axis=1)
    node = np.unique(above, return_inverse=True)[1].reshape(above.shape)
    below = np.zeros((int(node.max()) + 1, levels.size))
    who, level = np.nonzero(reaches)
    np.add.at(below, (node[who, level], depth[who]), count[who])
    total = np.zeros(distinct.size)
    for common in levels.tolist():
        here = below[node[:, common]] * reaches[:, common, None]
        if common + 1 < levels.size:
            here -= below[node[:, common + 1]] * reaches[:, common + 1, None]
        total += (here * _delta(common, depth[:, None], levels)).sum(axis=1)
    return total


class MicroaggTopic(MicroaggMeanings):
    """Group people whose searches fall into the same categories, and show one history of their queries.

    Two users are as similar as they have categories in common, at all levels of the tree. The history of a
    group has a share of each user's queries, the user's most frequent queries first.

    Guarantee: each released history, in all columns, is shared by at least `k` users.

    Limits: what a query itself says: its text may name who asked it; what all k people of a group have in
    common, and that a person is in the log; k accounts that one attacker opened to be in one group with
    somebody; several releases of overlapping logs.

    Reference: A. Erola, "Contributions to privacy in web search engines", section 5.4.
    """

    name = "microagg-topic"
    reads = MicroaggMeanings.reads | {"category"}
    _categories: _QueryCategories

    @dataclass(frozen=True, kw_only=True)
    class Settings(microaggregation.ReleaseSettings, TaxonomySettings, microaggregation.GroupSettings):
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
        return [cls.Settings(k=2), cls.Settings(k=3, categories=5, levels=2, time="drop", labels="fresh")]

    def _prepare(self, held: Batch) -> tuple[Batch, dict[str, IntArray]]:
        """Return the records of users with a category; a query without one can still represent its user."""
        empty = held.row[held.query < 0]
        held = held[held.query >= 0]
        self._categories = _QueryCategories(held.query, self._reader, self.texts, self.settings.categories)
        known = np.isin(held.user, held.user[self._categories.sizes(held.query) > 0])
        return held[known], {"no query": empty, NO_TOPIC: held.row[~known]}

    def _groups(self, held: Batch, users: int) -> IntArray:
        """Return the groups of users with most categories in common."""
        node, record = self._categories.of(held.query)
        deepest = self.settings.levels or int(self._tree.depth.max())
        counts = topic_groups.count_categories(held.user[record], node, self._tree, deepest, users)
        return topic_groups.group(counts, self.settings.k, np.arange(users, dtype=np.uint64), most=mdav.EXACT)

    def _representative(self, records: Batch, members: IntArray) -> Batch:
        """Return each user's share of records, the most frequent queries first."""
        own, draws = np.searchsorted(members, records.user), self.draws(records)
        places = ranked_picks(own, records.query, draws, self.draws(records, COIN))
        chosen = records[self._diversify(places, records)]
        return self._shown(chosen.query, time=chosen.time, category=chosen.category)


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
        begin = self._start[np.searchsorted(self._query, queries)]
        return self._node[spans(begin, sizes)], np.repeat(np.arange(queries.size), sizes)
