"""`link-pairs`: did one person write these two records? Text, time, labels and topic tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.attacks.link_background import CANDIDATES
from querycloak.attacks.link_repeat import LinkRepeat, by_string, cohorts, settle, window
from querycloak.attacks.link_window import never_own, reach_of
from querycloak.attacks.pairing import Pool
from querycloak.attacks.protocol import Attack, AttackerView, Linkage
from querycloak.attacks.seen import IntArray, Seen, attackers_k, attackers_level, see
from querycloak.attacks.wording import Words, words_of
from querycloak.kernels import pairs
from querycloak.log import NO_TIME
from querycloak.settings import setting

FloatArray = npt.NDArray[np.float64]

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
    "swap": (-6.408, -1.997, 0.405, 1.154, 0.985, 0.885, 0.088, -0.091, 1.113),
    "cohort": (-10.031, -0.945, 0.785, -0.231, 0.853, 0.692, 0.296, 0.856, 9.360),
}


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

        pairs: int = setting(200_000, kind=int, at_least=4, at_most=50_000_000, help="pairs to draw, at most")
        seed: int = setting(0, kind=int, at_least=0, help="what the draw of pairs starts from")

    def guess(self, view: AttackerView) -> Linkage:
        """Score pairs of rows."""
        first, second, features = self.look(view)
        weights = WEIGHTS["swap" if never_own(view) else "cohort"]
        return Linkage(first, second, features @ np.array(weights), {"drawn_pairs": int(first.size)})

    def look(self, view: AttackerView) -> tuple[IntArray, IntArray, FloatArray]:
        """Draw pairs of rows, and give what is seen of each pair, a column per feature."""
        chosen: Any = self.settings
        k = attackers_k(view, chosen.k)
        seen = see(view.release, attackers_level(view, chosen.level) or 1)
        words = words_of(seen.strings.texts())
        strings = by_string(seen)
        sets = None if never_own(view) else cohorts(seen, strings, k)
        pool = Pool(seen, strings, words, np.random.default_rng(chosen.seed), sets)
        first, second = pool.choose(chosen.pairs)
        if sets is None:
            likely = self._believed(seen, pool, first, second, k)
        else:
            likely = (sets[seen.label[first]] == sets[seen.label[second]]).astype(np.float64)
        columns = [*_compared(seen, words, first, second), likely]
        rows = _first_rows(view, seen)
        return rows[first], rows[second], np.column_stack(columns)

    def _believed(self, seen: Seen, pool: Pool, first: IntArray, second: IntArray, k: int) -> FloatArray:
        """Give how likely `link-repeat` thinks it that both records have one author."""
        chosen: Any = self.settings
        around = window(seen, k, reach_of(chosen.reach, k))
        believed = settle(seen, pool.by_string, around, chosen.spread, chosen.rounds, CANDIDATES)
        agreed = np.empty(first.size)
        pairs.agreement(first, second, *believed, agreed)
        return np.log10(agreed + 1e-4) + 4


def _first_rows(view: AttackerView, seen: Seen) -> IntArray:
    """Give the released row at which each place begins."""
    rows = np.zeros(seen.label.size, np.int64)
    shown = np.flatnonzero(seen.at >= 0)[::-1]
    rows[seen.at[shown]] = view.release["released_row"].cast(pl.Int64).to_numpy()[shown]
    return rows


def _compared(seen: Seen, words: Words, first: IntArray, second: IntArray) -> list[FloatArray]:
    """Give all features that need no belief about authors."""
    size = max(1, seen.label.size)
    strings = seen.string[first], seen.string[second]
    same = (strings[0] == strings[1]) & (strings[0] >= 0)
    counts = np.bincount(seen.string[seen.string >= 0], minlength=words.begins.size)
    rare = np.where(same, np.log10(size / np.maximum(counts[strings[0]], 1)), 0.0)
    alike, rarest = np.zeros(first.size), np.zeros(first.size)
    rarity = np.log10(size / np.maximum(words.counts(seen.string), 1))
    known = np.flatnonzero((strings[0] >= 0) & (strings[1] >= 0))
    found = np.zeros((2, known.size))
    pairs.shared_words(strings[0][known], strings[1][known], words.begins, words.word, rarity, *found)
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


def _closeness(seen: Seen, first: IntArray, second: IntArray) -> FloatArray:
    """Give how close in time two records are, in powers of ten of less than a year; 0 where unknown."""
    if seen.time is None:
        return np.zeros(first.size)
    known = (seen.time[first] != NO_TIME) & (seen.time[second] != NO_TIME)
    seconds = np.abs(np.where(known, seen.time[first] - seen.time[second], 0)) / 1e6
    return np.where(known, np.clip(7.5 - np.log10(1 + seconds), 0, None), 0.0)
