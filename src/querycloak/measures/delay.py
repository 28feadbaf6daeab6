"""Delay between entry and release, and how the share released grows with the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from querycloak.errors import NotApplicable
from querycloak.kernels.order import heads
from querycloak.log import FloatArray, IntArray
from querycloak.measures.base import Kind, LogPair, Measure, Unit

#: Stands for "no time" among moments: later than all.
NEVER = int(np.iinfo(np.int64).max)


def delay(entered: Sequence[float], released: Sequence[float]) -> dict[str, float]:
    """Return statistics of the delay from entry to release, both in records read or both in seconds.

    >>> delay([1, 2, 3], [3, 3, 3])
    {'mean': 1.0, 'median': 1.0, 'p90': 1.8, 'max': 2.0}
    """
    if len(entered) != len(released):
        raise ValueError(f"the sequences must be equally long; got {len(entered)} and {len(released)}")
    return _figures(np.asarray(released, np.float64) - np.asarray(entered, np.float64))


def _figures(waited: FloatArray) -> dict[str, float]:
    if not waited.size:
        return dict.fromkeys(("mean", "median", "p90", "max"), float("nan"))
    if waited.min() < 0:
        raise ValueError("a record cannot be released before it entered")
    middle, high = np.quantile(waited, (0.5, 0.9)).tolist()
    return {"mean": float(waited.mean()), "median": middle, "p90": high, "max": float(waited.max())}


def release_rate_over_time(released_after: Sequence[int], records: int, parts: int = 10) -> list[float]:
    """Return the share of what had been read that had been released, after each tenth of the input.

    `released_after` says for each released record how many had been read when it left.

    >>> release_rate_over_time([2, 4], records=4, parts=2)
    [0.5, 0.5]
    """
    if not records:
        return [float("nan")] * parts
    when = np.sort(np.asarray(released_after))
    read = [records * part // parts for part in range(1, parts + 1)]
    gone = np.searchsorted(when, read, side="right").tolist()
    return [left / so_far if so_far else float("nan") for left, so_far in zip(gone, read, strict=True)]


def arrivals(when: IntArray, head: IntArray) -> IntArray:
    """Return for each row how many rows had been read when its search was complete, in time order.

    `when` is each row's time and `head` the first row of its search; rows of a search come in together.
    """
    order = np.lexsort((head, when))
    last = np.flatnonzero(np.append(head[order][1:] != head[order][:-1], True))
    read = np.empty(when.size, np.int64)
    read[order] = last[np.searchsorted(last, np.arange(when.size))] + 1
    return read


def waiting(released_after: IntArray, row: IntArray, when: IntArray, head: IntArray) -> dict[str, Any]:
    """Return the delays of released rows, in records and in seconds; `row` is each one's place in `when`.

    `when` is in microseconds; rows without a time have the largest number and are not counted.
    """
    known = when[row] < NEVER
    row, released_after = row[known], released_after[known]
    in_order = np.sort(when)
    last = in_order[np.searchsorted(in_order, NEVER) - 1] if when.size else 0
    moment = np.minimum(in_order[np.minimum(released_after, when.size) - 1], last)
    return {
        "records": _figures((released_after - arrivals(when, head)[row]).astype(np.float64)),
        "seconds": _figures((moment - when[row]) / 1e6),
        "counted": int(row.size),
    }


class Delay(Measure):
    """How many records were read, and how much time passed, between a record's entry and its release."""

    name, help = "delay", "records read and seconds passed between entry and release (needs the truth)"
    unit, kind = Unit.COUNT, Kind.COST
    headline = "records.mean"

    def __call__(self, pair: LogPair) -> dict[str, Any]:
        """Replay the original's order of arrival and look up when each released row had entered."""
        truth = self._usable(pair)
        row = pair.original["row"].to_numpy()
        when = pair.original["time"].to_physical().fill_null(NEVER).to_numpy()
        order = np.argsort(row, kind="stable")
        place = order[np.searchsorted(row[order], truth["original_row"].to_numpy())]
        after = truth["released_after"].cast(pl.Int64).to_numpy()
        found = waiting(after, place, when, _heads(pair.original, when, row))
        rate = release_rate_over_time(np.sort(after), row.size)  # type: ignore[arg-type]
        return found | {"release_rate_by_tenths": rate}

    @staticmethod
    def _usable(pair: LogPair) -> pl.DataFrame:
        if pair.truth is None:
            raise NotApplicable("only the truth says when a record was released: give `--truth`")
        if "time" not in pair.original.columns or pair.original["time"].null_count() == pair.original.height:
            raise NotApplicable("the original has no times, so the order in which records came is unknown")
        return pair.truth.drop_nulls("original_row").cast({"original_row": pl.Int64})


def _heads(frame: pl.DataFrame, when: IntArray, row: IntArray) -> IntArray:
    """Find the first row of each row's search, as the replay does."""
    both = frame.select((pl.col("user").hash(1) ^ pl.col("query").hash(2)).alias("h")).to_series()
    found: IntArray = heads(when, both.to_numpy().view(np.int64), row, np.lexsort((row, when)), NEVER)
    return found
