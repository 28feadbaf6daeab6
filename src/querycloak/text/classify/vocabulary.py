"""The words that the taxonomy's phrases are made of, with their stems and how common they are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from querycloak.text.classify.result import UNKNOWN, FloatArray, IntArray
from querycloak.text.normalise import BoolArray, is_stop, stemmer


class Vocabulary:
    """Numbers for words and for stems; a word that no phrase holds has no number."""

    def __init__(self, words: Sequence[str], commonness: FloatArray, written: int | None = None) -> None:
        self.words = words
        self.written = len(words) if written is None else written  # from here on, run-together phrases
        self.commonness = commonness
        self.number = {word: i for i, word in enumerate(words)}
        stems = stemmer().stemWords(words)
        self._stem_number = {stem: i for i, stem in enumerate(dict.fromkeys(stems))}
        self.stem = np.array([self._stem_number[stem] for stem in stems], np.int64)

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def stop(self) -> BoolArray:
        """Mark the words that say nothing on their own."""
        return is_stop(self.words)

    def spelt(self, words: Sequence[str]) -> IntArray:
        """Give the numbers of words, -1 for those not known."""
        number = self.number
        return np.array([number.get(word, UNKNOWN) for word in words], np.int64)

    def stemmed(self, words: Sequence[str]) -> IntArray:
        """Give the numbers of the words' stems, -1 for those not known."""
        spelt, number = self.spelt(words), self._stem_number
        answer = np.full(len(words), UNKNOWN, np.int64)
        answer[spelt >= 0] = self.stem[spelt[spelt >= 0]]
        strange = np.flatnonzero(spelt < 0)
        stems = stemmer().stemWords([words[i] for i in strange.tolist()])
        answer[strange] = [number.get(stem, UNKNOWN) for stem in stems]
        return answer
