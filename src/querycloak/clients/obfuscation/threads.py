"""Threads: what one person asked about one thing, over minutes or weeks: repeated, reworded, returned to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl

from querycloak.clients.obfuscation.draws import FloatArray
from querycloak.clients.obfuscation.searches import Searches
from querycloak.dictionary import distinct
from querycloak.log import IntArray

#: A word in more of the distinct queries than this, share or number, says nothing about a thread.
COMMON_SHARE, COMMON_LEAST = 0.005, 20
_WORD: Final = r"[^\W_]+"
_ADDRESS: Final = r"^\s*(?:www\b|https?:|\S+\.[a-z]{2,4}\b)"
#: The topic of addresses.
GOING: Final = 0


@dataclass(frozen=True, eq=False)
class Threads:
    """Every search has a thread; thread `i` has `search[begins[i]:begins[i + 1]]`, in time order.

    `style` has a row for each thread: how many searches, words, characters, how popular its words are,
    how often it was clicked, and how much of it is new queries.
    """

    of: IntArray
    begins: IntArray
    search: IntArray
    owner: IntArray
    topic: IntArray
    topics: int
    style: FloatArray

    @cached_property
    def size(self) -> IntArray:
        """How many searches each thread has."""
        return np.diff(self.begins)


def find(searches: Searches) -> Threads:
    """Find the threads of everybody in a log."""
    words = _words(searches.texts)
    of = _join(searches, _telling(words, len(searches.texts)))
    search = np.argsort(of, kind="stable")
    size = np.bincount(of) if of.size else np.zeros(0, np.int64)
    begins = np.concatenate([[0], np.cumsum(size)])
    topic = _topics(searches)
    leading = _leading(topic, search, begins)
    return Threads(
        of=of,
        begins=begins,
        search=search,
        owner=searches.person[search[begins[:-1]]],
        topic=leading,
        topics=int(topic.max(initial=-1)) + 1,
        style=_style(searches, words, search, begins),
    )


def _words(texts: pl.Series) -> pl.DataFrame:
    """List the words of each distinct query, with the share of all words that each one is."""
    listed = pl.DataFrame({"word": texts.str.to_lowercase().str.extract_all(_WORD)}).with_row_index("query")
    listed = listed.explode("word", empty_as_null=False)
    return listed.with_columns(many=pl.len().over("word"), code=pl.col("word").rank("dense"))


def _telling(words: pl.DataFrame, queries: int) -> list[list[int]]:
    """Give for each distinct query the words by which it may belong to a thread."""
    most = max(COMMON_LEAST, int(COMMON_SHARE * queries))
    found = words.filter(pl.col("many") <= most).group_by("query").agg("code")
    told: list[list[int]] = [[] for _ in range(queries)]
    for query, codes in found.iter_rows():
        told[query] = codes
    return told


def _join(searches: Searches, words: Sequence[list[int]]) -> IntArray:
    """Join each person's searches that ask the same or share a telling word; numbers follow the order."""
    threads = np.empty(searches.time.size, np.int64)
    known = 0
    query = searches.query.tolist()
    for low, high in zip(searches.begins[:-1].tolist(), searches.begins[1:].tolist(), strict=True):
        root = _roots(query[low:high], words)
        names: dict[int, int] = {}
        threads[low:high] = [known + names.setdefault(root[q], len(names)) for q in query[low:high]]
        known += len(names)
    return threads


def _roots(queries: list[int], words: Sequence[list[int]]) -> dict[int, int]:
    """Give each of one person's queries the one that stands for its thread."""
    parent: dict[int, int] = {}
    by_word: dict[int, int] = {}
    for query in queries:
        if query in parent:
            continue
        parent[query] = query
        for word in words[query]:
            other = by_word.setdefault(word, query)
            parent[_root(parent, query)] = _root(parent, other)
    return {query: _root(parent, query) for query in parent}


def _root(parent: dict[int, int], query: int) -> int:
    while parent[query] != query:
        parent[query] = parent[parent[query]]
        query = parent[query]
    return query


def _topics(searches: Searches) -> IntArray:
    """Give each search the first level of its category: the log's own, or found by its words.

    Who types an address goes somewhere she knows, whatever it is about: that is a topic of its own.
    """
    frame = searches.frame
    address = searches.texts.str.contains(_ADDRESS).to_numpy()[searches.query]
    if "category" in frame.columns:
        paths = frame["category"].gather(searches.first[:-1])
    else:
        from querycloak.text import classify_log

        asked = pl.DataFrame({"query": searches.texts.cast(pl.String)})
        paths = classify_log(asked)["category"].gather(searches.query)
    return np.where(address, GOING, GOING + 1 + distinct(paths.str.split("/").list.first())[1])


def _leading(topic: IntArray, search: IntArray, begins: IntArray) -> IntArray:
    """Give each thread the topic that most of its searches have."""
    thread = np.repeat(np.arange(begins.size - 1), np.diff(begins))
    counted = pl.DataFrame({"thread": thread, "topic": topic[search]}).group_by("thread", "topic").len()
    first = counted.sort("thread", "len", "topic", descending=[False, True, False]).unique(
        "thread", keep="first", maintain_order=True
    )
    return first["topic"].to_numpy()


def _style(searches: Searches, words: pl.DataFrame, search: IntArray, begins: IntArray) -> FloatArray:
    """Describe each thread by figures that a linkage attack looks at."""
    queries = len(searches.texts)
    per_query = words.group_by("query").agg(pl.len(), pl.col("many").sum()).sort("query")
    count, weight = np.zeros(queries), np.zeros(queries)
    count[per_query["query"].to_numpy()] = per_query["len"].to_numpy()
    weight[per_query["query"].to_numpy()] = per_query["many"].to_numpy()
    query = searches.query[search]
    size = np.diff(begins)
    fresh = np.zeros(search.size)
    thread = np.repeat(np.arange(size.size), size)
    fresh[np.unique(thread * queries + query, return_index=True)[1]] = 1
    letters = searches.texts.str.len_chars().to_numpy()
    figures = (count[query], letters[query], np.log1p(weight[query]), searches.clicks[search] > 0, fresh)
    means = [np.add.reduceat(figure.astype(np.float64), begins[:-1]) / size for figure in figures]
    return np.column_stack([np.log(size), *means]) if size.size else np.zeros((0, 6))
