"""How many draws a history needs when alike concepts share one: its size decides that, never its content."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

#: Likeness is worked out for all pairs, so very long histories are cut into stretches of at most this size.
_LONGEST = 1000


def stretches(slots: int) -> list[tuple[int, int]]:
    """Cut so many slots into stretches of about the same size."""
    parts = -(-slots // _LONGEST)
    return list(pairwise(np.linspace(0, slots, parts + 1).astype(int).tolist())) if slots else []


def groups_of(slots: int, size: int) -> int:
    """Say into how many groups of at least `size` a stretch of so many slots falls."""
    return max(slots // size, 1)


def draws_of(slots: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    """Say how many draws histories (or their parts in one domain) with so many slots need."""
    sizes, number = np.unique(slots, return_inverse=True)
    draws = [sum(groups_of(end - start, size) for start, end in stretches(int(n))) for n in sizes]
    return np.array(draws, np.int64)[number]
