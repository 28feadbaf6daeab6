"""Cohorts by arrival on plain lists; the seat of somebody erased is empty until somebody new comes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.reference import naive


@dataclass
class NaiveCohort:
    """Seats by shard; `None` is a seat whose user was erased. A record is known by its number."""

    k: int
    shard_of: Callable[[int], int]
    key: bytes
    cohorts: dict = field(default_factory=lambda: defaultdict(list))  # by shard: lists of seats
    empty: dict = field(default_factory=lambda: defaultdict(list))  # by shard: (cohort, place), oldest first
    waiting: dict = field(default_factory=dict)  # record -> user

    def arrive(self, user: int, record: int) -> list[tuple[int, int]]:
        """Take one record in; give the (record, label) pairs that leave."""
        self.waiting[record] = user
        if self._seats(user) is None:
            self._seat(user)
        seats = self._seats(user)
        if len(seats) < self.k or None in seats:
            return []
        free = [one for one, author in self.waiting.items() if author in seats]
        for one in free:
            del self.waiting[one]
        return [(one, seats[self._draw(one, len(seats))]) for one in free]

    def _seats(self, user: int) -> list | None:
        every = self.cohorts[self.shard_of(user)]
        return next((seats for seats in every if user in seats), None)

    def _seat(self, user: int) -> None:
        shard = self.shard_of(user)
        every, empty = self.cohorts[shard], self.empty[shard]
        if empty:
            cohort, place = empty.pop(0)
            every[cohort][place] = user
            return
        if not every or len(every[-1]) == self.k:
            every.append([])
        every[-1].append(user)

    def _draw(self, record: int, size: int) -> int:
        message = (1).to_bytes(8, "little") + record.to_bytes(8, "little")
        return naive.siphash(self.key, message) * size >> 64

    def erase(self, user: int) -> list[int]:
        """Forget a user; give the records that are dropped."""
        seats = self._seats(user)
        if seats is not None:
            place = seats.index(user)
            if len(seats) < self.k:
                del seats[place]
            else:
                seats[place] = None
                every = self.cohorts[self.shard_of(user)]
                self.empty[self.shard_of(user)].append((every.index(seats), place))
        gone = [record for record, author in self.waiting.items() if author == user]
        for record in gone:
            del self.waiting[record]
        return gone
