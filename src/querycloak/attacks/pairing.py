"""Chooses pairs of records worth a look: same string, a word in common, close in time, labels of a cohort."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from querycloak.attacks.link_repeat import Grouped
from querycloak.attacks.seen import IntArray, Seen
from querycloak.attacks.wording import Words
from querycloak.kernels import relink

#: How far from each other, in order of time, records are still taken for neighbours.
NEIGHBOURS = 20


@dataclass(frozen=True)
class Pool:
    """The records to choose from, in several orders, and what the choice starts from."""

    seen: Seen
    by_string: Grouped
    words: Words
    draws: np.random.Generator
    #: For each label, the set of labels that it seems to be drawn with; none where labels are swapped.
    sets: IntArray | None = None

    def choose(self, count: int) -> tuple[IntArray, IntArray]:
        """Draw up to `count` different pairs, equally many of each kind; the earlier place comes first."""
        size = self.seen.label.size
        if size < 2 or not count:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        kinds = [self._same_string, self._common_word, self._neighbours, self._any]
        kinds += [self._same_set] if self.sets is not None else []
        each = max(1, count // len(kinds))
        found = [kind(self.draws.integers(0, size, each)) for kind in kinds]
        first, second = (np.concatenate(side) for side in zip(*found, strict=True))
        low, high = np.minimum(first, second), np.maximum(first, second)
        pair = np.unique(low[low != high] * size + high[low != high])
        return pair // size, pair % size

    def _any(self, first: IntArray) -> tuple[IntArray, IntArray]:
        return first, self.draws.integers(0, self.seen.label.size, first.size)

    def _same_set(self, first: IntArray) -> tuple[IntArray, IntArray]:
        """Draw records whose labels seem to be of one cohort: who wrote which is all that is left to tell."""
        assert self.sets is not None
        of = self.sets[self.seen.label]
        members, groups = relink.group(of, int(of.max()) + 1)
        sizes = groups[of[first] + 1] - groups[of[first]]
        return first, members[groups[of[first]] + (self.draws.random(first.size) * sizes).astype(np.int64)]

    def _same_string(self, first: IntArray) -> tuple[IntArray, IntArray]:
        first = first[self.seen.string[first] >= 0]
        return first, self._of_strings(self.seen.string[first].astype(np.int64))

    def _of_strings(self, string: IntArray) -> IntArray:
        """Draw a record of each of these strings."""
        members, groups = self.by_string
        sizes = groups[string + 1] - groups[string]
        return members[groups[string] + (self.draws.random(string.size) * sizes).astype(np.int64)]

    def _common_word(self, first: IntArray) -> tuple[IntArray, IntArray]:
        """Draw a word of each record, then a string with that word, then a record of that string."""
        begins, word = self.words.begins, self.words.word
        first = first[self.seen.string[first] >= 0]
        string = self.seen.string[first].astype(np.int64)
        sizes = begins[string + 1] - begins[string]
        first, string, sizes = first[sizes > 0], string[sizes > 0], sizes[sizes > 0]
        drawn = word[begins[string] + (self.draws.random(first.size) * sizes).astype(np.int64)]
        owner = np.repeat(np.arange(begins.size - 1), np.diff(begins))
        places, of_word = relink.group(word.astype(np.int64), self.words.different)
        many = of_word[drawn + 1] - of_word[drawn]
        other = owner[places[of_word[drawn] + (self.draws.random(first.size) * many).astype(np.int64)]]
        shown = np.diff(self.by_string[1])[other] > 0
        return first[shown], self._of_strings(other[shown])

    def _neighbours(self, first: IntArray) -> tuple[IntArray, IntArray]:
        """Draw records that follow soon, by time or, without times, in the stream."""
        time, size = self.seen.time, self.seen.label.size
        order = np.arange(size) if time is None else np.argsort(time, kind="stable")
        later = np.minimum(first + self.draws.integers(1, NEIGHBOURS + 1, first.size), size - 1)
        return order[first], order[later]
