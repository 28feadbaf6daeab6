"""A log as searches: one for each person, query and time, in an order that the file's does not change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.dictionary import distinct
from querycloak.errors import DataError
from querycloak.log import IntArray

#: Steps in which a log's clock may run, in microseconds; fakes are timed by the same clock.
_TICKS: Final = (60_000_000, 1_000_000, 1_000)
#: A pause longer than this, in microseconds, ends a session.
PAUSE: Final = 30 * 60 * 1_000_000


@dataclass(frozen=True, eq=False)
class Searches:
    """Rows by person, then time; search `i` has the rows `first[i]` to `first[i + 1]`.

    Person `p` has the searches `begins[p]` to `begins[p + 1]`. Without a column of times, every row is
    a search of its own and all times are 0. Behind the log's people may come those of a pool, who are not
    covered but lend their searches.
    """

    frame: pl.DataFrame
    timed: bool
    names: list[str]
    lent: int
    begins: IntArray
    first: IntArray
    time: IntArray
    clicks: IntArray

    @classmethod
    def of(cls, log: pl.DataFrame, pool: pl.DataFrame | None = None) -> Searches:
        """Sort a log's rows and find its searches; and those of a pool, fitted to the log."""
        timed = "time" in log.columns
        if timed and log["time"].null_count():
            raise DataError("some rows have no time", hint="fill the column `time`, or leave it out of all")
        frame = pl.concat([_sorted(part, timed) for part in (log, pool) if part is not None])
        heads = np.flatnonzero(_changes(frame, ["user", "query", "time"] if timed else []))
        people = np.flatnonzero(_changes(frame, ["user"]))
        covered = int(np.searchsorted(people, log.height))
        time = frame["time"].to_physical().to_numpy() if timed else np.zeros(frame.height, np.int64)
        clicked = np.concatenate([[0], np.cumsum(_clicked(frame))])
        first = np.append(heads, frame.height)
        return cls(
            frame=frame,
            timed=timed,
            names=frame["user"].gather(people[:covered]).to_list(),
            lent=people.size - covered,
            begins=np.append(np.searchsorted(heads, people), heads.size),
            first=first,
            time=time[heads],
            clicks=np.diff(clicked[first]),
        )

    @property
    def people(self) -> int:
        """How many people the log has."""
        return len(self.names)

    def __len__(self) -> int:
        """How many searches the log has."""
        return int(self.begins[self.people])

    @cached_property
    def lenders(self) -> range:
        """The people to borrow from: those of the pool, or all of the log, where nobody lends to herself."""
        return range(self.people, self.people + self.lent) if self.lent else range(self.people)

    def lends(self, owner: IntArray, person: int) -> npt.NDArray[np.bool_]:
        """Say which of these owners lend to a person."""
        lends: npt.NDArray[np.bool_] = (owner >= self.lenders.start) & (owner != person)
        return lends

    def of_person(self, person: int) -> IntArray:
        """Give the numbers of one person's searches, in time order."""
        return np.arange(self.begins[person], self.begins[person + 1])

    def rows_of(self, searches: IntArray) -> tuple[IntArray, IntArray]:
        """Give the rows of these searches one after the other, and for each which search it belongs to."""
        many = self.first[searches + 1] - self.first[searches]
        which = np.repeat(np.arange(searches.size), many)
        within = np.arange(which.size) - np.repeat(np.cumsum(many) - many, many)
        return self.first[searches][which] + within, which

    @cached_property
    def person(self) -> IntArray:
        """Whose each search is."""
        return np.repeat(np.arange(self.people + self.lent), np.diff(self.begins))

    @cached_property
    def texts(self) -> pl.Series:
        """The distinct queries."""
        return self._queries[0]

    @cached_property
    def query(self) -> IntArray:
        """Which of the distinct queries each search asks."""
        return self._queries[1]

    @cached_property
    def _queries(self) -> tuple[pl.Series, IntArray]:
        return distinct(self.frame["query"].gather(self.first[:-1]))

    @cached_property
    def span(self) -> tuple[int, int]:
        """The first and the last moment of the log."""
        hers = self.time[: len(self)]
        return (int(hers.min()), int(hers.max())) if hers.size else (0, 0)

    @cached_property
    def tick(self) -> int:
        """The step of the log's clock: a fake with finer time would stand out."""
        return next((tick for tick in _TICKS if not (self.time[: len(self)] % tick).any()), 1)

    @cached_property
    def pauses(self) -> IntArray:
        """How long people wait between two searches of a session."""
        gaps = np.diff(self.time[: len(self)])
        short: IntArray = gaps[(np.diff(self.person[: len(self)]) == 0) & (gaps <= PAUSE)]
        return short

    @cached_property
    def clicked_share(self) -> float:
        """The share of searches that have a click."""
        return float((self.clicks[: len(self)] > 0).mean()) if len(self) else 0.0


def _sorted(frame: pl.DataFrame, timed: bool) -> pl.DataFrame:
    """Order rows by what they say, so that rows which change places in the file change nothing here."""
    first = ["user", "time", "query"] if timed else ["user", "query"]
    rest = [name for name in ("rank", "url") if name in frame.columns]
    others = [name for name in frame.columns if name not in (*first, *rest, "row")]
    by = [*first, *rest, *(name for name in others if not frame.schema[name].is_nested()), "row"]
    return frame.sort(by, nulls_last=True)


def _changes(frame: pl.DataFrame, names: list[str]) -> npt.NDArray[np.bool_]:
    """Say for each row whether it differs from the one before in these columns; with none, all do."""
    if not names or not frame.height:
        return np.ones(frame.height, bool)
    differs = pl.any_horizontal([pl.col(name).ne_missing(pl.col(name).shift()) for name in names])
    changes = frame.select(differs.alias("_changes")).to_series().to_numpy().copy()
    changes[0] = True
    return changes


def _clicked(frame: pl.DataFrame) -> npt.NDArray[np.bool_]:
    names = [name for name in ("url", "rank") if name in frame.columns]
    if not names:
        return np.zeros(frame.height, bool)
    return frame[names[0]].is_not_null().to_numpy()
