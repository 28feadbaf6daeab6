"""A log as searches of users, in an order that does not depend on the order of the file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl

from querycloak.dictionary import distinct
from querycloak.errors import DataError
from querycloak.log import Flags, IntArray

#: Resolutions of a log's clock, in microseconds; dummy searches have the same one.
_TICKS: Final = (60_000_000, 1_000_000, 1_000)
#: A pause longer than this, in microseconds, ends a session.
PAUSE: Final = 30 * 60 * 1_000_000


@dataclass(frozen=True, eq=False)
class SearchHistory:
    """Rows by user, then time; search `i` has the rows `first[i]` to `first[i + 1]`.

    A search is a user, a query and a time. User `u` has the searches `begins[u]` to `begins[u + 1]`.
    Without a column of times, every row is a search and all times are 0. The users of a pool follow those
    of the log: they are not covered, and their searches are used as dummy searches. Search `i` has the
    query `texts[query[i]]`.
    """

    frame: pl.DataFrame
    timed: bool
    names: list[str]
    pool_users: int
    begins: IntArray
    first: IntArray
    time: IntArray
    clicked: Flags
    texts: pl.Series
    query: IntArray

    @classmethod
    def of(cls, log: pl.DataFrame, pool: pl.DataFrame | None = None) -> SearchHistory:
        """Return the searches of a log, and those of an aligned pool."""
        timed = "time" in log.columns
        if timed and log["time"].null_count():
            raise DataError("some rows have no time", hint="fill the column `time`, or leave it out of all")
        frame = pl.concat([_sorted(part, timed) for part in (log, pool) if part is not None])
        heads = np.flatnonzero(_changes(frame, ["user", "query", "time"] if timed else []))
        users = np.flatnonzero(_changes(frame, ["user"]))
        covered = int(np.searchsorted(users, log.height))
        time = frame["time"].to_physical().to_numpy() if timed else np.zeros(frame.height, np.int64)
        texts, query = distinct(frame["query"].gather(heads))
        columns = [frame[name] for name in ("url", "rank") if name in frame.columns]
        return cls(
            frame=frame,
            timed=timed,
            names=frame["user"].gather(users[:covered]).to_list(),
            pool_users=users.size - covered,
            begins=np.append(np.searchsorted(heads, users), heads.size),
            first=np.append(heads, frame.height),
            time=time[heads],
            clicked=columns[0].is_not_null().to_numpy() if columns else np.zeros(frame.height, bool),
            texts=texts,
            query=query,
        )

    @property
    def users(self) -> int:
        """Number of users of the log."""
        return len(self.names)

    def __len__(self) -> int:
        """Return the number of searches of the log."""
        return int(self.begins[self.users])

    @cached_property
    def source_users(self) -> range:
        """Users whose searches may be used as dummy searches: the pool's, or all users of the log."""
        return range(self.users, self.users + self.pool_users) if self.pool_users else range(self.users)

    def can_source(self, owner: IntArray, user: int) -> Flags:
        """Whether the searches of each owner may be used for a user: never the user's own."""
        can: Flags = (owner >= self.source_users.start) & (owner != user)
        return can

    def of_user(self, user: int) -> IntArray:
        """Return the numbers of one user's searches, in time order."""
        return np.arange(self.begins[user], self.begins[user + 1])

    def rows_of(self, searches: IntArray) -> tuple[IntArray, IntArray]:
        """Return the rows of these searches one after the other, and for each row the place of its search."""
        many = self.first[searches + 1] - self.first[searches]
        which = np.repeat(np.arange(searches.size), many)
        within = np.arange(which.size) - np.repeat(np.cumsum(many) - many, many)
        return self.first[searches][which] + within, which

    @cached_property
    def user(self) -> IntArray:
        """User of each search."""
        return np.repeat(np.arange(self.users + self.pool_users), np.diff(self.begins))

    @cached_property
    def clicks(self) -> IntArray:
        """Number of clicks of each search."""
        return np.diff(np.concatenate([[0], np.cumsum(self.clicked)])[self.first])

    @cached_property
    def span(self) -> tuple[int, int]:
        """First and last time of the log."""
        real = self.time[: len(self)]
        return (int(real.min()), int(real.max())) if real.size else (0, 0)

    @cached_property
    def tick(self) -> int:
        """Resolution of the log's clock: a finer time would reveal a dummy search."""
        return next((tick for tick in _TICKS if not (self.time[: len(self)] % tick).any()), 1)

    @cached_property
    def pauses(self) -> IntArray:
        """Pauses between two searches of a session."""
        gaps = np.diff(self.time[: len(self)])
        short: IntArray = gaps[(np.diff(self.user[: len(self)]) == 0) & (gaps <= PAUSE)]
        return short

    @cached_property
    def clicked_share(self) -> float:
        """Share of searches that have a click."""
        return float((self.clicks[: len(self)] > 0).mean()) if len(self) else 0.0


def _sorted(frame: pl.DataFrame, timed: bool) -> pl.DataFrame:
    """Sort rows by their content, so that the order of the file makes no difference."""
    first = ["user", "time", "query"] if timed else ["user", "query"]
    rest = [name for name in ("rank", "url") if name in frame.columns]
    others = [name for name in frame.columns if name not in (*first, *rest, "row")]
    by = [*first, *rest, *(name for name in others if not frame.schema[name].is_nested()), "row"]
    return frame.sort(by, nulls_last=True)


def _changes(frame: pl.DataFrame, names: list[str]) -> Flags:
    """Whether each row differs from the one before in these columns; without columns, all do."""
    if not names or not frame.height:
        return np.ones(frame.height, bool)
    differs = pl.any_horizontal([pl.col(name).ne_missing(pl.col(name).shift()) for name in names])
    changes = frame.select(differs.alias("_changes")).to_series().to_numpy().copy()
    changes[0] = True
    return changes
