"""`link-pairs`: did one person write these two records? Text, time, labels and topic tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl
from numba import njit

from querycloak.attacks.base import Attack, AttackerView, PairGuesses
from querycloak.attacks.link_background import CANDIDATES
from querycloak.attacks.link_repeat import Grouped, LinkRepeat, by_string, cohorts, run_em, window
from querycloak.attacks.link_window import reach_of
from querycloak.attacks.release_order import ReleaseStream, read_stream
from querycloak.attacks.searches import Words, words_of
from querycloak.kernels.order import group
from querycloak.log import NO_TIME, FloatArray, IntArray
from querycloak.protector import Labels
from querycloak.settings import setting

#: What is looked at, in the order of the weights.
FEATURES: Final = (
    "always",
    "same_string",
    "rarity_of_string",
    "words_in_common",
    "rarest_common_word",
    "closeness_in_time",
    "same_label",
    "same_category",
    "same_author_likely",
)
#: Weights of a logistic regression on made-up logs, by `tools/fit_link_pairs.py`.
WEIGHTS: Final = {
    Labels.OTHERS: (-6.408, -1.997, 0.405, 1.154, 0.985, 0.885, 0.088, -0.091, 1.113),
    Labels.GROUP: (-10.031, -0.945, 0.785, -0.231, 0.853, 0.692, 0.296, 0.856, 9.360),
}

#: How far from each other, in order of time, records are still taken for neighbours.
NEIGHBOURS = 20


class LinkPairs(Attack):
    """Scores pairs of records by how likely one person wrote both.

    It draws pairs with the same string, with a word in common, close in time, with labels of one cohort
    (where there are cohorts), and at random, and weighs what they share: the string and how rare it is,
    words, time, label, category, and whether the labels point to one author (against `swap`, what
    `link-repeat` believes; otherwise, whether both labels seem to be of one cohort). The weights come
    from logs that were made up for it, never from the truth.

    Limits: no bound is claimed, and none can be: labels do not change texts and times.
    """

    name = "link-pairs"
    game = "linkage"

    @dataclass(frozen=True, kw_only=True)
    class Settings(LinkRepeat.Settings):
        """Settings of `link-pairs`."""

        pairs: int = setting(200_000, at_least=4, at_most=50_000_000, help="pairs to draw, at most")
        seed: int = setting(0, at_least=0, help="what the draw of pairs starts from")

    def guess(self, view: AttackerView) -> PairGuesses:
        """Score pairs of rows."""
        first, second, features = self.look(view)
        weights = WEIGHTS[Labels.OTHERS if view.never_author else Labels.GROUP]
        return PairGuesses(first, second, features @ np.array(weights), {"drawn_pairs": int(first.size)})

    def look(self, view: AttackerView) -> tuple[IntArray, IntArray, FloatArray]:
        """Draw pairs of rows, and give what is seen of each pair, a column per feature."""
        chosen: Any = self.settings
        k = view.assumed_k(chosen.k)
        seen = read_stream(view.release, view.assumed_level(chosen.level, 1))
        words = words_of(seen.strings.texts())
        strings = by_string(seen)
        sets = None if view.never_author else cohorts(seen, strings, k)
        pool = CandidatePairs(seen, strings, words, np.random.default_rng(chosen.seed), sets)
        first, second = pool.choose(chosen.pairs)
        if sets is None:
            likely = self._believed(seen, pool, first, second, k)
        else:
            likely = (sets[seen.label[first]] == sets[seen.label[second]]).astype(np.float64)
        columns = [*_compared(seen, words, first, second), likely]
        rows = _first_rows(view, seen)
        return rows[first], rows[second], np.column_stack(columns)

    def _believed(
        self, seen: ReleaseStream, pool: CandidatePairs, first: IntArray, second: IntArray, k: int
    ) -> FloatArray:
        """Return the probability by `link-repeat` that both records have one author."""
        chosen: Any = self.settings
        around = window(seen, k, reach_of(chosen.reach, k))
        believed = run_em(seen, pool.by_string, around, chosen.spread, chosen.rounds, CANDIDATES)
        agreed = np.empty(first.size)
        agreement(first, second, *believed, agreed)
        return np.log10(agreed + 1e-4) + 4


def _first_rows(view: AttackerView, seen: ReleaseStream) -> IntArray:
    """Return the released row at which each place begins."""
    rows = np.zeros(seen.label.size, np.int64)
    shown = np.flatnonzero(seen.at >= 0)[::-1]
    rows[seen.at[shown]] = view.release["released_row"].cast(pl.Int64).to_numpy()[shown]
    return rows


def _compared(seen: ReleaseStream, words: Words, first: IntArray, second: IntArray) -> list[FloatArray]:
    """Return all features that need no belief about authors."""
    size = max(1, seen.label.size)
    strings = seen.string[first], seen.string[second]
    same = (strings[0] == strings[1]) & (strings[0] >= 0)
    counts = np.bincount(seen.string[seen.string >= 0], minlength=words.begins.size)
    rare = np.where(same, np.log10(size / np.maximum(counts[strings[0]], 1)), 0.0)
    alike, rarest = np.zeros(first.size), np.zeros(first.size)
    rarity = np.log10(size / np.maximum(words.counts(seen.string), 1))
    known = np.flatnonzero((strings[0] >= 0) & (strings[1] >= 0))
    found = np.zeros((2, known.size))
    shared_words(strings[0][known], strings[1][known], words.begins, words.word, rarity, *found)
    alike[known], rarest[known] = found
    return [
        np.ones(first.size),
        same.astype(np.float64),
        rare,
        alike,
        rarest,
        _closeness(seen, first, second),
        (seen.label[first] == seen.label[second]).astype(np.float64),
        (seen.category[first] == seen.category[second]).astype(np.float64),
    ]


def _closeness(seen: ReleaseStream, first: IntArray, second: IntArray) -> FloatArray:
    """Return how close in time two records are, in powers of ten of less than a year; 0 where unknown."""
    if seen.time is None:
        return np.zeros(first.size)
    known = (seen.time[first] != NO_TIME) & (seen.time[second] != NO_TIME)
    seconds = np.abs(np.where(known, seen.time[first] - seen.time[second], 0)) / 1e6
    return np.where(known, np.clip(7.5 - np.log10(1 + seconds), 0, None), 0.0)


@dataclass(frozen=True)
class CandidatePairs:
    """The records to choose from, in several orders, and what the choice starts from."""

    seen: ReleaseStream
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
        return first, self._one_of(group(of, int(of.max()) + 1), of[first])

    def _same_string(self, first: IntArray) -> tuple[IntArray, IntArray]:
        first = first[self.seen.string[first] >= 0]
        return first, self._one_of(self.by_string, self.seen.string[first].astype(np.int64))

    def _one_of(self, grouped: Grouped, wanted: IntArray) -> IntArray:
        """Draw a member of each of these groups."""
        members, groups = grouped
        sizes = groups[wanted + 1] - groups[wanted]
        return members[groups[wanted] + (self.draws.random(wanted.size) * sizes).astype(np.int64)]

    def _common_word(self, first: IntArray) -> tuple[IntArray, IntArray]:
        """Draw a word of each record, then a string with that word, then a record of that string."""
        begins, word = self.words.begins, self.words.word.astype(np.int64)
        first = first[self.seen.string[first] >= 0]
        first = first[np.diff(begins)[self.seen.string[first]] > 0]
        drawn = self._one_of((word, begins), self.seen.string[first].astype(np.int64))
        owner = np.repeat(np.arange(begins.size - 1), np.diff(begins))
        other = owner[self._one_of(group(word, self.words.different), drawn)]
        shown = np.diff(self.by_string[1])[other] > 0
        return first[shown], self._one_of(self.by_string, other[shown])

    def _neighbours(self, first: IntArray) -> tuple[IntArray, IntArray]:
        """Draw records that follow soon, by time or, without times, in the stream."""
        time, size = self.seen.time, self.seen.label.size
        order = np.arange(size) if time is None else np.argsort(time, kind="stable")
        later = np.minimum(first + self.draws.integers(1, NEIGHBOURS + 1, first.size), size - 1)
        return order[first], order[later]


@njit(cache=True, nogil=True)
def shared_words(first, second, begins, words, rarity, alike, rarest):  # type: ignore[no-untyped-def]
    """Compare the word lists of pairs of strings: write the share in common and the rarest common word.

    Each string's words are sorted; a string without words has nothing in common with any.
    """
    for pair in range(first.size):
        a, a_end = begins[first[pair]], begins[first[pair] + 1]
        b, b_end = begins[second[pair]], begins[second[pair] + 1]
        together = (a_end - a) + (b_end - b)
        common = 0
        while a < a_end and b < b_end:
            if words[a] == words[b]:
                common += 1
                rarest[pair] = max(rarest[pair], rarity[words[a]])
            step_a = words[a] <= words[b]
            step_b = words[b] <= words[a]
            a += step_a
            b += step_b
        alike[pair] = common / (together - common) if common else 0.0


@njit(cache=True, nogil=True)
def agreement(first, second, who, belief, agreed):  # type: ignore[no-untyped-def]
    """Write the probability that the same label wrote both records, if they are independent."""
    for pair in range(first.size):
        total = 0.0
        for i in range(who.shape[1]):
            for j in range(who.shape[1]):
                if who[first[pair], i] >= 0 and who[first[pair], i] == who[second[pair], j]:
                    total += np.float64(belief[first[pair], i]) * belief[second[pair], j]
        agreed[pair] = total
