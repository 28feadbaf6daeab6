"""Records of a group that make its history (paper 003, 5.3.1.4 and Algorithm 6), and their columns.

Functions take the records of one group: the member and the query string of each, and random 64-bit draws that
decide between equals. The same draws give the same history, whatever the order of the records.

For l-diversity and t-closeness, groups are merged until the topics of their histories meet both. The thesis
states that its methods can be adapted to both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from querycloak.errors import ParameterError
from querycloak.log import Flags, FloatArray, IntArray

Draws = npt.NDArray[np.uint64]


def member_quotas(sizes: Sequence[int], ties: Sequence[int]) -> list[int]:
    """Return each member's share of records: its number of records by the number of members.

    Shares are rounded by largest remainders; of equal remainders the least tie goes first. Their sum is the
    mean, rounded (halves up).

    >>> member_quotas([6, 3, 1], [0, 1, 2])
    [2, 1, 0]
    """
    members = len(sizes)
    quotas = [size // members for size in sizes]
    first = sorted(range(members), key=lambda i: (-(sizes[i] % members), ties[i]))
    for i in first[: (2 * sum(sizes) + members) // (2 * members) - sum(quotas)]:
        quotas[i] += 1
    return quotas


def proportional_picks(member: IntArray, string: IntArray, draws: Draws) -> IntArray:
    """Return the places of each member's quota of records, with the frequencies of its strings (5.3.1.4)."""
    if not member.size:
        return np.empty(0, np.int64)
    order = np.lexsort((draws, string, member))
    new = np.diff(member[order], prepend=-1) != 0
    cell = np.cumsum(new | (np.diff(string[order], prepend=-1) != 0)) - 1  # a member's records of one string
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    count, tie, of = np.bincount(cell), draws[order][first], (np.cumsum(new) - 1)[first]
    size = np.bincount(of, count).astype(np.int64)
    least = np.minimum.reduceat(tie, np.flatnonzero(np.diff(of, prepend=-1)))
    quota = np.array(member_quotas(size.tolist(), least.tolist()), np.int64)
    share, rest = np.divmod(count * quota[of], size[of])
    left = quota - np.bincount(of, share).astype(np.int64)
    turn = np.lexsort((tie, -rest, of))
    begin = np.searchsorted(of, np.arange(size.size))
    share[turn] += np.arange(turn.size) - begin[of] < left[of]
    return np.sort(order[np.arange(order.size) - first[cell] < share[cell]])


def ranked_picks(member: IntArray, string: IntArray, draws: Draws, coins: Draws) -> IntArray:
    """Return the places of each member's quota of records, most frequent queries first (Algorithm 6).

    A query with r records is added r · contribution times; the fraction is the probability of one more. If
    the list ends before the quota is reached, other records of the member fill it, by their draws.
    """
    order, chance = draws.tolist(), coins.tolist()
    people = _grouped(np.argsort(draws, kind="stable").tolist(), member)  # equal draws keep their order
    quotas = member_quotas([*map(len, people)], [order[own[0]] for own in people]) if people else []
    picked: list[int] = []
    for records, quota in zip(people, quotas, strict=True):
        own: list[int] = []
        for mine in sorted(_grouped(records, string), key=lambda mine: (-len(mine), order[mine[0]])):
            copies, rest = divmod(len(mine) * len(records), member.size)
            copies += (chance[mine[0]] * member.size) >> 64 < rest
            own += mine[: min(copies, quota - len(own))]
        taken = set(own)
        spare = [record for record in records if record not in taken]
        picked += own + spare[: quota - len(own)]
    return np.sort(np.array(picked, np.int64))


def _grouped(records: Iterable[int], key: IntArray) -> list[list[int]]:
    """Return the records of each key, in their order; keys by their first record."""
    found: dict[int, list[int]] = defaultdict(list)
    for record in records:
        found[int(key[record])].append(record)
    return list(found.values())


def means(key: IntArray, values: IntArray, known: Flags, nothing: int) -> IntArray:
    """Return for every record the rounded mean (halves up) of the known values with its key, or `nothing`.

    Sums are whole numbers: a sum of times in microseconds exceeds the precision of a float.
    """
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for k, value in zip(key[known].tolist(), values[known].tolist(), strict=True):
        sums[k][0] += value
        sums[k][1] += 1
    mean = {k: (2 * total + count) // (2 * count) for k, (total, count) in sums.items()}
    return np.array([mean.get(k, nothing) for k in key.tolist()], np.int64)


def common_right_part(hosts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the common right part of domain names, which are labels from the right.

    >>> common_right_part([("example", "shop", "www"), ("example", "shop", "mail")])
    ('example', 'shop')
    """
    first, *others = hosts
    size = len(first)
    for other in others:
        size = next((i for i in range(size) if other[i : i + 1] != first[i : i + 1]), size)
    return first[:size]


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
    chosen: IntArray, topic: IntArray, apart: FloatArray, least: int, tie: IntArray | None = None
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
        self.counts: FloatArray = np.stack([self._row(one) for one in topics])

    def _row(self, topics: IntArray) -> FloatArray:
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


def _shares(counts: FloatArray) -> FloatArray:
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def shortfall(counts: FloatArray, sizes: IntArray, diversity: int, closeness: float) -> FloatArray:
    """Return the shortfall of each history: in topics first, then in closeness; 0 or less for none."""
    overall = _shares((counts * sizes[:, None]).sum(axis=0, keepdims=True))
    apart = 1 - np.minimum(_shares(counts), overall).sum(axis=1)
    topics = (counts[:, 1:] > 0).sum(axis=1)
    short = np.where(topics < diversity, 2.0 + diversity - topics, apart - closeness - 1e-12)
    return np.asarray(short.round(12))  # sums in another order are equal


def best_partner(counts: FloatArray, sizes: IntArray, worst: int, diversity: int) -> int:
    """Return the group whose merger with the worst one has most topics, then is nearest to all histories."""
    both = counts * sizes[:, None] + counts[worst] * sizes[worst]
    overall = _shares((counts * sizes[:, None]).sum(axis=0, keepdims=True))
    apart = 1 - np.minimum(_shares(both), overall).sum(axis=1)
    topics = np.minimum((both[:, 1:] > 0).sum(axis=1), diversity)
    order = np.lexsort((apart.round(9), -topics))
    return int(order[0] if order[0] != worst else order[1])
