"""Turns texts into what the kernel reads: known words, corrected words, run-together words taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from querycloak.text.classify import phrases as kernel
from querycloak.text.classify.navigational import RunTogether
from querycloak.text.classify.pairs import join_pairs
from querycloak.text.classify.result import FloatArray, IntArray
from querycloak.text.classify.spelling import Spelling
from querycloak.text.classify.vocabulary import Vocabulary
from querycloak.text.normalise import BoolArray, Tokens, in_tail, is_stop, opens_tail

TRUST_BY_HALVES = np.array([1.0, 0.9, 0.8, 0.7, 0.6])  # of errors corrected
TRUST_BY_LENGTH = np.array([0.0, 0.0, 0.0, 0.0, 0.5, 0.7, 0.9, 1.0])  # a short word may mean anything
TRUST_CUT = 0.85
RARE, COMMON = 5.0, 80.0  # commonness below which a known word is doubted, and of what it may be meant for

Arrays = tuple[IntArray, IntArray, FloatArray]


@dataclass(frozen=True)
class Reading:
    """Words in one row: numbers as spelt and as stems, flags, and how far each is to be believed."""

    spelt: IntArray
    stem: IntArray
    flags: IntArray
    trust: FloatArray
    bounds: IntArray

    @property
    def arrays(self) -> tuple[Any, ...]:
        """Give the arrays in the order in which the kernel takes them."""
        return self.spelt, self.stem, self.flags, self.trust

    def only(self, rows: IntArray) -> Reading:
        """Give some of the texts."""
        sizes = np.diff(self.bounds)[rows]
        ends = np.cumsum(sizes)
        words = np.repeat(self.bounds[:-1][rows] - ends + sizes, sizes) + np.arange(sizes.sum())
        bounds = np.concatenate([[0], ends]).astype(np.int64)
        return Reading(self.spelt[words], self.stem[words], self.flags[words], self.trust[words], bounds)


class Reader:
    """Reads words against one vocabulary; an unknown word is corrected or taken apart."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._spelling = Spelling(vocabulary)
        self._run_together = RunTogether(vocabulary)

    def read(self, written: Tokens) -> Reading:
        """Read texts that were split into words."""
        tokens = join_pairs(written, self._vocabulary)
        spelt = self._vocabulary.spelt(tokens.words)
        stem = self._vocabulary.stemmed(tokens.words)
        stop = is_stop(tokens.words)
        tail = in_tail(opens_tail(tokens.words), stop, tokens.codes, tokens.bounds)
        trust = np.ones(spelt.size)
        parts = self._repair(tokens.words, spelt, stem, stop, trust)
        flags = stop[tokens.codes] * kernel.STOP + tail * kernel.TAIL
        plain = Reading(spelt[tokens.codes], stem[tokens.codes], flags, trust[tokens.codes], tokens.bounds)
        return self._spread(plain, tokens.codes, parts) if parts else plain

    def _repair(
        self, words: Sequence[str], spelt: IntArray, stem: IntArray, stop: BoolArray, trust: FloatArray
    ) -> dict[int, IntArray]:
        """Correct unknown words in place; give those that fall into several parts."""
        lost = np.flatnonzero((spelt < 0) & (stem < 0) & ~stop)
        texts = [words[i] for i in lost.tolist()]
        near, halves = self._spelling.correct(texts)
        parts, count = self._run_together.cut(texts)
        cut = (count > 1) & ((near < 0) | (halves > 2))
        right = (near >= 0) & ~cut
        self._replace(lost[right], near[right], halves[right], words, (spelt, stem, trust))
        self._repair_rare(words, spelt, stem, stop, trust)
        return {int(lost[i]): parts[i, : count[i]] for i in np.flatnonzero(cut)}

    def _repair_rare(
        self, words: Sequence[str], spelt: IntArray, stem: IntArray, stop: BoolArray, trust: FloatArray
    ) -> None:
        """Correct words that only WordNet knows, one error away from a common one: `wether` is no ram."""
        common = self._vocabulary.commonness
        rare = np.flatnonzero((spelt >= 0) & ~stop)
        rare = rare[common[spelt[rare]] < RARE]
        near, halves = self._spelling.correct([words[i] for i in rare.tolist()])
        right = (near >= 0) & (halves <= 2)
        right[right] = common[near[right]] >= COMMON
        self._replace(rare[right], near[right], halves[right], words, (spelt, stem, trust))

    def _replace(
        self, rows: IntArray, near: IntArray, halves: IntArray, words: Sequence[str], arrays: Arrays
    ) -> None:
        spelt, stem, trust = arrays
        spelt[rows], stem[rows] = near, self._vocabulary.stem[near]
        length = np.array([len(words[i]) for i in rows.tolist()], np.int64)
        trust[rows] = TRUST_BY_HALVES[halves] * TRUST_BY_LENGTH[np.minimum(length, TRUST_BY_LENGTH.size - 1)]

    def _spread(self, plain: Reading, codes: IntArray, parts: dict[int, IntArray]) -> Reading:
        """Write the parts of run-together words in their place."""
        size = np.ones(int(codes.max()) + 1, np.int64)
        size[list(parts)] = [part.size for part in parts.values()]
        copies = size[codes]
        row = np.repeat(np.arange(codes.size), copies)
        spelt, stem, flags = plain.spelt[row], plain.stem[row], plain.flags[row]
        trust = plain.trust[row]
        many = np.flatnonzero(copies > 1)
        if many.size:
            at = np.cumsum(copies) - copies
            fill = np.concatenate([np.arange(at[i], at[i] + copies[i]) for i in many])
            spelt[fill] = np.concatenate([parts[int(codes[i])] for i in many])
            stem[fill], trust[fill] = self._vocabulary.stem[spelt[fill]], TRUST_CUT
            flags[fill] = flags[fill] & ~kernel.STOP | self._vocabulary.stop[spelt[fill]] * kernel.STOP
        ends = np.concatenate([[0], np.cumsum(copies)])
        return Reading(spelt, stem, flags, trust, ends[plain.bounds])
