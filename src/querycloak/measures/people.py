"""Each person's original history beside the released one, as numbers, for logs of any size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.dictionary import Dictionary
from querycloak.measures.on_logs import NotApplicable, Pair

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


def drawn(people: IntArray, most: int) -> IntArray:
    """Keep so many people at most, drawn at random, but the same ones each time."""
    if people.size <= most:
        return people
    return np.sort(np.random.default_rng(0).choice(people, most, replace=False))


@dataclass(frozen=True)
class Counts:
    """How often each person has each thing, sorted by person and then by thing."""

    person: IntArray
    thing: IntArray
    count: IntArray

    @classmethod
    def of(cls, person: IntArray, thing: IntArray, things: int, weight: IntArray | None = None) -> Counts:
        """Count rows; those without a person or a thing (-1) are left out."""
        known = np.flatnonzero((person >= 0) & (thing >= 0))
        pair, place = np.unique(person[known] * max(things, 1) + thing[known], return_inverse=True)
        many = np.bincount(place, None if weight is None else weight[known], minlength=pair.size)
        return cls(pair // max(things, 1), pair % max(things, 1), many.astype(np.int64))

    def totals(self, people: int) -> IntArray:
        """Give the size of each person's history."""
        return np.bincount(self.person, self.count, minlength=people).astype(np.int64)

    def entropies(self, people: int) -> FloatArray:
        """Give the entropy in bits of each person's history; 0 where it is empty."""
        share = self.count / self.totals(people)[self.person]
        return np.abs(np.bincount(self.person, -share * np.log2(share), minlength=people))

    def starts(self, people: int) -> IntArray:
        """Say where each person begins, and where the last one ends."""
        return np.searchsorted(self.person, np.arange(people + 1))


@dataclass(frozen=True)
class Histories:
    """The people of the original with what they asked and what was released under their labels."""

    people: int
    things: pl.Series
    before: Counts
    after: Counts

    @classmethod
    def of(cls, pair: Pair, column: str) -> Histories:
        """Count a column of both logs by person, or say why that cannot be done."""
        pair.both(column), pair.both("user")
        users, things = Dictionary(), Dictionary()
        who = users.encode(pair.original["user"])
        people = len(users.texts())
        label = users.encode(pair.behind())
        label = np.where(label < people, label, -1)
        if not np.any(label >= 0):
            need = "fresh ones need the truth" if pair.truth is None else "the truth names nobody behind them"
            raise NotApplicable(f"no label of the release is a user of the original; {need}")
        what = [things.encode(frame[column]) for frame in (pair.original, pair.released)]
        many = len(things.texts())
        sides = (Counts.of(person, thing, many) for person, thing in zip((who, label), what, strict=True))
        return cls(people, things.texts(), *sides)

    def common(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Give what people have in both logs: whose each thing is, and how often it is in either."""
        first, second = self._pairs(self.before), self._pairs(self.after)
        place = np.searchsorted(first, second)
        met = np.flatnonzero(place < first.size)
        met = met[first[place[met]] == second[met]]
        asked, shown = self.before.count[place[met]], self.after.count[met]
        return self.after.person[met], asked.astype(np.float64), shown.astype(np.float64)

    def _pairs(self, side: Counts) -> IntArray:
        return side.person * max(self.things.len(), 1) + side.thing

    def translated(self, code: IntArray, things: pl.Series) -> Histories:
        """Put other things in the place of these, such as higher categories; -1 leaves one out."""
        sides = (
            Counts.of(side.person, code[side.thing], things.len(), side.count)
            for side in (self.before, self.after)
        )
        return Histories(self.people, things, *sides)
