"""Small taxonomies as the package takes them, beside the naive mechanism over the same concepts."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from querycloak.kernels.exponential_mechanism import Weights, shared
from querycloak.methods.dp_semantic.draws import draw_weights
from querycloak.text.concept_space import ConceptSpace, TopicPartition, concept_space
from querycloak.text.lexicon import Int32Array
from querycloak.text.senses import ConceptLexicon
from querycloak.text.taxonomy import Taxonomy, build
from querycloak.text.taxonomy_files import TreeBuilder
from querycloak.text.wordnet import RaggedArray
from tests.reference import naive_dp

CRITERIA = ("sqc1", "sqc2", "none")
DOMAINS = ("all", "topic")

#: root{A{A1{A1x}, A2}, B{B1}}: the tree of the acceptance test.
TOY = {0: [], 1: [0], 2: [1], 3: [2], 4: [1], 5: [0], 6: [5]}
TOY_NAMES = ("the root", "A", "A1", "A1x", "A2", "B", "B1")


def ragged(taxonomy: Mapping[int, Collection[int]]) -> RaggedArray:
    rows = [list(taxonomy[concept]) for concept in range(len(taxonomy))]
    start = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return RaggedArray(np.array([p for row in rows for p in row], np.int32), start.astype(np.int32))


def tree_of(paths: Sequence[str]) -> tuple[Taxonomy, Int32Array]:
    """Return the tree of these paths, and the node of each."""
    builder = TreeBuilder()
    nodes = [builder.add(path.split("/") if path else []) for path in [*paths, "x"]]
    return build(builder.parent, builder.names, builder.lexicon()), np.array(nodes[:-1], np.int32)


@dataclass(frozen=True)
class Small:
    """A taxonomy, which of its concepts have words (`word3` for concept 3), and their topics."""

    taxonomy: Mapping[int, Collection[int]]
    labelled: tuple[int, ...]
    topic: tuple[int, ...]

    @classmethod
    def at_random(cls, seed: int, size: int, topics: int = 3, most_parents: int = 3) -> Small:
        rng = random.Random(seed)
        taxonomy = naive_dp.random_taxonomy(rng, size, most_parents)
        sayable = sorted(rng.sample(range(size), rng.randint(max(1, size // 2), size)))
        return cls(taxonomy, tuple(sayable), tuple(rng.randrange(topics) for _ in range(size)))

    @cached_property
    def concepts(self) -> ConceptLexicon:
        phrases = [(f"word{concept}", concept) for concept in self.labelled]
        return ConceptLexicon(ragged(self.taxonomy), phrases, *tree_of([f"Topic {t}" for t in self.topic]))

    @property
    def topics(self) -> TopicPartition:
        return TopicPartition(
            tuple(f"Topic {t}" for t in range(max(self.topic) + 1)), np.array(self.topic, np.int32)
        )

    def space(self, criterion: str, domain: str = "all") -> ConceptSpace:
        return concept_space(
            self.concepts, self.topics, criterion, self.topics if domain == "topic" else None
        )

    def naive(self, criterion: str, domain: str = "all") -> naive_dp.Mechanism:
        topic = dict(enumerate(self.topic))
        return naive_dp.Mechanism(
            self.taxonomy, self.labelled, topic, criterion, topic if domain == "topic" else None
        )


def weight_table(space: ConceptSpace, concept: int, epsilon: float) -> tuple[dict[int, int], Weights]:
    """Give the integer weight of each candidate that can replace a concept."""
    domain = int(space.candidates.domain[concept])
    weights = draw_weights(space, [(domain, epsilon)])
    members = space.members(domain)
    common, union = shared(np.full(members.size, concept), members, space.candidates)
    found = weights.weight[0, union, common].tolist()
    return dict(zip(members.tolist(), found, strict=True)), weights


def chances(space: ConceptSpace, concept: int, epsilon: float) -> dict[int, Fraction]:
    """Give the exact chance of each candidate: its integer weight over their sum."""
    weight, _ = weight_table(space, concept, epsilon)
    total = sum(weight.values())
    return {candidate: Fraction(w, total) for candidate, w in weight.items()}


def rounding(weights: Weights) -> float:
    """Say how far a chance may be off, relatively: weights are whole numbers, kept below e^(ε/2)."""
    return 2 / int(weights.floor[0]) + 4 * 2.0**-40 + 64 * math.ulp(1.0)
