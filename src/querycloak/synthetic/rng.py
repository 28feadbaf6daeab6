"""Named random streams, which depend on the seed and the block of users only, and picks from them."""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

#: Users are always drawn in blocks of this size, so that a log of 1,500 opens like one of 900.
BLOCK_USERS = 1024


def stream(seed: int, block: int, purpose: str) -> np.random.Generator:
    """Open the stream of one purpose in one block; equal arguments give equal draws on any machine."""
    entropy = [seed, block, zlib.crc32(purpose.encode())]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))


def pick_zipf(uniform: FloatArray, sizes: IntArray | int, flat: float = 1.0) -> IntArray:
    """Turn uniform draws into ranks below `sizes` whose odds fall about as 1/(rank + flat)."""
    ranks = np.floor(flat * np.expm1(uniform * np.log1p(np.asarray(sizes) / flat))).astype(np.int64)
    return np.asarray(np.minimum(ranks, np.asarray(sizes) - 1), np.int64)


def pick_weighted(uniform: FloatArray, cumulative: FloatArray) -> IntArray:
    """Turn uniform draws into indices, given running totals of weights."""
    found = np.searchsorted(cumulative, uniform * cumulative[-1], side="right")
    return np.asarray(np.minimum(found, cumulative.size - 1), np.int64)


def mix(*numbers: IntArray | int) -> IntArray:
    """Scramble integers into a non-negative one that looks random and is always the same."""
    state = np.asarray(0x9E3779B97F4A7C15, np.uint64)
    with np.errstate(over="ignore"):
        for number in numbers:
            state = (state ^ np.asarray(number).astype(np.uint64)) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(29))) * np.uint64(0x94D049BB133111EB)
            state = state ^ (state >> np.uint64(32))
    return np.asarray(state >> np.uint64(1)).astype(np.int64)
