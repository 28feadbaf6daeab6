"""Words of queries, pages and addresses: stems, frequencies, misspellings; and bags of words for the kernel.

Stems are Lancaster's (Paice and Husk), as in paper 004. The frequencies are wordfreq's, in place of
the paper's counts of books.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec

import numpy as np
import polars as pl

from querycloak.attacks.link_learned.relations_kernel import Bags, Weights
from querycloak.attacks.searches import Searches
from querycloak.errors import MissingExtra
from querycloak.log import Flags, FloatArray, IntArray
from querycloak.text.normalise import Tokens, normalise, number
from querycloak.text.taxonomy import load
from querycloak.text.urls import url_words

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
    return list(map(_lancaster(), words))


@cache
def _lancaster() -> Callable[[str], str]:
    from nltk.stem.lancaster import LancasterStemmer

    return cache(LancasterStemmer().stem)


def rarity(words: Sequence[str]) -> FloatArray:
    """Return the logarithm (base 10) of one in how many words each is: 8 for a word that no list knows."""
    require("the frequency of a word")
    from wordfreq import get_frequency_dict

    known = get_frequency_dict("en", "large")
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
    wrong = (word.isalpha() and len(word) > 1 and known.isdisjoint(_bases(word)) for word in words)
    return np.fromiter(wrong, np.bool_, len(words))


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


# Bags: what the kernel reads as integers


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
