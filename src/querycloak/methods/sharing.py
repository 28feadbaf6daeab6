"""Which records of a group make its one history (paper 003, 5.3.1.4 and Algorithm 6), and their columns.

All functions take the records of one group: whose they are, which query string they have, and random 64-bit
draws that decide between equals. The same draws give the same history, whatever the order of the records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from querycloak.log import IntArray

Draws = npt.NDArray[np.uint64]
_Records = dict[Any, list[int]]


def member_quotas(sizes: Sequence[int], ties: Sequence[int]) -> list[int]:
    """Say how many records each member gives: hers by the number of members, rounded by largest remainders.

    All together they are the mean, rounded (halves up). Of equal remainders the least tie goes first.

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
    """Pick each member's quota so that her strings keep their frequencies (5.3.1.4): places of records."""
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
    """Pick each member's quota, most repeated queries first (Algorithm 6): places of records.

    A query asked r times is added r · contribution times; the fraction is the probability of one more. If
    the list ends before the quota is reached, her other records fill it, by their draws.
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
    """Give each member's records, least draw first; equal draws keep their order."""
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
    """Give every record the rounded mean (halves up) of the known values with its key, or `nothing`.

    Whole numbers throughout: times in microseconds leave a float's precision when they are summed.
    """
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for k, value in zip(key[known].tolist(), values[known].tolist(), strict=True):
        sums[k][0] += value
        sums[k][1] += 1
    mean = {k: (2 * total + count) // (2 * count) for k, (total, count) in sums.items()}
    return np.array([mean.get(k, nothing) for k in key.tolist()], np.int64)


def labels_of(url: str) -> tuple[str, ...]:
    """Give the labels of a URL's domain name from the right, in small letters.

    >>> labels_of("http://user@www.Shop.example:80/a?b")
    ('example', 'shop', 'www')
    """
    rest = url.partition("://")[2] or url
    for mark in "/?#":
        rest = rest.partition(mark)[0]
    host = rest.rpartition("@")[2].partition(":")[0].strip(".")
    return tuple(reversed(host.casefold().split("."))) if host else ()


def common_right_part(hosts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Cut domain names, as labels from the right, to what all of them end in.

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
