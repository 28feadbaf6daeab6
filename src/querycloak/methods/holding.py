"""Records that wait, in numbered slots that are used again, so that memory follows what is held."""

from __future__ import annotations

import numpy as np

from querycloak.dictionary import Texts
from querycloak.log import NOTHING, Batch, IntArray, is_same
from querycloak.protector import State


class Held:
    """Keeps the columns of waiting records; a kernel knows each by the number of its slot."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._room = 0
        self._columns: dict[str, IntArray] = {}
        self._fixed: dict[str, int] = {}  # columns that have had one value so far take no room
        self._free = np.empty(0, np.int64)

    def __len__(self) -> int:
        return self._room - int(self._free.size)

    def add(self, batch: Batch) -> IntArray:
        """Take records in and give the slots that they wait in."""
        self._make_room(len(batch))
        slots, self._free = self._free[: len(batch)], self._free[len(batch) :]
        if len(batch):
            for name in Batch.COLUMNS:
                self._put(name, slots, getattr(batch, name))
        return slots

    def _put(self, name: str, slots: IntArray, values: IntArray) -> None:
        if name not in self._columns:
            if is_same(values) and self._fixed.setdefault(name, int(values[0])) == values[0]:
                return
            self._columns[name] = np.full(self._room, self._fixed.get(name, 0), np.int64)
        self._columns[name][slots] = values

    def _make_room(self, needed: int) -> None:
        if self._free.size >= needed:
            return
        size, self._room = self._room, max(2 * self._room, self._room + needed, 1024)
        for name, column in self._columns.items():
            larger = np.full(self._room, self._fixed.get(name, 0), np.int64)
            larger[:size] = column
            self._columns[name] = larger
        self._free = np.concatenate([self._free, np.arange(size, self._room)])

    def take(self, slots: IntArray) -> Batch:
        """Hand records back; their slots are free again."""
        self._free = np.concatenate([slots, self._free])
        return self.look(slots)

    def look(self, slots: IntArray) -> Batch:
        """Show records that go on waiting."""
        if not slots.size:
            return Batch.empty(self._texts)
        columns = {name: column[slots] for name, column in self._columns.items()}
        fixed = {
            n: np.broadcast_to(np.int64(v), slots.size) for n, v in self._fixed.items() if n not in columns
        }
        return Batch.of(columns | fixed, self._texts)

    def column(self, name: str) -> IntArray:
        """Give one column by slot, for a kernel to look things up in."""
        if name not in self._columns:
            return np.broadcast_to(np.int64(self._fixed.get(name, NOTHING)), self._room)
        return self._columns[name]

    def snapshot(self, slots: IntArray) -> State:
        """Give these records, numbered in this order from nought."""
        return {f"held_{name}": array for name, array in self.look(slots).arrays().items()}

    def restore(self, state: State) -> IntArray:
        """Take a snapshot's records in, in slots that are numbered in its order."""
        self.__init__(self._texts)  # type: ignore[misc]
        return self.add(Batch.of({name: state[f"held_{name}"] for name in Batch.COLUMNS}, self._texts))
