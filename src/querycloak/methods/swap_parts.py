"""What `swap` keeps beside its buffers: the numbers of categories, and the memory of its guard."""

from __future__ import annotations

from typing import Any

import numpy as np

from querycloak.dictionary import Dictionary, Texts
from querycloak.kernels import swap as kernel
from querycloak.kernels.tables import PairTable
from querycloak.log import NOTHING, IntArray
from querycloak.methods.seating import grown
from querycloak.protector import State


class Guard:
    """Remembers, for every text that left, who was near each time.

    It knows texts by keyed prints only: what it remembers outlasts the records, and must not spell them out.
    """

    def __init__(self, limit: float, queries: Dictionary, key: bytes) -> None:
        self.limit = limit
        self._queries, self._key = queries, key
        self._number: dict[int, int] = {}  # by print
        self.text_of = np.zeros(0, np.int64)  # by slot: the number of its text
        self._near = PairTable()
        self._score = np.zeros((1024, 2), np.float64)
        self._known = np.zeros(1, np.int64)
        self._times_left = np.zeros(0, np.int64)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """Give the arrays in the order in which the kernel takes them."""
        return self._times_left, *self._near.arrays, self._score, self._known

    def meet(self, queries: IntArray, slots: IntArray) -> None:
        """Number the texts of records that begin to wait in these slots."""
        prints = self._queries.fingerprints(np.maximum(queries, 0), self._key) if queries.size else queries
        prints = np.where(queries >= 0, prints.astype(np.uint64).view(np.int64), NOTHING)
        numbers = [self._number.setdefault(text, len(self._number)) for text in prints.tolist()]
        self.text_of = grown(self.text_of, int(slots.max(initial=-1)) + 1)
        self.text_of[slots] = numbers

    def forget(self, users: IntArray) -> None:
        """Forget whom nobody will ever look for again."""
        items = self._near.items()
        stays = ~np.isin(items["second"], users)
        text, user, value = (items[part][stays] for part in ("first", "second", "value"))
        self._remember(text, user, self._score[value])

    def _remember(self, text: IntArray, user: IntArray, score: Any) -> None:
        rows = np.arange(len(score))
        self._near = PairTable.of(text, user, rows)
        self._score = grown(score.copy(), 1024)
        self._known = np.array([rows.size], np.int64)

    def make_room(self, more: int) -> None:
        """Make room for what the next arrivals may add."""
        known = int(self._known[0])
        self._near.reserve(more, known)
        self._score = grown(self._score, known + more)
        self._times_left = grown(self._times_left, len(self._number))

    def snapshot(self) -> State:
        """Give what is remembered of texts that left, numbered anew."""
        items = self._near.items()
        left = np.flatnonzero(self._times_left)
        return {
            "left_texts": np.array(list(self._number), np.int64)[left],
            "times_left": self._times_left[left],
            "near_text": np.searchsorted(left, items["first"]),
            "near_user": items["second"],
            "near_score": self._score[items["value"]],
        }

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        self._number = {text: number for number, text in enumerate(state["left_texts"].tolist())}
        self._remember(state["near_text"], state["near_user"], state["near_score"])
        self._times_left = state["times_left"].copy()


class Categories:
    """Numbers the categories in which records wait, and links each to its parent.

    It knows categories by keyed prints only: their numbers outlast the records, and must not spell them out.
    """

    def __init__(self, texts: Texts, key: bytes, level: int, *, linked: bool) -> None:
        self._texts, self._key, self._level, self._linked = texts, key, level, linked
        self._number = np.empty(0, np.int64)  # by code of the cut category, as far as it was met
        self._of_print: dict[int, int] = {}
        self.table = np.zeros((0, kernel.FIELDS), np.int64)

    def __len__(self) -> int:
        return len(self._of_print)

    def of(self, category: IntArray) -> tuple[IntArray, IntArray]:
        """Give for each record the number of its category, and of its topic at level 1."""
        cut = self._texts.category.at_level(category, self._level)
        number = self._numbers(cut)
        top = self._numbers(self._texts.category.at_level(category, 1)) if self._linked else number
        return number, top

    def _numbers(self, codes: IntArray) -> IntArray:
        shifted = codes + 1  # records without a category wait together, as number of code -1
        self._number = grown(self._number, int(shifted.max(initial=-1)) + 1, NOTHING)
        unknown = self._number[shifted] < 0
        if unknown.any():
            new, first = np.unique(codes[unknown], return_index=True)
            for code in new[np.argsort(first)].tolist():
                self._add(code)
        return self._number[shifted]

    def _add(self, code: int) -> int:
        """Number a category, its ancestors first."""
        key = self._fingerprint(code)
        number = self._of_print[key] if key in self._of_print else self._new(code, key)
        self._number = grown(self._number, code + 2, NOTHING)
        self._number[code + 1] = number
        return number

    def _new(self, code: int, key: int) -> int:
        own = np.array([code], np.int64)
        depth = int(self._texts.category.depths(own)[0])
        parent = NOTHING
        if self._linked and depth > 1:
            parent = self._add(int(self._texts.category.at_level(own, depth - 1)[0]))
        return self._append(key, parent, depth)

    def _append(self, key: int, parent: int, depth: int) -> int:
        number = self._of_print[key] = len(self._of_print)
        if number >= len(self.table):
            more = np.zeros((max(len(self.table), 64), kernel.FIELDS), np.int64)
            self.table = np.concatenate([self.table, more])
        row = self.table[number]
        row[kernel.KEY] = key
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

    def restore(self, table: IntArray) -> None:
        """Carry on from what `table` was."""
        self.table = table.copy()
        self._of_print = {key: number for number, key in enumerate(table[:, kernel.KEY].tolist())}
        self._number = np.empty(0, np.int64)
