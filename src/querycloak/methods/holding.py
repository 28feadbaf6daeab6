"""Records that wait, in numbered slots that are used again, so that memory follows what is held."""

from __future__ import annotations

import numpy as np

from querycloak.dictionary import Texts
from querycloak.log import Batch, IntArray
from querycloak.protector import State


class Held:
    """Keeps the columns of waiting records; a kernel knows each by the number of its slot."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._columns = np.empty((len(Batch.COLUMNS), 0), np.int64)
        self._free = np.empty(0, np.int64)

    def __len__(self) -> int:
        return int(self._columns.shape[1] - self._free.size)

    def add(self, batch: Batch) -> IntArray:
        """Take records in and give the slots that they wait in."""
        self._make_room(len(batch))
        slots, self._free = self._free[: len(batch)], self._free[len(batch) :]
        for place, name in enumerate(Batch.COLUMNS):
            self._columns[place, slots] = getattr(batch, name)
        return slots

    def _make_room(self, needed: int) -> None:
        if self._free.size >= needed:
            return
        size = self._columns.shape[1]
        larger = np.empty((len(Batch.COLUMNS), max(2 * size, size + needed, 1024)), np.int64)
        larger[:, :size] = self._columns
        self._free = np.concatenate([self._free, np.arange(size, larger.shape[1])])
        self._columns = larger

    def take(self, slots: IntArray) -> Batch:
        """Hand records back; their slots are free again."""
        self._free = np.concatenate([slots, self._free])
        return self.look(slots)

    def look(self, slots: IntArray) -> Batch:
        """Show records that go on waiting."""
        columns = {name: self._columns[place, slots] for place, name in enumerate(Batch.COLUMNS)}
        return Batch.of(columns, self._texts)

    def column(self, name: str) -> IntArray:
        """Give one column by slot, for a kernel to look things up in."""
        column: IntArray = self._columns[Batch.COLUMNS.index(name)]
        return column

    def snapshot(self, slots: IntArray) -> State:
        """Give these records, numbered in this order from nought."""
        return {f"held_{name}": array for name, array in self.look(slots).arrays().items()}

    def restore(self, state: State) -> IntArray:
        """Take a snapshot's records in, in slots that are numbered in its order."""
        self.__init__(self._texts)  # type: ignore[misc]
        return self.add(Batch.of({name: state[f"held_{name}"] for name in Batch.COLUMNS}, self._texts))
