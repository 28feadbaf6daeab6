"""Finds the rows that belong to one search: same person, query and time, several clicks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.kernels.tables import find, put

IntArray = npt.NDArray[np.int64]


@njit(cache=True, nogil=True)
def _heads(time, who_and_what, row, first, second, full, value):  # type: ignore[no-untyped-def]
    head = row.copy()
    for i in range(row.size):
        slot = find(first, second, full, time[i], who_and_what[i])
        if full[slot]:
            head[i] = value[slot]
        else:
            put(first, second, full, value, slot, time[i], who_and_what[i], row[i])
    return head


def heads(time: IntArray, who_and_what: IntArray, row: IntArray) -> IntArray:
    """Give for each row, in order of time, the first row of the search that it belongs to."""
    size = 1 << int(2 * row.size + 2).bit_length()
    table = np.empty(size, np.int64), np.empty(size, np.int64), np.zeros(size, np.uint8)
    head: IntArray = _heads(time, who_and_what, row, *table, np.empty(size, np.int64))
    return head
