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

from querycloak.log import IntArray

Mask = npt.NDArray[np.bool_]


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
    """Put the clicks in order; a search without click has a URL of -1."""
    pair = np.unique((query * urls + url)[url >= 0])
    by_query, by_url = pair // max(urls, 1), pair % max(urls, 1)
    begins = np.searchsorted(by_query, np.arange(queries + 1))
    order = np.argsort(by_url, kind="stable")
    starts = np.searchsorted(by_url[order], np.arange(urls + 1))
    return Clicks(begins.astype(np.int64), by_url, starts.astype(np.int64), by_query[order])


def clicked_documents(clicks: Clicks) -> IntArray:
    """Count the URLs that each query led to: all that a log knows of the documents that it returned."""
    return np.diff(clicks.begins)


def few_documents(documents: IntArray, k: int) -> Mask:
    """Find the over-restrictive queries: fewer than k documents came back."""
    return documents < k


def well_targeted(query: IntArray, names_it: Mask, queries: int) -> Mask:
    """Find the queries that name, in at least one search, the URL or the site that was clicked on."""
    return np.bincount(query[names_it], minlength=queries) > 0


def few_sites(clicks: Clicks, site: IntArray, least: int) -> Mask:
    """Find the queries whose documents come from fewer than the least number of sites; `site` is by URL."""
    query = np.repeat(np.arange(len(clicks)), np.diff(clicks.begins))
    sites = int(site.max(initial=0)) + 1
    distinct = np.unique(query * sites + site[clicks.urls]) // sites
    return np.bincount(distinct, minlength=len(clicks)) < least


@njit(cache=True, nogil=True)
def _neighbours(q, begins, urls, starts, queries, alive, seen, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the queries alive that share a URL with q, each once; give how many."""
    size, seen[q] = 0, q
    for i in range(begins[q], begins[q + 1]):
        for j in range(starts[urls[i]], starts[urls[i] + 1]):
            p = queries[j]
            if alive[p] and seen[p] != q:
                seen[p], out[size] = q, p
                size += 1
    return size


@njit(cache=True, nogil=True)
def _degrees(begins, urls, starts, queries, alive):  # type: ignore[no-untyped-def]
    degree, seen = np.zeros(alive.size, np.int64), np.full(alive.size, -1)
    out = np.empty(alive.size, np.int64)
    for q in range(alive.size):
        if alive[q]:
            degree[q] = _neighbours(q, begins, urls, starts, queries, alive, seen, out)
    return degree


@njit(cache=True, nogil=True)
def _take_out(begins, urls, starts, queries, alive, degree, place):  # type: ignore[no-untyped-def]
    """Take out the query with most neighbours, again and again, until none has any.

    A degree only falls: an entry of the heap that is out of date comes too early, never too late.
    """
    seen, out = np.full(alive.size, -1), np.empty(alive.size, np.int64)
    heap = [(-degree[q], place[q], q) for q in range(alive.size) if degree[q] > 0]
    heapify(heap)
    while len(heap) > 0:
        known, tie, q = heappop(heap)
        if degree[q] == 0:
            continue
        if -known != degree[q]:
            heappush(heap, (-degree[q], tie, q))
            continue
        alive[q] = False
        for i in range(_neighbours(q, begins, urls, starts, queries, alive, seen, out)):
            degree[out[i]] -= 1
        degree[q] = 0


def degrees(clicks: Clicks, keep: Mask) -> IntArray:
    """Count the neighbours of each query among those to keep; one that is not kept has none."""
    return np.asarray(_degrees(clicks.begins, clicks.urls, clicks.starts, clicks.queries, keep))


def density(clicks: Clicks, keep: Mask) -> float:
    """Give the probability that two different queries out of those to keep are neighbours."""
    size = int(keep.sum())
    return float(degrees(clicks, keep).sum()) / (size * (size - 1)) if size > 1 else 0.0


def without_neighbours(clicks: Clicks, keep: Mask) -> Mask:
    """Keep only the queries that are nobody's neighbour: all that contribute to the density go at once."""
    return np.asarray(keep & (degrees(clicks, keep) == 0))


def disconnected(clicks: Clicks, keep: Mask, rank: npt.NDArray[np.uint64]) -> Mask:
    """Take out the query with most neighbours (of equals: the least rank) until the density is zero.

    It keeps many more than `without_neighbours`: one query of two that share a URL can stay.
    """
    alive, degree = keep.copy(), degrees(clicks, keep)
    place = np.argsort(np.argsort(rank, kind="stable"), kind="stable")
    _take_out(clicks.begins, clicks.urls, clicks.starts, clicks.queries, alive, degree, place)
    return alive
