"""Microaggregation of one history's concepts: alike ones share one draw, so that each draw may tell more.

Why the promise still holds: how many groups there are and how large they are depends on the number of
concepts (of each domain) alone. Whatever two histories of that number hold, each of the draws has at most
its own epsilon between them, and which slot shows which draw is decided by chance alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from querycloak.kernels import siphash
from querycloak.log import IntArray
from querycloak.topics.concepts import Space
from querycloak.topics.concepts.sharing import groups_of

_SHUFFLE = 1
Floats = npt.NDArray[np.float64]


def centroids(concept: IntArray, size: int, space: Space) -> tuple[IntArray, IntArray]:
    """Group concepts of one domain by likeness; give each group's most central one, and group sizes.

    As MDAV does: the concept that is least like all others takes its nearest along, until less than two
    groups are left.
    """
    alike = _alike(concept, space)
    left = np.arange(concept.size)
    chosen, sizes = [], []
    for more in range(groups_of(concept.size, size) - 1, -1, -1):
        here = alike[np.ix_(left, left)]
        far = int(np.argmin(here.sum(axis=1).round(9)))  # machines add floats differently in the last digits
        near = np.argsort(-here[far], kind="stable")[: size if more else left.size]
        group = here[np.ix_(near, near)]
        chosen.append(concept[left[near[int(np.argmax(group.sum(axis=1).round(9)))]]])
        sizes.append(near.size)
        left = np.delete(left, near)
    return np.array(chosen, np.int64), np.array(sizes, np.int64)


def _alike(concept: IntArray, space: Space) -> Floats:
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
