"""Open-addressing hash tables from pairs of integers to an integer, flat enough to snapshot."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

_M1, _M2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_SHIFT = np.uint64(29)


@njit(forceinline=True)
def _home(first, second, mask):  # type: ignore[no-untyped-def]
    x = np.uint64(first) * _M1 ^ np.uint64(second) * _M2
    x ^= x >> _SHIFT
    return np.int64((x * _M1) >> _SHIFT) & mask


@njit(cache=True, nogil=True)
def find(first, second, full, a, b):  # type: ignore[no-untyped-def]
    """Give the slot that holds (a, b), or the free slot where it belongs."""
    mask = full.size - 1
    slot = _home(a, b, mask)
    while full[slot] and not (first[slot] == a and second[slot] == b):
        slot = (slot + 1) & mask
    return slot


@njit(cache=True, nogil=True)
def put(first, second, full, value, slot, a, b, v):  # type: ignore[no-untyped-def]
    """Fill a free slot that `find` gave."""
    first[slot], second[slot], full[slot], value[slot] = a, b, 1, v


@njit(cache=True, nogil=True)
def remove(first, second, full, value, slot):  # type: ignore[no-untyped-def]
    """Empty a slot and move later ones up, so that no search ends too early."""
    mask = full.size - 1
    gap, probe = slot, slot
    while True:
        probe = (probe + 1) & mask
        if not full[probe]:
            break
        home = _home(first[probe], second[probe], mask)
        if ((probe - home) & mask) >= ((probe - gap) & mask):
            first[gap], second[gap], value[gap] = first[probe], second[probe], value[probe]
            gap = probe
    full[gap] = 0


@njit(cache=True, nogil=True)
def _refill(first, second, full, value, to_first, to_second, to_full, to_value):  # type: ignore[no-untyped-def]
    for i in range(full.size):
        if full[i]:
            slot = find(to_first, to_second, to_full, first[i], second[i])
            put(to_first, to_second, to_full, to_value, slot, first[i], second[i], value[i])


class PairTable:
    """A growing table (a, b) -> value, kept at most half full; kernels work on its arrays."""

    SMALLEST = 1 << 10

    def __init__(self) -> None:
        self._allocate(self.SMALLEST)

    def _allocate(self, size: int) -> None:
        self.first = np.zeros(size, np.int64)
        self.second = np.zeros(size, np.int64)
        self.full = np.zeros(size, np.uint8)
        self.value = np.zeros(size, np.int64)

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """Give the arrays in the order in which kernels take them."""
        return self.first, self.second, self.full, self.value

    def __len__(self) -> int:
        return int(np.count_nonzero(self.full))

    def reserve(self, more: int, held: int | None = None) -> None:
        """Make room for so many further pairs; `held` spares counting those that are here."""
        needed = 2 * ((len(self) if held is None else held) + more)
        if needed > self.full.size:
            old = self.arrays
            self._allocate(1 << int(needed - 1).bit_length())
            _refill(*old, *self.arrays)

    def items(self) -> dict[str, npt.NDArray[np.int64]]:
        """Give what the table holds, sorted, so that equal tables give equal arrays."""
        held = self.full.astype(bool)
        first, second, value = self.first[held], self.second[held], self.value[held]
        order = np.lexsort((second, first))
        return {"first": first[order], "second": second[order], "value": value[order]}

    @classmethod
    def of(cls, first: Any, second: Any, value: Any) -> PairTable:
        """Build a table that holds these pairs."""
        table = cls()
        table.reserve(int(first.size))
        _refill(first, second, np.ones(first.size, np.uint8), value, *table.arrays)
        return table


@njit(forceinline=True)
def seat(cells, key):  # type: ignore[no-untyped-def]
    """Give the row of a table of counts that holds a key, or the free one where it belongs."""
    mask = cells.shape[0] - 1
    x = np.uint64(key) * _M1
    row = np.int64(x >> np.uint64(32)) & mask
    while cells[row, 1] != 0 and cells[row, 0] != key:
        row = (row + 1) & mask
    return row


@njit(forceinline=True)
def unseat(cells, row):  # type: ignore[no-untyped-def]
    """Empty a row of a table of counts and move later ones up."""
    mask = cells.shape[0] - 1
    gap, probe = row, row
    while True:
        probe = (probe + 1) & mask
        if cells[probe, 1] == 0:
            break
        x = np.uint64(cells[probe, 0]) * _M1
        home = np.int64(x >> np.uint64(32)) & mask
        if ((probe - home) & mask) >= ((probe - gap) & mask):
            cells[gap, 0], cells[gap, 1] = cells[probe, 0], cells[probe, 1]
            gap = probe
    cells[gap, 1] = 0


@njit(cache=True, nogil=True)
def _reseat(cells, larger):  # type: ignore[no-untyped-def]
    for i in range(cells.shape[0]):
        if cells[i, 1] != 0:
            row = seat(larger, cells[i, 0])
            larger[row, 0], larger[row, 1] = cells[i, 0], cells[i, 1]


class CountTable:
    """A growing table key -> count above nought, a pair of cells side by side for the cache's sake."""

    SMALLEST = 1 << 10

    def __init__(self) -> None:
        self.cells = np.zeros((self.SMALLEST, 2), np.int64)

    def __len__(self) -> int:
        return int(np.count_nonzero(self.cells[:, 1]))

    def reserve(self, more: int) -> None:
        """Make room for so many further keys."""
        needed = 2 * (len(self) + more)
        if needed > self.cells.shape[0]:
            larger = np.zeros((1 << int(needed - 1).bit_length(), 2), np.int64)
            _reseat(self.cells, larger)
            self.cells = larger

    def items(self) -> npt.NDArray[np.int64]:
        """Give (key, count) rows in the order of keys."""
        held: npt.NDArray[np.int64] = self.cells[self.cells[:, 1] != 0]
        return held[np.argsort(held[:, 0])]

    @classmethod
    def of(cls, items: npt.NDArray[np.int64]) -> CountTable:
        """Build a table that holds these rows."""
        table = cls()
        table.reserve(len(items))
        _reseat(items, table.cells)
        return table
