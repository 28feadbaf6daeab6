"""A log in the order in which it happened: by time, ties by input row, whatever the file's order was."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from querycloak.kernels import searches, siphash
from querycloak.keys import derive
from querycloak.log import IntArray, Log

_LATEST = np.iinfo(np.int64).max
_SHUFFLE = 1


def in_order(frame: pl.DataFrame, key: bytes) -> pl.DataFrame:
    """Add `_when`, `_order` (the replay order) and `_head` (the first row of each row's search).

    Rows without a time come last, in an order that only the key knows: their order in the file may
    be by author.
    """
    row = frame["row"].to_numpy()
    when = _times(frame)
    shuffled = (siphash.draw(derive(key, "replay"), _SHUFFLE, row) >> np.uint64(1)).astype(np.int64)
    order = np.where(when == _LATEST, shuffled, row)
    return frame.with_columns(
        pl.Series("_when", when),
        pl.Series("_order", order),
        pl.Series("_head", _heads(frame, when, order, row)),
    )


def _times(frame: pl.DataFrame) -> IntArray:
    if "time" not in frame.columns:
        return np.full(frame.height, _LATEST, np.int64)
    return frame["time"].to_physical().fill_null(_LATEST).to_numpy()


def _heads(frame: pl.DataFrame, when: IntArray, order: IntArray, row: IntArray) -> IntArray:
    """Find each row's search; rows without a time are searches of their own."""
    both = frame.select((pl.col("user").hash(1) ^ pl.col("query").hash(2)).alias("h")).to_series()
    ids = np.where(when == _LATEST, order, both.to_numpy().view(np.int64))
    return searches.heads(when, ids, row)


def whole(log: Log, key: bytes, piece_rows: int | None = None) -> Iterator[pl.DataFrame]:
    """Replay a log that is in memory, in one piece or several."""
    frame = in_order(log.frame, key)
    if piece_rows is None or frame.height <= piece_rows:
        yield frame
        return
    frame = frame.sort("_when", "_order")
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

    def __init__(self, beside: Path, key: bytes) -> None:
        self._exit = contextlib.ExitStack()
        folder = tempfile.TemporaryDirectory(prefix=".querycloak-spool-", dir=beside)  # mode 0700
        self._folder = Path(self._exit.enter_context(folder))
        self._key = key
        self._runs = self._rows = 0

    def add(self, frame: pl.DataFrame) -> None:
        """Write one piece as a sorted run."""
        run = in_order(frame, self._key).drop("_head").sort("_when", "_order")
        run.write_parquet(self._folder / f"run-{self._runs}.parquet", row_group_size=1 << 16)
        self._runs += 1
        self._rows += run.height

    def scan(self) -> pl.LazyFrame:
        """Give everything that was added, lazily."""
        return pl.scan_parquet(self._folder / "run-*.parquet")

    def pieces(self, rows: int) -> Iterator[pl.DataFrame]:
        """Replay what was added, in pieces of about so many rows."""
        if not self._rows:
            yield in_order(self.scan().drop("_when", "_order").collect(), self._key)
            return
        for low, high, column in self._ranges(rows):
            piece = self.scan().filter((pl.col(column) > low) & (pl.col(column) <= high))
            yield in_order(piece.drop("_when", "_order").collect().sort("row"), self._key)

    def _ranges(self, rows: int) -> Iterator[tuple[int, int, str]]:
        """Choose ranges of time with about equally many rows; of `_order` where there are no times."""
        when = self.scan().select("_when").collect().to_series().sort()
        column, values = "_when", when
        if when[0] == _LATEST:
            column, values = "_order", self.scan().select("_order").collect().to_series().sort()
        low = -1 << 63
        for high in values.gather([*range(rows - 1, len(values) - 1, rows), len(values) - 1]).unique():
            yield low, high, column
            low = high

    def close(self) -> None:
        """Remove the runs from disk."""
        self._exit.close()
