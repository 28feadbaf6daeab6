"""Named things in searches, with how often each occurs: what the kernel reads as integers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from querycloak.attacks.link_learned.relations_kernel import Bags, Weights
from querycloak.attacks.link_learned.words import FloatArray, Words, stems
from querycloak.log import IntArray


@dataclass(frozen=True)
class Named:
    """Bags of numbers, and the name of each number."""

    bags: Bags
    names: Sequence[str]

    @property
    def sizes(self) -> IntArray:
        """How many different things each search has."""
        return np.diff(self.bags.start)


def gather(search: IntArray, item: IntArray, size: int) -> tuple[Bags, IntArray]:
    """Count what each of so many searches has; also say to which entry each thing given has come."""
    wide = int(item.max(initial=0)) + 1
    entry, where, count = np.unique(search * wide + item, return_inverse=True, return_counts=True)
    start = np.searchsorted(entry, np.arange(size + 1) * wide).astype(np.int64)
    total = np.bincount(search, minlength=size).astype(np.float64)
    return Bags(start, entry % wide, count.astype(np.float64), total), where.astype(np.int64)


def of_words(words: Words, size: int, *, stemmed: bool) -> tuple[Named, IntArray]:
    """Count the words of each search, or their stems; also say to which entry each word has come."""
    names = stems(words.distinct) if stemmed else words.distinct
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    code = np.array([number[name] for name in names], np.int64)
    bags, where = gather(words.text, code[words.code], size)
    return Named(bags, list(number)), where


def of_lists(lists: Sequence[Collection[str]]) -> Named:
    """Count the names in each search's list."""
    names = sorted({name for row in lists for name in row})
    number = {name: i for i, name in enumerate(names)}
    item = np.array([number[name] for row in lists for name in row], np.int64)
    search = np.repeat(np.arange(len(lists)), [len(row) for row in lists]).astype(np.int64)
    return Named(gather(search, item, len(lists))[0], names)


def weigh(bags: Bags, where: IntArray, value: FloatArray) -> Weights:
    """Sum the values of the words that came to each entry, and measure each search's vector of sums."""
    weight = np.bincount(where, value, bags.item.size).astype(np.float64)
    search = np.repeat(np.arange(bags.start.size - 1), np.diff(bags.start))
    total, square = (np.bincount(search, values, bags.start.size - 1) for values in (weight, weight**2))
    return Weights(weight, total.astype(np.float64), np.sqrt(square))
