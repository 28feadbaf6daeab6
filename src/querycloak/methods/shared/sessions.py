"""Parts of a user's history: sessions, calendar days and weeks, and numbers of searches."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from querycloak.log import NO_TIME, Flags, IntArray

#: A session ends when somebody has not searched for so long, in microseconds.
PAUSE: Final = 30 * 60 * 1_000_000
DAY: Final = 86_400 * 1_000_000
WEEK: Final = 7 * DAY
NEVER: Final = np.iinfo(np.int64).max
MONDAY: Final = 3 * DAY  # the first day of 1970 was a Thursday


def calendar(time: IntArray, span: str) -> IntArray:
    """Number the day or week of each moment; what has no time comes after all that has."""
    number = time // DAY if span == "day" else (time + MONDAY) // WEEK
    return np.where(time == NO_TIME, NEVER, number)


def sessions(user: IntArray, time: IntArray) -> IntArray:
    """Number the sessions of each user, from 0: a pause of half an hour ends one.

    Records without a time are a session of their own, the first.
    """
    order = np.lexsort((time, user))
    u, t = user[order], time[order]
    fresh = np.ones(u.size, np.bool_)
    fresh[1:] = u[1:] != u[:-1]
    new = fresh.copy()
    new[1:] |= np.where(t[:-1] == NO_TIME, t[1:] != NO_TIME, t[1:] - t[:-1] > PAUSE)
    number = np.cumsum(new, dtype=np.int64)
    before = np.repeat(number[fresh], np.diff(np.append(np.flatnonzero(fresh), u.size)))
    result = np.empty(u.size, np.int64)
    result[order] = number - before
    return result


def first_of_each(*columns: IntArray) -> Flags:
    """Mark the first record of each different combination of values."""
    first = np.zeros(columns[0].size, np.bool_)
    first[np.unique(dense_ids(*columns), return_index=True)[1]] = True
    return first


def search_index(user: IntArray, query: IntArray, time: IntArray) -> IntArray:
    """Number the searches of each user in the order in which they stand, from 0; clicks go along."""
    rows = pl.DataFrame({"user": user, "query": query, "time": time}).with_row_index("place")
    first = rows.select("user", first=pl.col("place").min().over("user", "query", "time"))
    index = first.select(pl.col("first").rank("dense").over("user")).to_series()
    return index.cast(pl.Int64).to_numpy() - 1


def dense_ids(*columns: IntArray) -> IntArray:
    """Number the different combinations of values, from 0."""
    if not columns[0].size:
        return np.empty(0, np.int64)
    table = pl.DataFrame([pl.Series(str(i), column) for i, column in enumerate(columns)])
    codes = table.select(pl.struct(pl.all()).rank("dense")).to_series()
    return codes.cast(pl.Int64).to_numpy() - 1
