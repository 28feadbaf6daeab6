"""Open-addressing hash tables from pairs of integers to an integer, flat enough to snapshot."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.log import IntArray

_M1, _M2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_SHIFT = np.uint64(29)


@njit(forceinline=True)
def _home(first, second, mask):  # type: ignore[no-untyped-def]
    x = np.uint64(first) * _M1 ^ np.uint64(second) * _M2
    x ^= x >> _SHIFT
    return np.int64((x * _M1) >> _SHIFT) & mask


@njit(cache=True, nogil=True)
def find(first, second, full, a, b):  # type: ignore[no-untyped-def]
    """Return the slot that holds (a, b), or the free slot where it belongs."""
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


def _room(held: int, more: int) -> int:
    """Return the size of a table at most half full after `more`, with room for half as many again as `held`.

    So the next count, which looks at the whole table, comes only after many additions.
    """
    return 1 << int(max(2 * (held + more), 3 * held) - 1).bit_length()


class PairTable:
    """A growing table (a, b) -> value, kept at most half full; kernels work on its arrays."""

    SMALLEST = 1 << 10

    def __init__(self) -> None:
        self._allocate(self.SMALLEST)
        self._most = 0  # no more pairs than this are here

    def _allocate(self, size: int) -> None:
        self.first = np.zeros(size, np.int64)
        self.second = np.zeros(size, np.int64)
        self.full = np.zeros(size, np.uint8)
        self.value = np.zeros(size, np.int64)

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """Return the arrays in the order in which kernels take them."""
        return self.first, self.second, self.full, self.value

    def __len__(self) -> int:
        return int(np.count_nonzero(self.full))

    def reserve(self, more: int, held: int | None = None) -> None:
        """Make room for so many further pairs; `held` spares counting those that are here.

        They are counted only once as many as there was room for may have been added.
        """
        self._most = self._most if held is None else held
        if 2 * (self._most + more) > self.full.size:
            self._most = len(self) if held is None else held
            needed = _room(self._most, more)
            if needed > self.full.size:
                old = self.arrays
                self._allocate(needed)
                _refill(*old, *self.arrays)
        self._most += more

    def items(self) -> dict[str, IntArray]:
        """Return what the table holds, sorted, so that equal tables give equal arrays."""
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
def slot_of(cells, key):  # type: ignore[no-untyped-def]
    """Return the row of a table of counts that holds a key, or the free one where it belongs."""
    mask = cells.shape[0] - 1
    x = np.uint64(key) * _M1
    row = np.int64(x >> np.uint64(32)) & mask
    while cells[row, 1] != 0 and cells[row, 0] != key:
        row = (row + 1) & mask
    return row


@njit(forceinline=True)
def remove_slot(cells, row):  # type: ignore[no-untyped-def]
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
def _rehash(cells, larger):  # type: ignore[no-untyped-def]
    for i in range(cells.shape[0]):
        if cells[i, 1] != 0:
            row = slot_of(larger, cells[i, 0])
            larger[row, 0], larger[row, 1] = cells[i, 0], cells[i, 1]


class CountTable:
    """A growing table key -> count above nought, a pair of cells side by side for the cache's sake."""

    SMALLEST = 1 << 10

    def __init__(self) -> None:
        self.cells = np.zeros((self.SMALLEST, 2), np.int64)
        self._most = 0  # no more keys than this are here

    def __len__(self) -> int:
        return int(np.count_nonzero(self.cells[:, 1]))

    def reserve(self, more: int) -> None:
        """Make room for so many further keys.

        They are counted only once as many as there was room for may have been added.
        """
        if 2 * (self._most + more) > self.cells.shape[0]:
            self._most = len(self)
            needed = _room(self._most, more)
            if needed > self.cells.shape[0]:
                larger = np.zeros((needed, 2), np.int64)
                _rehash(self.cells, larger)
                self.cells = larger
        self._most += more

    def items(self) -> IntArray:
        """Return (key, count) rows in the order of keys."""
        held: IntArray = self.cells[self.cells[:, 1] != 0]
        return held[np.argsort(held[:, 0])]

    @classmethod
    def of(cls, items: IntArray) -> CountTable:
        """Build a table that holds these rows."""
        table = cls()
        table.reserve(len(items))
        _rehash(items, table.cells)
        return table
