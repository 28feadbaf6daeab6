"""Paper 002, sections 3.3 to 3.6, as it is written: sets, floats and loops; no integers, no cleverness.

A taxonomy is `{concept: its parents}`. Where the paper is silent: of several most specific subsumers, the
one with the most subsumers of its own is taken, of equals the first by number.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product

Taxonomy = Mapping[int, Collection[int]]


def subsumers(taxonomy: Taxonomy, concept: int) -> set[int]:
    """S(c): the concept and all that lies above it, on any way up."""
    found = {concept}
    for parent in taxonomy[concept]:
        found |= subsumers(taxonomy, parent)
    return found


def sim(one: set[int], other: set[int]) -> float:
    """Eq. 5."""
    return 1 - math.log2(1 + (len(one | other) - len(one & other)) / len(one | other))


def least_common_subsumer(taxonomy: Taxonomy, domain: Collection[int]) -> int:
    """LCS(D): the most specific concept that subsumes all of a domain."""
    common = set.intersection(*(subsumers(taxonomy, concept) for concept in domain))
    return min(common, key=lambda concept: (-len(subsumers(taxonomy, concept)), concept))


def minimum_taxonomy(taxonomy: Taxonomy, domain: Collection[int]) -> set[int]:
    """Eq. 4: all concepts at and below LCS(D)."""
    top = least_common_subsumer(taxonomy, domain)
    return {concept for concept in taxonomy if top in subsumers(taxonomy, concept)}


@dataclass(frozen=True)
class Mechanism:
    """The exponential mechanism over concepts that can be said.

    `topic` is ρ. With `domains`, D(q) is what belongs to the same of these; else it is everything.
    """

    taxonomy: Taxonomy
    sayable: Collection[int]
    topic: Mapping[int, int]
    criterion: str
    domains: Mapping[int, int] | None = None

    def domain(self, concept: int) -> list[int]:
        """D(q): what may replace a concept."""
        if self.domains is None:
            return sorted(self.sayable)
        return sorted(c for c in self.sayable if self.domains[c] == self.domains[concept])

    def quality(self, one: int, other: int) -> float:
        """The quality criterion: eq. 5 (sqc1), eq. 6 (sqc2) or eq. 12 (none)."""
        if self.criterion == "none":
            return float(one == other)
        if self.criterion == "sqc2" and self.topic[one] != self.topic[other]:
            return 0.0
        inside = minimum_taxonomy(self.taxonomy, self.domain(one))
        return sim(subsumers(self.taxonomy, one) & inside, subsumers(self.taxonomy, other) & inside)

    def sensitivity(self, concept: int) -> float:
        """|max_sim - min_sim| over the domain (eq. 3, 8); max_sim with eq. 6 (eq. 7) and eq. 12."""
        if self.criterion != "sqc1":
            return 1.0
        domain = self.domain(concept)
        return 1 - min(self.quality(one, other) for one in domain for other in domain)

    def probabilities(self, concept: int, epsilon: float) -> dict[int, float]:
        """Eq. 3, 7 and 8: the chance of each replacement of a concept."""
        domain, gap = self.domain(concept), self.sensitivity(concept)
        rate = epsilon / (2 * gap) if gap else 0.0
        weight = {other: math.exp(rate * self.quality(concept, other)) for other in domain}
        total = math.fsum(weight.values())
        return {other: weight[other] / total for other in domain}


def random_taxonomy(rng: random.Random, size: int, most_parents: int = 3) -> dict[int, list[int]]:
    """Make a graph with one root and shuffled numbers; with one parent each, a tree."""
    name = rng.sample(range(size), size)
    return {
        name[i]: [name[p] for p in rng.sample(range(i), min(i, rng.randint(1, most_parents)))]
        for i in range(size)
    }


Distribution = Mapping[int, Fraction]
History = tuple[int, ...]


def of_histories(drawn: Mapping[int, Distribution], phrases: int) -> dict[History, dict[History, Fraction]]:
    """Give the chance of every output of every history, whose phrases are drawn one by one."""
    return {
        history: {
            out: math.prod(
                (drawn[c].get(o, Fraction(0)) for c, o in zip(history, out, strict=True)), start=Fraction(1)
            )
            for out in product(drawn, repeat=phrases)
        }
        for history in product(drawn, repeat=phrases)
    }


def dealt(draws: Collection[Distribution], sizes: Collection[int]) -> dict[History, Fraction]:
    """Give the chance of every row of slots, if draws fill as many as `sizes` says, in a random order."""
    found: dict[History, Fraction] = {}
    places = list(permutations(range(sum(sizes))))
    for values in product(*(list(draw) for draw in draws)):
        chance = math.prod((draw[v] for draw, v in zip(draws, values, strict=True)), start=Fraction(1))
        row = [value for value, size in zip(values, sizes, strict=True) for _ in range(size)]
        for place in places:
            out = tuple(row[p] for p in place)
            found[out] = found.get(out, Fraction(0)) + chance / len(places)
    return found
