"""Numbers of the categories in which `swap` holds records, each with its parent."""

from __future__ import annotations

import numpy as np

from querycloak.dictionary import Dictionaries
from querycloak.kernels.arrays import grown
from querycloak.log import MISSING, IntArray
from querycloak.methods.swap import kernel


class Categories:
    """Numbers the categories in which records wait, and links each to its parent.

    It knows categories by keyed prints only: their numbers outlast the records, and must not spell them out.
    """

    def __init__(self, texts: Dictionaries, key: bytes, level: int, *, linked: bool) -> None:
        self._texts, self._key, self._level, self._linked = texts, key, level, linked
        self._number = np.empty(0, np.int64)  # by code of the cut category, as far as it was met
        self._of_print: dict[int, int] = {}
        self.table = np.zeros((0, kernel.FIELDS), np.int64)

    def __len__(self) -> int:
        return len(self._of_print)

    def of(self, category: IntArray) -> tuple[IntArray, IntArray]:
        """Return for each record the number of its category, and of its topic at level 1."""
        cut = self._texts.category.at_level(category, self._level)
        number = self._numbers(cut)
        top = self._numbers(self._texts.category.at_level(category, 1)) if self._linked else number
        return number, top

    def _numbers(self, codes: IntArray) -> IntArray:
        shifted = codes + 1  # records without a category wait together, as number of code -1
        self._number = grown(self._number, int(shifted.max(initial=-1)) + 1, MISSING)
        unknown = self._number[shifted] < 0
        if unknown.any():
            new, first = np.unique(codes[unknown], return_index=True)
            for code in new[np.argsort(first)].tolist():
                self._add(code)
        return self._number[shifted]

    def _add(self, code: int) -> int:
        """Number a category, its ancestors first."""
        texts, own = self._texts.category, np.array([code], np.int64)
        key = int(texts.fingerprints(own, self._key).view(np.int64)[0]) if code >= 0 else 0
        if key not in self._of_print:
            depth = int(texts.depths(own)[0])
            up = self._linked and depth > 1
            self._append(key, self._add(int(texts.at_level(own, depth - 1)[0])) if up else MISSING, depth)
        self._number = grown(self._number, code + 2, MISSING)
        self._number[code + 1] = self._of_print[key]
        return self._of_print[key]

    def _append(self, key: int, parent: int, depth: int) -> None:
        number = self._of_print[key] = len(self._of_print)
        self.table = grown(self.table, number + 1)
        row = self.table[number]
        row[kernel.KEY] = key
        row[kernel.PARENT], row[kernel.LEVEL] = parent, depth
        row[kernel.CURSOR], row[kernel.NEXT] = number, number if depth <= 1 else MISSING

    def deepest_first(self) -> IntArray:
        """Order categories for rolling up: the deepest first, equals by a keyed number."""
        table = self.table[: len(self)]
        return np.lexsort((table[:, kernel.KEY], -table[:, kernel.LEVEL]))

    def restore(self, table: IntArray) -> None:
        """Carry on from what `table` was."""
        self.table = table.copy()
        self._of_print = {key: number for number, key in enumerate(table[:, kernel.KEY].tolist())}
        self._number = np.empty(0, np.int64)
