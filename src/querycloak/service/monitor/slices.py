"""Cuts the stream into slices for the audit: what came, what left and the truth about it, as numbers."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak.audits.evidence import number, numbered
from querycloak.engines.pipeline import Pipeline, Stage
from querycloak.log import IntArray
from querycloak.service.onlooker import Onlooker
from querycloak.service.stream import Output, Stream

#: Rows that come or leave within a slice, about; each takes some 50 bytes.
ROWS: Final = 100_000
#: Slices that may wait for the audit; if it falls further behind, some are left out, and that is told.
MOST: Final = 16
_COLUMNS: Final = ("row", "_head", "user", "query", "category")


@dataclass
class Slice:
    """What happened between two moments of a stream; users and queries are numbers.

    `held` is what waited at the beginning, where that does not follow from the slice before. `stay` are the
    rows that wait at the end. One that is not `whole` only says which lines were left out.
    """

    stages: list[Stage]
    since: int
    first: int
    held: pl.DataFrame | None = None
    new_epoch: bool = False
    came: list[pl.DataFrame] = field(default_factory=list)
    left: list[pl.DataFrame] = field(default_factory=list)
    erased: list[tuple[int, int]] = field(default_factory=list)
    stay: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    last: int = 0
    rows: int = 0
    whole: bool = True


class Slices(Onlooker):
    """Gathers slices in the worker's thread and queues them for the audit's."""

    def __init__(self, rows: int = ROWS) -> None:
        self._size = rows
        self._slice: Slice | None = None
        self.ready: deque[Slice] = deque()
        self.lost = False  # set by the audit when it cannot go on from the slice before

    def begin(self, stream: Stream, *, new_epoch: bool = False) -> None:
        """Begin where the stream stands; nothing is known of what came before but what waits."""
        held = stream.waiting.columns(*_COLUMNS)
        known = _numbers(held) if held is not None else None
        self._slice = self._next(stream, stream.accepted)
        self._slice.held = known if known is not None else pl.DataFrame(schema=SCHEMA)
        self._slice.new_epoch = new_epoch or not self._slice.held.height

    def _next(self, stream: Stream, since: int) -> Slice:
        return Slice(stages_of(stream.pipeline), since, stream.released + 1)

    def came(self, stream: Stream, rows: pl.DataFrame) -> None:
        """Note what came; before that, end a slice that is large enough."""
        assert self._slice is not None
        if self._slice.rows >= self._size:
            self._end(stream, int(rows["row"][0]))
        self._slice.came.append(_numbers(rows.select(_COLUMNS)))
        self._slice.rows += rows.height

    def left(self, output: Output) -> None:
        """Note the truth about what left."""
        assert self._slice is not None
        offsets = output.frame["offset"].alias("released_row")
        self._slice.left.append(numbered(output.truth.with_columns(offsets).lazy()).collect())
        self._slice.rows += len(output)

    def erased(self, stream: Stream, name: str) -> None:
        """Note who was forgotten, and when."""
        assert self._slice is not None
        who = int(pl.select(number(pl.lit(name))).item())
        self._slice.erased.append((who, stream.accepted))

    def turned(self, stream: Stream) -> None:
        """End the slice with the epoch; the next begins with nobody."""
        self._close(stream)
        self.begin(stream, new_epoch=True)

    def changed(self, stream: Stream) -> None:
        """End the slice when a setting has changed: it knows those that were in force until now."""
        self.cut(stream)

    def cut(self, stream: Stream) -> None:
        """End the slice now, between two entries."""
        self._end(stream, stream.accepted)

    def _end(self, stream: Stream, since: int) -> None:
        if self._close(stream):
            self._slice = self._next(stream, since)
        else:
            self.begin(stream)
            assert self._slice is not None
            self._slice.since = since

    def _close(self, stream: Stream) -> bool:
        """Queue the slice, without what is in it if that is too much; say whether the next can follow it."""
        assert self._slice is not None
        self._slice.last = stream.released
        if len(self.ready) >= MOST or self.lost:
            self.lost = False
            self._slice = replace(self._slice, came=[], left=[], held=None, whole=False)
            self.ready.append(self._slice)
            return False
        rows = stream.waiting.columns("row")
        self._slice.stay = rows["row"].to_numpy() if rows is not None else self._slice.stay
        self.ready.append(self._slice)
        return True


SCHEMA: Final[dict[str, Any]] = {
    "row": pl.Int64,
    "_head": pl.Int64,
    "user": pl.Int64,
    "query": pl.Int64,
    "category": pl.String,
}


def _numbers(rows: pl.DataFrame) -> pl.DataFrame:
    """Put numbers in the place of users and queries, so that no text is kept."""
    return rows.with_columns(number(pl.col("user")), number(pl.col("query"))).cast({"category": pl.String})


def stages_of(pipeline: Pipeline) -> list[Stage]:
    """Give the methods with the settings that are in force now."""
    return [Stage(stage.name, stage.current_settings()) for stage in pipeline]
