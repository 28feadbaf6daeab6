"""The words that the taxonomy's phrases are made of, with their stems and how common they are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.text.classify.normalise import STOP_WORDS, TAIL_OPENERS, stemmer
from querycloak.text.classify.result import UNKNOWN, FloatArray, IntArray

BoolArray = npt.NDArray[np.bool_]


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
        return stops(self.words)

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


def stops(words: Sequence[str]) -> BoolArray:
    """Mark the words that say nothing on their own: stop words, single letters, numbers such as years."""
    column = pl.Series("word", words, dtype=pl.String)
    silent = column.is_in(list(STOP_WORDS)) | (column.str.len_chars() < 2)
    return (silent | column.str.contains(r"^[0-9]{1,4}$")).to_numpy()


def openers(words: Sequence[str]) -> BoolArray:
    """Mark the words that open a tail such as `in boston`."""
    return pl.Series("word", words, dtype=pl.String).is_in(list(TAIL_OPENERS)).to_numpy()
