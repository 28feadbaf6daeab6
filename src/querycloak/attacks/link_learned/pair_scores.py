"""Scores all pairs of a person's searches with many learned functions, and cuts the graph of pairs.

The scores of n events are one row of n(n-1)/2 numbers: (0, 1), (0, 2) … (1, 2) …

Reference: paper 004, sections 4.1.3 and 4.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from querycloak.attacks.link_learned import graph_cut
from querycloak.attacks.link_learned.training import LinkageFunction, Relate
from querycloak.kernels.threads import each, mirror
from querycloak.log import Flags, IntArray

Scores = npt.NDArray[np.float32]
Aggregate = Literal["median", "mean", "majority"]

#: The many clusters in which a person's own variety shows.
MANY: Final = 10
#: How many pairs are held with all their relations and scores at a time.
CHUNK: Final = 200_000
#: How many scores of single functions are held at a time: one GB.
MOST_SCORES: Final = 1 << 28


def scores(
    relate: Relate,
    size: int,
    functions: Sequence[LinkageFunction],
    aggregate: Aggregate,
    done: tuple[IntArray, Scores] | None = None,
) -> Scores:
    """Score all pairs of so many events by the median or mean of all functions.

    `done` are places of some events, in increasing order, and the scores of their pairs: a person's own
    searches stay the same over many draws of fakes, and are scored once.
    """
    middle = np.mean if aggregate == "mean" else np.median
    found = np.empty(size * (size - 1) // 2, np.float32)
    known = np.zeros(size, bool)
    if done is not None:
        known[done[0]] = True
        found[_places(size, done[0])] = done[1]
    for start, first, second in _chunks(size):
        new = np.flatnonzero(~(known[first] & known[second]))
        if new.size:
            alone = by_each(relate(first[new], second[new]), functions)
            found[start + new] = middle(alone, axis=0)
    return found


def majority(
    relate: Relate, size: int, functions: Sequence[LinkageFunction], parts: int, seed: int
) -> Scores:
    """Cut the graph of each function alone; a pair's score is the share of cuts that keep it together."""
    pairs = size * (size - 1) // 2
    step = max(1, MOST_SCORES // max(1, pairs))
    together = np.zeros(pairs, np.float32)
    for begin in range(0, len(functions), step):
        some = functions[begin : begin + step]
        alone = np.empty((len(some), pairs), np.float32)
        for start, first, second in _chunks(size):
            alone[:, start : start + first.size] = by_each(relate(first, second), some)
        for labels in each(lambda one: cut(one, size, parts, seed), alone):
            together += _together(labels)
    return np.asarray(together / len(functions), np.float32)


def _together(labels: IntArray) -> Flags:
    low, high = np.triu_indices(labels.size, 1)
    return np.asarray(labels[low] == labels[high])


def cut(found: Scores, size: int, parts: int, seed: int) -> IntArray:
    """Cut the graph of all pairs into parts."""
    return graph_cut.cluster(matrix(found, size), parts, seed)


def matrix(found: Scores, size: int) -> npt.NDArray[np.float32]:
    """Write scores as a symmetric matrix; every event is surely linked to itself."""
    links = np.ones((size, size), np.float32)
    begin = 0
    for row in range(size - 1):
        links[row, row + 1 :] = found[begin : begin + size - 1 - row]
        begin += size - 1 - row
    mirror(links)
    return links


def among(found: Scores, size: int, chosen: IntArray) -> Scores:
    """Return the scores of the pairs among some of the events, which come in increasing order."""
    return np.asarray(found[_places(size, chosen)])


def _places(size: int, chosen: IntArray) -> IntArray:
    """Return the places of the pairs among some events in the row of all."""
    low, high = (chosen[side] for side in np.triu_indices(chosen.size, 1))
    return np.asarray(low * (2 * size - low - 1) // 2 + high - low - 1)


def by_each(relations: npt.NDArray[np.float32], functions: Sequence[LinkageFunction]) -> Scores:
    """Score pairs by each function alone, a row for each."""
    return np.stack(each(lambda function: function(relations), functions))


def _chunks(size: int) -> Iterator[tuple[int, IntArray, IntArray]]:
    """Return the pairs in their order, some rows of the triangle at a time, and where they begin."""
    begin, row = 0, 0
    while row < size - 1:
        rows = np.arange(row, min(size - 1, row + max(1, CHUNK // (size - 1 - row))))
        first = np.repeat(rows, size - 1 - rows)
        second = np.concatenate([np.arange(one + 1, size) for one in rows])
        yield begin, first, second
        begin, row = begin + first.size, int(rows[-1]) + 1
