"""Uniform choices from the keyed function, for kernels."""

from __future__ import annotations

import numpy as np
from numba import njit

_LOW = np.uint64(0xFFFFFFFF)
_W32 = np.uint64(32)


@njit(forceinline=True)
def below(word, size):  # type: ignore[no-untyped-def]
    """Map a 64-bit word to 0 … size - 1: the high half of word × size, off uniform by size / 2⁶⁴ at most."""
    n = np.uint64(size)
    low = (word & _LOW) * n
    return np.int64(((word >> _W32) * n + (low >> _W32)) >> _W32)


@njit(forceinline=True)
def high_below(word, size):  # type: ignore[no-untyped-def]
    """Map the upper half of a word to 0 … size - 1; off uniform by size / 2³² at most."""
    return np.int64(((word >> _W32) * np.uint64(size)) >> _W32)


@njit(forceinline=True)
def low_below(word, size):  # type: ignore[no-untyped-def]
    """Map the lower half of a word to 0 … size - 1; off uniform by size / 2³² at most."""
    return np.int64(((word & _LOW) * np.uint64(size)) >> _W32)
