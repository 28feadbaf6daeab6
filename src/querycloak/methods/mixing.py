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
    rows: list[IntArray],
    made: list[Any],
    represent: Callable[[IntArray, IntArray], Any],
    topic_of: Callable[[Any], IntArray],
    settings: Any,
) -> tuple[list[IntArray], list[Any]]:
    """Join the worst group with the one that helps it most, until all are good or one is left.

    `groups` has their members, `rows` their records, and `represent` makes what stands for both.
    """
    groups, rows, made = list(groups), list(rows), list(made)
    while len(groups) > 1:
        counts = _counts([topic_of(one) for one in made])
        sizes = np.array([members.size for members in groups])
        lacking = _lacking(counts, sizes, settings.diversity, settings.closeness)
        worst = int(np.argmax(lacking))
        if lacking[worst] <= 0:
            break
        other = _helper(counts, sizes, worst, settings.diversity)
        first, second = sorted((worst, other))
        for parts in (groups, rows):
            parts[first] = np.sort(np.concatenate([parts[first], parts[second]]))
        made[first] = represent(groups[first], rows[first])
        del groups[second], rows[second], made[second]
    topics = topic_of(made[0])
    if len(groups) == 1 and np.unique(topics[topics >= 0]).size < settings.diversity:
        raise ParameterError(
            f"`diversity` is {settings.diversity}, but even one history of all people has fewer topics",
            hint="lower `diversity`: a history has as many records as people have on average",
        )
    return groups, made


def varied(
    chosen: IntArray, topic: IntArray, apart: Floats, least: int, tie: IntArray | None = None
) -> IntArray:
    """Exchange picks until they have so many topics, if there are so many.

    The furthest pick of a topic with several, or with none (-1), goes for the nearest of the commonest
    topic that has none.
    """
    chosen = chosen.copy()
    size = int(topic.max(initial=-1)) + 1
    common = np.argsort(-np.bincount(topic[topic >= 0], minlength=size), kind="stable")
    for wanted in common.tolist():
        own = topic[chosen]
        count = np.bincount(own[own >= 0], minlength=size)
        if np.count_nonzero(count) >= least or not (topic == wanted).any():
            break
        if count[wanted]:
            continue
        spare = np.flatnonzero((own < 0) | (count[own] > 1))
        if not spare.size:
            break
        near = np.flatnonzero(topic == wanted)
        nearest = near[np.lexsort((near if tie is None else tie[near], apart[near].round(9)))[0]]
        chosen[spare[np.argmax(apart[chosen[spare]].round(9))]] = nearest
    return chosen


def _counts(topics: list[IntArray]) -> Floats:
    """Count each history's records by topic, after those without one."""
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
    topics = (counts[:, 1:] > 0).sum(axis=1)
    lacks = np.where(topics < diversity, 2.0 + diversity - topics, apart - closeness - 1e-12)
    return np.asarray(lacks.round(12))  # sums in another order are the same


def _helper(counts: Floats, sizes: IntArray, worst: int, diversity: int) -> int:
    """Find the group with which the worst one would have most topics it needs, then be nearest to all."""
    both = counts * sizes[:, None] + counts[worst] * sizes[worst]
    everybody = _shares((counts * sizes[:, None]).sum(axis=0, keepdims=True))
    apart = 1 - np.minimum(_shares(both), everybody).sum(axis=1)
    topics = np.minimum((both[:, 1:] > 0).sum(axis=1), diversity)
    order = np.lexsort((apart.round(9), -topics))
    return int(order[0] if order[0] != worst else order[1])
