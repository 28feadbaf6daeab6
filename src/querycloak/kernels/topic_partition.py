"""Groups of people whose searches fall into the same categories (paper 003, 5.4.1.2 to 5.4.3.1), on integers.

The thesis builds dense matrices. Here a person's counts by category are a short list, and the common counts
of two people are summed up along the lists of the people who have a category.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.kernels.threads import mirror, strided
from querycloak.log import IntArray


@dataclass(frozen=True)
class Counts:
    """A classification matrix: person a has `count[i]` times `category[i]`, i from `starts[a]` on."""

    starts: IntArray
    category: IntArray
    count: IntArray


def ancestors(category: IntArray, parent: IntArray, deepest: int) -> list[IntArray]:
    """Give for each level from 1 to the deepest the category above or at each given one.

    It is -1 where the given one is higher up.

    `parent` is -1 at level 1. A category of -1 (none) has none above it.
    """
    level, up = np.zeros(parent.size, np.int64), np.arange(parent.size)
    while (up >= 0).any():
        level += up >= 0
        up = np.where(up >= 0, parent[up], -1)
    known, found = category >= 0, []
    for wanted in range(deepest, 0, -1):
        at = np.where(known, category, 0)
        while (too_deep := known & (level[at] > wanted)).any():
            at = np.where(too_deep, parent[at], at)
        found.append(np.where(known & (level[at] == wanted), at, -1))
    return found[::-1]


def classification(person: IntArray, category: IntArray, people: int) -> Counts:
    """Count how often each person's terms fall into each category of a level (Algorithm 2)."""
    person, category = person[category >= 0], category[category >= 0]
    width = int(category.max(initial=0)) + 1
    cell, count = np.unique(person * width + category, return_counts=True)
    starts = np.searchsorted(cell, width * np.arange(people + 1))
    return Counts(starts.astype(np.int64), cell % width, count.astype(np.int64))


def _transposed(counts: Counts) -> Counts:
    """List the people of each category instead of the categories of each person."""
    person = np.repeat(np.arange(counts.starts.size - 1), np.diff(counts.starts))
    order = np.argsort(counts.category, kind="stable")
    size = int(counts.category.max(initial=-1)) + 1
    starts = np.searchsorted(counts.category[order], np.arange(size + 1))
    return Counts(starts.astype(np.int64), person[order], counts.count[order])


@njit(cache=True, nogil=True)
def _add_common(first, step, starts, category, count, begins, person, theirs, out):  # type: ignore[no-untyped-def]
    """Add to the cells right of the diagonal what two people have in common, in every step-th row."""
    for a in range(first, starts.size - 1, step):
        for i in range(starts[a], starts[a + 1]):
            c = category[i]
            low = begins[c] + np.searchsorted(person[begins[c] : begins[c + 1]], a + 1)
            for j in range(low, begins[c + 1]):
                out[a, person[j]] += min(count[i], theirs[j])


def _add_rows(counts: Counts, by: Counts, out: npt.NDArray[np.int32], first: int, step: int) -> None:
    lists = (counts.starts, counts.category, counts.count, by.starts, by.category, by.count)
    _add_common(first, step, *lists, out)


def incidence(levels: Sequence[Counts], threads: int | None = None) -> npt.NDArray[np.int32]:
    """Sum up over all levels how many counts two people have in common (Algorithm 3); the diagonal is 0."""
    people = levels[0].starts.size - 1
    out = np.zeros((people, people), np.int32)
    for counts in levels:
        strided(partial(_add_rows, counts, _transposed(counts), out), threads)
    mirror(out)
    return out


@njit(cache=True, nogil=True)
def _best_partner(row, own, order, alive):  # type: ignore[no-untyped-def]
    """Find the place in the order of the one alive, other than the own place, with the highest value."""
    best, found = -1, -1
    for place in range(order.size):
        if alive[place] and place != own and row[order[place]] > best:
            best, found = row[order[place]], place
    return best, found


@njit(cache=True, nogil=True)
def _best_pair(common, order, alive, partner, most):  # type: ignore[no-untyped-def]
    """Find the two alive with most in common.

    What a row had at its best bounds what it has: a row is searched again only if it is first and its
    partner gone.
    """
    while True:
        best = np.argmax(most)
        if alive[partner[best]]:
            return best
        most[best], partner[best] = _best_partner(common[order[best]], best, order, alive)


@njit(cache=True, nogil=True)
def _grow(first, second, k, common, order, alive, label, number):  # type: ignore[no-untyped-def]
    """Put two into a group, then whoever has most in common with all in it, up to k (Algorithm 5)."""
    merged, newest = np.zeros(order.size, np.int64), first
    for size in range(1, k + 1):
        label[order[newest]], alive[newest] = number, False
        merged += common[order[newest]]
        if size < k:
            newest = second if size == 1 else _best_partner(merged, -1, order, alive)[1]


@njit(cache=True, nogil=True)
def _partition(common, k, order):  # type: ignore[no-untyped-def]
    size = order.size
    label, alive = np.zeros(size, np.int64), np.ones(size, np.bool_)
    most, partner = np.empty(size, np.int64), np.empty(size, np.int64)
    for place in range(size if size > 1 else 0):
        most[place], partner[place] = _best_partner(common[order[place]], place, order, alive)
    for number in range(size // k if k > 1 else 0):
        first = _best_pair(common, order, alive, partner, most)
        _grow(first, partner[first], k, common, order, alive, label, number)
        most[~alive] = -1
    if k > 1:
        for place in range(size):
            if alive[place]:
                label[order[place]] = max(size // k - 1, 0)
    return label


def partition(common: npt.NDArray[np.int32], k: int, rank: npt.NDArray[np.uint64]) -> IntArray:
    """Number the groups of k people with most in common (Algorithm 4); those left over join the last.

    Of equal pairs the one with the least ranks goes first. Fewer than k people are one group.
    """
    order = np.argsort(rank, kind="stable")
    if k == 1:
        return np.argsort(order).astype(np.int64)
    return np.asarray(_partition(common, k, order), np.int64)
