"""Sums of rows of an integer table: exact, so that the order of adding makes no difference."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def sum_rows(rows, bounds, table):  # type: ignore[no-untyped-def]
    """Add up the table's rows `rows[bounds[i]:bounds[i + 1]]` for each i."""
    sums = np.zeros((bounds.size - 1, table.shape[1]), np.int64)
    for i in range(bounds.size - 1):
        for p in range(bounds[i], bounds[i + 1]):
            row = table[rows[p]]
            for c in range(row.size):
                sums[i, c] += row[c]
    return sums
