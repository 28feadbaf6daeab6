"""Likeness of categories in a tree, as in paper 003, section 5.5."""

from __future__ import annotations

from typing import Any

import numpy as np

from querycloak.dictionary import Texts
from querycloak.kernels import semantic_distance, siphash
from querycloak.log import NOTHING, Batch, IntArray
from querycloak.methods import mixing
from querycloak.methods.likeness import PICK, Drop, Floats, Likeness
from querycloak.methods.microagg_meanings import UNMAPPED
from querycloak.methods.replacing import Reader
from querycloak.topics.concepts.field import Field
from querycloak.topics.taxonomy import Taxonomy


class ByTree(Likeness):
    """Things are categories, one for each phrase that is known; a query says all of its phrases'."""

    def __init__(self, settings: object, key: bytes, texts: Texts, field: Field) -> None:
        super().__init__(settings, key, texts)
        self._field = field
        self._reader = Reader(field, texts, all_concepts=True)
        self._query = self._node = np.empty(0, np.int64)  # the shelf: queries that may be shown, by category

    @property
    def _tree(self) -> Taxonomy:
        return self._field.concepts.placed.tree

    def usable(self, held: Batch, drop: Drop) -> Batch:
        """Look up the phrases of all queries; those of which none is known are dropped."""
        self._reader.learn(held.query)
        known = self._reader.sizes(held.query) > 0
        drop(held.row[~known], UNMAPPED)
        held = held[known]
        if len(held):
            self._stock(held)
        return held

    def _stock(self, held: Batch) -> None:
        node, record = self.things(held.query)
        wide = int(held.query.max()) + 1
        books = np.unique(node * wide + held.query[record])
        books = books[self._often(held.query, held.user)[books % wide]]
        prints = self.texts.query.fingerprints(books % wide, self._shelf_key)
        order = np.lexsort((prints, books // wide))  # by the text itself, not by when it came
        self._query, self._node = (books % wide)[order], (books // wide)[order]

    def things(self, queries: IntArray) -> tuple[IntArray, IntArray]:
        """Give the category of each phrase."""
        slots = self._reader.slots(queries)
        return self._field.concepts.placed.node[slots.concept].astype(np.int64), slots.record

    def people(self, thing: IntArray, start: IntArray) -> semantic_distance.People:
        """Compare people by how far each one's categories are from the other's nearest (5.10 to 5.13)."""
        return semantic_distance.people(self._tree.parent, start, thing, np.ones(thing.size, np.int64))

    def apart(self, thing: IntArray) -> Floats:
        """Give how far each category lies from the one that is nearest to all of them (5.14)."""
        distinct, number, count = np.unique(thing, return_inverse=True, return_counts=True)
        tree = self._tree
        middle = distinct[np.argmin(_sums(tree, distinct, count).round(9))]
        common = tree.depth[tree.common_ancestors(np.full(distinct.size, middle), distinct)]
        return np.asarray(_delta(common, tree.depth[middle], tree.depth[distinct])[number])

    def picked(self, thing: IntArray, names: IntArray) -> IntArray:
        """Pick a query of each category by chance; where there is none, give the category's own name."""
        first, last = np.searchsorted(self._node, thing, "left"), np.searchsorted(self._node, thing, "right")
        found, there = np.full(thing.size, NOTHING, np.int64), last > first
        chance = siphash.draw(self._pick_key, PICK, names[there]) % (last - first)[there].astype(np.uint64)
        found[there] = self._query[first[there] + chance.astype(np.int64)]
        called = [self._tree.names[n].lower() for n in thing[~there].tolist()]
        found[~there] = self.texts.query.intern(called)
        return found

    def varied(self, chosen: IntArray, thing: IntArray, apart: Floats) -> IntArray:
        """Take in the nearest category of another topic until there are enough."""
        least = self.settings.diversity
        if least == 1:
            return chosen
        return mixing.varied(chosen, self._tree.at_level(thing, 1).astype(np.int64), apart, least, thing)

    def category(self, thing: IntArray) -> IntArray:
        """Give the paths of categories."""
        paths = self._tree.paths
        return self.texts.category.intern([paths[n] for n in thing.tolist()])


def _delta(common: Any, one: Any, other: Any) -> Floats:
    """Give the distance of categories by their depths, and that of what is above both (5.10)."""
    either = one + other - common
    return np.asarray((either - common) / np.maximum(either, 1))


def _sums(tree: Taxonomy, distinct: IntArray, count: IntArray) -> Floats:
    """Sum up the distances of each category to all of them, each as often as it comes.

    All below an ancestor and at one depth are equally far, so a count by ancestor and depth is enough.
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
