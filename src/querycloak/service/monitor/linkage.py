"""Attacks the lines that were released last, with the ground truth of these lines in memory."""

from __future__ import annotations

import threading
from dataclasses import asdict
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak.attacks.finding import ATTACKERS, Findings, Linkage, linkage
from querycloak.attacks.run import attack
from querycloak.engines.pipeline import Stage
from querycloak.errors import Gone
from querycloak.service.monitor.stream_audit import read_table
from querycloak.service.sinks.released_log import ReleasedLog
from querycloak.service.stream.stream import Output, Stream, StreamObserver

#: Attacks on labels that need the release only.
ATTACKS: Final = ("link-repeat", "link-window")
#: Released rows whose ground truth is kept, and the fewest that are attacked.
WINDOW_ROWS: Final = 20_000
FEWEST: Final = 200


class TruthWindow(StreamObserver):
    """Ground truth of the last released rows: in memory, bounded, never on disk."""

    def __init__(self, rows: int = WINDOW_ROWS) -> None:
        self._rows, self._parts, self._count = rows, list[pl.DataFrame](), 0
        self._lock = threading.Lock()

    def on_release(self, output: Output) -> None:
        """Add the newest rows and drop the oldest."""
        fresh = output.truth.tail(self._rows)
        end = output.first + len(output)
        offset = pl.int_range(end - fresh.height, end, dtype=pl.Int64, eager=True)
        with self._lock:
            self._parts.append(fresh.with_columns(released_row=offset))
            self._count += fresh.height
            while self._count - self._parts[0].height >= self._rows:
                self._count -= self._parts.pop(0).height

    def on_erasure(self, stream: Stream, label: str) -> None:
        """Drop the rows of an erased user."""
        kept = pl.col("original_user").is_null() | (pl.col("original_user") != label)
        with self._lock:
            self._parts = [some for part in self._parts if (some := part.filter(kept)).height]
            self._count = sum(part.height for part in self._parts)

    def on_epoch(self, stream: Stream) -> None:
        """Drop everything: labels of two epochs are unrelated."""
        with self._lock:
            self._parts, self._count = [], 0

    def truth(self) -> pl.DataFrame:
        """Return the ground truth of the last rows; `released_row` is the offset."""
        with self._lock:
            parts = list(self._parts)
        return pl.concat(parts, how="diagonal_relaxed").tail(self._rows) if parts else pl.DataFrame()

    def delay(self) -> dict[str, Any] | None:
        """Return how many records were accepted between a record's arrival and its release."""
        truth = self.truth()
        if not truth.height:
            return None
        known = truth.drop_nulls("original_row").select(
            delay=pl.col("released_after").cast(pl.Int64) - pl.col("original_row") - 1
        )
        if not known.height:
            return None
        median, high, worst = np.quantile(known["delay"].to_numpy(), (0.5, 0.95, 1.0), method="higher")
        return {"unit": "records", "median": int(median), "p95": int(high), "worst": int(worst)}


def estimate(log: ReleasedLog, window: TruthWindow, stages: list[Stage], now: float) -> dict[str, Any] | None:
    """Return what the attacks link of the last released rows; None for too few, or labels without a bound."""
    truth = window.truth()
    if truth.height < FEWEST:
        return None
    offsets = truth["released_row"]
    try:
        release = read_table(log, int(offsets[0]), int(offsets[-1]))
    except (Gone, pl.exceptions.PolarsError):
        return None
    release = release.filter(pl.col("released_row").is_in(offsets.implode()))
    findings = Findings(one for one in _findings(release, truth, stages) if one.bound is not None)
    found = linkage(findings, ATTACKERS["release"])
    return None if found is None else _as_dict(found, findings, now)


def _findings(release: pl.DataFrame, truth: pl.DataFrame, stages: list[Stage]) -> Findings:
    """Run the attacks as if these rows were a release of their own."""
    methods = [{"method": stage.method, "settings": stage.settings.as_dict()} for stage in stages]
    known = truth.drop_nulls("original_row").unique("original_row", maintain_order=True)
    original = known.select(row="original_row", user="original_user")
    return attack(release, {"release": {}, "methods": methods}, original, truth, ATTACKS)


def _as_dict(found: Linkage, findings: Findings, now: float) -> dict[str, Any]:
    named = next(one for one in findings if one.attack == found.attack)
    numbers = asdict(found) | {"bound": named.bound}
    rounded = {name: round(float(numbers[name]), 6) for name in ("success", "low", "high", "bound")}
    return {"attack": found.attack} | rounded | {"n": named.n, "at": round(now, 3)}
