"""Who sits with whom: the cohort book, filled in order of arrival or by likeness."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from querycloak.kernels import cohort as kernel
from querycloak.log import IntArray
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

    @property
    def seats(self) -> tuple[Any, Any, Any, Any, Any, Any]:
        """Give the arrays that `kernel.release` takes."""
        return self.cohort_of, self.k, self.full, self.size, self.members, self.start

    def _meet(self, people: IntArray) -> None:
        """Make room for persons up to the highest number, and for the cohorts that they may fill."""
        known, self.people = self.people, max(self.people, int(people.max(initial=-1)) + 1)
        self.cohort_of = grown(self.cohort_of, self.people, kernel.NOWHERE)
        self.shard_of = grown(self.shard_of, self.people)
        if self.people > known:
            self.shard_of[known : self.people] = self._shard(np.arange(known, self.people))
        most = int(np.bincount(self.shard_of[: self.people], minlength=self.shards).max(initial=0))
        cohorts = (int(self.formed.max(initial=0)) + most // self.k + 2) * self.shards
        self.size, self.full, self.start = (grown(a, cohorts) for a in (self.size, self.full, self.start))
        self.members = grown(self.members, int(self.ends[0]) + self.people + self.k * self.shards)

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

    def join_the_rest(self, people: IntArray, newest: dict[int, int]) -> None:
        """Append people to the newest cohort of their shard, where there is one."""
        for person in people.tolist():
            cohort = newest.get(int(self.shard_of[person]))
            if cohort is not None:
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
        """Give (cohort, person) of every seat that is taken, cohort by cohort, in the order of seats."""
        numbers = np.flatnonzero(self.size)
        sizes = self.size[numbers]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.repeat(numbers, sizes), self.members[np.repeat(self.start[numbers], sizes) + within]

    def load(self, cohort: IntArray, person: IntArray) -> None:
        """Take over a book: full cohorts stay full, open ones stay open."""
        self._meet(person)
        highest = int(cohort.max(initial=-1)) + 1
        self.size, self.full, self.start = (grown(a, highest) for a in (self.size, self.full, self.start))
        self.members = grown(self.members, int(cohort.size) + self.k * (highest + self.shards))
        numbers, first, sizes = np.unique(cohort, return_index=True, return_counts=True)
        for number, begin, size in zip(numbers.tolist(), first.tolist(), sizes.tolist(), strict=True):
            self.start[number], self.size[number] = self.ends[0], size
            self.members[self.ends[0] : self.ends[0] + size] = person[begin : begin + size]
            self.ends[0] += max(size, self.k)
        self.cohort_of[person] = cohort
        self.full[numbers[sizes >= self.k]] = 1
        done = numbers[sizes >= self.k]
        self.formed = np.bincount(done % self.shards, minlength=self.shards).astype(np.int64)

    def snapshot(self) -> State:
        """Give the book as arrays."""
        cohort, person = self.book()
        return {"book_cohort": cohort, "book_person": person, "book_people": np.array([self.people])}

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        people = int(state["book_people"][0])
        if people:
            self._meet(np.array([people - 1]))
        self.load(state["book_cohort"], state["book_person"])


class ByArrival(Seating):
    """Seats people in the order in which they come."""

    def __init__(self, k: int, shards: int, shard_of: Callable[[IntArray], IntArray], settings: Any) -> None:
        super().__init__(k, shards, shard_of)

    def seat(self, people: IntArray, topic: IntArray) -> IntArray:
        """Give every new person the next seat of her shard."""
        self._meet(people)
        completed: IntArray = kernel.by_arrival(
            people, self.shard_of, self.k, self.shards, self.formed, self.cohort_of, self.size, self.members,
            self.start, self.ends,
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
            self.members, self.start, self.ends,
        )  # fmt: skip
        return completed

    def finish(self) -> IntArray:
        """Seat everyone who is left: those with the same favourite topics and volume side by side."""
        people = np.flatnonzero((self.cohort_of[: self.people] < 0) & (self._count[: self.people] > 0))
        count, age = self._count[people], self._clock[self.shard_of[people]] - self._born[people]
        self._rate[people] = np.log2(count / (age + count))
        share = self._profile[people] / np.maximum(count, 1)[:, None]
        favourites = np.argsort(-share, axis=1, kind="stable")[:, :3]
        order = np.lexsort((count, favourites[:, 2], favourites[:, 1], favourites[:, 0]))
        self._waiting[:] = 0
        completed: IntArray = kernel.seat_the_rest(
            people[order], self.shard_of, self.k, self.shards, VOLUME_WEIGHT, self._pool, self._entered,
            self._waiting, self._profile, self._count, self._rate, self.formed, self.cohort_of, self.size,
            self.members, self.start, self.ends,
        )  # fmt: skip
        return completed

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
