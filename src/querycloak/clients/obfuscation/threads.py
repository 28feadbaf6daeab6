"""Threads: searches of one user with one interest, over minutes or weeks: repeated, reworded, resumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl

from querycloak.clients.obfuscation.history import SearchHistory
from querycloak.dictionary import distinct
from querycloak.log import FloatArray, IntArray
from querycloak.text.normalise import WORD

#: A word in more of the distinct queries than this share or number belongs to no thread.
COMMON_SHARE, COMMON_LEAST = 0.005, 20
_ADDRESS: Final = r"^\s*(?:www\b|https?:|\S+\.[a-z]{2,4}\b)"
#: The topic of queries that are addresses.
NAVIGATIONAL: Final = 0


@dataclass(frozen=True, eq=False)
class Threads:
    """Every search has a thread; thread `i` has `search[begins[i]:begins[i + 1]]`, in time order.

    `style` has a row for each thread: logarithm of its size, mean words and characters, popularity of its
    words, share of clicked searches, and share of new queries.
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
        """Number of searches of each thread."""
        return np.diff(self.begins)


def find_threads(history: SearchHistory) -> Threads:
    """Return the threads of all users."""
    words = _words(history.texts)
    of = _join(history, _distinctive_words(words, len(history.texts)))
    search = np.argsort(of, kind="stable")
    size = np.bincount(of) if of.size else np.zeros(0, np.int64)
    begins = np.concatenate([[0], np.cumsum(size)])
    topic = _topics(history)
    leading = _leading(topic, search, begins)
    return Threads(
        of=of,
        begins=begins,
        search=search,
        owner=history.user[search[begins[:-1]]],
        topic=leading,
        topics=int(topic.max(initial=-1)) + 1,
        style=_style(history, words, search, begins),
    )


def _words(texts: pl.Series) -> pl.DataFrame:
    """Return the words of each distinct query, with the number of queries that have them."""
    listed = pl.DataFrame({"word": texts.str.to_lowercase().str.extract_all(WORD)}).with_row_index("query")
    listed = listed.explode("word", empty_as_null=False)
    return listed.with_columns(many=pl.len().over("word"), code=pl.col("word").rank("dense"))


def _distinctive_words(words: pl.DataFrame, queries: int) -> list[list[int]]:
    most = max(COMMON_LEAST, int(COMMON_SHARE * queries))
    found = words.filter(pl.col("many") <= most).group_by("query").agg("code")
    distinctive: list[list[int]] = [[] for _ in range(queries)]
    for query, codes in found.iter_rows():
        distinctive[query] = codes
    return distinctive


def _join(history: SearchHistory, words: Sequence[list[int]]) -> IntArray:
    """Join each user's searches with equal queries or a common distinctive word; numbers follow the order."""
    threads = np.empty(history.time.size, np.int64)
    known = 0
    query = history.query.tolist()
    for low, high in zip(history.begins[:-1].tolist(), history.begins[1:].tolist(), strict=True):
        root = _roots(query[low:high], words)
        names: dict[int, int] = {}
        threads[low:high] = [known + names.setdefault(root[q], len(names)) for q in query[low:high]]
        known += len(names)
    return threads


def _roots(queries: list[int], words: Sequence[list[int]]) -> dict[int, int]:
    """Return for each query of one user the one that represents its thread."""
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


def _topics(history: SearchHistory) -> IntArray:
    """Return the first level of each search's category: the log's own, or the classifier's.

    A user who types an address goes to a known site: that is a topic of its own.
    """
    frame = history.frame
    address = history.texts.str.contains(_ADDRESS).to_numpy()[history.query]
    if "category" in frame.columns:
        paths = frame["category"].gather(history.first[:-1])
    else:
        from querycloak.text import classify_log

        asked = pl.DataFrame({"query": history.texts.cast(pl.String)})
        paths = classify_log(asked)["category"].gather(history.query)
    return np.where(address, NAVIGATIONAL, NAVIGATIONAL + 1 + distinct(paths.str.split("/").list.first())[1])


def _leading(topic: IntArray, search: IntArray, begins: IntArray) -> IntArray:
    thread = np.repeat(np.arange(begins.size - 1), np.diff(begins))
    counted = pl.DataFrame({"thread": thread, "topic": topic[search]}).group_by("thread", "topic").len()
    first = counted.sort("thread", "len", "topic", descending=[False, True, False]).unique(
        "thread", keep="first", maintain_order=True
    )
    return first["topic"].to_numpy()


def _style(history: SearchHistory, words: pl.DataFrame, search: IntArray, begins: IntArray) -> FloatArray:
    """Return features of each thread that a linkage attack uses."""
    queries = len(history.texts)
    per_query = words.group_by("query").agg(pl.len(), pl.col("many").sum()).sort("query")
    count, weight = np.zeros(queries), np.zeros(queries)
    count[per_query["query"].to_numpy()] = per_query["len"].to_numpy()
    weight[per_query["query"].to_numpy()] = per_query["many"].to_numpy()
    query = history.query[search]
    size = np.diff(begins)
    fresh = np.zeros(search.size)
    thread = np.repeat(np.arange(size.size), size)
    fresh[np.unique(thread * queries + query, return_index=True)[1]] = 1
    letters = history.texts.str.len_chars().to_numpy()
    figures = (count[query], letters[query], np.log1p(weight[query]), history.clicks[search] > 0, fresh)
    means = [np.add.reduceat(figure.astype(np.float64), begins[:-1]) / size for figure in figures]
    return np.column_stack([np.log(size), *means]) if size.size else np.zeros((0, 6))
