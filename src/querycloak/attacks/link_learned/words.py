"""Words of queries, pages and addresses: stems, frequencies in general and among other users, misspellings.

Stems are Lancaster's (Paice and Husk), as in paper 004. The frequencies are wordfreq's, in place of
the paper's counts of books.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.attacks.searches import Searches
from querycloak.errors import MissingExtra
from querycloak.log import IntArray
from querycloak.text.normalise import Tokens, normalise, number
from querycloak.text.taxonomy import load
from querycloak.text.urls import url_words

FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

#: Characters of a page that are read.
LONGEST = 20_000
#: How often the rarest words of wordfreq's list occur; words that are not in the list count as that rare.
RAREST = 1e-8
#: Frequencies are given in so many terms.
_MILLION = 1e6
#: What every page and address has, and so says nothing.
_OF_ADDRESSES = frozenset(
    ("www", "http", "https", "com", "org", "net", "edu", "gov", "htm", "html", "php", "asp", "aspx", "index")
)


@dataclass(frozen=True)
class Words:
    """Texts as words: `code` into `distinct`, each word beside the number of the text that it stands in."""

    text: IntArray
    code: IntArray
    distinct: list[str]

    def of_texts(self, texts: int) -> Tokens:
        """Return the words of each text, in order."""
        order = np.argsort(self.text, kind="stable")
        bounds = np.searchsorted(self.text[order], np.arange(texts + 1))
        return Tokens(self.code[order], bounds, self.distinct)


def split(texts: pl.Series, longest: int = LONGEST) -> Words:
    """Split texts into words of letters and digits, lower case and without accents; null has none."""
    rows = pl.DataFrame({"word": normalise(texts, longest).str.split(" ")}).with_row_index("text")
    each = rows.explode("word").filter(pl.col("word") != "")
    code, distinct = number(each["word"])
    return Words(each["text"].cast(pl.Int64).to_numpy(), code, distinct)


def split_addresses(urls: pl.Series) -> Words:
    """Split addresses into the words of host and path, without those that nearly all have."""
    words = split(url_words(urls))
    kept = np.array([word not in _OF_ADDRESSES for word in words.distinct], np.bool_)[words.code]
    return Words(words.text[kept], words.code[kept], words.distinct)


def require(purpose: str) -> None:
    """Raise MissingExtra before any work is done."""
    if find_spec("nltk") is None or find_spec("wordfreq") is None:
        raise MissingExtra("learn", purpose)


def stems(words: Sequence[str]) -> list[str]:
    """Return Lancaster stems: `hotels` and `hotel` have the same."""
    require("a Lancaster stem")
    return [_stem(word) for word in words]


@cache
def _lancaster() -> Any:
    from nltk.stem.lancaster import LancasterStemmer

    return LancasterStemmer()


@cache
def _stem(word: str) -> str:
    return str(_lancaster().stem(word))


@cache
def _frequencies() -> dict[str, float]:
    require("the frequency of a word")
    from wordfreq import get_frequency_dict

    return dict(get_frequency_dict("en", "large"))


def rarity(words: Sequence[str]) -> FloatArray:
    """Return the logarithm (base 10) of one in how many words each is: 8 for a word that no list knows."""
    known = _frequencies()
    return -np.log10(np.array([max(known.get(word, RAREST), RAREST) for word in words], np.float64))


@cache
def _dictionary() -> frozenset[str]:
    """Return correctly spelt words: common ones, and the taxonomy's with names and brands."""
    require("a dictionary")
    from wordfreq import get_frequency_dict

    words = set(get_frequency_dict("en", "small"))
    for phrase in load().lexicon.texts:
        words.update(phrase.split(" "))
    return frozenset(words)


def misspelt(words: Sequence[str]) -> Flags:
    """Mark the words of letters that are in no dictionary, nor are forms of one that is."""
    known = _dictionary()
    return np.array([_is_word(word) and known.isdisjoint(_bases(word)) for word in words], np.bool_)


def _is_word(word: str) -> bool:
    return word.isalpha() and len(word) > 1


def _bases(word: str) -> Iterator[str]:
    """Return a word and what it may be a form of: `hiking` of `hike`, `berries` of `berry`."""
    yield word
    for ending in ("s", "es", "d", "ed", "ing"):
        base = word.removesuffix(ending)
        if base != word and len(base) > 2:
            yield from (base, base + "e")
            if base[-1] == base[-2]:
                yield base[:-1]
    if word.endswith("ies"):
        yield word[:-3] + "y"


@dataclass(frozen=True)
class TermFrequencies:
    """How often each term (a stem) occurs in the searches of others."""

    counts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, frame: pl.DataFrame) -> TermFrequencies:
        """Count the terms of a log; several rows of one search count once."""
        words = split(Searches.of(frame).query)
        count = np.bincount(words.code, minlength=len(words.distinct)).tolist()
        found: dict[str, int] = {}
        for stem, times in zip(stems(words.distinct), count, strict=True):
            found[stem] = found.get(stem, 0) + times
        return cls(found)

    def popularity(self, terms: Sequence[str]) -> FloatArray:
        """Return each term's occurrences in a million; nan where nothing is known of others."""
        total = sum(self.counts.values())
        if not total:
            return np.full(len(terms), np.nan)
        return np.array([self.counts.get(term, 0) for term in terms], np.float64) * (_MILLION / total)
