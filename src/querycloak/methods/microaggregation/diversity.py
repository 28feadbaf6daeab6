"""l-diversity and t-closeness of histories: groups are merged until their topics meet both.

The thesis states that its methods can be adapted to both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from querycloak.errors import ParameterError
from querycloak.log import IntArray

Floats = npt.NDArray[np.float64]


def is_required(settings: Any) -> bool:
    """Whether histories must have several topics, or topics close to those of the log."""
    return bool(settings.diversity > 1 or settings.closeness < 1)


def merge_until_diverse(
    groups: list[IntArray],
    rows: list[IntArray],
    made: list[Any],
    represent: Callable[[IntArray, IntArray], Any],
    topic_of: Callable[[Any], IntArray],
    settings: Any,
) -> tuple[list[IntArray], list[Any]]:
    """Merge the group with the largest shortfall with its best partner, until none has one or one is left.

    `groups` has the members of each group, `rows` their records, `made` their histories. `represent` returns
    the history of members and rows, and `topic_of` the topics of a history.
    """
    groups, rows, made = list(groups), list(rows), list(made)
    table = _TopicCounts([topic_of(one) for one in made])
    sizes = np.array([members.size for members in groups])
    while len(groups) > 1:
        lacking = shortfall(table.counts, sizes, settings.diversity, settings.closeness)
        worst = int(np.argmax(lacking))
        if lacking[worst] <= 0:
            break
        other = best_partner(table.counts, sizes, worst, settings.diversity)
        first, second = sorted((worst, other))
        for parts in (groups, rows):
            parts[first] = np.sort(np.concatenate([parts[first], parts[second]]))
        made[first] = represent(groups[first], rows[first])
        del groups[second], rows[second], made[second]
        sizes[first] += sizes[second]
        sizes = np.delete(sizes, second)
        table.merge(first, second, topic_of(made[first]))
    topics = topic_of(made[0])
    if len(groups) == 1 and np.unique(topics[topics >= 0]).size < settings.diversity:
        raise ParameterError(
            f"`diversity` is {settings.diversity}, but even one history of all people has fewer topics",
            hint="lower `diversity`: a history has as many records as people have on average",
        )
    return groups, made


def diversify_picks(
    chosen: IntArray, topic: IntArray, apart: Floats, least: int, tie: IntArray | None = None
) -> IntArray:
    """Return picks that are exchanged until they have `least` topics, if there are so many.

    The farthest pick that has no topic (-1), or shares its topic with another pick, is replaced by the
    nearest element of the most frequent topic that is not picked.
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


class _TopicCounts:
    """Number of records of each topic in the history of each group; the first column: without a topic."""

    def __init__(self, topics: list[IntArray]) -> None:
        self._known = np.unique(np.concatenate([*topics, np.array([-1])]))
        self.counts: Floats = np.stack([self._row(one) for one in topics])

    def _row(self, topics: IntArray) -> Floats:
        place = np.searchsorted(self._known, topics)
        return np.bincount(place, minlength=self._known.size).astype(np.float64)

    def merge(self, first: int, second: int, topics: IntArray) -> None:
        """Replace two histories by one; only its records are counted."""
        known = np.union1d(self._known, topics)
        if known.size > self._known.size:
            wider = np.zeros((len(self.counts), known.size))
            wider[:, np.searchsorted(known, self._known)] = self.counts
            self._known, self.counts = known, wider
        self.counts[first] = self._row(topics)
        self.counts = np.delete(self.counts, second, axis=0)


def _shares(counts: Floats) -> Floats:
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def shortfall(counts: Floats, sizes: IntArray, diversity: int, closeness: float) -> Floats:
    """Return the shortfall of each history: in topics first, then in closeness; 0 or less for none."""
    overall = _shares((counts * sizes[:, None]).sum(axis=0, keepdims=True))
    apart = 1 - np.minimum(_shares(counts), overall).sum(axis=1)
    topics = (counts[:, 1:] > 0).sum(axis=1)
    short = np.where(topics < diversity, 2.0 + diversity - topics, apart - closeness - 1e-12)
    return np.asarray(short.round(12))  # sums in another order are equal


def best_partner(counts: Floats, sizes: IntArray, worst: int, diversity: int) -> int:
    """Return the group whose merger with the worst one has most topics, then is nearest to all histories."""
    both = counts * sizes[:, None] + counts[worst] * sizes[worst]
    overall = _shares((counts * sizes[:, None]).sum(axis=0, keepdims=True))
    apart = 1 - np.minimum(_shares(both), overall).sum(axis=1)
    topics = np.minimum((both[:, 1:] > 0).sum(axis=1), diversity)
    order = np.lexsort((apart.round(9), -topics))
    return int(order[0] if order[0] != worst else order[1])
