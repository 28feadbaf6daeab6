"""`usr` and `hybrid` (paper 004, sections 2.2 and 5.2): searches of other users, of the log or of a pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak.clients.obfuscation.base import (
    MAX_FAKES,
    CoverMethod,
    CoverSettings,
    DummySearches,
    TimedSettings,
)
from querycloak.clients.obfuscation.history import SearchHistory
from querycloak.clients.obfuscation.random_stream import KeyedStream
from querycloak.clients.obfuscation.timing import machine_times
from querycloak.errors import DataError
from querycloak.log import MISSING, IntArray
from querycloak.settings import setting

_WEEK: Final = 7 * 24 * 3600 * 1_000_000


class BorrowedCover(CoverMethod):
    """Dummy searches that another user made: `source` and `click` are rows of the sorted log."""

    borrows = True

    def __init__(self, history: SearchHistory, settings: Any, key: bytes) -> None:
        super().__init__(history, settings, key)
        if history.users == 1 and not history.pool_users:
            raise DataError(
                f"`{self.name}` uses searches of other users, and the log has one user only",
                hint="name another log with `--pool`, or use `tmn`",
            )

    def columns(self, dummies: DummySearches) -> pl.DataFrame:
        """Copy the columns of the source rows; clicks can come from another row than the query."""
        frame = self.history.frame.drop("row", "user", "time", strict=False)
        clicked = [name for name in ("rank", "url") if name in frame.columns]
        row = pl.Series(dummies.click).replace(MISSING, None)
        copied = frame[dummies.source.astype(np.uint32)]
        return copied.with_columns(frame[name].gather(row) for name in clicked)

    def _copy(self, searches: IntArray, time: IntArray, keep: IntArray | None = None) -> DummySearches:
        """Return copies of these searches at these times, without their clicks where `keep` is 0."""
        rows, which = self.history.rows_of(searches)
        click = rows
        if keep is not None:
            bare, again = keep[which] == 0, np.diff(which, prepend=-1) == 0
            click = np.where(bare, MISSING, click)
            rows, which, click = (part[~(bare & again)] for part in (rows, which, click))
        return DummySearches(which, time[which], rows, click)

    def _draw_searches(self, user: int, stream: KeyedStream) -> IntArray:
        """Draw users until there are enough searches; of the last user, only the missing number."""
        begins, sources = self.history.begins, self.history.source_users
        missing = stream.whole(self.settings.per_real * float(begins[user + 1] - begins[user]))
        taken, seen = [np.zeros(0, np.int64)], {user} & set(sources)
        while missing and len(seen) < len(sources):
            other = sources.start + stream.pick(len(sources))
            if other in seen:
                continue
            seen.add(other)
            all_ = self.history.of_user(other)
            taken.append(all_ if all_.size <= missing else np.sort(all_[stream.order(all_.size)[:missing]]))
            missing -= taken[-1].size
        return np.concatenate(taken)


class UserCover(BorrowedCover):
    """`usr`: all searches of another user, at their times and with their clicks."""

    name = "usr"

    @dataclass(frozen=True, kw_only=True)
    class Settings(CoverSettings):
        """Settings of `usr`."""

        fakes: Any = setting(
            "all",
            kind=float,
            at_least=0,
            at_most=MAX_FAKES,
            also=("all",),
            help="dummy searches per real search; `all`: all searches of one other user",
        )

        @property
        def per_real(self) -> float:
            """Expected number of dummy searches per real search."""
            return 1.0 if self.fakes == "all" else float(self.fakes)

    def fakes(self, user: int, stream: KeyedStream) -> DummySearches:
        """Return copies of other users' searches."""
        if self.settings.fakes == "all":
            sources = self.history.source_users
            inside = user in sources
            other = sources.start + stream.pick(len(sources) - inside)
            chosen = self.history.of_user(other + (inside and other >= user))
        else:
            chosen = self._draw_searches(user, stream)
        return self._copy(chosen, self.history.time[chosen])


class HybridCover(BorrowedCover):
    """`hybrid`: queries of other users, with the times and the clicks of a machine."""

    name = "hybrid"

    class Settings(TimedSettings):
        """Settings of `hybrid`."""

    def __init__(self, history: SearchHistory, settings: TimedSettings, key: bytes) -> None:
        super().__init__(history, settings, key)
        self._begins, self._clicks = _clicks_by_query(history)
        self._many = np.diff(self._begins)
        usable = history.query[history.begins[history.source_users.start] :]
        known = int((self._many[usable] > 0).sum())
        self._chance = min(1.0, history.clicked_share * usable.size / max(known, 1))

    def fakes(self, user: int, stream: KeyedStream) -> DummySearches:
        """Return other users' queries in random order, with clicks that any user made for them."""
        chosen = self._draw_searches(user, stream)
        chosen = chosen[stream.order(chosen.size)]
        real = self.history.time[self.history.of_user(user)]
        time = machine_times(self.settings.timing, chosen.size, real, self.history.span, stream)
        first = self.history.first[chosen]
        return DummySearches(np.arange(chosen.size), time, first, self._draw_clicks(chosen, stream))

    def _draw_clicks(self, chosen: IntArray, stream: KeyedStream) -> IntArray:
        query = self.history.query[chosen]
        begins, many = self._begins[query], self._many[query]
        place = begins + stream.below(many, chosen.size)
        clicks = (many > 0) & (stream.uniform(chosen.size) < self._chance)
        drawn = np.full(chosen.size, MISSING)
        drawn[clicks] = self._clicks[place[clicks]]
        return drawn


def _clicks_by_query(history: SearchHistory) -> tuple[IntArray, IntArray]:
    """Return, for each distinct query, where its rows begin in a list of source rows with a click."""
    start = history.begins[history.source_users.start]
    searches = np.arange(start, history.time.size)
    rows, which = history.rows_of(searches)
    clicked = history.clicked[rows]
    rows, query = rows[clicked], history.query[searches][which[clicked]]
    by_query = np.argsort(query, kind="stable")
    many = np.bincount(query, minlength=len(history.texts))
    return np.concatenate([[0], np.cumsum(many)]), rows[by_query]


def align_pool(pool: pl.DataFrame, log: pl.DataFrame) -> pl.DataFrame:
    """Return those rows of a pool that can be in a log's traces, in the log's columns.

    The pool is moved by whole weeks to begin with the log, so that hours and weekdays stay. Rows outside of
    the log's time are left out, and so are users that the log has too.
    """
    missing = [name for name in log.columns if name not in (*pool.columns, "row")]
    if missing:
        raise DataError(f"the pool has no column `{missing[0]}`, and the log has one")
    found = pool.join(log.select("user").unique(), on="user", how="anti", maintain_order="left")
    if "time" in log.columns and log.height:
        found = _move_by_weeks(found, log["time"])
    if not found.height:
        raise DataError(
            "no row of the pool can be used",
            hint="users of the log are left out, and rows after the end of the log",
        )
    found = found.with_columns(row=pl.lit(None, pl.Int64))
    return found.select(pl.col(name).cast(kind) for name, kind in log.schema.items())


def _move_by_weeks(pool: pl.DataFrame, times: pl.Series) -> pl.DataFrame:
    if pool["time"].null_count():
        raise DataError("some rows of the pool have no time")
    first, last = times.to_physical().min(), times.to_physical().max()
    moments = pl.col("time").cast(times.dtype).to_physical()
    moved = moments - (moments.min() - first) // _WEEK * _WEEK
    return (
        pool.with_columns(time=moved)
        .filter(pl.col("time").is_between(first, last))
        .cast({"time": times.dtype})
    )
