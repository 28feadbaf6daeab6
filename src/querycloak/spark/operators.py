"""The plan of a streaming query: rows into lanes, one stateful operator for each method, rows again."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame, functions
from pyspark.sql.types import StringType, StructField, StructType

from querycloak.spark.checkpoint import MARKED
from querycloak.spark.packing import PACKED, put_in_lanes, spell_out, told_by
from querycloak.spark.state import Lanes, mark_of
from querycloak.spark.worker import Plan


def stream(log: DataFrame, plan: Plan, ids: bool) -> DataFrame:
    """Put the operators together; nothing runs before a sink is started."""
    if not told_by(plan)[0]:  # then a search goes to one lane with all of its clicks
        search = [name for name in ("user", "query", "time") if name in log.columns]
        log = log.repartition(plan.parts, *search)
    packed = log.mapInArrow(partial(put_in_lanes, plan), PACKED)
    for place in range(len(plan.stages)):
        packed = packed.groupBy("lane").transformWithState(
            Lanes(plan, place), PACKED, outputMode="Append", timeMode="None"
        )
    marked = packed.repartition("lane").alias(MARKED + mark_of(plan).hex())
    return spelled_out(marked, log.schema, plan, ids)


def spelled_out(packed: DataFrame, schema: StructType, plan: Plan, ids: bool) -> DataFrame:
    """Unpack what left."""
    fields = [StructField(name, schema[name].dataType, True) for name in plan.columns]
    shown = StructType([*fields, *([StructField("id", StringType(), True)] if ids else [])])
    left = packed.mapInArrow(partial(spell_out, plan, ids, shown), shown)
    return left.withColumns({"time": functions.timestamp_micros("time")} if "time" in plan.columns else {})
