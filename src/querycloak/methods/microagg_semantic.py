"""`microagg-semantic`: groups of k people alike in meaning share one history of real queries (003, 5.5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from querycloak import settings as declared
from querycloak.dictionary import Texts
from querycloak.errors import ParameterError
from querycloak.kernels import candidates
from querycloak.log import Batch, IntArray
from querycloak.methods.likeness import Floats, Likeness
from querycloak.methods.likeness_by_tree import ByTree
from querycloak.methods.likeness_by_vectors import ByVectors
from querycloak.methods.microagg_meanings import MicroaggMeanings
from querycloak.methods.microaggregation import EXACT, Representative
from querycloak.methods.sharing import member_quotas
from querycloak.settings import setting
from querycloak.topics import embeddings

#: Settings that only a tree of categories can follow, and the value that asks nothing of it.
_OF_TREES = {"diversity": 1, "closeness": 1.0, "mapper": "lexical", "taxonomy": ""}


class MicroaggSemantic(MicroaggMeanings):
    """Group people whose searches mean alike things, and show one history of real queries for each group.

    Phrases are mapped to categories; people are as far apart as their categories are in the tree. The
    history of a group has the categories nearest to its middle, as many from each person as she asked, and
    for each a query of that category, picked by chance from the whole log. With `similarity=embedding`,
    vectors of words take the place of categories.

    Promise: each released history, with all of its columns, is that of at least `k` people.

    Does not protect against:
        - what a query itself says: its text may name who asked it (see `asked_by`)
        - what all k people of a group have in common, and that a person is in the log
        - k accounts that one attacker opened to be in one group with somebody
        - several releases of overlapping logs

    Reference: A. Erola, "Contributions to privacy in web search engines", section 5.5.
    """

    name = "microagg-semantic"

    @dataclass(frozen=True, kw_only=True)
    class Settings(MicroaggMeanings.Settings):
        """Settings of `microagg-semantic`."""

        similarity: str = setting(
            "taxonomy",
            kind=str,
            choices=("taxonomy", "embedding"),
            help="compare by categories of a tree, or by vectors of words (extra `embeddings`)",
        )
        asked_by: int = setting(
            1, kind=int, at_least=1, help="show only queries of so many people; else the category's own name"
        )

        def __post_init__(self) -> None:
            super().__post_init__()
            needless = [
                name for name, asks_nothing in _OF_TREES.items() if getattr(self, name) != asks_nothing
            ]
            if self.similarity == "embedding" and needless:
                named = " and ".join(f"`{name}`" for name in needless)
                raise ParameterError(
                    f"MicroaggSemantic: `similarity=embedding` has no categories for {named}",
                    hint=f"leave out {named}, or use `similarity=taxonomy`",
                )

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Texts) -> None:
        super().__init__(settings, key, texts)
        self._likeness: Likeness = (
            ByVectors(settings, key, texts)
            if settings.similarity == "embedding"
            else ByTree(settings, key, texts, self._field)
        )
        self.empties = self.empties | self._likeness.empties

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Name the settings that the conformance suite tries."""
        found: list[declared.Settings] = [cls.Settings(k=2)]
        found.append(cls.Settings(k=3, asked_by=2, time="drop", labels="fresh"))
        return [*found, cls.Settings(k=2, similarity="embedding")] if embeddings.installed() else found

    def prepare(self) -> None:
        """Ask for the vectors, if they are to be compared."""
        self._likeness.prepare()

    def _usable(self, held: Batch) -> Batch:
        return self._likeness.usable(held, self.drop)

    def _groups(self, held: Batch, people: IntArray) -> IntArray:
        thing, record = self._likeness.things(held.query)
        owner = np.searchsorted(people, held.user[record])
        order = np.argsort(owner, kind="stable")
        start = np.searchsorted(owner[order], np.arange(people.size + 1))
        distances = self._likeness.people(thing[order], start)
        return candidates.group(distances, self.settings.k, self._ranks(people), most=EXACT)

    def _represented(self, theirs: Batch, members: IntArray) -> Representative:
        """Take from each person the things nearest to the middle, and a query for each."""
        likeness = self._likeness
        thing, record = likeness.things(theirs.query)
        owner = np.searchsorted(members, theirs.user[record])
        apart = likeness.apart(thing)
        quota = member_quotas(np.bincount(owner, minlength=members.size).tolist(), range(members.size))
        parts = [np.flatnonzero(owner == m) for m in range(members.size)]
        chosen = np.concatenate(
            [own[_nearest(thing[own], apart[own])[:most]] for own, most in zip(parts, quota, strict=True)]
        )
        chosen = likeness.varied(chosen, thing, apart)
        names = (members[0] << 32) + np.arange(chosen.size)  # not by rows: a file's order decides nothing
        return Representative.of(
            likeness.picked(thing[chosen], names),
            time=theirs.time[record[chosen]],
            category=likeness.category(thing[chosen]),
        )


def _nearest(thing: IntArray, apart: Floats) -> IntArray:
    """Sort one person's things by how far each is from the middle, times how often it comes (5.15)."""
    _, number, count = np.unique(thing, return_inverse=True, return_counts=True)
    return np.lexsort((thing, (apart * count[number]).round(9)))
