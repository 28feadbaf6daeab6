"""The graph of queries that led to the same URL, and which have to go for it to fall apart (003, 3.2).

Queries, URLs and sites are numbers from 0. Two queries are neighbours if people clicked on the same URL after
both; edges are never stored, since a URL with m queries makes m² of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.kernels.arrays import spans
from querycloak.log import Flags, IntArray


@dataclass(frozen=True)
class Clicks:
    """Which URLs each query led to, and which queries led to each URL, each once."""

    begins: IntArray
    urls: IntArray
    starts: IntArray
    queries: IntArray

    def __len__(self) -> int:
        return self.begins.size - 1


def click_graph(query: IntArray, url: IntArray, queries: int, urls: int) -> Clicks:
    """Sort the clicks; a search without click has a URL of -1."""
    pair = np.unique((query * urls + url)[url >= 0])
    by_query, by_url = pair // max(urls, 1), pair % max(urls, 1)
    begins = np.searchsorted(by_query, np.arange(queries + 1))
    order = np.argsort(by_url, kind="stable")
    starts = np.searchsorted(by_url[order], np.arange(urls + 1))
    return Clicks(begins.astype(np.int64), by_url, starts.astype(np.int64), by_query[order])


def clicked_documents(clicks: Clicks) -> IntArray:
    """Count the URLs that each query led to: all that a log knows of the documents that it returned."""
    return np.diff(clicks.begins)


def well_targeted(query: IntArray, names_it: Flags, queries: int) -> Flags:
    """Find the queries that name, in at least one search, the URL or the site that was clicked on."""
    return np.bincount(query[names_it], minlength=queries) > 0


def few_sites(clicks: Clicks, site: IntArray, least: int) -> Flags:
    """Find the queries whose documents come from fewer than the least number of sites; `site` is by URL."""
    query = np.repeat(np.arange(len(clicks)), np.diff(clicks.begins))
    sites = int(site.max(initial=0)) + 1
    distinct = np.unique(query * sites + site[clicks.urls]) // sites
    return np.bincount(distinct, minlength=len(clicks)) < least


@njit(cache=True, nogil=True)
def _neighbours(q, mark, begins, urls, starts, queries, alive, seen, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the queries alive that share a URL with q, each once; give how many.

    `seen` may hold any marks but this one.
    """
    size, seen[q] = 0, mark
    for i in range(begins[q], begins[q + 1]):
        for j in range(starts[urls[i]], starts[urls[i] + 1]):
            p = queries[j]
            if alive[p] and seen[p] != mark:
                seen[p], out[size] = mark, p
                size += 1
    return size


@njit(cache=True, nogil=True)
def _degrees(begins, urls, starts, queries, alive):  # type: ignore[no-untyped-def]
    degree, seen = np.zeros(alive.size, np.int64), np.full(alive.size, -1)
    out = np.empty(alive.size, np.int64)
    for q in range(alive.size):
        if alive[q]:
            degree[q] = _neighbours(q, q, begins, urls, starts, queries, alive, seen, out)
    return degree


@njit(cache=True, nogil=True)
def _take_out(begins, urls, starts, kinds, degree, size, first, place, members, alive):  # type: ignore[no-untyped-def]
    """Take out the query with most neighbours, again and again, until none has any.

    Queries that led to the same URLs are one kind, and have equally many neighbours. A degree only falls: an
    entry of the heap that is out of date comes too early, never too late.
    """
    seen, out = np.full(size.size, -1), np.empty(size.size, np.int64)
    there, turn = size > 0, 0
    heap = [(-degree[c], place[members[first[c]]], c) for c in range(size.size) if degree[c] > 0]
    heapify(heap)
    while len(heap) > 0:
        known, _, c = heappop(heap)
        if degree[c] == 0 or size[c] == 0:
            continue
        if -known == degree[c]:
            alive[members[first[c]]] = False
            first[c], size[c], degree[c] = first[c] + 1, size[c] - 1, degree[c] - 1
            there[c] = size[c] > 0
            turn += 1
            for i in range(_neighbours(c, turn, begins, urls, starts, kinds, there, seen, out)):
                degree[out[i]] -= 1
        if size[c] > 0 and degree[c] > 0:
            heappush(heap, (-degree[c], place[members[first[c]]], c))


def degrees(clicks: Clicks, keep: Flags) -> IntArray:
    """Count the neighbours of each query among those to keep; one that is not kept has none."""
    return np.asarray(_degrees(clicks.begins, clicks.urls, clicks.starts, clicks.queries, keep))


def without_neighbours(clicks: Clicks, keep: Flags) -> Flags:
    """Keep only the queries that are nobody's neighbour: all that contribute to the density go at once."""
    return np.asarray(keep & (degrees(clicks, keep) == 0))


def disconnected(clicks: Clicks, keep: Flags, rank: npt.NDArray[np.uint64]) -> Flags:
    """Take out the query with most neighbours (of equals: the least rank) until the density is zero.

    It keeps many more than `without_neighbours`: one query of two that share a URL can stay.
    """
    alive, place = keep.copy(), np.argsort(np.argsort(rank, kind="stable"), kind="stable")
    kind, members = _kinds(clicks, keep, place)
    size = np.bincount(kind)
    first = np.cumsum(size) - size
    model = members[first]  # one query of each kind tells what it led to
    own = np.diff(clicks.begins)[model]
    urls = clicks.urls[spans(clicks.begins[model], own)]
    graph = click_graph(np.repeat(np.arange(size.size), own), urls, size.size, clicks.starts.size - 1)
    lists = (graph.begins, graph.urls, graph.starts, graph.queries)
    degree = _sums(*lists, size)
    _take_out(*lists, degree, size, first, place, members, alive)
    return alive


def _kinds(clicks: Clicks, keep: Flags, place: IntArray) -> tuple[IntArray, IntArray]:
    """Group queries that led to the same URLs: the kind of each, and the queries, by kind and place.

    Sets of URLs are told apart by two sums of scattered numbers, 128 bits in all.
    """
    chosen = np.flatnonzero(keep & (np.diff(clicks.begins) > 0))
    marks = np.random.default_rng(clicks.starts.size).integers(0, 2**63, (2, clicks.starts.size), np.int64)
    ends = np.concatenate([[[0], [0]], np.cumsum(marks[:, clicks.urls], axis=1)], axis=1)
    sums = ends[:, clicks.begins[chosen + 1]] - ends[:, clicks.begins[chosen]]  # overflow goes round
    _, kind = np.unique(sums, axis=1, return_inverse=True)
    order = np.lexsort((place[chosen], kind.reshape(-1)))
    return kind.reshape(-1)[order], chosen[order]


@njit(cache=True, nogil=True)
def _sums(begins, urls, starts, kinds, size):  # type: ignore[no-untyped-def]
    """Count the neighbours of a query of each kind: others of its kind, and all of the kinds around it."""
    degree, there = size - 1, size > 0
    seen, out = np.full(size.size, -1), np.empty(size.size, np.int64)
    for c in range(size.size):
        for i in range(_neighbours(c, c, begins, urls, starts, kinds, there, seen, out)):
            degree[c] += size[out[i]]
    return degree
