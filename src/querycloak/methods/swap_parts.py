"""What `swap` keeps beside its buffers: the numbers of categories, and the memory of its guard."""

from __future__ import annotations

from typing import Any

import numpy as np

from querycloak.dictionary import Texts
from querycloak.kernels import swap as kernel
from querycloak.kernels.tables import PairTable
from querycloak.log import NOTHING, IntArray
from querycloak.methods.seating import grown
from querycloak.protector import State


class Guard:
    """Remembers, for every text that left, who was near each time."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._near = PairTable()
        self._score = np.zeros((1024, 2), np.float64)
        self._known = np.zeros(1, np.int64)
        self._times_left = np.zeros(0, np.int64)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """Give the arrays in the order in which the kernel takes them."""
        return self._times_left, *self._near.arrays, self._score, self._known

    def make_room(self, queries: IntArray, more: int) -> None:
        """Make room for what the next arrivals may add."""
        known = int(self._known[0])
        self._near.reserve(more, known)
        self._score = grown(self._score, known + more)
        self._times_left = grown(self._times_left, int(queries.max(initial=-1)) + 1)

    def snapshot(self) -> State:
        """Give what is remembered."""
        items = self._near.items()
        score = self._score[items["value"]]
        left = np.flatnonzero(self._times_left)
        times_left = np.column_stack([left, self._times_left[left]])
        return {
            "near_text": items["first"],
            "near_user": items["second"],
            "near_score": score,
            "times_left": times_left,
        }

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        rows = np.arange(len(state["near_score"]))
        self._near = PairTable.of(state["near_text"], state["near_user"], rows)
        self._score = grown(state["near_score"].copy(), 1024)
        self._known = np.array([rows.size], np.int64)
        left, times = state["times_left"].T
        self._times_left = np.zeros(int(left.max(initial=-1)) + 1, np.int64)
        self._times_left[left] = times


class Categories:
    """Numbers the categories in which records wait, and links each to its parent."""

    def __init__(self, texts: Texts, key: bytes, level: int, *, linked: bool) -> None:
        self._texts, self._key, self._level, self._linked = texts, key, level, linked
        self._number = np.empty(0, np.int64)  # by code of the cut category
        self._codes: list[int] = []
        self.table = np.zeros((0, kernel.FIELDS), np.int64)

    def __len__(self) -> int:
        return len(self._codes)

    def of(self, category: IntArray) -> tuple[IntArray, IntArray]:
        """Give for each record the number of its category, and of its topic at level 1."""
        cut = self._texts.category.at_level(category, self._level)
        number = self._numbers(cut)
        top = self._numbers(self._texts.category.at_level(category, 1)) if self._linked else number
        return number, top

    def _numbers(self, codes: IntArray) -> IntArray:
        shifted = codes + 1  # records without a category wait together, as number of code -1
        if shifted.size and int(shifted.max()) >= self._number.size:
            more = np.full(int(shifted.max()) + 1 - self._number.size, NOTHING, np.int64)
            self._number = np.concatenate([self._number, more])
        unknown = self._number[shifted] < 0
        if unknown.any():
            new, first = np.unique(codes[unknown], return_index=True)
            for code in new[np.argsort(first)].tolist():
                self._add(code)
        return self._number[shifted]

    def _add(self, code: int) -> int:
        """Number a category, its ancestors first."""
        if self._number.size > code + 1 and self._number[code + 1] >= 0:
            return int(self._number[code + 1])
        own = np.array([code], np.int64)
        depth = int(self._texts.category.depths(own)[0])
        parent = NOTHING
        if self._linked and depth > 1:
            parent = self._add(int(self._texts.category.at_level(own, depth - 1)[0]))
        return self._append(code, parent, depth)

    def _append(self, code: int, parent: int, depth: int) -> int:
        number = len(self._codes)
        self._codes.append(code)
        if code + 1 >= self._number.size:
            more = np.full(code + 2 - self._number.size, NOTHING, np.int64)
            self._number = np.concatenate([self._number, more])
        self._number[code + 1] = number
        if number >= len(self.table):
            more = np.zeros((max(len(self.table), 64), kernel.FIELDS), np.int64)
            self.table = np.concatenate([self.table, more])
        row = self.table[number]
        row[kernel.KEY] = self._fingerprint(code)
        row[kernel.PARENT], row[kernel.LEVEL] = parent, depth
        row[kernel.CURSOR], row[kernel.NEXT] = number, number if depth <= 1 else NOTHING
        return number

    def _fingerprint(self, code: int) -> int:
        if code < 0:
            return 0
        return int(self._texts.category.fingerprints(np.array([code]), self._key).view(np.int64)[0])

    def deepest_first(self) -> IntArray:
        """Order categories for rolling up: the deepest first, equals by a keyed number."""
        table = self.table[: len(self)]
        return np.lexsort((table[:, kernel.KEY], -table[:, kernel.LEVEL]))

    def snapshot(self) -> State:
        """Give the codes in the order of their numbers."""
        return {"category_codes": np.array(self._codes, np.int64)}

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        codes = state["category_codes"]
        self._codes = codes.tolist()
        self._number = np.full(int(codes.max(initial=-1)) + 2, NOTHING, np.int64)
        self._number[codes + 1] = np.arange(codes.size)
        self.table = state["categories"].copy()
