"""Records that were read and have not been released yet, found by the number of their search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.kernels.arrays import distinct, ranks_in_groups
from querycloak.log import IntArray

#: Chunks below this many rows are merged; larger ones never are, since copying them would cost too much.
_SMALL: Final = 1 << 16
#: How much longer than its rows a table by row number may be; beyond that a sorted array is used.
_SPARSE: Final = 16
#: Columns that only the order of replay needs.
_REPLAY: Final = ("_when", "_place")


class _Index:
    """Finds the places of the rows of a search by its number, in constant time where numbers are dense."""

    def __init__(self, head: IntArray) -> None:
        self.first, self.last = int(head.min()), int(head.max())
        span = self.last - self.first + 1
        self._known = distinct(head) if span > _SPARSE * head.size else None
        number = head - self.first if self._known is None else np.searchsorted(self._known, head)
        self._sizes = np.bincount(number, minlength=span if self._known is None else self._known.size)
        self._single = bool((self._sizes <= 1).all())
        if self._single:
            self._start = np.empty(self._sizes.size, np.int64)
            self._start[number] = np.arange(head.size)
        else:
            self._order = np.argsort(number, kind="stable")
            self._start = np.cumsum(self._sizes) - self._sizes

    def has(self, heads: IntArray) -> npt.NDArray[np.bool_]:
        """Whether each search is here."""
        if self._known is not None:
            place = np.minimum(np.searchsorted(self._known, heads), self._known.size - 1)
            return np.asarray(self._known[place] == heads)
        inside = (heads >= self.first) & (heads <= self.last)
        number = np.where(inside, heads - self.first, 0)
        return inside & (self._sizes[number] > 0)

    def rows_of(self, heads: IntArray) -> tuple[IntArray, IntArray | slice]:
        """Return the places of all rows of these searches, and which search each belongs to."""
        number = heads - self.first if self._known is None else np.searchsorted(self._known, heads)
        begin = self._start[number]
        if self._single:
            return begin, slice(None)
        sizes = self._sizes[number]
        which = np.repeat(np.arange(heads.size), sizes)
        within = ranks_in_groups(sizes)
        return self._order[begin[which] + within], which


class _Chunk:
    """Rows that came together; removed rows stay in memory until half of them are."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        self._head = frame["_head"].to_numpy()
        self._index: _Index | None = None
        self._stays = np.ones(frame.height, bool)
        self.left = frame.height
        least = frame["_at"].min() if "_at" in frame.columns else 0
        assert isinstance(least, int)
        self.oldest = least
        self.first, self.last = int(self._head.min()), int(self._head.max())

    @property
    def index(self) -> _Index:
        """The index, built when the first search is looked up."""
        if self._index is None:
            self._index = _Index(self._head)
        return self._index

    def remove(self, heads: IntArray) -> int:
        """Mark these searches as removed; return the number of rows."""
        places, _ = self.index.rows_of(heads)
        places = places[self._stays[places]]
        self._stays[places] = False
        self.left -= int(places.size)
        return int(places.size)

    def columns(self, *names: str) -> pl.DataFrame:
        """Return some columns, or all (`*`), of the rows that were not removed."""
        chosen = self.frame.select(names)
        return chosen if self.left == chosen.height else chosen.filter(pl.Series(self._stays))


class RecordStore:
    """Rows by the number of their search (`_head`), in chunks.

    All rows of a search come in one chunk, and its number never comes back. Small chunks are merged, large
    ones never: adding a piece costs nothing for what is held, and small requests do not leave many chunks.
    """

    def __init__(self) -> None:
        self._chunks: list[_Chunk] = []
        self._no_rows = pl.DataFrame()
        self.count = 0

    def add(self, frame: pl.DataFrame) -> None:
        """Add rows with `row`, `_head` and the columns of records."""
        frame = frame.drop(_REPLAY, strict=False)
        self._no_rows = frame.drop("_head").clear()
        if frame.height:
            self._chunks.append(_Chunk(frame))
            self.count += frame.height

    def take(self, heads: IntArray) -> tuple[pl.DataFrame, IntArray | slice]:
        """Return all rows of these searches, in their order, and which search each row belongs to."""
        parts: list[pl.DataFrame] = []
        owners: list[IntArray] = []
        for chunk, mine in self._by_chunk(heads):
            whole = mine.size == heads.size
            places, search = chunk.index.rows_of(heads if whole else heads[mine])
            rows = chunk.frame.select(pl.all().exclude("_head").gather(pl.Series(places)))
            if whole:
                return rows, search
            parts.append(rows)
            owners.append(mine[search])
        if not parts:
            return self._no_rows, slice(None)
        owner = np.concatenate(owners)
        order = np.argsort(owner, kind="stable")
        frame = pl.concat(parts).select(pl.all().gather(pl.Series(order)))
        return frame, slice(None) if owner.size == heads.size else owner[order]

    def remove(self, heads: IntArray) -> None:
        """Remove searches that were released or dropped."""
        heads = distinct(heads)
        for chunk, mine in self._by_chunk(heads):
            self.count -= chunk.remove(heads if mine.size == heads.size else heads[mine])

    def compact(self) -> None:
        """Free the memory of chunks of which half is removed, and merge neighbouring small chunks."""
        merged: list[_Chunk] = []
        for chunk in self._chunks:
            if chunk.left:
                thin = 2 * chunk.left < chunk.frame.height
                merged.append(_Chunk(chunk.columns("*")) if thin else chunk)
            while len(merged) > 1 and merged[-1].left < _SMALL and merged[-2].left < 2 * merged[-1].left:
                last = merged.pop()
                both = [merged[-1].columns("*"), last.columns("*")]
                merged[-1] = _Chunk(pl.concat(both, rechunk=True))
        self._chunks = merged

    def older_than(self, moment: int) -> IntArray:
        """Return the searches of which a row came before a moment."""
        found = [np.empty(0, np.int64)]
        for chunk in self._chunks:
            if chunk.left and chunk.oldest < moment:  # removed rows may have been older, which does no harm
                rows = chunk.columns("_head", "_at")
                found.append(rows["_head"].to_numpy()[rows["_at"].to_numpy() < moment])
        return distinct(np.concatenate(found))

    def rows(self) -> pl.DataFrame | None:
        """Return everything that is held, in the order in which it came; None if nothing is."""
        return self.columns("*")

    def columns(self, *names: str) -> pl.DataFrame | None:
        """Return some columns of everything that is held; None if nothing is."""
        left = [chunk.columns(*names) for chunk in self._chunks if chunk.left]
        return pl.concat(left) if left else None

    def _by_chunk(self, heads: IntArray) -> Iterator[tuple[_Chunk, IntArray]]:
        """Yield each chunk with the places of those searches that it holds."""
        if not heads.size:
            return
        if len(self._chunks) == 1:
            yield self._chunks[0], np.arange(heads.size)
            return
        low, high = int(heads.min()), int(heads.max())
        rest = heads.size
        for chunk in self._chunks:
            if chunk.last < low or chunk.first > high:
                continue
            mine = np.flatnonzero(chunk.index.has(heads))
            if mine.size:
                rest -= mine.size
                yield chunk, mine
            if not rest:
                return
