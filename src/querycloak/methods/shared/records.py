"""Records that a method holds: whole, by window of time, or in numbered slots."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numba import njit

from querycloak.dictionary import Dictionaries
from querycloak.errors import ParameterError
from querycloak.formatting import plural
from querycloak.kernels.arrays import grown
from querycloak.log import MISSING, Batch, Flags, IntArray, is_same
from querycloak.methods.shared.sessions import calendar
from querycloak.protector import Protector, State
from querycloak.settings import setting

#: Declares the least number of users who must share something.
users_setting = partial(setting, at_least=2, stronger="larger")


def require_users(method: str, k: int, people: int, hint: str = "the largest possible k is {people}") -> None:
    """Raise ParameterError if the log has fewer than k users; the hint is given if it has several."""
    if people < k:
        few = f"{method}: `k` is {k}, but the log has only {plural(people, 'user')}"
        raise ParameterError(few, hint=hint.format(people=people) if people > 1 else "")


class RecordBuffer:
    """Records in the order in which they came. Adding some costs as much as they are, however many are held.

    Cells that must stay empty are removed, so that no method can go by what it may not show.
    """

    def __init__(self, texts: Dictionaries) -> None:
        self._texts = texts
        self._parts: list[Batch] = []

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def add(self, batch: Batch) -> None:
        """Hold records."""
        if len(batch):
            self._parts.append(batch.without_blanks())

    def records(self) -> Batch:
        """Return all held records as one batch."""
        while len(self._parts) > 1:  # halves the number of parts, so that each record is copied few times
            parts = self._parts
            pairs = [a + b for a, b in zip(parts[::2], parts[1::2], strict=False)]
            self._parts = [*pairs, *parts[2 * len(pairs) :]]
        return self._parts[0] if self._parts else Batch.empty(self._texts)

    def take(self) -> Batch:
        """Return all held records, and hold none."""
        found, self._parts = self.records(), []
        return found

    def keep(self, chosen: Flags) -> None:
        """Hold only the chosen ones of the held records."""
        self._parts = [self.records()[chosen]]

    def snapshot(self) -> State:
        """Return the held records as arrays."""
        return {f"held_{name}": np.asarray(array) for name, array in self.records().arrays().items()}

    def restore(self, state: State) -> None:
        """Continue from a snapshot."""
        self._parts = [Batch.of({name: state[f"held_{name}"] for name in Batch.COLUMNS}, self._texts)]


class RecordProtector(Protector):
    """Method that holds whole records in `_held`."""

    def __init__(self, settings: Any, key: bytes, texts: Dictionaries) -> None:
        super().__init__(settings, key, texts)
        self._held = RecordBuffer(texts)

    def erase(self, users: IntArray, rows: IntArray) -> None:
        """Drop the held records of these users: those of others are protected without them."""
        self._held.keep(self.drop_erased(self._held.records(), users, rows))

    def snapshot(self) -> State:
        """Return the held records."""
        return self._held.snapshot() | self._snapshot_dropped()

    def restore(self, state: State) -> None:
        """Continue from a snapshot."""
        self._held.restore(state)
        self._restore_dropped(state)


class WindowProtector(RecordProtector):
    """Method that protects each window of time, a `day` or a `week`, by itself, as soon as it is over.

    A window is over when a record of a later one comes, or the watermark has passed its end. Records that
    come after that are dropped. With the span `none` the whole log is one window.
    """

    late: ClassVar[str]  # why records of a window that is over are dropped
    _span: str

    def __init__(self, settings: Any, key: bytes, texts: Dictionaries) -> None:
        super().__init__(settings, key, texts)
        self._open: int | None = None  # the window that records are gathered for

    @abstractmethod
    def _release(self, held: Batch, moment: int) -> Batch:
        """Protect the records of a window; return those that may be shown, released at this moment."""

    def push(self, batch: Batch) -> Batch:
        """Hold records; release each window that is over."""
        released = Batch.empty(self.texts)
        if self._span == "none" or not len(batch):
            self._held.add(batch)
            return released
        window, start = calendar(batch.time, self._span), 0
        if self._open is None:
            self._open = int(window[0])
        highest = np.maximum.accumulate(np.append(self._open, window))
        for place in [*np.flatnonzero(np.diff(highest)).tolist(), len(batch)]:
            late = window[start:place] < self._open
            self.drop(batch.row[start:place][late], self.late)
            self._held.add(batch[start:place][~late])
            if place < len(batch):
                released += self._release(self._held.take(), int(batch.seq[place]))
                self._open, start = int(window[place]), place
        return released

    def advance(self, watermark: int) -> Batch:
        """Release the window if it ends before the watermark; later records of it come late."""
        if self._open is None or self._open >= calendar(np.array([watermark]), self._span)[0]:
            return Batch.empty(self.texts)
        self._open = int(calendar(np.array([watermark]), self._span)[0])
        return self.close()

    def close(self) -> Batch:
        """Release what is held and may be shown."""
        held = self._held.take()
        return self._release(held, int(held.seq.max(initial=0)))

    def snapshot(self) -> State:
        """Return the held records and the open window."""
        return super().snapshot() | {"open": np.array([] if self._open is None else [self._open], np.int64)}

    def restore(self, state: State) -> None:
        """Continue from a snapshot."""
        super().restore(state)
        self._open = int(state["open"][0]) if state["open"].size else None


class SlotBuffer:
    """Records in numbered slots that are used again: a kernel knows each record by the number of its slot."""

    def __init__(self, texts: Dictionaries) -> None:
        self._texts = texts
        self._room = 0
        self._columns: dict[str, IntArray] = {}
        self._fixed: dict[str, int] = {}  # columns that have had one value so far take no room
        self._free = np.empty(0, np.int64)  # a stack of free slots, `_left` of them
        self._left = 0

    def __len__(self) -> int:
        return self._room - self._left

    def add(self, batch: Batch) -> IntArray:
        """Hold records; return their slots."""
        self._make_room(len(batch))
        slots = self._free[self._left - len(batch) : self._left][::-1].copy()
        self._left -= len(batch)
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
        if self._left >= needed:
            return
        size, self._room = self._room, max(2 * self._room, self._room + needed, 1024)
        for name, column in self._columns.items():
            self._columns[name] = grown(column, self._room, self._fixed.get(name, 0))
        self._free = grown(self._free, self._room)
        added = np.arange(self._room - 1, size - 1, -1)
        self._free[self._left : self._left + added.size] = added
        self._left += added.size

    def pop(self, slots: IntArray) -> Batch:
        """Return records and free their slots."""
        self._free[self._left : self._left + slots.size] = slots
        self._left += slots.size
        return self.peek(slots)

    def peek(self, slots: IntArray) -> Batch:
        """Return records that stay held."""
        if not slots.size:
            return Batch.empty(self._texts)
        columns = {name: column[slots] for name, column in self._columns.items()}
        fixed = {name: np.broadcast_to(np.int64(v), slots.size) for name, v in self._fixed.items()}
        return Batch.of(fixed | columns, self._texts)

    def slots(self) -> IntArray:
        """Return the slots in use, by the row of their record."""
        used = np.ones(self._room, np.bool_)
        used[self._free[: self._left]] = False
        slots = np.flatnonzero(used)
        return slots[np.argsort(self.peek(slots).row)]

    def snapshot(self, slots: IntArray) -> State:
        """Return these records as arrays, in this order."""
        return {f"held_{name}": array for name, array in self.peek(slots).arrays().items()}

    def restore(self, state: State) -> IntArray:
        """Hold a snapshot's records; return their slots, numbered in its order."""
        self.__init__(self._texts)  # type: ignore[misc]
        return self.add(Batch.of({name: state[f"held_{name}"] for name in Batch.COLUMNS}, self._texts))


class ChainedSlots(SlotBuffer):
    """Records in slots that are chained by a key, such as their user: a kernel finds all records of a key.

    `last[key]` is the slot of a key's newest record, `before[slot]` that of the record before it; -1 is none.
    """

    def __init__(self, texts: Dictionaries) -> None:
        super().__init__(texts)
        self.last, self.before = np.empty(0, np.int64), np.empty(0, np.int64)

    def reserve(self, keys: int) -> None:
        """Make room for the chains of keys below a number."""
        self.last = grown(self.last, keys, MISSING)
        self.before = grown(self.before, self._room, MISSING)

    def chain(self, key: IntArray, slots: IntArray) -> None:
        """Chain these records to their keys, in this order, and no others."""
        self.last[:] = MISSING
        _chain(key, slots, self.last, self.before)

    def keep(self, chosen: Flags, key: IntArray) -> None:
        """Hold only the chosen ones of the records, which come by row, as their keys do."""
        slots = self.slots()
        self.pop(slots[~chosen])
        self.chain(key[chosen], slots[chosen])

    def pop_all(self) -> Batch:
        """Return all records, by row, and hold none."""
        self.last[:] = MISSING
        return self.pop(self.slots())


@njit(cache=True, nogil=True)
def _chain(key, slot, last, before):  # type: ignore[no-untyped-def]
    for i in range(key.size):
        before[slot[i]] = last[key[i]]
        last[key[i]] = slot[i]
