"""Groups of people with common topics, past the size at which all of them fit into one matrix.

A category is at one level only, so the matrices of all levels are columns of one, which is kept as lists.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.kernels import candidates
from querycloak.kernels.semantic_distance import UNIT, Ints
from querycloak.kernels.topic_partition import Counts, ancestors, classification, incidence, partition
from querycloak.log import IntArray


def counted(person: IntArray, category: IntArray, parent: IntArray, deepest: int, people: int) -> Counts:
    """Count how often each person's terms fall into each category of the first levels, all in one matrix."""
    distinct, number = np.unique(category, return_inverse=True)
    levels = ancestors(distinct, parent, deepest)
    each = np.concatenate([level[number] for level in levels])
    return classification(np.tile(person, len(levels)), each, people)


def group(counts: Counts, k: int, rank: npt.NDArray[np.uint64], most: int) -> IntArray:
    """Number the groups of k people with most in common.

    More than `most` people are first cut into blocks of alike ones; there are as many groups as without.
    """
    order = np.argsort(rank, kind="stable")
    label, first = np.empty(rank.size, np.int64), 0
    for block in candidates.blocks(Unlikeness.of(counts), order, k, most):
        label[block] = first + partition(incidence([_of(counts, block)]), k, rank[block])
        first += max(block.size // k, 1)
    return label


def _of(counts: Counts, people: IntArray) -> Counts:
    """Keep the lists of some people only."""
    sizes = np.diff(counts.starts)[people]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    place = np.repeat(counts.starts[people] - starts[:-1], sizes) + np.arange(starts[-1])
    return Counts(starts, counts.category[place], counts.count[place])


@njit(cache=True, nogil=True)
def _rows(starts, category, count, ones, others, full, out):  # type: ignore[no-untyped-def]
    """Say how much is missing until two people have as much in common as can be."""
    own = np.zeros(category.max() + 1 if category.size else 0, np.int64)
    for i, a in enumerate(ones):
        for at in range(starts[a], starts[a + 1]):
            own[category[at]] = count[at]
        for j, b in enumerate(others):
            common = 0
            for at in range(starts[b], starts[b + 1]):
                common += min(own[category[at]], count[at])
            out[i, j] = UNIT - min(common, full) * UNIT // full
        for at in range(starts[a], starts[a + 1]):
            own[category[at]] = 0


@dataclass(frozen=True)
class Unlikeness:
    """How little people have in common, as distances by which `candidates` can cut them into blocks.

    Not in proportion to what they have: who asks much has most in common with others who do, and is
    grouped with them. From `full` common counts on, all are equally near: one robot must not set the scale.
    """

    counts: Counts
    full: int

    @classmethod
    def of(cls, counts: Counts) -> Unlikeness:
        """Let as many counts as all but one in a hundred people have be full."""
        before = np.concatenate([[0], np.cumsum(counts.count)])
        sizes = np.sort(np.diff(before[counts.starts]))
        return cls(counts, max(int(sizes[sizes.size * 99 // 100]), 1) if sizes.size else 1)

    @property
    def size(self) -> int:
        """How many people there are."""
        return self.counts.starts.size - 1

    def rows(self, ones: npt.NDArray[np.integer], others: npt.NDArray[np.integer]) -> Ints:
        """Give the distances of some people to others, in `UNIT`s: a row for each one."""
        out, counts = np.empty((len(ones), len(others)), np.int32), self.counts
        _rows(counts.starts, counts.category, counts.count, ones, others, self.full, out)
        return out

    def matrix(self, members: npt.NDArray[np.integer] | None = None, threads: int | None = None) -> Ints:
        """Give all distances among some people, or among all."""
        chosen = np.arange(self.size) if members is None else members
        return self.rows(chosen, chosen)
