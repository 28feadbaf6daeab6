"""Records of a group that make its history (paper 003, 5.3.1.4 and Algorithm 6), and their columns.

Functions take the records of one group: the member and the query string of each, and random 64-bit draws that
decide between equals. The same draws give the same history, whatever the order of the records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from querycloak.dictionary import Dictionaries
from querycloak.kernels import siphash
from querycloak.keys import derive
from querycloak.log import MISSING, Batch, IntArray
from querycloak.methods.microaggregation.diversity import diversify_picks

Draws = npt.NDArray[np.uint64]
_Records = dict[Any, list[int]]
_PICK: Final = 8  # the purpose of draws that pick records; smaller numbers are those of columns
COIN: Final = 9  # the purpose of draws that round a share of copies


class RecordPicker:
    """Choice of the records that make a group's history, by keyed draws."""

    def __init__(self, columns: frozenset[str], diversity: int, key: bytes, texts: Dictionaries) -> None:
        self._text_columns = sorted(columns - {"user", "time", "rank"})
        self._diversity, self._key, self._texts = diversity, key, texts

    def proportional(self, records: Batch, members: IntArray) -> IntArray:
        """Return the places of each member's share, in proportion to the frequencies of queries."""
        draws = self.draws(records)
        chosen = proportional_picks(np.searchsorted(members, records.user), records.query, draws)
        return self._diversify(chosen, records, draws)

    def ranked(self, records: Batch, members: IntArray) -> IntArray:
        """Return the places of each member's share, the most frequent queries first."""
        draws, coins = self.draws(records), self.draws(records, COIN)
        chosen = ranked_picks(np.searchsorted(members, records.user), records.query, draws, coins)
        return self._diversify(chosen, records, draws)

    def draws(self, records: Batch, purpose: int = _PICK) -> Draws:
        """Return a number for each record, drawn from its content: the order of a file decides nothing."""
        key, content = derive(self._key, "picks"), np.zeros(len(records), np.uint64)
        for name in self._text_columns:
            codes = getattr(records, name)
            known = np.flatnonzero(codes >= 0)
            prints = getattr(self._texts, name).fingerprints(codes[known], derive(self._key, name))
            content[known] ^= prints
        for place, name in enumerate(("user", "time", "rank")):
            content ^= siphash.draw(key, place, getattr(records, name))
        return siphash.draw(key, purpose, content.view(np.int64))

    def _diversify(self, chosen: IntArray, records: Batch, draws: Draws) -> IntArray:
        """Return picks that have the required number of topics; the least draws are preferred."""
        if self._diversity == 1:
            return chosen
        top = self._texts.category.at_level(records.category, 1)
        topic, known = np.full(top.size, MISSING, np.int64), top >= 0
        prints = self._texts.category.fingerprints(top[known], derive(self._key, "topics"))
        topic[known] = np.unique(prints, return_inverse=True)[1]  # numbers that no order of arrival decides
        return diversify_picks(chosen, topic, draws.astype(np.float64), self._diversity)


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
    people, order, chance = _by_member(member, draws), draws.tolist(), coins.tolist()
    picked: list[int] = []
    for records, quota in _with_quotas(people, order):
        own: list[int] = []
        for mine in sorted(_by_string(records, string), key=lambda mine: (-len(mine), order[mine[0]])):
            copies, rest = divmod(len(mine) * len(records), member.size)
            copies += (chance[mine[0]] * member.size) >> 64 < rest
            own += mine[: min(copies, quota - len(own))]
        taken = set(own)
        spare = (record for record in records if record not in taken)
        picked += own + [record for record, _ in zip(spare, range(quota - len(own)), strict=False)]
    return np.sort(np.array(picked, np.int64))


def _by_member(member: IntArray, draws: Draws) -> list[list[int]]:
    """Return each member's records, least draw first; equal draws keep their order."""
    people: _Records = defaultdict(list)
    for record in np.argsort(draws, kind="stable").tolist():
        people[int(member[record])].append(record)
    return list(people.values())


def _by_string(records: Iterable[int], string: IntArray) -> list[list[int]]:
    strings: _Records = defaultdict(list)
    for record in records:
        strings[int(string[record])].append(record)
    return list(strings.values())


def _with_quotas(people: list[list[int]], order: Sequence[int]) -> Iterable[tuple[list[int], int]]:
    quotas = member_quotas([*map(len, people)], [order[records[0]] for records in people]) if people else []
    return zip(people, quotas, strict=True)


def means(key: IntArray, values: IntArray, known: npt.NDArray[np.bool_], nothing: int) -> IntArray:
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
        size = min(
            size, len(other), next((i for i in range(size) if other[i : i + 1] != first[i : i + 1]), size)
        )
    return first[:size]
