"""Looks into the checkpoint of a stopped query: what it holds, and what its end would set free."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from querycloak.errors import DataError, Refused
from querycloak.spark.checkpoint import Folder, check_settled
from querycloak.spark.faults import told_plainly
from querycloak.spark.session import check
from querycloak.spark.streaming import log_of, plan_of
from querycloak.spark.worker import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


def stream_counts(spark: SparkSession, checkpoint: str) -> list[dict[str, Any]]:
    """Count the records of a checkpoint: for each method those accepted, released, held and dropped.

    `reasons` counts searches that were dropped, not rows. What one method released, the next accepted.
    """
    check()
    found: dict[int, Counter[str]] = {}
    reasons: dict[int, Counter[str]] = {}
    for _, row in _heads(spark, checkpoint):
        counts = {name: int(row[name]) for name in ("accepted", "released", "held")}
        found.setdefault(row["place"], Counter()).update(counts)
        reasons.setdefault(row["place"], Counter()).update(json.loads(row["dropped"]))
    return [
        {**counts, "dropped": _lost(counts), "reasons": dict(reasons[place])}
        for place, counts in sorted(found.items())
    ]


def _lost(counts: Mapping[str, int]) -> int:
    return counts["accepted"] - counts["released"] - counts["held"]


def finish_stream(
    records: DataFrame,
    checkpoint: str,
    *methods: str,
    lanes: int = 8,
    seed: int | None = None,
    secret_file: str | Path | None = None,
    source: str = "",
    mapping: Mapping[str, str] | None = None,
    keep: Sequence[str] = (),
    ids: bool = False,
    **settings: Any,
) -> DataFrame:
    """Give the records that the end of a stopped stream sets free, as a table; all others are dropped.

    The arguments are those of `protect_stream`. The checkpoint stays as it is: a query that carried on from
    it afterwards would release the same records again, so do not start it any more. A checkpoint whose last
    micro-batch was cut short is refused: the sink may have it, and the state that is read has not.
    """
    check()
    from querycloak.spark.operators import spelled_out

    log = log_of(records, mapping or {}, keep)
    plan = plan_of(methods, log.columns, lanes, seed, secret_file, source, settings)
    last = _the_one_that_holds(plan)
    spark = records.sparkSession
    check_settled(Folder(spark, checkpoint))
    operators = {row["place"]: operator for operator, row in _heads(spark, checkpoint, plan)}
    if last not in operators:
        raise DataError("the checkpoint holds no records", hint="is it that of a query that has run?")
    entries = _state(spark, checkpoint, operators[last], "journal").select(
        "key.lane", "user_map_key.*", "user_map_value.*"
    )

    def closed(lane: Any) -> Any:  # Spark takes no other kind of callable here
        return _closed(plan, last, lane)

    left = entries.groupBy("lane").applyInArrow(closed, "lane int, payload binary")
    return spelled_out(left.repartition("lane"), log.schema, plan, ids)


def _the_one_that_holds(plan: Plan) -> int:
    """Name the method whose end matters; what earlier ones held would have to pass through later ones."""
    holding = [place for place, stage in enumerate(plan.stages) if stage.traits.buffers_records]
    if any(not plan.is_last(place) for place in holding):
        raise Refused(
            f"`{plan.stages[holding[0]].method}` holds records that the methods after it have not seen",
            hint="let them be: what is held is not released",
        )
    return len(plan.stages) - 1


def _closed(plan: Plan, place: int, entries: Any) -> Any:
    """End one lane; what leaves is packed for the sink, mixed."""
    import pyarrow as pa

    from querycloak.spark.state import dealt, rebuilt

    parts = dealt(plan, place, rebuilt(plan, place, entries.to_pylist()).close())
    numbers, payloads = [number for number, _ in parts], [payload for _, payload in parts]
    return pa.table({"lane": pa.array(numbers, pa.int32()), "payload": pa.array(payloads, pa.binary())})


def _heads(spark: SparkSession, checkpoint: str, plan: Plan | None = None) -> list[tuple[int, Row]]:
    """Read what is kept of each lane, with the number of its operator; of a plan, if one is named."""
    from querycloak.spark.state import check_mark

    with told_plainly():
        found = [
            (operator, row)
            for operator in _operators(spark, checkpoint)
            for row in _state(spark, checkpoint, operator, "head").select("value.*").collect()
        ]
    for _, row in found:
        if plan is not None:
            check_mark(plan, bytes(row["mark"]))
    return found


def _operators(spark: SparkSession, checkpoint: str) -> Iterable[int]:
    found = spark.read.format("state-metadata").load(checkpoint).select("operatorId").distinct().collect()
    return sorted(int(row["operatorId"]) for row in found)


def _state(spark: SparkSession, checkpoint: str, operator: int, variable: str) -> DataFrame:
    reader = spark.read.format("statestore").option("operatorId", operator)
    return reader.option("stateVarName", variable).load(checkpoint)
