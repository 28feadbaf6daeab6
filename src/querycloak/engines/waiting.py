"""The records that were accepted and have not left yet, found by number however many there are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.kernels.distinct import distinct
from querycloak.log import IntArray


def _least(column: pl.Series) -> int:
    least: int = column.min()  # type: ignore[assignment]
    return least


class _Chunk:
    """Rows in the order of their numbers; those that are gone stay until half of them are."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        head = frame["_head"].to_numpy()
        self._order = np.argsort(head, kind="stable")
        self._head = head[self._order]
        self.first = int(self._head[0])
        self._stays = np.ones(head.size, bool)
        self.left = head.size
        self.oldest = _least(frame["_at"]) if "_at" in frame.columns else 0

    def rows_of(self, heads: IntArray) -> tuple[IntArray, IntArray]:
        """Give the places of all rows of these searches, and which search each belongs to."""
        begin = np.searchsorted(self._head, heads, side="left")
        sizes = np.searchsorted(self._head, heads, side="right") - begin
        which = np.repeat(np.arange(heads.size), sizes)
        within = np.arange(which.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self._order[begin[which] + within], which

    def has(self, heads: IntArray) -> npt.NDArray[np.bool_]:
        """Say which of these searches are among its rows."""
        place = np.minimum(np.searchsorted(self._head, heads), self._head.size - 1)
        found: npt.NDArray[np.bool_] = self._head[place] == heads
        return found

    def forget(self, heads: IntArray) -> int:
        """Note that these searches are gone; say how many rows that are."""
        places = self.rows_of(heads)[0]
        places = places[self._stays[places]]
        self._stays[places] = False
        self.left -= int(places.size)
        return int(places.size)

    def remaining(self) -> pl.DataFrame:
        """Give the rows that are not gone."""
        return self.columns(*self.frame.columns)

    def columns(self, *names: str) -> pl.DataFrame:
        """Give some columns of the rows that are not gone."""
        chosen = self.frame.select(names)
        return chosen if self.left == chosen.height else chosen.filter(pl.Series(self._stays))


class Waiting:
    """Keeps rows in chunks that are merged like those of a log-structured store.

    A chunk holds all rows of a search, since a search comes in one request. So adding or taking a row costs
    a logarithm of what waits, never all of it.
    """

    def __init__(self) -> None:
        self._chunks: list[_Chunk] = []
        self.count = 0

    def add(self, frame: pl.DataFrame) -> None:
        """Take in rows with `row`, `_head` and the columns of records, numbered above all before."""
        if frame.height:
            self._chunks.append(_Chunk(frame))
            self.count += frame.height

    def take(self, heads: IntArray) -> tuple[pl.DataFrame, IntArray | slice]:
        """Give all rows of these searches, in their order, and which search each belongs to."""
        parts: list[pl.DataFrame] = []
        owners: list[IntArray] = []
        for chunk, mine in self._by_chunk(heads):
            places, search = chunk.rows_of(heads[mine])
            parts.append(chunk.frame[places])
            owners.append(mine[search])
        if not parts:
            return pl.DataFrame(), slice(None)
        owner = np.concatenate(owners)
        frame = (pl.concat(parts) if len(parts) > 1 else parts[0]).drop("_head")
        if len(parts) > 1:
            order = np.argsort(owner, kind="stable")
            frame, owner = frame[order], owner[order]
        return frame, slice(None) if owner.size == heads.size else owner

    def forget(self, heads: IntArray) -> None:
        """Note that these searches left or were dropped."""
        heads = distinct(heads)
        for chunk, mine in self._by_chunk(heads):
            self.count -= chunk.forget(heads[mine])

    def tidy(self) -> None:
        """Make room where half of a chunk is gone, and merge chunks of like size, so that there are few."""
        merged: list[_Chunk] = []
        for chunk in self._chunks:
            if chunk.left:
                thin = 2 * chunk.left < chunk.frame.height
                merged.append(_Chunk(chunk.remaining()) if thin else chunk)
            while len(merged) > 1 and merged[-2].left < 2 * merged[-1].left:
                last = merged.pop()
                both = [merged[-1].remaining(), last.remaining()]
                merged[-1] = _Chunk(pl.concat(both, rechunk=True))
        self._chunks = merged

    def before(self, moment: int) -> IntArray:
        """Give the searches of which a row came before a moment."""
        found = [np.empty(0, np.int64)]
        for chunk in self._chunks:
            if chunk.left and chunk.oldest < moment:  # what is gone may have been older, which does no harm
                rows = chunk.columns("_head", "_at")
                found.append(rows["_head"].to_numpy()[rows["_at"].to_numpy() < moment])
        return distinct(np.concatenate(found))

    def frame(self) -> pl.DataFrame | None:
        """Give everything that waits, in the order of numbers."""
        left = [chunk.remaining() for chunk in self._chunks if chunk.left]
        return pl.concat(left) if left else None

    def columns(self, *names: str) -> pl.DataFrame | None:
        """Give some columns of everything that waits, which is much less work than all."""
        left = [chunk.columns(*names) for chunk in self._chunks if chunk.left]
        return pl.concat(left) if left else None

    def _by_chunk(self, heads: IntArray) -> list[tuple[_Chunk, IntArray]]:
        """Say which of these searches lie in which chunk."""
        firsts = np.array([chunk.first for chunk in self._chunks], np.int64)
        which = np.searchsorted(firsts, heads, side="right") - 1
        return [(self._chunks[n], np.flatnonzero(which == n)) for n in np.unique(which).tolist()]


class Scattered(Waiting):
    """The same for rows whose numbers do not grow, as where they come from several places."""

    def _by_chunk(self, heads: IntArray) -> list[tuple[_Chunk, IntArray]]:
        found = ((chunk, np.flatnonzero(chunk.has(heads))) for chunk in self._chunks)
        return [(chunk, mine) for chunk, mine in found if mine.size]
