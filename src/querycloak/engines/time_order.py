"""A log in the order in which it happened: by time, ties by input row, whatever the file's order was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from querycloak import temporary_files
from querycloak.errors import disk_errors
from querycloak.kernels import siphash
from querycloak.kernels.order import heads
from querycloak.keys import derive
from querycloak.log import IntArray, Log

_LATEST = np.iinfo(np.int64).max
_SHUFFLE = 1


def in_order(frame: pl.DataFrame, key: bytes) -> pl.DataFrame:
    """Add `_place` (in the replay) and `_head` (the first row of each row's search), and `_when`.

    Rows without a time come last, in an order that only the key knows: their order in the file may
    be by author.
    """
    row, when = frame["row"].to_numpy(), _times(frame)
    order = _order(row, when, key)
    head = heads(when, _who(frame), row, order, _LATEST)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return frame.with_columns(pl.Series("_when", when), pl.Series("_place", place), pl.Series("_head", head))


def _times(frame: pl.DataFrame) -> IntArray:
    if "time" not in frame.columns:
        return np.full(frame.height, _LATEST, np.int64)
    return frame["time"].to_physical().fill_null(_LATEST).to_numpy()


def _order(row: IntArray, when: IntArray, key: bytes) -> IntArray:
    """Sort by time, ties by row; rows without a time by a keyed hash."""
    if row.size and when.max() == _LATEST:
        return np.lexsort((np.where(when == _LATEST, shuffled(row, key), row), when))
    if np.all(row[1:] > row[:-1]):  # then a sort that keeps the order of equals is enough
        moments = pl.DataFrame({"when": when})
        by_time = moments.select(pl.arg_sort_by("when", maintain_order=True).cast(pl.Int64))
        return by_time.to_series().to_numpy()
    return np.lexsort((row, when))


def shuffled(row: IntArray, key: bytes) -> IntArray:
    """Return for each row a number that puts rows without a time in an order that only the key knows."""
    return (siphash.draw(derive(key, "replay"), _SHUFFLE, row) >> np.uint64(1)).astype(np.int64)


def _who(frame: pl.DataFrame) -> IntArray:
    """Return for each row a number that is the same for the same person and query."""
    both = frame.select((pl.col("user").hash(1) ^ pl.col("query").hash(2)).alias("h")).to_series()
    return both.to_numpy().view(np.int64)


def whole(log: Log, key: bytes, piece_rows: int | None = None) -> Iterator[pl.DataFrame]:
    """Replay a log that is in memory, in one piece or several."""
    frame = in_order(log.frame, key)
    if piece_rows is None or frame.height <= piece_rows:
        yield frame
        return
    frame = frame.sort("_place")
    for start, end in _cuts(frame, piece_rows):
        yield frame[start:end]


def _cuts(frame: pl.DataFrame, piece_rows: int) -> Iterator[tuple[int, int]]:
    """Cut a sorted frame into pieces, never between rows of the same moment."""
    when = frame["_when"].to_numpy()
    start = 0
    while start < frame.height:
        end = min(start + piece_rows, frame.height)
        if end < frame.height and when[end - 1] != _LATEST:
            end = max(int(np.searchsorted(when, when[end - 1], side="right")), start + 1)
        yield start, end
        start = end


class Spool:
    """Sorts a log that is larger than memory: sorted runs on disk, then one time range after another."""

    def __init__(self, parent: Path | None, key: bytes) -> None:
        self._temporary = temporary_files.new_folder(parent)
        self.folder = self._temporary.path
        self._key = key
        self._runs = self._rows = 0

    def keep(self, frame: pl.DataFrame) -> None:
        """Write one piece as it is, for an engine that sorts by itself."""
        self._write(frame, 1 << 18)

    def add(self, frame: pl.DataFrame) -> None:
        """Write one piece as a sorted run."""
        run = in_order(frame, self._key).sort("_place").drop("_head", "_place")
        run = run.with_columns(pl.Series("_shuffled", shuffled(run["row"].to_numpy(), self._key)))
        self._write(run, 1 << 16)

    def _write(self, run: pl.DataFrame, group: int) -> None:
        with disk_errors("the temporary copy of the log"):
            run.write_parquet(self._temporary.file(f"run-{self._runs}.parquet"), row_group_size=group)
        self._runs += 1
        self._rows += run.height

    def scan(self) -> pl.LazyFrame:
        """Return everything that was added, lazily."""
        return pl.scan_parquet(self.folder / "run-*.parquet")

    def pieces(self, rows: int) -> Iterator[pl.DataFrame]:
        """Replay what was added, in pieces of about so many rows."""
        if not self._rows:
            yield in_order(self.scan().drop("_when", "_shuffled").collect(), self._key)
            return
        for low, high, column in self._ranges(rows):
            piece = self.scan().filter((pl.col(column) > low) & (pl.col(column) <= high))
            yield in_order(piece.drop("_when", "_shuffled").collect().sort("row"), self._key)

    def _ranges(self, rows: int) -> Iterator[tuple[int, int, str]]:
        """Choose ranges of time with about equally many rows; of `_order` where there are no times."""
        when = self.scan().select("_when").collect().to_series().sort()
        column, values = "_when", when
        if when[0] == _LATEST:  # no times at all: the key decides the order
            column, values = "_shuffled", self.scan().select("_shuffled").collect().to_series().sort()
        low = -1 << 63
        for high in values.gather([*range(rows - 1, len(values) - 1, rows), len(values) - 1]).unique():
            yield low, high, column
            low = high

    def close(self) -> None:
        """Remove the runs from disk."""
        self._temporary.remove()
