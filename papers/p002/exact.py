"""Probability that a query stays in its topic, exactly, from the integer weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from papers.p002.workload import Histories, Longs, World
from querycloak.kernels.exponential_mechanism import shared
from querycloak.methods.dp_semantic.draws import draw_weights
from querycloak.text.concept_space import ConceptSpace, TopicPartition

#: Of each draw. The first two are what ε = 1 and 10 leave to one of a hundred.
DRAWS = (0.01, 0.1, 1.0, 5.0, 10.0, 15.0, 20.0, 30.0)
TYPICAL = ("asthma.n.01", "tennis.n.01", "botany.n.02", "tournament.n.01")
SETTINGS = ("A", "B", "C", "B joined", "C joined")


class Likeness:
    """How many of the concepts that may replace one have each likeness to it, in its topic and in others."""

    def __init__(self, space: ConceptSpace, topics: TopicPartition, concept: int) -> None:
        self.domain = int(space.candidates.domain[concept])
        members = space.members(self.domain)
        common, union = shared(np.full(members.size, concept), members, space.candidates)
        own = topics.of[members] == topics.of[concept]
        kind = union * (space.max_features + 1) + common
        size = (2 * space.max_features + 1) * (space.max_features + 1)
        self.inside = np.bincount(kind[own], minlength=size).astype(np.uint64)
        self.outside = np.bincount(kind[~own], minlength=size).astype(np.uint64)

    def stays(self, weight: npt.NDArray[np.uint64]) -> float:
        """Return the probability of staying in the topic; the sums are exact, since they fit into 64 bits."""
        inside = int((weight.ravel() * self.inside).sum())
        outside = int((weight.ravel() * self.outside).sum())
        return inside / (inside + outside)


def staying(
    space: ConceptSpace, topics: TopicPartition, concepts: Longs, epsilons: tuple[float, ...]
) -> dict[float, Any]:
    """Return for each epsilon of a draw the probability of each concept to stay in its topic."""
    tables = [(domain, epsilon) for epsilon in epsilons for domain in range(space.domains)]
    weights = draw_weights(space, tables).weight.reshape(len(epsilons), space.domains, -1)
    alike = [Likeness(space, topics, int(concept)) for concept in concepts]
    return {
        epsilon: np.array([one.stays(weights[place, one.domain]) for one in alike])
        for place, epsilon in enumerate(epsilons)
    }


def exact(world: World, histories: Histories) -> Iterator[dict[str, Any]]:
    """Yield a line for each setting, criterion and epsilon of a draw: typical concepts, and the whole log."""
    asked, times = np.unique(histories.concept, return_counts=True)
    typical = {name: int(np.searchsorted(asked, world.concepts.find(name))) for name in TYPICAL}
    missing = [
        name for name, place in typical.items() if asked[place : place + 1] != world.concepts.find(name)
    ]
    typical = {name: place for name, place in typical.items() if name not in missing}
    for setting in SETTINGS:
        for criterion in ("sqc1", "sqc2", "none"):
            topics = world.settings[setting].profile
            for epsilon, found in staying(world.space(setting, criterion), topics, asked, DRAWS).items():
                yield {
                    "setting": setting,
                    "method": criterion,
                    "epsilon": epsilon,
                    "log": float(found @ times / times.sum()),
                } | {name: float(found[place]) for name, place in typical.items()}
