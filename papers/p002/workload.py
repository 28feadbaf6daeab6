"""Synthetic histories, and the settings of the paper on WordNet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from querycloak.text.concept_space import (
    PAPER_4,
    PAPER_19,
    ConceptSpace,
    TopicPartition,
    concept_space,
    partition_by_topic,
)
from querycloak.text.senses import concept_lexicon

MEAN, SPREAD, LEAST, MOST = 100, 0.5, 20, 300  # queries of a user: lognormal, cut at both ends
ROOT = "abstraction.n.06"
#: By name: how alike users' interests are (the smaller, the less), and whether they ask for the concepts of
#: the four topics that are in none of the nineteen.
LOGS = {"usual": (0.5, True), "apart": (0.1, True), "alike": (2.0, True), "listed": (0.5, False)}

Longs = npt.NDArray[np.int64]


class Setting(NamedTuple):
    """Which concepts may replace a query, and by which topics users are profiled."""

    domains: TopicPartition | None  # one domain for each of these topics, or a single one
    root: int | None  # all that can be drawn lies at or below it
    profile: TopicPartition
    bins: Longs  # the concepts that a histogram counts


class World:
    """WordNet's concepts, the paper's topics, and its settings."""

    def __init__(self) -> None:
        self.concepts = concept_lexicon(None)
        self.four = partition_by_topic(self.concepts, "paper-4")
        self.nineteen = partition_by_topic(self.concepts, "paper-19")
        self._spaces: dict[tuple[str, str], ConceptSpace] = {}

    @cached_property
    def settings(self) -> dict[str, Setting]:
        """The paper's settings, and two of our own that explain them."""
        four, nineteen, root = self.four, self.nineteen, self.concepts.find(ROOT)
        both = partition_by_topic(self.concepts, ",".join((*PAPER_4, *PAPER_19)))
        joined = TopicPartition(
            ("the four topics", four.names[-1]), (four.of == len(PAPER_4)).astype(np.int32)
        )
        inside, listed = self.inside, self._sayable(nineteen.of < len(PAPER_19))
        below = self._sayable(self._under(root))
        return {
            "A": Setting(four, None, nineteen, inside),
            "B": Setting(None, root, nineteen, below),
            "C": Setting(None, root, four, below),
            "D(q)=P 4": Setting(four, None, four, inside),
            "D(q)=P 19": Setting(nineteen, None, nineteen, listed),
            "D(q)<P": Setting(both, None, four, inside),
            "B joined": Setting(joined, None, nineteen, inside),
            "C joined": Setting(joined, None, four, inside),
        }

    @cached_property
    def inside(self) -> Longs:
        """The concepts of the four topics: what users ask for."""
        return self._sayable(self.four.of < len(PAPER_4))

    def _sayable(self, wanted: npt.NDArray[np.bool_]) -> Longs:
        some = self.concepts.labelled.astype(np.int64)
        return some[wanted[some]]

    def _under(self, root: int) -> npt.NDArray[np.bool_]:
        above, found = self.concepts.ancestors, np.zeros(self.concepts.size, np.bool_)
        found[np.repeat(np.arange(self.concepts.size), np.diff(above.start))[above.flat == root]] = True
        return found

    def space(self, setting: str, criterion: str) -> ConceptSpace:
        """Return which concepts can replace which; made once."""
        key = setting, criterion
        if key not in self._spaces:
            own = self.settings[setting]
            self._spaces[key] = concept_space(self.concepts, own.profile, criterion, own.domains, own.root)
        return self._spaces[key]

    def about(self) -> dict[str, Any]:
        """Return how large everything is."""
        sizes: dict[str, int] = {}
        for topics in (self.four, self.nineteen):
            held = np.bincount(topics.of[self.inside], minlength=len(topics.names))
            sizes |= dict(zip(topics.names[:-1], held.tolist(), strict=False))
        return {
            "topics": sizes,
            "in_the_four": int(self.inside.size),
            "in_none_of_the_19": int((self.nineteen.of[self.inside] == len(PAPER_19)).sum()),
            "below_abstraction": int(self.settings["B"].bins.size),
            "least_similarity": {
                name: np.round(self.space(name, "sqc1").min_similarity[:4], 4).tolist() for name in ("A", "B")
            },
        }


@dataclass(frozen=True)
class Histories:
    """Queries of many users as concepts, one user after the other."""

    user: Longs
    concept: Longs
    sizes: Longs

    @classmethod
    def of(cls, world: World, users: int, seed: int, log: str = "usual") -> Histories:
        """Draw histories: each user has interests of their own, and some concepts are popular with all.

        Interests are Dirichlet over the four topics, and within each over its subtopics and the rest of
        it, the rest by its size. Within a subtopic the r-th concept has a weight of 1/r.
        """
        interest, rest = LOGS[log]
        chance = np.random.default_rng(seed)
        spread = chance.lognormal(np.log(MEAN) - SPREAD**2 / 2, SPREAD, users)
        sizes = np.clip(np.rint(spread), LEAST, MOST).astype(np.int64)
        cells = [cell for topic in range(len(PAPER_4)) for cell in _cells(world, topic, rest)]
        topic = np.array([world.four.of[cell[0]] for cell in cells])
        share = np.empty((users, len(cells)))
        for number, own in enumerate(chance.dirichlet([interest] * len(PAPER_4), users).T):
            here = [cell for cell, of in zip(cells, topic, strict=True) if of == number]
            within = chance.dirichlet([interest * size for size in _relative(world, here)], users)
            share[:, topic == number] = own[:, None] * within
        user = np.repeat(np.arange(users), sizes)
        cell = (chance.random(user.size)[:, None] > np.cumsum(share, axis=1)[user]).sum(axis=1)
        cell = np.minimum(cell, len(cells) - 1)
        concept = np.empty(user.size, np.int64)
        for number, members in enumerate(cells):
            popular = 1 / (1 + chance.permutation(members.size))
            some = np.flatnonzero(cell == number)
            concept[some] = chance.choice(members, some.size, p=popular / popular.sum())
        return cls(user, concept, sizes)

    def about(self, world: World) -> dict[str, Any]:
        """Return the size of the log."""
        return {
            "users": int(self.sizes.size),
            "queries": int(self.user.size),
            "queries_of_a_user": [int(self.sizes.min()), float(self.sizes.mean()), int(self.sizes.max())],
            "distinct_concepts": int(np.unique(self.concept).size),
            "outside_the_19": float((world.nineteen.of[self.concept] == len(PAPER_19)).mean()),
        }


def _cells(world: World, topic: int, rest: bool) -> list[Longs]:
    """Return the subtopics of a topic, and its rest as the last if wanted, by their concepts."""
    own = world.inside[world.four.of[world.inside] == topic]
    own = own[rest | (world.nineteen.of[own] < len(PAPER_19))]
    return [own[world.nineteen.of[own] == part] for part in np.unique(world.nineteen.of[own])]


def _relative(world: World, cells: list[Longs]) -> list[float]:
    """Weigh subtopics equally, and the rest by its size beside theirs."""
    rest = [world.nineteen.of[cell[0]] == len(PAPER_19) for cell in cells]
    mean = np.mean([cell.size for cell, other in zip(cells, rest, strict=True) if not other])
    return [float(cell.size / mean) if other else 1.0 for cell, other in zip(cells, rest, strict=True)]
