"""The checkpoint of a stopped query: its counts, and the records that its end releases."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from querycloak.errors import DataError, Refused
from querycloak.spark.checkpoint import Folder, check_settled
from querycloak.spark.plan import Plan
from querycloak.spark.session import check, translate_errors
from querycloak.spark.streaming import log_of, plan_of, unpacked

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
    """Return the records that the end of a stopped stream releases, as a table; all others are dropped.

    The arguments are those of `protect_stream`. The checkpoint is not changed: a query that continues from it
    would release the same records again, so do not start it again. A checkpoint whose last micro-batch was
    interrupted is refused: the sink may contain it, and the state does not.
    """
    check()
    log = log_of(records, mapping or {}, keep)
    plan = plan_of(methods, log.columns, lanes, seed, secret_file, source, settings)
    last = _last_stage(plan)
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
    return unpacked(left.repartition("lane"), log.schema, plan, ids)


def _last_stage(plan: Plan) -> int:
    """Return the place of the last method; refuse if an earlier one holds records."""
    holding = [place for place, stage in enumerate(plan.stages) if stage.traits.buffers_records]
    if any(not plan.is_last(place) for place in holding):
        raise Refused(
            f"`{plan.stages[holding[0]].method}` holds records that the methods after it have not seen",
            hint="leave them: what is held is not released",
        )
    return len(plan.stages) - 1


def _closed(plan: Plan, place: int, entries: Any) -> Any:
    """Close one lane; return its packed records, shuffled for the sink."""
    import pyarrow as pa

    from querycloak.spark.state_store import rebuilt, route

    parts = route(plan, place, rebuilt(plan, place, entries.to_pylist()).close())
    numbers, payloads = [number for number, _ in parts], [payload for _, payload in parts]
    return pa.table({"lane": pa.array(numbers, pa.int32()), "payload": pa.array(payloads, pa.binary())})


def _heads(spark: SparkSession, checkpoint: str, plan: Plan | None = None) -> list[tuple[int, Row]]:
    """Return the state of each lane with the number of its operator; check it against a plan if given."""
    from querycloak.spark.state_store import check_mark

    with translate_errors():
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
