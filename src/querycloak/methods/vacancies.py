"""Seats whose people were erased: the oldest of a shard is the next that somebody new takes."""

from __future__ import annotations

import numpy as np

from querycloak.log import IntArray


class Vacancies:
    """Lists (cohort, place) of every empty seat, shard after shard, those of a shard in order of age."""

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self.replace(np.empty((0, 2), np.int64))

    def __len__(self) -> int:
        return int((self._end - self._next).sum())

    @property
    def arrays(self) -> tuple[IntArray, IntArray, IntArray]:
        """Give the arrays that kernels take: seats, and for each shard its next one and their end."""
        return self._seats, self._next, self._end

    def replace(self, seats: IntArray) -> None:
        """Take these seats over in the place of all others, the oldest first."""
        shard = seats[:, 0] % self._shards
        self._seats = seats[np.argsort(shard, kind="stable")]
        self._end = np.cumsum(np.bincount(shard, minlength=self._shards)).astype(np.int64)
        self._next = np.concatenate([np.zeros(1, np.int64), self._end[:-1]])

    def add(self, seats: IntArray) -> None:
        """Note that these seats have become empty."""
        self.replace(np.concatenate([self.listed(), seats]))

    def listed(self) -> IntArray:
        """Give the seats that are still empty."""
        spans = zip(self._next.tolist(), self._end.tolist(), strict=True)
        return np.concatenate([self._seats[:0], *(self._seats[start:end] for start, end in spans)])

    def next_of(self, shard: int) -> int | None:
        """Give the cohort of a shard's oldest empty seat, if it has one."""
        here = int(self._next[shard])
        return int(self._seats[here, 0]) if here < self._end[shard] else None
