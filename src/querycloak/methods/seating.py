"""Who sits with whom: the cohort book, filled in order of arrival or by likeness."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from querycloak.kernels import cohort as kernel
from querycloak.log import IntArray
from querycloak.methods.vacancies import Vacancies
from querycloak.protector import State

#: The sixteen topics of the default taxonomy; those of another one share the numbers behind them.
_NAMES = (
    "Adult", "Arts", "Business", "Computers", "Games", "Health", "Home", "Kids", "News", "Recreation",
    "Reference", "Regional", "Science", "Shopping", "Society", "Sports",
)  # fmt: skip
TOPICS = 48
VOLUME_WEIGHT = 0.5  # how much of unlikeness is a difference of volume


def grown(array: Any, size: int, fill: int = 0) -> Any:
    """Give an array that has room for `size` entries, doubling so that growth stays cheap."""
    if len(array) >= size:
        return array
    larger = np.full((max(size, 2 * len(array), 64), *array.shape[1:]), fill, array.dtype)
    larger[: len(array)] = array
    return larger


def topic_number(name: str | None) -> int:
    """Number a topic by its name alone: 0 for none, then our own, then others by a hash of their names."""
    if name is None:
        return 0
    if name in _NAMES:
        return 1 + _NAMES.index(name)
    spare = TOPICS - 1 - len(_NAMES)
    return (
        1
        + len(_NAMES)
        + int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") % spare
    )


class Seating(ABC):
    """The book: for each person her cohort, for each cohort its members in the order of their seats."""

    def __init__(self, k: int, shards: int, shard_of: Callable[[IntArray], IntArray]) -> None:
        self.k, self.shards, self._shard = k, shards, shard_of
        self.cohort_of = np.empty(0, np.int64)
        self.shard_of = np.empty(0, np.int64)
        self.people = 0
        self.formed = np.zeros(shards, np.int64)
        self.size = np.empty(0, np.int64)
        self.full = np.empty(0, np.int64)
        self.start = np.empty(0, np.int64)
        self.members = np.empty(0, np.int64)
        self.ends = np.zeros(1, np.int64)
        #: By cohort: seats whose people were erased, and how often it was whole again.
        self.missing = np.empty(0, np.int64)
        self.generation = np.empty(0, np.int64)
        self._vacancies = Vacancies(shards)

    @property
    def gaps(self) -> tuple[Any, ...]:
        """Give what kernels know of empty seats."""
        return *self._vacancies.arrays, self.missing, self.generation

    @property
    def seats(self) -> tuple[Any, Any, Any, Any, Any, Any]:
        """Give the arrays that `kernel.release` takes."""
        return self.cohort_of, self.k, self.full, self.size, self.members, self.start

    def _meet(self, people: IntArray) -> None:
        """Make room for persons up to the highest number, and for the cohorts that they may fill."""
        known, self.people = self.people, max(self.people, int(people.max(initial=-1)) + 1)
        self.cohort_of = grown(self.cohort_of, self.people, kernel.NOWHERE)
        self.shard_of = grown(self.shard_of, self.people)
        if self.people == known:
            return
        self.shard_of[known : self.people] = self._shard(np.arange(known, self.people))
        most = int(np.bincount(self.shard_of[: self.people], minlength=self.shards).max(initial=0))
        cohorts = (int(self.formed.max(initial=0)) + most // self.k + 2) * self.shards
        self._make_room(cohorts)
        self.members = grown(self.members, int(self.ends[0]) + self.people + self.k * self.shards)

    def _make_room(self, cohorts: int) -> None:
        for name in ("size", "full", "start", "missing", "generation"):
            setattr(self, name, grown(getattr(self, name), cohorts))

    @abstractmethod
    def seat(self, people: IntArray, topic: IntArray) -> IntArray:
        """Seat whom the arrivals allow; give for each arrival the cohort that it completed, or -1."""

    def finish(self) -> IntArray:
        """At the end seat whom one still can; give the cohorts that filled up."""
        return np.empty(0, np.int64)

    def members_of(self, cohort: int) -> IntArray:
        """Give the people of a cohort."""
        start = int(self.start[cohort])
        people: IntArray = self.members[start : start + int(self.size[cohort])]
        return people

    def erase(self, people: IntArray) -> IntArray:
        """Empty the seats of people who never return; give the cohorts that hold until they are filled."""
        seats = []
        for person in people[people < self.people].tolist():
            cohort = int(self.cohort_of[person])
            if cohort < 0:
                continue
            if self.size[cohort] < self.k:
                self._stand_up(person)
                continue
            place = int(np.flatnonzero(self.members_of(cohort) == person)[0])
            self.members[self.start[cohort] + place] = kernel.NOBODY
            self.cohort_of[person], self.full[cohort] = kernel.NOWHERE, kernel.BROKEN
            self.missing[cohort] += 1
            seats.append((cohort, place))
        self._vacancies.add(np.array(seats, np.int64).reshape(-1, 2))
        return np.unique([cohort for cohort, _ in seats]).astype(np.int64)

    def _stand_up(self, person: int) -> None:
        """Free the seat of somebody in a cohort from which nothing has left: those behind her move up."""
        cohort = int(self.cohort_of[person])
        others = self.members_of(cohort)
        others = others[others != person]
        self.size[cohort] = others.size
        self.members[self.start[cohort] : self.start[cohort] + others.size] = others
        self.cohort_of[person] = kernel.NOWHERE

    def fill(self, people: IntArray) -> IntArray:
        """At the end let people take the empty seats of their shards; give what is whole again."""
        whole = []
        for person in people.tolist():
            shard = int(self.shard_of[person])
            cohort = self._vacancies.next_of(shard)
            if cohort is not None and self._fits(person, cohort):
                if self.cohort_of[person] >= 0:
                    self._stand_up(person)
                whole.append(
                    kernel.fill_gap(person, shard, self.cohort_of, self.members, self.start, self.gaps)
                )
        return np.array([cohort for cohort in whole if cohort >= 0], np.int64)

    def _fits(self, person: int, cohort: int) -> bool:
        """Say whether a person may take a seat of a cohort that others have formed."""
        return True

    def join_the_rest(self, people: IntArray, newest: dict[int, int]) -> None:
        """Append people to the newest cohort of their shard, where there is one."""
        for person in people.tolist():
            cohort = newest.get(int(self.shard_of[person]))
            if cohort is not None:
                if self.cohort_of[person] >= 0:
                    self._stand_up(person)
                self._append(person, cohort)

    def _append(self, person: int, cohort: int) -> None:
        """Enlarge a cohort by one seat: move it to the end of the seats."""
        size, start, end = int(self.size[cohort]), int(self.start[cohort]), int(self.ends[0])
        self.members = grown(self.members, end + size + 1)
        self.members[end : end + size] = self.members[start : start + size]
        self.members[end + size] = person
        self.start[cohort], self.size[cohort] = end, size + 1
        self.ends[0] = end + size + 1
        self.cohort_of[person] = cohort

    def cohorts(self) -> IntArray:
        """Give the numbers of the full cohorts."""
        return np.flatnonzero(self.full)

    def book(self) -> tuple[IntArray, IntArray]:
        """Give (cohort, person) of every seat, cohort by cohort, in the order of seats; nobody is -1."""
        numbers = np.flatnonzero(self.size)
        sizes = self.size[numbers]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.repeat(numbers, sizes), self.members[np.repeat(self.start[numbers], sizes) + within]

    def load(self, cohort: IntArray, person: IntArray) -> None:
        """Take over a book: full cohorts stay full, open ones stay open, empty seats stay empty."""
        self._meet(person)
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
        self._empty(numbers, first, cohort, person)
        self.formed = np.bincount(done % self.shards, minlength=self.shards).astype(np.int64)

    def _empty(self, numbers: IntArray, first: IntArray, cohort: IntArray, person: IntArray) -> None:
        """Note which seats of a book are empty: those of the oldest cohorts count as the oldest."""
        nobody = np.flatnonzero(person == kernel.NOBODY)
        place = nobody - first[np.searchsorted(numbers, cohort[nobody])]
        self._vacancies.replace(np.column_stack([cohort[nobody], place]))
        np.add.at(self.missing, cohort[nobody], 1)
        self.full[cohort[nobody]] = kernel.BROKEN

    def snapshot(self) -> State:
        """Give the book as arrays."""
        cohort, person = self.book()
        changed = np.flatnonzero(self.generation)
        return {
            "book_cohort": cohort,
            "book_person": person,
            "book_people": np.array([self.people]),
            "book_empty": self._vacancies.listed(),
            "book_generations": np.column_stack([changed, self.generation[changed]]),
        }

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        people = int(state["book_people"][0])
        if people:
            self._meet(np.array([people - 1]))
        self.load(state["book_cohort"], state["book_person"])
        self._vacancies.replace(state["book_empty"])  # in order of age, which a book does not tell
        changed, generation = state["book_generations"].T
        self.generation[changed] = generation


class ByArrival(Seating):
    """Seats people in the order in which they come."""

    def __init__(self, k: int, shards: int, shard_of: Callable[[IntArray], IntArray], settings: Any) -> None:
        super().__init__(k, shards, shard_of)

    def seat(self, people: IntArray, topic: IntArray) -> IntArray:
        """Give every new person the next seat of her shard."""
        self._meet(people)
        completed: IntArray = kernel.by_arrival(
            people, self.shard_of, self.k, self.shards, self.formed, self.cohort_of, self.size, self.members,
            self.start, self.ends, self.gaps,
        )  # fmt: skip
        return completed


class ByLikeness(Seating):
    """Lets people wait until a few searches tell what they are like, then seats like with like."""

    def __init__(self, k: int, shards: int, shard_of: Callable[[IntArray], IntArray], settings: Any) -> None:
        super().__init__(k, shards, shard_of)
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

    def _meet(self, people: IntArray) -> None:
        super()._meet(people)
        for name in ("_profile", "_count", "_born", "_pooled", "_rate"):
            setattr(self, name, grown(getattr(self, name), self.people))

    def seat(self, people: IntArray, topic: IntArray) -> IntArray:
        """Note what people are like; seat those who have waited long enough."""
        self._meet(people)
        completed: IntArray = kernel.by_likeness(
            people, topic, self.shard_of, self.k, self.shards, self._first,
            self._patience, VOLUME_WEIGHT, self._clock, self._born, self._pooled, self._pool, self._entered,
            self._waiting, self._profile, self._count, self._rate, self.formed, self.cohort_of, self.size,
            self.members, self.start, self.ends, self.gaps,
        )  # fmt: skip
        return completed

    def _fits(self, person: int, cohort: int) -> bool:
        return bool(kernel.fits(person, cohort, self.size, self.members, self.start, self._profile))

    def erase(self, people: IntArray) -> IntArray:
        """Empty their seats, or their places in the pool; what they are like is forgotten."""
        broken = super().erase(people)
        people = people[people < self.people]
        for shard in range(self.shards):
            n = int(self._waiting[shard])
            stays = np.flatnonzero(~np.isin(self._pool[shard, :n], people))
            for line in (self._pool[shard], self._entered[shard]):
                line[: stays.size] = line[stays]
                line[stays.size :] = 0
            self._waiting[shard] = stays.size
        for name in ("_profile", "_count", "_born", "_pooled", "_rate"):
            getattr(self, name)[people] = 0
        return broken

    def _unseated(self) -> IntArray:
        return np.flatnonzero((self.cohort_of[: self.people] < 0) & (self._count[: self.people] > 0))

    def finish(self) -> IntArray:
        """Fill empty seats, then seat everyone who is left: those alike in topics and volume side by side."""
        people = self._unseated()
        whole = self.fill(people[np.argsort(self._born[people], kind="stable")])
        people = self._unseated()
        count, age = self._count[people], self._clock[self.shard_of[people]] - self._born[people]
        self._rate[people] = np.log2(count / (age + count))
        share = self._profile[people] / np.maximum(count, 1)[:, None]
        favourites = np.argsort(-share, axis=1, kind="stable")[:, :3]
        born = self._born[people]  # decides between those who are alike: their codes may not
        order = np.lexsort((born, count, favourites[:, 2], favourites[:, 1], favourites[:, 0]))
        self._waiting[:] = 0
        completed: IntArray = kernel.seat_the_rest(
            people[order], self.shard_of, self.k, self.shards, VOLUME_WEIGHT, self._pool, self._entered,
            self._waiting, self._profile, self._count, self._rate, self.formed, self.cohort_of, self.size,
            self.members, self.start, self.ends,
        )  # fmt: skip
        return np.concatenate([whole, completed])

    def snapshot(self) -> State:
        """Give the book and what is known of those who wait."""
        n = self.people
        own = {
            f"likeness{name}": getattr(self, name)[:n]
            for name in ("_profile", "_count", "_born", "_pooled", "_rate")
        }
        every = {
            f"likeness{name}": getattr(self, name) for name in ("_clock", "_pool", "_entered", "_waiting")
        }
        return super().snapshot() | {name: array.copy() for name, array in (own | every).items()}

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        super().restore(state)
        for name in ("_profile", "_count", "_born", "_pooled", "_rate"):
            getattr(self, name)[: self.people] = state[f"likeness{name}"]
        for name in ("_clock", "_pool", "_entered", "_waiting"):
            setattr(self, name, state[f"likeness{name}"].copy())
