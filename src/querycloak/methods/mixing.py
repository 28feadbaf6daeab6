"""Joins groups until each one's history has enough topics, and topics enough like everybody's.

l-diversity and t-closeness for histories: the thesis says that its methods can be adapted to both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from querycloak.errors import ParameterError
from querycloak.log import IntArray

Floats = npt.NDArray[np.float64]


def joined(
    groups: list[IntArray],
    made: list[Any],
    represent: Callable[[IntArray], Any],
    topic_of: Callable[[Any], IntArray],
    settings: Any,
) -> tuple[list[IntArray], list[Any]]:
    """Join the worst group with the one that helps it most, until all are good or one is left."""
    groups, made = list(groups), list(made)
    while len(groups) > 1:
        counts = _counts([topic_of(one) for one in made])
        sizes = np.array([members.size for members in groups])
        lacking = _lacking(counts, sizes, settings.diversity, settings.closeness)
        worst = int(np.argmax(lacking))
        if lacking[worst] <= 0:
            break
        other = _helper(counts, sizes, worst, settings.diversity)
        first, second = sorted((worst, other))
        groups[first] = np.sort(np.concatenate([groups[first], groups[second]]))
        made[first] = represent(groups[first])
        del groups[second], made[second]
    if len(groups) == 1 and np.unique(topic_of(made[0])).size < settings.diversity:
        raise ParameterError(
            f"`diversity` is {settings.diversity}, but all people together have fewer topics",
            hint="lower `diversity`",
        )
    return groups, made


def varied(chosen: IntArray, topic: IntArray, apart: Floats, least: int) -> IntArray:
    """Exchange picks until they have so many topics, if there are so many.

    The furthest pick of a topic with several goes for the nearest of the commonest topic that has none.
    """
    chosen = chosen.copy()
    common = np.argsort(-np.bincount(topic), kind="stable")
    for wanted in common.tolist():
        count = np.bincount(topic[chosen], minlength=common.size)
        if np.count_nonzero(count) >= least or not (topic == wanted).any():
            break
        if count[wanted]:
            continue
        spare = np.flatnonzero(count[topic[chosen]] > 1)
        if not spare.size:
            break
        near = np.flatnonzero(topic == wanted)
        chosen[spare[np.argmax(apart[chosen[spare]])]] = near[np.argmin(apart[near])]
    return chosen


def _counts(topics: list[IntArray]) -> Floats:
    """Count each history's records by topic; records without one are a topic of their own."""
    known = np.unique(np.concatenate([*topics, np.array([-1])]))
    return np.stack(
        [np.bincount(np.searchsorted(known, one), minlength=known.size).astype(np.float64) for one in topics]
    )


def _shares(counts: Floats) -> Floats:
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def _lacking(counts: Floats, sizes: IntArray, diversity: int, closeness: float) -> Floats:
    """Say how much each history lacks: topics first, then closeness; nothing is 0 or less."""
    everybody = _shares((counts * sizes[:, None]).sum(axis=0, keepdims=True))
    apart = 1 - np.minimum(_shares(counts), everybody).sum(axis=1)
    topics = (counts > 0).sum(axis=1)
    return np.asarray(np.where(topics < diversity, 2.0 + diversity - topics, apart - closeness - 1e-12))


def _helper(counts: Floats, sizes: IntArray, worst: int, diversity: int) -> int:
    """Find the group with which the worst one would have most topics it needs, then be nearest to all."""
    both = counts * sizes[:, None] + counts[worst] * sizes[worst]
    everybody = _shares((counts * sizes[:, None]).sum(axis=0, keepdims=True))
    apart = 1 - np.minimum(_shares(both), everybody).sum(axis=1)
    topics = np.minimum((both > 0).sum(axis=1), diversity)
    order = np.lexsort((apart.round(9), -topics))
    return int(order[0] if order[0] != worst else order[1])
