"""The truth about what was released last: in memory, bounded, never on disk."""

from __future__ import annotations

import threading
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak.service.onlooker import Onlooker
from querycloak.service.stream import Output, Stream

#: Released rows that are remembered.
ROWS: Final = 20_000


class Window(Onlooker):
    """Remembers where the last released rows came from, for a delay and for an attack on them."""

    def __init__(self, rows: int = ROWS) -> None:
        self._rows, self._parts, self._count = rows, list[pl.DataFrame](), 0
        self._lock = threading.Lock()

    def left(self, output: Output) -> None:
        """Remember the newest rows and forget the oldest."""
        fresh = output.truth.tail(self._rows)
        offset = pl.int_range(
            output.first + len(output) - fresh.height, output.first + len(output), dtype=pl.Int64, eager=True
        )
        with self._lock:
            self._parts.append(fresh.with_columns(released_row=offset))
            self._count += fresh.height
            while self._count - self._parts[0].height >= self._rows:
                self._count -= self._parts.pop(0).height

    def erased(self, stream: Stream, name: str) -> None:
        """Forget whatever an erased person wrote."""
        kept = pl.col("original_user").is_null() | (pl.col("original_user") != name)
        with self._lock:
            self._parts = [left for part in self._parts if (left := part.filter(kept)).height]
            self._count = sum(part.height for part in self._parts)

    def turned(self, stream: Stream) -> None:
        """Forget everything: labels of two epochs are no use to each other."""
        with self._lock:
            self._parts, self._count = [], 0

    def truth(self) -> pl.DataFrame:
        """Give the truth about the last rows; `released_row` is the offset."""
        with self._lock:
            parts = list(self._parts)
        return pl.concat(parts, how="diagonal_relaxed").tail(self._rows) if parts else pl.DataFrame()

    def delay(self) -> dict[str, Any] | None:
        """Say how many records were accepted between a record's own entry and its release."""
        truth = self.truth()
        if not truth.height:
            return None
        known = truth.drop_nulls("original_row").select(
            waited=pl.col("released_after").cast(pl.Int64) - pl.col("original_row") - 1
        )
        if not known.height:
            return None
        median, high, worst = np.quantile(known["waited"].to_numpy(), (0.5, 0.95, 1.0), method="higher")
        return {"unit": "records", "median": int(median), "p95": int(high), "worst": int(worst)}
