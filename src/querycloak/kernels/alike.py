"""Finds vectors of about one direction among very many, by looking through blocks of alike ones.

A block is cut in two, at the middle of the direction in which its vectors differ most, until it is small
enough. Near a cut, some of the nearest lie on the other side. Vectors are whole numbers of length 4096 or so,
and all sums of them are exact: the same vectors in the same order give the same blocks on every machine.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.kernels.threads import strided

Shorts = npt.NDArray[np.int16]
Longs = npt.NDArray[np.int64]

#: Vectors of a block at most.
MOST = 8192
_TURNS = 4  # how often a direction is improved
_STEPS = 1 << 11  # the largest number of a direction: products with vectors fit in 32 bits
_HIGH = 1 << 32  # above every product


class Blocks(NamedTuple):
    """Vectors in blocks, and the cuts between them, by which any other vector finds its block too.

    Cut c sends a vector to `side[c, 1]` if its product with `way[c]` is above `at[c]`, else to `side[c, 0]`:
    to another cut, or to block b, written as -1 - b.
    """

    values: Shorts  # block after block: side by side, they are read many times faster
    members: Longs  # which vector each of these is
    start: Longs
    way: Shorts
    at: Longs
    side: Longs

    def drawn(self, wanted: Shorts, chance: npt.NDArray[np.uint64], nearest: int) -> Longs:
        """Give for each wanted vector the row of one of its block's nearest, which chance chooses.

        Of equally near vectors the first ones count as nearer.
        """
        out = np.empty(wanted.shape[0], np.int64)
        strided(lambda first, step: _draw(wanted, chance, nearest, self, first, step, out))
        return self.members[out]


class _Cut(NamedTuple):
    way: Shorts
    at: int
    side: list[int]


def cut(values: Shorts, rows: Longs, most: int = MOST) -> Blocks:
    """Cut some of the vectors, at least one, into blocks; equal ones stay together, however many they are."""
    done: list[Longs] = []
    cuts: list[_Cut] = []
    waiting: list[tuple[Longs, list[int], int]] = [(rows, [0], 0)]
    while waiting:
        block, door, side = waiting.pop()
        way, place = _placed(values, block) if block.size > most else (values[0], np.zeros(0, np.int64))
        at = _middle(place)
        high = place > at
        if not high.any():
            door[side] = -1 - len(done)
            done.append(block)
            continue
        door[side] = len(cuts)
        cuts.append(_Cut(way, at, [0, 0]))
        waiting += [(block[high], cuts[-1].side, 1), (block[~high], cuts[-1].side, 0)]
    members = np.concatenate(done)
    return Blocks(
        values[members],
        members,
        np.cumsum([0, *(block.size for block in done)]),
        np.array([one.way for one in cuts], np.int16).reshape(-1, values.shape[1]),
        np.array([one.at for one in cuts], np.int64),
        np.array([one.side for one in cuts], np.int64).reshape(-1, 2),
    )


def _middle(place: Longs) -> int:
    """Give the largest number of the lower half; 0 for no numbers."""
    half = max(place.size // 2 - 1, 0)
    return int(np.partition(place, half)[half]) if place.size else 0


def _placed(values: Shorts, block: Longs) -> tuple[Shorts, Longs]:
    """Find the direction in which a block's vectors differ most, and each one's place along it.

    From two that are far apart, then from the difference of the two halves, some times over.
    """
    first = values[block[np.argmin(_along(values, block, values[block[0]]))]]
    other = values[block[np.argmin(_along(values, block, first))]]
    way = _scaled(first.astype(np.int64) - other)
    for _ in range(_TURNS):
        place = _along(values, block, way)
        way = _scaled(_leaning(values, block, place > _middle(place)))
    return way, _along(values, block, way)


def _scaled(way: Longs) -> Shorts:
    scaled: Shorts = np.rint(way * (_STEPS / max(int(np.abs(way).max()), 1))).astype(np.int16)
    return scaled


@njit(inline="always")
def _product(a, b):  # type: ignore[no-untyped-def]
    total = np.int32(0)
    for d in range(a.size):
        total = np.int32(total + np.int32(a[d]) * np.int32(b[d]))
    return np.int64(total)


@njit(cache=True, nogil=True)
def _along(values, rows, way):  # type: ignore[no-untyped-def]
    """Multiply each of some vectors with one."""
    out = np.empty(rows.size, np.int64)
    for i in range(rows.size):
        out[i] = _product(values[rows[i]], way)
    return out


@njit(cache=True, nogil=True)
def _leaning(values, rows, high):  # type: ignore[no-untyped-def]
    """Subtract the sum of the lower vectors from that of the higher ones."""
    out = np.zeros(values.shape[1], np.int64)
    for i in range(rows.size):
        sign = 1 if high[i] else -1
        for d in range(out.size):
            out[d] += sign * values[rows[i], d]
    return out


@njit(cache=True, nogil=True)
def _draw(wanted, chance, nearest, blocks, first, step, out):  # type: ignore[no-untyped-def]
    """Draw for the vectors `first`, `first + step`, ...: the place of what each gets."""
    for i in range(first, wanted.shape[0], step):
        at = 0 if blocks.at.size else -1
        while at >= 0:
            at = blocks.side[at, 1 if _product(wanted[i], blocks.way[at]) > blocks.at[at] else 0]
        begin, size = blocks.start[-1 - at], blocks.start[-at] - blocks.start[-1 - at]
        key = np.empty(size, np.int64)
        for j in range(size):
            key[j] = (_HIGH - _product(wanted[i], blocks.values[begin + j])) * size + j
        turn = np.int64(chance[i] % np.uint64(min(nearest, size)))
        out[i] = begin + np.partition(key, turn)[turn] % size
