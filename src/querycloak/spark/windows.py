"""Methods that protect each window of time by itself: a worker runs the local method on one window.

A window leaves when the first search of the next one has been read whole. Counts of rows tell when that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from importlib import import_module
from itertools import zip_longest
from typing import Any, NamedTuple

import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from querycloak.dictionary import Dictionaries
from querycloak.engines.codec import Released, decode, encode_and_register
from querycloak.engines.pipeline import Stage
from querycloak.engines.record_store import RecordStore
from querycloak.engines.time_order import in_order
from querycloak.spark.stage_worker import TRUTH, report
from querycloak.spark.transfer import Plan, batches, frames, with_times


class _Moment(NamedTuple):
    """When a window leaves: after how many rows of the log, and whether only its end sets it free."""

    read: int
    closing: bool


def window_of(stage: Stage) -> str:
    """Return the number of a row's window as an expression of SQL; raise Refused if there are none."""
    module, _, name = stage.traits.spark_form.partition(":")
    found: str = getattr(import_module(module), name)(stage.settings)
    return found


def start(plan: Plan, log: DataFrame, schema: StructType) -> DataFrame:
    """Plan the work on clean rows: each window on one worker."""
    placed = log.withColumn("_window", F.expr(window_of(plan.stages[0])))
    moments = _moments(placed, per_row=plan.stages[0].traits.unit == "row")
    numbers = [F.lit(part) for place, window in enumerate(moments) for part in (window, place)]
    place = F.create_map(*numbers)[F.col("_window")] if numbers else F.lit(0)
    split = placed.repartitionById(max(len(moments), 1), place.cast("int"))
    return split.mapInArrow(partial(_work, plan, moments, schema), schema)


def _moments(placed: DataFrame, *, per_row: bool) -> dict[int, _Moment]:
    counted = placed.groupBy("_window").agg(
        F.count("row").alias("rows"), F.min(F.struct("time", "row")).alias("first")
    )
    windows = counted.select("_window", "rows", "first.row").orderBy("_window").collect()
    sizes = dict.fromkeys((int(row) for _, _, row in windows), 1)  # of the first search of each
    if not per_row and len(windows) > 1:
        firsts = placed.filter(F.col("row").isin(list(sizes)))
        same = [F.col(f"a.{n}").eqNullSafe(F.col(f"b.{n}")) for n in ("user", "query")]
        same.append(F.col("a.time") == F.col("b.time"))  # each row without a time is a search of its own
        firsts = firsts.select("user", "query", "time", F.col("row").alias("_head"))
        found = placed.alias("a").join(F.broadcast(firsts).alias("b"), same)
        sizes |= {int(head): int(count) for head, count in found.groupBy("_head").count().collect()}
    moments, read = {}, 0
    for window, following in zip_longest(windows, windows[1:]):
        read += int(window["rows"])
        after = read + (sizes[int(following["row"])] if following else 0)
        moments[int(window["_window"])] = _Moment(after, following is None)
    return moments


def _work(plan: Plan, moments: dict[int, _Moment], schema: StructType, rows: Iterable[Any]) -> Iterator[Any]:
    """Do the work of one Spark partition, which has the rows of whole windows."""
    for frame in frames(rows, rows=1 << 62):
        for key, part in frame.group_by("_window"):
            for result in _protected(plan, moments[int(str(key[0]))], part):
                yield from batches(result, schema)


def _protected(plan: Plan, moment: _Moment, frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Protect one window, as one machine would; yield released rows and the report."""
    rows = in_order(with_times(frame).sort("row").select("row", *plan.columns), plan.key)
    pipeline, store = plan.whole(Dictionaries()), RecordStore()
    pipeline.check_ready()
    if pipeline.per_row:
        rows = rows.with_columns(_head="row")
    store.add(rows)
    pipeline.push(encode_and_register(rows, pipeline, 0))  # nothing of a window leaves before its end
    done = decode(pipeline, pipeline.close_at(moment.read), store)
    (method,) = pipeline.stages
    yield _carried(done, moment)
    yield pl.DataFrame({"_report": [report(method, 0)]})


def _carried(done: Released, moment: _Moment) -> pl.DataFrame:
    """Return released rows beside the truth about each and its place in the order of release."""
    truth = done.truth.rename(lambda name: TRUTH + name)
    place = pl.int_range(pl.len(), dtype=pl.Int64)
    return pl.concat([done.frame, truth], how="horizontal").with_columns(
        row=done.truth["original_row"],
        _closing=pl.lit(moment.closing),
        _seq=pl.lit(moment.read, pl.Int64),
        _time=place,  # rows of one moment stand in the order in which the method's pipeline left them
        _tie=pl.lit(0, pl.Int64),
        _head=pl.lit(0, pl.Int64),
        _blank=pl.lit(0, pl.Int64),
    )
