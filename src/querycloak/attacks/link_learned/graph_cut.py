"""Cuts a graph in which all is linked to all into parts that are linked more within than without.

What is made small, for parts S1 … Sk of all events S: the sum of size² · links(Si, S) / links(Si, Si). With
equal links everywhere every cut is as good as any other, so sizes alone decide nothing. Pairs count in both
directions, and an event's link to itself counts once, as the matrix has it.

Several starts; from each, single events move while that helps. Then, from the best, Kernighan and Lin's way:
every event moves once, the best move first even where it hurts, and the best moment is kept.

Reference: paper 004, equation 1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.log import FloatArray, IntArray

Links = npt.NDArray[np.float32]

#: Links below this count as this: parts must have a positive sum to divide by.
LEAST = 1e-6
#: A move must help by more than this share of the whole; less is noise of the sums.
_WORTH = 1e-10
#: Rounds of the power method, enough to tell large parts apart: what is left is for the moves.
_ROUNDS = 30


@njit(inline="always")
def _term(size, outward, within):  # type: ignore[no-untyped-def]
    return size * size * outward / within


@njit(cache=True, nogil=True)
def _sums(links, total, labels, sizes, outward, within, toward):  # type: ignore[no-untyped-def]
    """Count anew: each part's size, links to all, links within, and each event's links to each part."""
    sizes[:], outward[:], within[:], toward[:] = 0, 0.0, 0.0, 0.0
    for v in range(labels.size):
        sizes[labels[v]] += 1
        outward[labels[v]] += total[v]
        row, own = links[v], toward[labels[v]]
        for u in range(labels.size):
            own[u] += row[u]
    for v in range(labels.size):
        within[labels[v]] += toward[labels[v], v]


@njit(inline="always")
def _gain(v, to, self_link, total, labels, sizes, outward, within, toward):  # type: ignore[no-untyped-def]
    """Return by how much the sum falls when an event moves to another part."""
    a = labels[v]
    before = _term(sizes[a], outward[a], within[a]) + _term(sizes[to], outward[to], within[to])
    left = within[a] - 2.0 * toward[a, v] + self_link
    joined = within[to] + 2.0 * toward[to, v] + self_link
    after = _term(sizes[a] - 1, outward[a] - total[v], left)
    return before - after - _term(sizes[to] + 1, outward[to] + total[v], joined)


@njit(inline="always")
def _move(v, to, links, total, labels, sizes, outward, within, toward):  # type: ignore[no-untyped-def]
    a, row = labels[v], links[v]
    within[a] += row[v] - 2.0 * toward[a, v]
    within[to] += row[v] + 2.0 * toward[to, v]
    sizes[a] -= 1
    sizes[to] += 1
    outward[a] -= total[v]
    outward[to] += total[v]
    labels[v] = to
    gone, come = toward[a], toward[to]
    for u in range(labels.size):
        gone[u] -= row[u]
        come[u] += row[u]


@njit(inline="always")
def _best_part(v, links, total, labels, sizes, outward, within, toward):  # type: ignore[no-untyped-def]
    """Find where an event would do best outside its part; the last of a part stays."""
    best, gain = -1, -np.inf
    if sizes[labels[v]] > 1:
        for to in range(sizes.size):
            if to != labels[v]:
                found = _gain(v, to, links[v, v], total, labels, sizes, outward, within, toward)
                if found > gain:
                    best, gain = to, found
    return best, gain


@njit(cache=True, nogil=True)
def _climb(links, total, labels, worth, sizes, outward, within, toward):  # type: ignore[no-untyped-def]
    """Move single events as long as that helps."""
    helped = True
    while helped:
        helped = False
        _sums(links, total, labels, sizes, outward, within, toward)
        for v in range(labels.size):
            to, gain = _best_part(v, links, total, labels, sizes, outward, within, toward)
            if gain > worth:
                _move(v, to, links, total, labels, sizes, outward, within, toward)
                helped = True


@njit(cache=True, nogil=True)
def _venture(links, total, labels, worth, patience, sizes, outward, within, toward):  # type: ignore[no-untyped-def]
    """Move every event once, best first; keep the best moment, and say whether it beats the start."""
    _sums(links, total, labels, sizes, outward, within, toward)
    free, kept = np.ones(labels.size, np.bool_), labels.copy()
    sum_, best, since = 0.0, worth, 0
    while since < patience:
        who, where, most = -1, -1, -np.inf
        for v in range(labels.size):
            if free[v]:
                to, gain = _best_part(v, links, total, labels, sizes, outward, within, toward)
                if gain > most:
                    who, where, most = v, to, gain
        if who < 0:
            break
        _move(who, where, links, total, labels, sizes, outward, within, toward)
        free[who] = False
        sum_, since = sum_ + most, since + 1
        if sum_ > best:
            best, since = sum_, 0
            kept[:] = labels
    labels[:] = kept
    return best > worth


def objective(links: Links, labels: IntArray) -> float:
    """Return the sum of equation 1; every part from 0 on must have a member."""
    links = np.maximum(links, LEAST)
    member = np.zeros((labels.size, int(labels.max(initial=-1)) + 1))
    member[np.arange(labels.size), labels] = 1.0
    within = ((links @ member) * member).sum(0)
    outward = member.T @ links.sum(1, dtype=np.float64)
    return float((member.sum(0) ** 2 * outward / within).sum())


def cluster(links: Links, parts: int, seed: int = 0, starts: int = 4) -> IntArray:
    """Cut events into so many parts, none empty; parts are numbered by their first events.

    With no more events than parts, each is a part. The same matrix and seed give the same parts.
    """
    size = len(links)
    if size <= parts or parts < 2:
        return np.arange(size) if parts > 1 else np.zeros(size, np.int64)
    links = np.ascontiguousarray(np.maximum(links, LEAST), np.float32)
    total = links.sum(1, dtype=np.float64)
    draws = np.random.default_rng(seed)
    found = [_settled(links, total, start) for start in _starts(links, parts, draws, starts)]
    best = min(found, key=lambda labels: objective(links, labels))
    work, worth = _room(size, parts), _WORTH * size * size
    while _venture(links, total, best, worth, max(20, size // 10), *work):
        _climb(links, total, best, worth, *work)
    return _numbered(best)


def _settled(links: Links, total: FloatArray, labels: IntArray) -> IntArray:
    _climb(links, total, labels, _WORTH * labels.size**2, *_room(labels.size, int(labels.max()) + 1))
    return labels


def _room(size: int, parts: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Make room for the sums: sizes, links to all, links within, links of each event to each part."""
    return np.zeros(parts), np.zeros(parts), np.zeros(parts), np.zeros((parts, size))


def _starts(links: Links, parts: int, draws: np.random.Generator, number: int) -> list[IntArray]:
    """Return several initial cuts: half by the graph's main directions, half by its links."""
    directions = _directions(links, parts, draws)
    spectral = (directions @ directions.T + 1.0) / 2.0
    half = -(-number // 2)
    return [_around(spectral if n < half else links, parts, draws) for n in range(max(1, number))]


def _directions(links: Links, parts: int, draws: np.random.Generator) -> FloatArray:
    """Return a unit vector for each event, similar for similar links, by the power method."""
    scale = 1.0 / np.sqrt(links.sum(1, dtype=np.float64))
    found = draws.standard_normal((len(links), parts))
    found[:, 0] = 1.0 / scale
    for _ in range(_ROUNDS):
        found = np.linalg.qr(found)[0]
        found = scale[:, None] * (links @ (scale[:, None] * found)) + found
    found = np.linalg.qr(found)[0][:, 1:]  # the first direction is the same for all
    length = np.linalg.norm(found, axis=1, keepdims=True)
    return np.asarray(found / np.maximum(length, 1e-300))


def _around(likeness: npt.NDArray[np.floating], parts: int, draws: np.random.Generator) -> IntArray:
    """Draw a centre for each part, unlike those before it, and give every event to the likest centre."""
    size = len(likeness)
    centres = [int(draws.integers(size))]
    nearest = np.array(likeness[centres[0]], np.float64)
    while len(centres) < parts:
        far = np.maximum(nearest.max() - nearest, 0.0) ** 2
        far[centres] = 0.0
        if not far.any():  # all are equally far, so any will do
            far = np.ones(size)
            far[centres] = 0.0
        centres.append(int(draws.choice(size, p=far / far.sum())))
        nearest = np.maximum(nearest, likeness[centres[-1]])
    labels: IntArray = np.argmax(likeness[centres], axis=0).astype(np.int64)
    labels[centres] = np.arange(parts)
    return labels


def _numbered(labels: IntArray) -> IntArray:
    """Number parts by their first members, so that equal cuts look equal."""
    _, first, number = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(first.size, np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    found: IntArray = rank[number]
    return found
