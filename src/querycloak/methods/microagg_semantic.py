"""`microagg-semantic`: groups of k people alike in meaning share one history of real queries (003, 5.5)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from querycloak import settings as declared
from querycloak.dictionary import Texts
from querycloak.kernels import candidates, semantic_distance, siphash
from querycloak.keys import derive
from querycloak.log import NOTHING, Batch, IntArray
from querycloak.methods import mixing
from querycloak.methods.aggregation import quotas
from querycloak.methods.labels import labels_setting
from querycloak.methods.meaning_settings import (
    mapper_setting,
    taxonomy_setting,
)
from querycloak.methods.microaggregation import (
    EXACT,
    Microaggregation,
    Representative,
    closeness_setting,
    diversity_setting,
)
from querycloak.methods.replacing import Reader
from querycloak.settings import setting
from querycloak.topics.concepts.field import Field
from querycloak.topics.concepts.words import Placed
from querycloak.topics.taxonomy import Taxonomy

UNMAPPED = "no phrase of it is known"
_PICK = 1


class MicroaggSemantic(Microaggregation):
    """Group people whose searches mean alike things, and show one history of real queries for each group.

    Phrases are mapped to categories; people are as far apart as their categories are in the tree. The
    history of a group has the categories nearest to its middle, as many from each person as she asked, and
    for each a query of that category, picked by chance from the whole log.

    Promise: each released history, with all of its columns, is that of at least `k` people.

    Does not protect against:
        - what a query itself says: its text may name who asked it (see `asked_by`)
        - what all k people of a group have in common, and that a person is in the log
        - k accounts that one attacker opened to be in one group with somebody
        - several releases of overlapping logs

    Reference: A. Erola, "Contributions to privacy in web search engines", section 5.5.
    """

    name = "microagg-semantic"
    reads = frozenset({"user", "query", "time"})

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `microagg-semantic`."""

        k: int = setting(5, kind=int, at_least=2, help="people who share a history, at least")
        diversity: int = diversity_setting()
        closeness: float = closeness_setting()
        asked_by: int = setting(
            1, kind=int, at_least=1, help="show only queries of so many people; else the category's own name"
        )
        mapper: str = mapper_setting()
        taxonomy: str = taxonomy_setting()
        time: str = setting(
            "coarsen", kind=str, choices=("coarsen", "drop"), help="`coarsen` to the hour, or `drop`, times"
        )
        labels: str = labels_setting()  # type: ignore[assignment]

        def as_dict(self) -> dict[str, Any]:
            """Name files without their folders: a certificate travels."""
            return super().as_dict() | {"taxonomy": Path(self.taxonomy).name}

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Texts) -> None:
        super().__init__(settings, key, texts)
        self.empties = frozenset({"url", "rank"} | ({"time"} if settings.time == "drop" else set()))
        self._field = Field(settings)
        self._reader = Reader(self._field, texts, all_concepts=True)
        self._shelf: _Shelf | None = None

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Name the settings that the conformance suite tries."""
        return [cls.Settings(k=2), cls.Settings(k=3, asked_by=2, time="drop", labels="fresh")]

    @property
    def _placed(self) -> Placed:
        return self._field.concepts.placed

    @property
    def tree(self) -> Taxonomy:
        """The tree of categories."""
        return self._placed.tree

    def _usable(self, held: Batch) -> Batch:
        self._reader.learn(held.query)
        known = self._reader.sizes(held.query) > 0
        self.drop(held.row[~known], UNMAPPED)
        return held[known]

    def _nodes(self, batch: Batch) -> tuple[IntArray, IntArray]:
        """Give the category of each phrase, and the record that it is of."""
        slots = self._reader.slots(batch.query)
        return self._placed.node[slots.concept].astype(np.int64), slots.record

    def _groups(self, held: Batch, people: IntArray) -> IntArray:
        node, record = self._nodes(held)
        self._shelf = _Shelf(node, held.query[record], held.user[record], self)
        owner = np.searchsorted(people, held.user[record])
        order = np.argsort(owner, kind="stable")
        start = np.searchsorted(owner[order], np.arange(people.size + 1))
        once = np.ones(node.size, np.int64)
        profile = semantic_distance.people(self.tree.parent, start, node[order], once)
        return candidates.group(profile, self.settings.k, self._ranks(people), most=EXACT)

    def _represented(self, theirs: Batch, members: IntArray) -> Representative:
        """Take from each person the categories nearest to the middle, and a query for each."""
        assert self._shelf is not None
        node, record = self._nodes(theirs)
        owner = np.searchsorted(members, theirs.user[record])
        apart = self._apart_from_middle(node)
        quota = quotas(np.bincount(owner, minlength=members.size) / members.size)
        parts = [np.flatnonzero(owner == m) for m in range(members.size)]
        chosen = np.concatenate(
            [
                own[_nearest(node[own], apart[own])[:most]]
                for own, most in zip(parts, quota.tolist(), strict=True)
            ]
        )
        if self.settings.diversity > 1:
            chosen = mixing.varied(
                chosen, self.tree.at_level(node, 1).astype(np.int64), apart, self.settings.diversity
            )
        names = (members[0] << 32) + np.arange(chosen.size)  # not by rows: a file's order decides nothing
        query = self._shelf.picked(node[chosen], names)
        paths = self.tree.paths
        category = self.texts.category.intern([paths[n] for n in node[chosen].tolist()])
        return Representative.of(query, time=theirs.time[record[chosen]], category=category)

    def _apart_from_middle(self, node: IntArray) -> Any:
        """Give how far each category lies from the one that is nearest to all of them."""
        distinct, number, count = np.unique(node, return_inverse=True, return_counts=True)
        tree = self.tree
        first, second = np.repeat(distinct, distinct.size), np.tile(distinct, distinct.size)
        common = tree.depth[tree.common_ancestors(first, second)]
        either = tree.depth[first] + tree.depth[second] - common
        table = ((either - common) / np.maximum(either, 1)).reshape(distinct.size, distinct.size)
        middle = int(np.argmin((table @ count).round(9)))
        return table[middle][number]


def _nearest(node: IntArray, apart: Any) -> IntArray:
    """Sort one person's phrases by how far their category is from the middle, times how often it comes."""
    _, number, count = np.unique(node, return_inverse=True, return_counts=True)
    return np.lexsort((node, (apart * count[number]).round(9)))


class _Shelf:
    """The log's queries by category, to pick from."""

    def __init__(self, node: IntArray, query: IntArray, user: IntArray, method: MicroaggSemantic) -> None:
        self._method = method
        self._key = derive(method.key, "pick")
        wide = int(query.max()) + 1
        pairs = np.unique(query * (int(user.max()) + 1) + user) // (int(user.max()) + 1)
        often = np.bincount(pairs, minlength=wide) >= method.settings.asked_by
        books = np.unique(node * wide + query)
        books = books[often[books % wide]]
        prints = method.texts.query.fingerprints(books % wide, derive(method.key, "shelf"))
        order = np.lexsort((prints, books // wide))  # by the text itself, not by when it came
        self._query, self._node = (books % wide)[order], (books // wide)[order]

    def picked(self, node: IntArray, names: IntArray) -> IntArray:
        """Pick a query of each category by chance; where there is none, give the category's own name."""
        first, last = np.searchsorted(self._node, node, "left"), np.searchsorted(self._node, node, "right")
        found, there = np.full(node.size, NOTHING, np.int64), last > first
        chance = siphash.draw(self._key, _PICK, names[there]) % (last - first)[there].astype(np.uint64)
        found[there] = self._query[first[there] + chance.astype(np.int64)]
        names_of = self._method.tree.names
        words = [names_of[n].lower() for n in node[~there].tolist()]
        found[~there] = self._method.texts.query.intern(words)
        return found
