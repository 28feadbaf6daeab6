"""Assignment of users to cohorts, in order of arrival or by similarity of their searches."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from querycloak.dictionary import Dictionary
from querycloak.errors import Refused
from querycloak.kernels.arrays import grown, spans
from querycloak.log import IntArray
from querycloak.methods.cohort import kernel
from querycloak.protector import State

#: The sixteen topics of the default taxonomy; those of another one share the numbers behind them.
_NAMES = (
    "Adult", "Arts", "Business", "Computers", "Games", "Health", "Home", "Kids", "News", "Recreation",
    "Reference", "Regional", "Science", "Shopping", "Society", "Sports",
)  # fmt: skip
TOPICS = 48


def topic_number(name: str | None) -> int:
    """Number a topic by its name alone: 0 for none, then our own, then others by a hash of their names."""
    if name is None:
        return 0
    if name in _NAMES:
        return 1 + _NAMES.index(name)
    spare = TOPICS - 1 - len(_NAMES)
    number = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")
    return 1 + len(_NAMES) + number % spare


class FreeSlots:
    """Lists (cohort, place) of every free slot, shard after shard, those of a shard in order of age."""

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self.replace(np.empty((0, 2), np.int64))

    @property
    def arrays(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return the arrays that kernels take: slots, and for each shard its next one and their end."""
        return self._slots, self._next, self._end

    def replace(self, slots: IntArray) -> None:
        """Take these slots over in the place of all others, the oldest first."""
        shard = slots[:, 0] % self._shards
        self._slots = slots[np.argsort(shard, kind="stable")]
        self._end = np.cumsum(np.bincount(shard, minlength=self._shards)).astype(np.int64)
        self._next = np.concatenate([np.zeros(1, np.int64), self._end[:-1]])

    def add(self, slots: IntArray) -> None:
        """Note that these slots are free now."""
        self.replace(np.concatenate([self.listed(), slots]))

    def listed(self) -> IntArray:
        """Return the slots that are still free."""
        spans = zip(self._next.tolist(), self._end.tolist(), strict=True)
        return np.concatenate([self._slots[:0], *(self._slots[start:end] for start, end in spans)])

    def next_of(self, shard: int) -> int | None:
        """Return the cohort of a shard's oldest free slot, if it has one."""
        here = int(self._next[shard])
        return int(self._slots[here, 0]) if here < self._end[shard] else None


class Assignment(ABC):
    """The cohort of each user, and the members of each cohort in the order of their slots."""

    def __init__(self, settings: Any, shard_of: Callable[[IntArray], IntArray]) -> None:
        self.k, self.shards, self._shard = settings.k, settings.shards, shard_of
        self.cohort_of = np.empty(0, np.int64)
        self.shard_of = np.empty(0, np.int64)
        self.people = 0
        self._in_shard = np.zeros(self.shards, np.int64)  # users that were met, by shard
        self.formed = np.zeros(self.shards, np.int64)
        self.size = np.empty(0, np.int64)
        self.full = np.empty(0, np.int64)
        self.start = np.empty(0, np.int64)
        self.members = np.empty(0, np.int64)
        self.ends = np.zeros(1, np.int64)
        #: By cohort: slots whose users were erased, and how often it was complete again.
        self.missing = np.empty(0, np.int64)
        self.generation = np.empty(0, np.int64)
        self._free_slots = FreeSlots(self.shards)

    @property
    def arrays(self) -> kernel.Cohorts:
        """Return the arrays that kernels take."""
        return kernel.Cohorts(
            self.k, self.shards, self.shard_of, self.cohort_of, self.formed, self.size, self.start,
            self.members, self.ends, *self._free_slots.arrays, self.missing, self.generation,
        )  # fmt: skip

    def _reserve(self, people: IntArray) -> None:
        """Make room for users up to the highest number, and for the cohorts that they may fill."""
        known, self.people = self.people, max(self.people, int(people.max(initial=-1)) + 1)
        self.cohort_of = grown(self.cohort_of, self.people, kernel.UNASSIGNED)
        self.shard_of = grown(self.shard_of, self.people)
        if self.people == known:
            return
        self.shard_of[known : self.people] = self._shard(np.arange(known, self.people))
        self._in_shard += np.bincount(self.shard_of[known : self.people], minlength=self.shards)
        most = int(self._in_shard.max(initial=0))
        cohorts = (int(self.formed.max(initial=0)) + most // self.k + 2) * self.shards
        self._make_room(cohorts)
        self.members = grown(self.members, int(self.ends[0]) + self.people + self.k * self.shards)

    def _make_room(self, cohorts: int) -> None:
        for name in ("size", "full", "start", "missing", "generation"):
            setattr(self, name, grown(getattr(self, name), cohorts))

    @abstractmethod
    def assign(self, people: IntArray, topic: IntArray) -> IntArray:
        """Assign whom the arrivals allow; return the cohort that each arrival completed, or -1."""

    def assign_remaining(self) -> IntArray:
        """Assign at the end whom one still can; return the cohorts that filled up."""
        return np.empty(0, np.int64)

    def members_of(self, cohort: int) -> IntArray:
        """Return the users of a cohort."""
        start = int(self.start[cohort])
        people: IntArray = self.members[start : start + int(self.size[cohort])]
        return people

    def erase(self, people: IntArray) -> IntArray:
        """Free the slots of erased users; return the cohorts that hold until these are filled."""
        slots = []
        for person in people[people < self.people].tolist():
            cohort = int(self.cohort_of[person])
            if cohort < 0:
                continue
            if self.size[cohort] < self.k:
                self._leave_open_cohort(person)
                continue
            place = int(np.flatnonzero(self.members_of(cohort) == person)[0])
            self.members[self.start[cohort] + place] = kernel.EMPTY_SLOT
            self.cohort_of[person], self.full[cohort] = kernel.UNASSIGNED, kernel.INCOMPLETE
            self.missing[cohort] += 1
            slots.append((cohort, place))
        self._free_slots.add(np.array(slots, np.int64).reshape(-1, 2))
        return np.unique([cohort for cohort, _ in slots]).astype(np.int64)

    def _leave_open_cohort(self, person: int) -> None:
        """Remove a user from a cohort that has released nothing: later members move up."""
        cohort = int(self.cohort_of[person])
        others = self.members_of(cohort)
        others = others[others != person]
        self.size[cohort] = others.size
        self.members[self.start[cohort] : self.start[cohort] + others.size] = others
        self.cohort_of[person] = kernel.UNASSIGNED

    def fill_free_slots(self, people: IntArray) -> IntArray:
        """Assign users to free slots of their shards; return the cohorts that are complete again."""
        whole = []
        for person in people.tolist():
            shard = int(self.shard_of[person])
            cohort = self._free_slots.next_of(shard)
            if cohort is not None and self._fits(person, cohort):
                if self.cohort_of[person] >= 0:
                    self._leave_open_cohort(person)
                whole.append(kernel.fill_free_slot(person, shard, self.arrays))
        return np.array([cohort for cohort in whole if cohort >= 0], np.int64)

    def _fits(self, person: int, cohort: int) -> bool:
        """Whether a user may take a slot of a cohort that others have formed."""
        return True

    def append_to_last_cohort(self, people: IntArray, newest: dict[int, int]) -> None:
        """Append users to the newest cohort of their shard, where there is one."""
        for person in people.tolist():
            cohort = newest.get(int(self.shard_of[person]))
            if cohort is not None:
                if self.cohort_of[person] >= 0:
                    self._leave_open_cohort(person)
                self._append(person, cohort)

    def _append(self, person: int, cohort: int) -> None:
        """Enlarge a cohort by one slot: move it to the end of the slots."""
        size, start, end = int(self.size[cohort]), int(self.start[cohort]), int(self.ends[0])
        self.members = grown(self.members, end + size + 1)
        self.members[end : end + size] = self.members[start : start + size]
        self.members[end + size] = person
        self.start[cohort], self.size[cohort] = end, size + 1
        self.ends[0] = end + size + 1
        self.cohort_of[person] = cohort

    def slots(self) -> tuple[IntArray, IntArray]:
        """Return (cohort, user) of every slot, cohort by cohort, in the order of slots; -1 is a free one."""
        numbers = np.flatnonzero(self.size)
        sizes = self.size[numbers]
        return np.repeat(numbers, sizes), self.members[spans(self.start[numbers], sizes)]

    def load(self, cohort: IntArray, person: IntArray) -> None:
        """Load stored assignments: full cohorts stay full, open ones open, free slots free."""
        self._reserve(person)
        highest = int(cohort.max(initial=-1)) + 1
        self._make_room(highest)
        self.members = grown(self.members, int(cohort.size) + self.k * (highest + self.shards))
        numbers, first, sizes = np.unique(cohort, return_index=True, return_counts=True)
        for number, begin, size in zip(numbers.tolist(), first.tolist(), sizes.tolist(), strict=True):
            self.start[number], self.size[number] = self.ends[0], size
            self.members[self.ends[0] : self.ends[0] + size] = person[begin : begin + size]
            self.ends[0] += max(size, self.k)
        self.cohort_of[person[person >= 0]] = cohort[person >= 0]
        done = numbers[sizes >= self.k]
        self.full[done] = 1
        self.formed = np.bincount(done % self.shards, minlength=self.shards).astype(np.int64)
        nobody = np.flatnonzero(person == kernel.EMPTY_SLOT)  # those of the oldest cohorts count as oldest
        place = nobody - first[np.searchsorted(numbers, cohort[nobody])]
        self._free_slots.replace(np.column_stack([cohort[nobody], place]))
        np.add.at(self.missing, cohort[nobody], 1)
        self.full[cohort[nobody]] = kernel.INCOMPLETE

    def snapshot(self) -> State:
        """Return the assignments as arrays."""
        cohort, person = self.slots()
        changed = np.flatnonzero(self.generation)
        return {
            "book_cohort": cohort,
            "book_person": person,
            "book_people": np.array([self.people]),
            "book_empty": self._free_slots.listed(),
            "book_generations": np.column_stack([changed, self.generation[changed]]),
        }

    def restore(self, state: State) -> None:
        """Continue from a snapshot."""
        people = int(state["book_people"][0])
        if people:
            self._reserve(np.array([people - 1]))
        self.load(state["book_cohort"], state["book_person"])
        self._free_slots.replace(state["book_empty"])  # in order of age, which stored assignments do not hold
        changed, generation = state["book_generations"].T
        self.generation[changed] = generation


class CohortState:
    """Cohorts of a source over its releases: a table with the cohort and the user of each slot.

    A slot whose user was erased is listed without a user, so that the next release fills it first.
    """

    name = "cohort"

    def __init__(self, assignment: Assignment, users: Dictionary) -> None:
        self._assignment, self._users = assignment, users

    def load(self, table: pl.DataFrame | None) -> IntArray:
        """Continue with the cohorts of earlier releases; return their users."""
        if table is None:
            raise Refused("the cohorts of earlier releases of this source are not here")
        people = self._users.encode(table["user"])
        self._assignment.load(table["cohort"].to_numpy(), people)
        return people[people >= 0]

    def save(self) -> pl.DataFrame:
        """Return the cohort and the user of each slot. The table holds user ids: protect it like the log."""
        cohort, person = self._assignment.slots()
        return pl.DataFrame({"cohort": cohort, "user": self._users.decode(person)})

    @staticmethod
    def merge(tables: list[pl.DataFrame], loaded: pl.DataFrame | None = None) -> pl.DataFrame:
        """Combine the tables of workers that loaded the same one: at most one of them changes a cohort.

        A cohort stays as loaded unless a worker has other slots for it, or none because its users left.
        """
        before = _by_cohort([] if loaded is None else [loaded])
        after = _by_cohort(tables)
        changed = after.join(before, on=["cohort", "user"], how="anti", nulls_equal=True)
        listed = after.group_by("cohort").len().filter(pl.col("len") == len(tables))
        same = before.join(changed, on="cohort", how="anti").join(listed, on="cohort", how="semi")
        return pl.concat([same, changed]).sort("cohort").explode("user")


def _by_cohort(tables: list[pl.DataFrame]) -> pl.DataFrame:
    """Return the users of each cohort, in the order of slots, table by table."""
    empty = pl.DataFrame(schema={"cohort": pl.Int64, "user": pl.List(pl.String)})
    return pl.concat([empty, *(table.group_by("cohort").agg("user") for table in tables)])


class ArrivalAssignment(Assignment):
    """Assigns users in the order in which they arrive."""

    def assign(self, people: IntArray, topic: IntArray) -> IntArray:
        """Assign every new user to the next slot of the shard."""
        self._reserve(people)
        completed: IntArray = kernel.by_arrival(people, self.arrays)
        return completed


class SimilarityAssignment(Assignment):
    """Assigns users to cohorts of similar users, once a few searches show their topics."""

    #: Arrays by user, and others, as a snapshot names them after `likeness`.
    _by_user = ("_profile", "_count", "_born", "_pooled", "_rate")
    _others = ("_clock", "_pool", "_entered", "_waiting")

    def __init__(self, settings: Any, shard_of: Callable[[IntArray], IntArray]) -> None:
        super().__init__(settings, shard_of)
        k, shards = settings.k, settings.shards
        self._first, self._patience = settings.first, settings.patience
        self._profile = np.empty((0, TOPICS), np.int32)
        self._count = np.empty(0, np.int64)
        self._born = np.empty(0, np.int64)
        self._pooled = np.empty(0, np.int64)
        self._rate = np.empty(0, np.float64)
        self._clock = np.zeros(shards, np.int64)
        self._pool = np.zeros((shards, settings.pool * k), np.int64)
        self._entered = np.zeros((shards, settings.pool * k), np.int64)
        self._waiting = np.zeros(shards, np.int64)

    def _reserve(self, people: IntArray) -> None:
        super()._reserve(people)
        for name in self._by_user:
            setattr(self, name, grown(getattr(self, name), self.people))

    @property
    def _pool_arrays(self) -> kernel.Pool:
        return kernel.Pool(
            self._first, self._patience, self._pool, self._entered, self._waiting, self._clock, self._profile,
            self._count, self._rate, self._born, self._pooled,
        )  # fmt: skip

    def assign(self, people: IntArray, topic: IntArray) -> IntArray:
        """Count the topics of users; assign those who have waited long enough."""
        self._reserve(people)
        completed: IntArray = kernel.by_similarity(people, topic, self.arrays, self._pool_arrays)
        return completed

    def _fits(self, person: int, cohort: int) -> bool:
        return bool(kernel.fits(person, cohort, self.arrays, self._profile))

    def erase(self, people: IntArray) -> IntArray:
        """Free their slots, or their places in the pool, and drop their profiles."""
        broken = super().erase(people)
        people = people[people < self.people]
        for shard in range(self.shards):
            n = int(self._waiting[shard])
            stays = np.flatnonzero(~np.isin(self._pool[shard, :n], people))
            for line in (self._pool[shard], self._entered[shard]):
                line[: stays.size] = line[stays]
                line[stays.size :] = 0
            self._waiting[shard] = stays.size
        for name in self._by_user:
            getattr(self, name)[people] = 0
        return broken

    def _unassigned(self) -> IntArray:
        return np.flatnonzero((self.cohort_of[: self.people] < 0) & (self._count[: self.people] > 0))

    def assign_remaining(self) -> IntArray:
        """Fill free slots, then assign everyone who is left by similar topics and volume."""
        people = self._unassigned()
        whole = self.fill_free_slots(people[np.argsort(self._born[people], kind="stable")])
        people = self._unassigned()
        count, age = self._count[people], self._clock[self.shard_of[people]] - self._born[people]
        self._rate[people] = np.log2(count / (age + count))
        share = self._profile[people] / np.maximum(count, 1)[:, None]
        favourites = np.argsort(-share, axis=1, kind="stable")[:, :3]
        born = self._born[people]  # decides between those who are alike: their codes may not
        order = np.lexsort((born, count, favourites[:, 2], favourites[:, 1], favourites[:, 0]))
        self._waiting[:] = 0
        completed: IntArray = kernel.assign_the_rest(people[order], self.arrays, self._pool_arrays)
        return np.concatenate([whole, completed])

    def snapshot(self) -> State:
        """Return the assignments and the profiles of users who wait."""
        own = {f"likeness{name}": getattr(self, name)[: self.people].copy() for name in self._by_user}
        others = {f"likeness{name}": getattr(self, name).copy() for name in self._others}
        return super().snapshot() | own | others

    def restore(self, state: State) -> None:
        """Continue from a snapshot."""
        super().restore(state)
        for name in self._by_user:
            getattr(self, name)[: self.people] = state[f"likeness{name}"]
        for name in self._others:
            setattr(self, name, state[f"likeness{name}"].copy())
