"""The place of each row in the whole log, by time, which one machine knows from reading it in order.

Rows are cut into slices of time. A slice begins after as many rows as all earlier ones have, which one count
determines. Rows of one moment are never separated: their order depends on their numbers, and the rows of a
search may have any of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import numpy as np
import polars as pl
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from querycloak.dictionary import Dictionaries
from querycloak.engines.time_order import in_order, shuffled
from querycloak.kernels.order import searches
from querycloak.log import IntArray
from querycloak.spark.transfer import Plan, batches, coded, frames, lane_of, with_times

#: Rows of a slice, about; a worker has one slice in memory at a time.
SLICE: Final = 1 << 18
#: How far either end of a slice may be off, as a share of the slice.
_OFF: Final = 0.125
#: The same as a share of all rows: less than the first is not worth it for few slices, and what Spark keeps
#: to be so exact grows as the second shrinks. Beyond some three billion rows slices grow with the log.
_COARSEST, _FINEST = 0.002, 1e-5


@dataclass(frozen=True)
class Slices:
    """Where slices of time end, and how many rows come before each."""

    ends: tuple[int, ...]
    before: tuple[int, ...]

    def number(self) -> Column:
        """Return the slice of a row's moment."""
        return F.expr(_search(self.ends))


def _search(ends: tuple[int, ...], first: int = 0) -> str:
    """Write a binary search over the ends as an expression of SQL."""
    if not ends:
        return str(first)
    middle = len(ends) // 2
    low, high = _search(ends[:middle], first), _search(ends[middle + 1 :], first + middle + 1)
    return f"IF(_moment <= {ends[middle]}L, {low}, {high})"


def cut(log: DataFrame, rows: int, size: int = SLICE) -> Slices:
    """Choose slices of about equally many rows, then count them."""
    shares = [at / rows for at in range(size, rows, size)]
    found = log.stat.approxQuantile("_moment", shares, error(rows, size)) if shares else []
    ends = tuple(sorted({int(value) for value in found}))
    if not ends:
        return Slices((), (0,))
    counted = log.groupBy(Slices(ends, ()).number().alias("slice")).count().collect()
    counts = {int(row["slice"]): int(row["count"]) for row in counted}
    sizes = [counts.get(number, 0) for number in range(len(ends) + 1)]
    return Slices(ends, (0, *accumulate(sizes))[:-1])


def error(rows: int, size: int) -> float:
    """Return the error that quantiles may have, so that slices have about the wanted size."""
    return min(_COARSEST, max(_FINEST, _OFF * size / rows))


def moments(batch: Iterable[Any], key: bytes, schema: StructType) -> Iterator[Any]:
    """Add keyed moments to rows without times."""
    for frame in frames(batch):
        moment = pl.Series("_moment", shuffled(frame["row"].to_numpy(), key))
        yield from batches(frame.with_columns(moment), schema)


def place(plan: Plan, slices: Slices, schema: StructType, rows: Iterable[Any]) -> Iterator[Any]:
    """Compute the places in the whole log of the rows of a Spark partition, which has whole slices."""
    for whole in frames(rows, rows=1 << 62):
        for number in whole["_slice"].unique().sort().to_list():
            part = whole.filter(pl.col("_slice") == number).drop("_slice", "_moment")
            yield from batches(placed(plan, part, slices.before[number]), schema)


def placed(plan: Plan, frame: pl.DataFrame, before: int) -> pl.DataFrame:
    """Find the searches of a slice, their sequence numbers and their lanes."""
    ordered = in_order(with_times(frame).sort("row"), plan.key)
    pipeline = plan.whole()
    row, head = ordered["row"].to_numpy(), ordered["_head"].to_numpy()
    if pipeline.per_row:
        head = row
    near = np.searchsorted(row, head)  # rows of a slice may lie far apart in the log
    firsts, read = searches(ordered["_place"].to_numpy(), near, np.arange(row.size))
    seq = np.empty(row.size, np.int64)
    seq[firsts] = before + read
    lane = np.empty(row.size, np.int32)
    lane[firsts] = _lanes(plan, ordered, firsts)
    carried = {"_head": head, "_seq": seq[near], "_lane": lane[near]}
    return frame.sort("row").with_columns(pl.Series(name, column) for name, column in carried.items())


def _lanes(plan: Plan, frame: pl.DataFrame, firsts: IntArray) -> IntArray:
    """Return the lane of each search in the first method."""
    method = plan.stages[0].build(plan.key, 0, texts := Dictionaries())
    few = frame.select("row", *plan.columns)[firsts]
    names = plan.stages[0].traits.reads | {"category"}
    batch = coded(few, names, texts, row=few["row"].to_numpy())
    return lane_of(method.partition_key(batch), plan.parts)
