"""Methods as a streaming query of Spark: plan, operators, sinks with a private checkpoint, and its end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StringType, StructField, StructType

from querycloak import keys
from querycloak.engines.pipeline import check_kept_labels, check_live, parse_stages
from querycloak.engines.source import check_columns
from querycloak.errors import DataError, Refused, UsageError
from querycloak.spark import dataframe
from querycloak.spark.batch import check_distributable
from querycloak.spark.checkpoint import (
    MARKED,
    Folder,
    check_settled,
    check_sink,
    keep_note,
    make_private,
    marks_of,
)
from querycloak.spark.session import translate_errors
from querycloak.spark.state_store import Lanes, check_mark, mark_of, rebuilt, route
from querycloak.spark.transfer import PACKED, Plan, in_arrow, plan_traits, put_in_lanes, spell_out

_STORE: Final = "spark.sql.streaming.stateStore.providerClass"
_SHUFFLES: Final = "spark.sql.shuffle.partitions"
#: A message of Spark's to a worker has up to this many parts of a lane's log: it must stay below 2 GB.
_PARTS_AT_ONCE: Final = {
    "spark.sql.execution.arrow.transformWithStateInPySpark.maxStateRecordsPerBatch": "32"
}
#: What a checkpoint counts of the records of each method.
_COUNTS: Final = ("accepted", "released", "held")
#: The trigger of a query that waits for nothing.
NOW: Final = {"processingTime": "0 seconds"}


def protect_stream(
    records: DataFrame,
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
    """Run methods one after the other over a streaming DataFrame; return the released records as another one.

    `records` has the columns of a log and `row`: a whole number per record, which stays the same whenever the
    source is read again (see `from_kafka`). Records of one micro-batch are ordered by `time`, then `row`.
    A query that continues after a restart needs the same secret, so one must be named.

    Work is split into `lanes`; their number cannot change later. Settings are passed by name (`k=5`); if two
    methods have the same one, pass `{"method.name": value}` as `**`. `ids=True` adds a column `id`, which is
    the same whenever a record is written again, so that readers can drop repeats.
    """
    _check_store(records)
    log = log_of(records, mapping or {}, keep)
    plan = plan_of(methods, log.columns, lanes, seed, secret_file, source, settings)
    if not plan_traits(plan)[0]:  # then a search goes to one lane with all of its clicks
        search = [name for name in ("user", "query", "time") if name in log.columns]
        log = log.repartition(plan.parts, *search)
    packed = log.mapInArrow(partial(put_in_lanes, plan), PACKED)
    for place in range(len(plan.stages)):
        packed = packed.groupBy("lane").transformWithState(
            Lanes(plan, place), PACKED, outputMode="Append", timeMode="None"
        )
    marked = packed.repartition("lane").alias(MARKED + mark_of(plan).hex())
    return unpacked(marked, log.schema, plan, ids)


def plan_of(
    methods: Sequence[str],
    columns: Sequence[str],
    lanes: int,
    seed: int | None,
    secret_file: str | Path | None,
    source: str,
    settings: Mapping[str, Any],
) -> Plan:
    """Return the plan that all workers need; refuse what a stream cannot do."""
    stages = parse_stages(list(methods), settings)
    check_kept_labels(stages, source)
    check_columns(stages, list(columns))
    if lanes < 1:
        raise UsageError(f"`lanes` must be at least 1; got {lanes}")
    if seed is None and secret_file is None:
        raise UsageError(
            "a stream needs the same secret after a restart, and none was named",
            hint="give `secret_file`: it is made if it is not there",
        )
    secret = keys.Secret.choose(seed, Path(secret_file) if secret_file is not None else None)
    # the same for a secret and a source; that of a seed is the local engine's
    key = keys.release_key(
        secret, source, keys.release_id(secret, source, 0) if seed is not None else "stream"
    )
    plan = Plan(tuple(stages), key, dataframe.of_log(columns), rows=0, parts=lanes)
    check_live(plan.stages)
    if noisy := [stage.method for stage in plan.stages if stage.traits.system_noise]:
        raise UsageError(
            f"`{noisy[0]}` draws new noise at each attempt, and Spark may need several",
            hint="use it with `querycloak protect` on a file",
        )
    check_distributable(plan.stages, plan.key)
    plan.whole().check_ready()
    return plan


def log_of(records: DataFrame, mapping: Mapping[str, str], keep: Sequence[str]) -> DataFrame:
    """Return the wanted columns as a log has them."""
    if not records.isStreaming:
        raise UsageError("the DataFrame is no stream", hint="use `querycloak.spark.protect` for a table")
    if "row" not in records.columns:
        raise DataError(
            "the stream has no column `row` with a number that is each record's own",
            hint="`querycloak.spark.from_kafka` makes one of a message's partition and offset",
        )
    return dataframe.canonical(records, mapping, keep)


def _check_store(records: DataFrame) -> None:
    """Refuse a session without RocksDB; Spark itself would fail much later."""
    if "RocksDB" not in (records.sparkSession.conf.get(_STORE, "") or ""):
        raise UsageError(
            "the state of a stream is kept in RocksDB, and this session keeps its state elsewhere",
            hint=f"start it with `querycloak.spark.start_session`, or set `{_STORE}` to "
            "`org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider`",
        )


def unpacked(packed: DataFrame, schema: StructType, plan: Plan, ids: bool) -> DataFrame:
    """Return the released rows of packed ones."""
    fields = [StructField(name, schema[name].dataType, True) for name in plan.columns]
    shown = StructType([*fields, *([StructField("id", StringType(), True)] if ids else [])])
    left = packed.mapInArrow(partial(spell_out, plan, ids, shown), shown)
    return left.withColumns({"time": F.timestamp_micros("time")} if "time" in plan.columns else {})


def write_files(
    released: DataFrame,
    folder: str,
    checkpoint: str,
    *,
    partitions: int = 8,
    format: str = "parquet",  # noqa: A002 - Spark's own name
    trigger: Mapping[str, Any] | None = None,
) -> StreamingQuery:
    """Start a query that writes released records to files; a reader of the folder with Spark sees each once.

    `trigger` is Spark's (`{"processingTime": "10 seconds"}`). `partitions` cannot change later. A new
    checkpoint needs a new folder.
    """
    session = released.sparkSession
    check_sink(Folder(session, folder), Folder(session, checkpoint))
    writer = released.writeStream.format(format).outputMode("append").option("path", folder)
    writer = writer.trigger(**(trigger or NOW))
    return start_query(writer, released, checkpoint, partitions=partitions)


def start_query(
    writer: DataStreamWriter, released: DataFrame, checkpoint: str, *, partitions: int, **more: Any
) -> StreamingQuery:
    """Start a query with a private checkpoint and this number of state stores.

    The checkpoint is bound to all that is named here: Spark would continue with other `partitions` than
    requested, and notice another secret only in lanes that have a state already.
    """
    session = released.sparkSession
    place = Folder(session, checkpoint)
    if place.local is not None:  # raw records wait in it
        make_private(place.local)
    keep_note(place, {"marks": marks_of(released), "partitions": partitions, **more})
    chosen = {_SHUFFLES: str(partitions), **_PARTS_AT_ONCE}
    before = {name: session.conf.get(name, None) for name in chosen}
    for name, value in chosen.items():  # the query takes its own copy when it starts
        session.conf.set(name, value)
    try:
        return writer.option("checkpointLocation", checkpoint).start()
    finally:
        for name, former in before.items():
            session.conf.unset(name) if former is None else session.conf.set(name, former)


# the checkpoint of a stopped query


def stream_counts(spark: SparkSession, checkpoint: str) -> list[dict[str, Any]]:
    """Count the records of a checkpoint: for each method those accepted, released, held and dropped.

    `reasons` counts searches that were dropped, not rows. What one method released, the next accepted.
    """
    found: dict[int, dict[str, Any]] = {}
    for _, row in _heads(spark, checkpoint):
        counts = found.setdefault(row["place"], dict.fromkeys(_COUNTS, 0) | {"reasons": Counter()})
        for name in _COUNTS:
            counts[name] += int(row[name])
        counts["reasons"].update(json.loads(row["dropped"]))
    for counts in found.values():
        counts["dropped"] = counts["accepted"] - counts["released"] - counts["held"]
        counts["reasons"] = dict(counts["reasons"])
    return [found[place] for place in sorted(found)]


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
    log = log_of(records, mapping or {}, keep)
    plan = plan_of(methods, log.columns, lanes, seed, secret_file, source, settings)
    if holding := [stage.method for stage in plan.stages[:-1] if stage.traits.buffers_records]:
        raise Refused(
            f"`{holding[0]}` holds records that the methods after it have not seen",
            hint="leave them: what is held is not released",
        )
    last, spark = len(plan.stages) - 1, records.sparkSession
    check_settled(Folder(spark, checkpoint))
    operators = {}
    for operator, row in _heads(spark, checkpoint):
        check_mark(plan, bytes(row["mark"]))
        operators[row["place"]] = operator
    if last not in operators:
        raise DataError("the checkpoint holds no records", hint="is it that of a query that has run?")
    entries = _state(spark, checkpoint, operators[last], "journal").select(
        "key.lane", "user_map_key.*", "user_map_value.*"
    )

    def closed(lane: Any) -> Any:
        """Close one lane; return its packed records, shuffled for the sink."""
        parts = route(plan, last, rebuilt(plan, last, lane.to_pylist()).close())
        return pa.Table.from_batches([in_arrow(parts)])

    left = entries.groupBy("lane").applyInArrow(closed, PACKED)
    return unpacked(left.repartition("lane"), log.schema, plan, ids)


def _heads(spark: SparkSession, checkpoint: str) -> list[tuple[int, Row]]:
    """Return the state of each lane with the number of its operator."""
    with translate_errors():
        known = spark.read.format("state-metadata").load(checkpoint).select("operatorId").distinct()
        return [
            (operator, row)
            for operator in sorted(int(row["operatorId"]) for row in known.collect())
            for row in _state(spark, checkpoint, operator, "head").select("value.*").collect()
        ]


def _state(spark: SparkSession, checkpoint: str, operator: int, variable: str) -> DataFrame:
    reader = spark.read.format("statestore").option("operatorId", operator)
    return reader.option("stateVarName", variable).load(checkpoint)
