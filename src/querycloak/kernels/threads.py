"""Spread a loop over the cores: part i of n takes the rows i, i + n, i + 2n, ..."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from numba import njit

T = TypeVar("T")
R = TypeVar("R")


def cores(threads: int | None = None) -> int:
    """Return the number of threads to use: as asked for, or one for each core."""
    return threads or os.cpu_count() or 1


def strided(work: Callable[[int, int], None], threads: int | None = None) -> None:
    """Call `work(first, step)` for each part, at the same time; the work lets go of the interpreter."""
    step = cores(threads)
    if step == 1:
        work(0, 1)
        return
    with ThreadPoolExecutor(step) as pool:
        list(pool.map(lambda first: work(first, step), range(step)))


def each(work: Callable[[T], R], parts: Iterable[T], threads: int | None = None) -> list[R]:
    """Call `work` on each part, some at the same time; the results keep the order of the parts."""
    with ThreadPoolExecutor(cores(threads)) as pool:
        return list(pool.map(work, parts))


@njit(cache=True, nogil=True)
def mirror(matrix):  # type: ignore[no-untyped-def]
    """Copy what is right of the diagonal to the left of it, tile by tile, which is kind to the cache."""
    size, tile = matrix.shape[0], 64
    for top in range(0, size, tile):
        for left in range(top, size, tile):
            for i in range(top, min(top + tile, size)):
                for j in range(max(left, i + 1), min(left + tile, size)):
                    matrix[j, i] = matrix[i, j]
