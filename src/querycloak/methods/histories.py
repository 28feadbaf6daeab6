"""From records to histories of terms: how queries are split into terms, and people into histories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.dictionary import Dictionary
from querycloak.log import NO_TIME, IntArray

Mask = npt.NDArray[np.bool_]

_TERM: Final = r"[\p{L}\p{N}][\p{L}\p{M}\p{N}]*"  # marks belong to the letter before them
#: A session ends when somebody has not searched for so long, in microseconds.
PAUSE: Final = 30 * 60 * 1_000_000
DAY: Final = 86_400 * 1_000_000
WEEK: Final = 7 * DAY
NEVER: Final = np.iinfo(np.int64).max
_MONDAY: Final = 3 * DAY  # the first day of 1970 was a Thursday


def split(texts: pl.Series) -> pl.Series:
    """Split texts at everything but letters and digits of any script; terms are in lower case."""
    return texts.str.to_lowercase().str.extract_all(_TERM)


def calendar(time: IntArray, span: str) -> IntArray:
    """Number the day or week of each moment; what has no time comes after all that has."""
    number = time // DAY if span == "day" else (time + _MONDAY) // WEEK
    return np.where(time == NO_TIME, NEVER, number)


def sessions(user: IntArray, time: IntArray) -> IntArray:
    """Number the sessions of each user, from nought: a pause of half an hour ends one."""
    order = np.lexsort((time, user))
    u, t = user[order], time[order]
    fresh = np.ones(u.size, np.bool_)
    fresh[1:] = u[1:] != u[:-1]
    new = fresh.copy()
    new[1:] |= t[1:] - t[:-1] > PAUSE
    number = np.cumsum(new, dtype=np.int64)
    before = np.repeat(number[fresh], np.diff(np.append(np.flatnonzero(fresh), u.size)))
    result = np.empty(u.size, np.int64)
    result[order] = number - before
    return result


def firsts(*columns: IntArray) -> Mask:
    """Mark the first record of each different combination of values."""
    first = np.zeros(columns[0].size, np.bool_)
    first[np.unique(numbered(*columns), return_index=True)[1]] = True
    return first


def turns(user: IntArray, query: IntArray, time: IntArray) -> IntArray:
    """Number the searches of each user in the order in which they stand, from nought; clicks go along."""
    search = numbered(user, query, time)
    first = np.unique(search, return_index=True)[1]
    place = np.empty(first.size, np.int64)
    in_order = np.argsort(first)
    place[in_order] = _counted(user[first[in_order]])
    return place[search]


def _counted(user: IntArray) -> IntArray:
    order = np.argsort(user, kind="stable")
    u = user[order]
    fresh = np.flatnonzero(np.diff(u, prepend=-2))
    sizes = np.diff(np.append(fresh, u.size))
    result = np.empty(u.size, np.int64)
    result[order] = np.arange(u.size) - np.repeat(fresh, sizes)
    return result


def numbered(*columns: IntArray) -> IntArray:
    """Number the different combinations of values, from nought."""
    if not columns[0].size:
        return np.empty(0, np.int64)
    table = pl.DataFrame([pl.Series(str(i), column) for i, column in enumerate(columns)])
    codes = table.select(pl.struct(pl.all()).rank("dense")).to_series()
    return codes.cast(pl.Int64).to_numpy() - 1


@dataclass
class Splitter:
    """Splits each distinct text of a dictionary once, and gives the terms of any of its codes."""

    source: Dictionary
    terms: Dictionary

    def __post_init__(self) -> None:
        self._start = np.zeros(1, np.int64)
        self._term = np.empty(0, np.int64)

    def _learn(self) -> None:
        known = self._start.size - 1
        fresh = self.source.texts()[known:]
        if not len(fresh):
            return
        lists = split(fresh)
        sizes = lists.list.len().cast(pl.Int64).to_numpy()
        flat = lists.explode().drop_nulls() if int(sizes.sum()) else pl.Series([], dtype=pl.String)
        self._term = np.concatenate([self._term, self.terms.encode(flat)])
        self._start = np.concatenate([self._start, self._start[-1] + np.cumsum(sizes)])

    def of(self, codes: IntArray) -> tuple[IntArray, IntArray]:
        """Give for each code's terms, in order: which of the codes they belong to, and the term."""
        self._learn()
        some = np.flatnonzero(codes >= 0)
        begin = self._start[codes[some]]
        sizes = self._start[codes[some] + 1] - begin
        which = np.repeat(np.arange(some.size), sizes)
        within = np.arange(which.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return some[which], self._term[begin[which] + within]
