"""Searches as the learned linkage sees them: the 16 features of paper 004, Table 2, as arrays.

What is not known stays unknown: a search without a time has no day and no hour, one without a page has no
terms of a page, and so on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.attacks.link_learned import relations_kernel as kernel
from querycloak.attacks.link_learned.words import (
    Named,
    TermFrequencies,
    Words,
    gather,
    misspelt,
    of_lists,
    of_words,
    rarity,
    split,
    split_addresses,
    weigh,
)
from querycloak.attacks.searches import Searches
from querycloak.dictionary import ancestors
from querycloak.kernels.threads import cores, each
from querycloak.log import FloatArray, IntArray
from querycloak.text.entities import places as listed_places
from querycloak.text.lexicon import PhraseSet
from querycloak.text.normalise import Tokens
from querycloak.text.reader import TextReader
from querycloak.text.taxonomy import load

#: Characters of a query that the edit distance reads; what people type is far shorter.
MOST_LETTERS = 400
#: Addresses of a search that are read, as many as the paper's result pages.
MOST_PAGES = 8
#: Pairs that one thread relates at a time.
_PIECE = 1 << 17
#: The first day of the weekend, from Monday = 1.
_SATURDAY = 6
_HOURS_OF_A_WINDOW = 2

LandingFrom = Literal["landing", "url", "nothing"]


@dataclass(frozen=True)
class Events:
    """The searches of a log, their features, and where the words of landing pages came from."""

    searches: Searches
    numbers: FloatArray
    terms: Named
    landing: Named
    landing_weights: kernel.Weights
    urls: Named
    adult: Named
    landing_adult: Named
    categories: Categories
    cities: Named
    countries: Named
    letters: IntArray
    letters_start: IntArray
    landing_from: LandingFrom

    def __len__(self) -> int:
        return len(self.searches)

    @property
    def arrays(self) -> kernel.Features:
        """What the kernel reads."""
        return kernel.Features(
            self.numbers,
            self.letters,
            self.letters_start,
            self.terms.bags,
            self.landing.bags,
            self.landing_weights,
            self.urls.bags,
            self.adult.bags,
            self.landing_adult.bags,
            self.categories.paths.bags,
            self.categories.second_level,
            self.categories.third_level,
            self.cities.bags,
            self.countries.bags,
            self.categories.tree,
        )

    def relate(
        self, first: IntArray, second: IntArray, threads: int | None = None
    ) -> npt.NDArray[np.float32]:
        """Return a row of relations for each pair of events, nan where one is not known.

        Pairs that come in runs with the same first event are the cheapest. `S_LandPagTerms2` alone depends on
        which of two is the first.
        """
        out = np.empty((first.size, kernel.RELATIONS), np.float32)
        arrays, names = self.arrays, (self.terms.names, self.landing.names, self.urls.names)
        sizes = np.array([*map(len, names), self.letters.max(initial=-1) + 1], np.int64)

        def some(at: int) -> None:
            piece = slice(at, at + _PIECE)
            kernel.relate(arrays, sizes, first[piece], second[piece], out[piece])

        each(some, range(0, first.size, _PIECE), min(cores(threads), first.size // _PIECE + 1))
        return out


def read(frame: pl.DataFrame, known: TermFrequencies) -> Events:
    """Read the features of a log's searches; `known` is what others search for."""
    searches = Searches.of(frame)
    size, words = len(searches), split(searches.query)
    in_order = words.of_texts(size)
    terms, _ = of_words(words, size, stemmed=True)
    addresses = _words_of_addresses(searches)
    landing_from, on_pages = _pages(searches, addresses)
    landing, entry = of_words(on_pages, size, stemmed=True)
    cities, countries = cities_and_countries(in_order)
    letters, letters_start = _letters(searches.query)
    return Events(
        searches=searches,
        numbers=_numbers(searches, words, terms, known),
        terms=terms,
        landing=landing,
        landing_weights=weigh(landing.bags, entry, rarity(on_pages.distinct)[on_pages.code]),
        urls=of_words(addresses, size, stemmed=False)[0],
        adult=of_lists(adult_terms().names_in(in_order, longest=False)),
        landing_adult=of_lists(adult_terms().names_in(on_pages.of_texts(size), longest=False)),
        categories=Categories.of(searches),
        cities=of_lists(cities),
        countries=of_lists(countries),
        letters=letters,
        letters_start=letters_start,
        landing_from=landing_from,
    )


def _words_of_addresses(searches: Searches) -> Words:
    clicked = pages(searches)
    words = split_addresses(clicked["url"])
    return Words(clicked["search"].to_numpy()[words.text], words.code, words.distinct)


def _pages(searches: Searches, addresses: Words) -> tuple[LandingFrom, Words]:
    """Read the pages that searches led to; a log that holds none has the words of their addresses instead."""
    if "landing" not in searches.frame.columns:
        return ("url" if addresses.code.size else "nothing"), addresses
    texts = searches.distinct("landing")
    words = split(texts["landing"])
    return "landing", Words(texts["search"].to_numpy()[words.text], words.code, words.distinct)


def _numbers(searches: Searches, words: Words, terms: Named, known: TermFrequencies) -> FloatArray:
    """Fill the features that are one number each."""
    size = len(searches)
    numbers = np.full((size, kernel.NUMBERS), np.nan)
    _fill_times(searches.column("time"), numbers)
    numbers[:, kernel.CLICKS] = _clicks(searches)
    asked = searches.query.is_not_null().to_numpy()
    wrong = misspelt(words.distinct)[words.code]
    in_terms = np.repeat(np.arange(size), terms.sizes)
    popular = known.popularity(terms.names)[terms.bags.item] * terms.bags.times
    found = {
        kernel.TERMS: np.bincount(words.text, minlength=size),
        kernel.CHARACTERS: searches.query.str.len_chars().fill_null(0).to_numpy(),
        kernel.ERRORS: np.bincount(words.text[wrong], minlength=size),
        kernel.POPULARITY: np.bincount(in_terms, popular, size) if known.counts else np.full(size, np.nan),
    }
    for column, values in found.items():
        numbers[asked, column] = values[asked]
    return numbers


def _fill_times(when: pl.Series, numbers: FloatArray) -> None:
    moments = when.cast(pl.Datetime("us")).to_frame("t")
    columns = {
        kernel.TIME: pl.col("t").dt.epoch("us") / 1e6,
        kernel.WEEKEND: (pl.col("t").dt.weekday() >= _SATURDAY).cast(pl.Float64),
        kernel.DAYTIME: (pl.col("t").dt.hour() // _HOURS_OF_A_WINDOW).cast(pl.Float64),
    }
    for column, value in columns.items():
        numbers[:, column] = moments.select(value.fill_null(np.nan)).to_series().to_numpy()


def _clicks(searches: Searches) -> FloatArray:
    """Count the different pages clicked; nan in a log that has no clicks to count."""
    column = next((name for name in ("url", "rank") if name in searches.frame.columns), None)
    if column is None:
        return np.full(len(searches), np.nan)
    search = searches.distinct(column)["search"].to_numpy()
    return np.bincount(search, minlength=len(searches)).astype(np.float64)


def _letters(queries: pl.Series) -> tuple[IntArray, IntArray]:
    """Number the characters of queries densely, all in one row, and say where each query's begin."""
    short = queries.fill_null("").str.slice(0, MOST_LETTERS)
    points = np.frombuffer("".join(short.to_list()).encode("utf-32-le", "surrogatepass"), np.uint32)
    dense = np.unique(points, return_inverse=True)[1].astype(np.int64)
    return dense, np.concatenate([[0], np.cumsum(short.str.len_chars().to_numpy())]).astype(np.int64)


@dataclass(frozen=True)
class Categories:
    """Each search's categories by path, those at levels 2 and 3, and the tree of all."""

    paths: Named
    second_level: kernel.Bags
    third_level: kernel.Bags
    tree: kernel.Tree

    @classmethod
    def of(cls, searches: Searches) -> Categories:
        """Take the column `category` where there is one; else ask the classifier."""
        given = "category" in searches.frame.columns
        found = searches.distinct("category") if given else _classified(searches)
        lists: list[list[str]] = [[] for _ in range(len(searches))]
        for search, path in found.filter(pl.col("category") != "").iter_rows():
            lists[search].append(path)
        paths = of_lists(lists)
        tree = kernel.Tree(*ancestors(paths.names))
        return cls(paths, _at_level(paths.bags, tree, 2), _at_level(paths.bags, tree, 3), tree)


def pages(searches: Searches) -> pl.DataFrame:
    """Return `search, url` of the first eight different pages that each search led to."""
    return searches.distinct("url").group_by("search", maintain_order=True).head(MOST_PAGES)


def _classified(searches: Searches) -> pl.DataFrame:
    """Return `search, category` of queries, then of addresses, by the classifier."""
    reader, clicked, paths = TextReader(), pages(searches), load().paths
    search = np.concatenate([np.arange(len(searches)), clicked["search"].to_numpy()])
    of_queries = reader.read(searches.query.fill_null("")).category
    node = np.concatenate([of_queries, reader.classifier.classify_urls(clicked["url"]).category])
    names = pl.Series([paths[category] for category in node[node >= 0].tolist()], dtype=pl.String)
    return pl.DataFrame({"search": search[node >= 0], "category": names}).unique(maintain_order=True)


def _at_level(categories: kernel.Bags, tree: kernel.Tree, level: int) -> kernel.Bags:
    """Return the searches' ancestors at a level; what lies higher has none."""
    size = categories.start.size - 1
    search = np.repeat(np.arange(size), np.diff(categories.start)).astype(np.int64)
    deep = tree.depth[categories.item] >= level
    column = min(level, tree.above.shape[1]) - 1
    return gather(search[deep], tree.above[categories.item[deep], column], size)[0]


@cache
def adult_terms() -> PhraseSet:
    """Return the adult terms: phrases whose strongest category is Adult and curated."""
    taxonomy = load()
    first = taxonomy.lexicon.start[:-1]
    strongest = taxonomy.lexicon.node[first]
    theirs = (taxonomy.at_level(strongest, 1) == taxonomy.node("Adult")) & taxonomy.lexicon.curated[first]
    listed = zip(taxonomy.lexicon.texts, theirs.tolist(), strict=True)
    return PhraseSet(text for text, hit in listed if hit)


@cache
def _places() -> PhraseSet:
    return PhraseSet(listed_places())


def cities_and_countries(texts: Tokens) -> tuple[list[set[str]], list[set[str]]]:
    """Return the cities in each text, and the countries in it, those of its cities included."""
    found = [[listed_places()[phrase] for phrase in names] for names in _places().names_in(texts)]
    cities = [{place.city for place in places if place.city} for places in found]
    return cities, [{country for place in places for country in place.countries} for places in found]
