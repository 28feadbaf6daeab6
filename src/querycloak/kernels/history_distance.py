"""The distance between two people's searches (paper 003, 5.1 to 5.4) for all pairs of people, in parallel."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from querycloak.kernels import edit_distance, query_distance
from querycloak.kernels.edit_distance import Fractions, Words
from querycloak.kernels.query_distance import HIGH, KINDS, LOW
from querycloak.log import IntArray

FloatArray = npt.NDArray[np.float64]

#: What the difference in the number of words, and the Hausdorff distance of the words, count in equation
#: 5.1: as its text says, and as it is printed.
WEIGHTS: Final = {"text": (1.0, 2.0), "printed": (2.0, 1.0)}
#: Tables of word distances may take this many bytes at a time.
MOST_BYTES: Final = 1 << 30
_PARTS: Final = 16  # small enough that no thread waits long for the last


@dataclass(frozen=True)
class Strings:
    """Distinct query strings and the spelling of their words.

    String s has `words[starts[s]:starts[s + 1]]`, each once.
    `terms` counts its words with repetitions; word w is spelled `letters[bounds[w]:bounds[w + 1]]`.
    """

    starts: IntArray
    words: IntArray
    terms: IntArray
    letters: IntArray
    bounds: IntArray


@dataclass(frozen=True)
class Hosts:
    """Distinct domain names: row h of `labels` has the numbers of its labels from the right, then -1."""

    labels: IntArray
    depth: IntArray


@dataclass(frozen=True)
class Histories:
    """Searches, grouped by person: person a has those from `starts[a]` to `starts[a + 1]`.

    `time` and `rank` are normalised, below 0 where there is none; `host` is -1 where there is none.
    """

    starts: IntArray
    time: FloatArray
    rank: FloatArray
    host: IntArray
    string: IntArray


def normalise(values: npt.NDArray[Any], known: npt.NDArray[np.bool_] | None = None) -> FloatArray:
    """Map the known values to 0 … 1 by the least and the greatest of them, the others to -1."""
    known = np.ones(values.size, bool) if known is None else known
    out = np.full(values.size, -1.0)
    if known.any():
        low, high = values[known].min(), values[known].max()
        out[known] = (values[known] - low) / max(high - low, 1)
    return out


def user_distances(
    histories: Histories,
    strings: Strings,
    hosts: Hosts,
    weights: str = "text",
    threads: int | None = None,
    most_bytes: int = MOST_BYTES,
) -> FloatArray:
    """Give the distance of equation 5.4 for every pair of people."""
    gaps = _hausdorff(histories, strings, hosts, WEIGHTS[weights], threads, most_bytes)
    sizes = normalise(np.diff(histories.starts))
    return (np.abs(sizes[:, None] - sizes) + gaps) / 2


def _hausdorff(
    histories: Histories,
    strings: Strings,
    hosts: Hosts,
    weights: tuple[float, float],
    threads: int | None,
    most_bytes: int,
) -> FloatArray:
    """Give the Hausdorff distance between the searches of every pair of people, by equation 5.3."""
    words = edit_distance.lay_out(strings.letters, strings.bounds)
    known = edit_distance.fractions(words.lengths)
    laid = _lay_out(histories, replace(strings, words=words.number[strings.words]), words.lengths)
    gaps = np.zeros((histories.starts.size - 1,) * 2)
    place = (hosts.labels.astype(np.int32), hosts.depth.astype(np.int64), known.value)
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        room = most_bytes // (known.code.itemsize * max(len(words), 1))
        for people, spelled in _blocks(laid, len(words), room):
            rows, places = _table(pool, words, known, spelled)
            parts = [people[part::_PARTS] for part in range(min(_PARTS, people.size))]
            work = (*laid.order, places, laid.groups, rows, laid.searches, place, weights, gaps)
            list(pool.map(lambda part, work=work: query_distance.widen(part, *work), parts))
    return np.maximum(gaps, gaps.T) / 6


@dataclass(frozen=True)
class _Laid:
    """Searches in the order of the kernel: by person and kind, those in the middle first."""

    order: tuple[IntArray, IntArray, IntArray]  # who looks when, kinds, strings
    groups: npt.NDArray[np.int32]
    searches: tuple[npt.NDArray[Any], ...]  # numbers, marks, words


def _lay_out(histories: Histories, strings: Strings, lengths: IntArray) -> _Laid:
    people = histories.starts.size - 1
    person = np.repeat(np.arange(people), np.diff(histories.starts))
    kind = 2 * (histories.rank >= 0) + (histories.host >= 0)
    terms, sizes = normalise(strings.terms)[histories.string], np.diff(strings.starts)
    spelled = np.bincount(np.repeat(np.arange(sizes.size), sizes), lengths[strings.words], sizes.size)
    odd = terms + histories.rank + (spelled / np.maximum(sizes, 1) / 50)[histories.string]
    order = np.lexsort((histories.time, histories.host, histories.string, odd, kind, person))
    person, kind, string, odd = person[order], kind[order], histories.string[order], odd[order]
    edges = np.concatenate(([0], np.cumsum(np.bincount(KINDS * person + kind, minlength=KINDS * people))))
    groups = np.column_stack((edges[:-1].reshape(people, KINDS), edges[KINDS::KINDS])).astype(np.int32)
    numbers = np.column_stack((histories.time, terms, histories.rank))[order]
    bounds = np.concatenate(([0], np.cumsum(sizes[string])))
    flat = np.arange(bounds[-1]) + np.repeat(strings.starts[string] - bounds[:-1], sizes[string])
    marks = np.column_stack((histories.host[order], bounds[:-1], bounds[1:])).astype(np.int32)
    searches = (numbers, marks, strings.words[flat].astype(np.uint32))
    return _Laid((_odd_ones_first(person, string, odd), kind, string), groups, searches)


def _odd_ones_first(person: IntArray, string: IntArray, odd: FloatArray) -> IntArray:
    """Order each person's searches from odd to usual, those with the same string together."""
    _, which = np.unique(np.column_stack((person, string)), axis=0, return_inverse=True)
    oddest = np.full(which.max(initial=-1) + 1, -np.inf)
    np.maximum.at(oddest, which, odd)
    return np.lexsort((-odd, string, -oddest[which], person))


def _blocks(laid: _Laid, size: int, room: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Cut the people, most searches first, into blocks whose words fit into the room: (people, words).

    Large histories have the larger gaps to small ones, and find them soon; the small ones then know them.
    """
    _, marks, words = laid.searches
    groups, block, used = laid.groups, list[int](), np.zeros(size, bool)
    for a in np.argsort(groups[:, 0] - groups[:, KINDS], kind="stable").tolist():
        mine = words[marks[groups[a, 0], LOW] : marks[groups[a, KINDS] - 1, HIGH]]
        with_mine = used.copy()
        with_mine[mine] = True
        if block and with_mine.sum() > room:
            yield np.array(block), np.flatnonzero(used)
            block, with_mine = [], np.zeros(size, bool)
            with_mine[mine] = True
        block, used = [*block, a], with_mine
    yield np.array(block, np.int64), np.flatnonzero(used)


def _table(
    pool: ThreadPoolExecutor, words: Words, known: Fractions, chosen: IntArray
) -> tuple[npt.NDArray[Any], IntArray]:
    """Work out the distances of the chosen words to all words; say which row each word has."""
    chosen = chosen[np.argsort(words.lengths[chosen], kind="stable")]
    rows, places = np.empty((chosen.size, len(words)), known.code.dtype), np.zeros(len(words), np.int64)
    places[chosen] = np.arange(chosen.size)
    step = edit_distance.LANES * 4
    parts = [slice(low, low + step) for low in range(0, chosen.size, step)]
    list(pool.map(lambda part: edit_distance.normalised(words, known, chosen[part], rows[part]), parts))
    return rows, places
