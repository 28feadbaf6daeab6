"""Reads addresses typed as queries: `www.bankofamerica.com`, run-together words, e-mail addresses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.text.classify import near_words as kernel
from querycloak.text.classify.result import IntArray
from querycloak.text.classify.spelling import LONGEST, as_bytes
from querycloak.text.classify.vocabulary import Vocabulary
from querycloak.text.normalise import STOP_WORDS

MOST_PARTS = 5
SHORTEST_PART = 3
SHORTEST_WORD = 6  # below this, cutting a word is guessing
_SHORT_PARTS = frozenset(
    {"of", "in", "my", "to", "the", "for", "and", "you", "on", "at", "by", "us", "uk", "tv", "go", "it", "up"}
)

FORMS = {
    r"[^\s@]+@[^\s@]+\.[a-z]{2,}": "Computers/Email",
    r"^\s*\(?\d{3}\)?[-. ]?\d{3}[-. ]?\d{4}\s*$": "Reference/Phone Directories",
    r"^\s*\d{5}(-\d{4})?\s*$": "Regional/United States",
}
"""What a query's outer form says: an e-mail address, a phone number, a postal code."""


class RunTogether:
    """Cuts run-together words into words that the vocabulary knows."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    @cached_property
    def _table(self) -> tuple[Any, ...]:
        letters, bounds = as_bytes(self._vocabulary.words)
        return (*kernel.whole_words(letters, bounds), self._costs())

    def _costs(self) -> npt.NDArray[np.float64]:
        """A part costs the more the rarer it is; short parts only if they are very common words."""
        words, common = self._vocabulary.words, self._vocabulary.commonness
        short = np.array([len(w) < SHORTEST_PART or w in STOP_WORDS for w in words], np.bool_)
        allowed = np.array([w in _SHORT_PARTS or len(w) > SHORTEST_PART for w in words], np.bool_)
        usable = np.where(short, allowed, (common >= 5.0) | np.array([len(w) >= 4 for w in words]))
        cost = np.log2(common.sum()) - np.log2(np.where(short, np.maximum(common, 200.0), common))
        return np.where(usable, cost, np.inf)

    def cut(self, words: Sequence[str]) -> tuple[IntArray, IntArray]:
        """Give each word's parts as numbers of the vocabulary, and how many there are (0: it stays whole)."""
        parts = np.full((len(words), MOST_PARTS), -1, np.int64)
        count = np.zeros(len(words), np.int64)
        asked = [i for i, w in enumerate(words) if SHORTEST_WORD <= len(w) <= LONGEST and w.isascii()]
        if asked:
            letters, bounds = as_bytes([words[i] for i in asked])
            parts[asked], count[asked] = kernel.take_apart(letters, bounds, MOST_PARTS, *self._table)
        return parts, count


def forms(queries: pl.Series) -> pl.Series:
    """Give the category path that a query's outer form speaks for, or null."""
    answer = pl.lit(None, dtype=pl.String)
    for pattern, path in reversed(FORMS.items()):
        answer = pl.when(pl.col("query").str.contains(pattern)).then(pl.lit(path)).otherwise(answer)
    return queries.to_frame("query").select(answer.alias("path")).to_series()


def address_words(urls: pl.Series) -> pl.Series:
    """Give the words of clicked addresses: host without `www` and ending, then the path."""
    bare = urls.cast(pl.String).fill_null("").str.to_lowercase()
    bare = bare.str.replace(r"^[a-z]+://", "").str.replace(r"^www\d?\.", "").str.replace(r"[?#].*$", "")
    return bare.str.replace(r"^([^/]*)\.[a-z]{2,4}(:\d+)?(/|$)", "$1 $3")
