"""Corrects words that no phrase holds to the nearest word that one does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from querycloak.text.classify import near_words as kernel
from querycloak.text.classify.result import UNKNOWN, IntArray
from querycloak.text.classify.vocabulary import Vocabulary

SHORTEST, TWO_ERRORS_FROM = 4, 8  # letters from which one and two errors are believed
LONGEST = kernel.MOST_LETTERS
LEXICON_WORD = 5.0  # words at least this common come from the lexicon, not from WordNet alone


def as_bytes(words: Sequence[str]) -> tuple[npt.NDArray[np.uint8], IntArray]:
    """Write words as one row of byte values and their bounds."""
    encoded = [word.encode() for word in words]
    bounds = np.concatenate([[0], np.cumsum([len(word) for word in encoded], dtype=np.int64)])
    return np.frombuffer(b"".join(encoded), np.uint8), bounds.astype(np.int64)


def halves_allowed(sizes: IntArray) -> IntArray:
    """Give how many halves of an error are believed in words of these lengths."""
    return 2 * (sizes >= SHORTEST).astype(np.int64) + 2 * (sizes >= TWO_ERRORS_FROM)


def deletions(sizes: IntArray) -> IntArray:
    """Give how many letters to leave out in search of a word: two where two vowels may be wrong."""
    return 1 + (sizes >= TWO_ERRORS_FROM - 2).astype(np.int64)


def fits(word: str) -> bool:
    """Tell whether a word can be looked up letter by letter: plain letters, neither short nor endless."""
    return SHORTEST <= len(word) <= LONGEST and word.isascii() and word.isalpha()


class Spelling:
    """Finds the known word that a misspelt one probably means; the index is built on first use."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    @cached_property
    def _known(self) -> IntArray:
        """The words that a correction may lead to."""
        words = self._vocabulary.words
        common = self._vocabulary.commonness >= LEXICON_WORD
        return np.array([i for i in np.flatnonzero(common).tolist() if fits(words[i])], np.int64)

    @cached_property
    def _index(self) -> tuple[Any, Any]:
        letters, bounds = as_bytes([self._vocabulary.words[i] for i in self._known.tolist()])
        sizes = np.diff(bounds)
        buckets = 1 << max(10, int(30 * sizes.size).bit_length() - 1)
        common = np.log2(np.minimum(self._vocabulary.commonness[self._known], 1000.0))
        return (letters, bounds, common), kernel.index_deletions(letters, bounds, deletions(sizes), buckets)

    def correct(self, words: Sequence[str]) -> tuple[IntArray, IntArray]:
        """Give each word's correction as a number of the vocabulary (-1: none), and the halves of errors."""
        answer = np.full(len(words), UNKNOWN, np.int64)
        far = np.zeros(len(words), np.int64)
        asked = np.array([i for i, word in enumerate(words) if fits(word)], np.int64)
        if asked.size and self._known.size:
            letters, bounds = as_bytes([words[i] for i in asked.tolist()])
            sizes = np.diff(bounds)
            near, far[asked] = kernel.nearest(
                letters, bounds, deletions(sizes), halves_allowed(sizes), *self._index
            )
            answer[asked] = np.where(near >= 0, self._known[near], UNKNOWN)
        return answer, far
