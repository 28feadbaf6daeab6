"""Draws of `dp-semantic`: integer weights of the exponential mechanism, draws by them, and new queries.

With `prior`, one history's concepts are microaggregated: alike ones share one draw, which may tell more.
Why the promise still holds: how many groups there are and how large they are depends on the number of
concepts (of each domain) alone. Whatever two histories of that number hold, each of the draws has at most
its own epsilon between them, and which slot shows which draw is decided by chance alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from querycloak.accounting import group_count
from querycloak.errors import BrokenPromise, ParameterError
from querycloak.kernels import siphash
from querycloak.kernels.exponential_mechanism import Weights, draw
from querycloak.log import Batch, FloatArray, IntArray
from querycloak.methods.shared.readings import CodedReadings, ConceptSlots
from querycloak.text.concept_space import ConceptModel, ConceptSpace
from querycloak.text.senses import rewrite_query

#: A draw that spends more would show its input nearly always, and its weights no longer fit.
LARGEST_EPSILON: Final = 40.0
_ROOM: Final = 62  # bits for the sum of all weights
_SLACK: Final = 1 - 2.0**-40  # keeps what floats round up below what was asked for
_TABLES: Final = 1024  # of weights in memory at a time
_SHUFFLE: Final = 1


def centroids(concept: IntArray, size: int, space: ConceptSpace) -> tuple[IntArray, IntArray]:
    """Group concepts of one domain by likeness; give each group's most central one, and group sizes.

    As MDAV does: the concept that is least like all others takes its nearest along, until less than two
    groups are left.
    """
    alike = _alike(concept, space)
    left = np.arange(concept.size)
    chosen, sizes = [], []
    for more in range(group_count(concept.size, size) - 1, -1, -1):
        here = alike[np.ix_(left, left)]
        far = int(np.argmin(here.sum(axis=1).round(9)))  # machines add floats differently in the last digits
        near = np.argsort(-here[far], kind="stable")[: size if more else left.size]
        group = here[np.ix_(near, near)]
        chosen.append(concept[left[near[int(np.argmax(group.sum(axis=1).round(9)))]]])
        sizes.append(near.size)
        left = np.delete(left, near)
    return np.array(chosen, np.int64), np.array(sizes, np.int64)


def _alike(concept: IntArray, space: ConceptSpace) -> FloatArray:
    distinct, number = np.unique(concept, return_inverse=True)
    first, second = np.repeat(distinct, distinct.size), np.tile(distinct, distinct.size)
    table = space.similarities(first, second).reshape(distinct.size, distinct.size)
    return np.asarray(table[np.ix_(number, number)])


def dealt(concept: IntArray, sizes: IntArray, key: bytes, slots: IntArray) -> IntArray:
    """Deal what was drawn for groups to the slots of a history, in an order that chance decides."""
    order = np.argsort(siphash.draw(key, _SHUFFLE, slots), kind="stable")
    out = np.empty(slots.size, np.int64)
    out[order] = np.repeat(concept, sizes)
    return out


def draw_weights(space: ConceptSpace, tables: Sequence[tuple[int, float]]) -> Weights:
    """Return a table of integer weights for each (domain, epsilon of a draw): eq. 3, 7 and 8.

    The least weight is a whole number, and every other at most e^(epsilon/2) times it.
    """
    similarity = space.scaled_similarity()
    bits = _ROOM - math.ceil(math.log2(max(len(space.candidates.members), 2)))
    weight = np.zeros((len(tables), *similarity.shape[1:]), np.uint64)
    floor = np.zeros(len(tables), np.uint64)
    for place, (domain, epsilon) in enumerate(tables):
        if not 0 < epsilon <= LARGEST_EPSILON:
            raise ParameterError(
                f"a single draw would spend {epsilon:g}",
                hint=f"above {LARGEST_EPSILON:g} a draw protects nobody: "
                "lower `epsilon` or raise `max_queries`",
            )
        least = math.floor(2.0**bits * math.exp(-epsilon / 2))
        grown = np.floor(least * np.exp(similarity[domain] * epsilon / 2) * _SLACK)
        weight[place] = np.maximum(grown, least).astype(np.uint64)
        floor[place] = least
    return Weights(weight, floor)


def spent(weights: Weights) -> list[float]:
    """Return the largest privacy loss of a draw by each table, from the integers themselves, rounded up.

    Two inputs give an output weights in a ratio of at most largest / least, and so do their sums.
    """
    tables = zip(weights.weight, weights.floor, strict=True)
    return [math.nextafter(2 * _log_up(int(table.max()), int(floor)), math.inf) for table, floor in tables]


def _log_up(largest: int, least: int) -> float:
    """Return the logarithm of a ratio, rounded up."""
    ratio = Fraction(largest, least)
    value = math.log(ratio.numerator) - math.log(ratio.denominator)
    return value + 1e-14 * (1 + math.log(ratio.numerator))  # far more than the floats can be wrong


def drawn(
    model: ConceptModel, slots: ConceptSlots, rows: IntArray, epsilon: FloatArray, key: bytes
) -> IntArray:
    """Draw another concept for each slot with its own epsilon, which the integers are checked to keep."""
    out = np.empty(slots.concept.size, np.int64)
    candidates = model.space.candidates
    domain = candidates.domain[slots.concept]
    levels, level = np.unique(epsilon, return_inverse=True)
    tables, table = np.unique(domain * np.int64(levels.size) + level, return_inverse=True)
    for start in range(0, tables.size, _TABLES):
        some = tables[start : start + _TABLES]
        named = [(int(t // levels.size), float(levels[t % levels.size])) for t in some]
        weights = draw_weights(model.space, named)
        if any(cost > asked for cost, (_, asked) in zip(spent(weights), named, strict=True)):
            raise BrokenPromise("the weights of a draw would spend more than was asked for")
        here = np.flatnonzero((table >= start) & (table < start + some.size))
        named_by = rows[slots.record[here]], slots.turn[here], key
        out[here], _ = draw(slots.concept[here], table[here] - start, *named_by, candidates, weights)
    return out


def written(
    model: ConceptModel,
    readings: CodedReadings,
    batch: Batch,
    slots: ConceptSlots,
    concept: IntArray,
    rebuild: str,
) -> tuple[IntArray, IntArray]:
    """Write each record with its new concepts; give the codes of its query and of its first's category."""
    texts, labels = batch.texts, model.concepts.label
    distinct, number = np.unique(concept, return_inverse=True)
    first = np.searchsorted(slots.record, np.arange(len(batch)))
    category = texts.category.intern([model.concepts.category[c] for c in distinct.tolist()])[number][first]
    sizes = np.bincount(slots.record, minlength=len(batch))
    query = texts.query.intern([labels[c] for c in distinct.tolist()])[number][first]
    plain = rebuild == "none"
    several = np.flatnonzero(sizes > 1) if plain else np.arange(len(batch))
    words = [labels[c] for c in concept.tolist()]
    begin, end = first.tolist(), (first + sizes).tolist()
    phrases = [() if plain else readings.phrases(code) for code in batch.query[several].tolist()]
    shown = [words[begin[r] : end[r]] for r in several.tolist()]
    new = [rewrite_query(old, own, rebuild) for old, own in zip(phrases, shown, strict=True)]
    query[several] = texts.query.intern(new)
    return query, category
