"""Protection of a DataFrame: one method after the other, each split by its own key."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from querycloak import keys
from querycloak.dictionary import Dictionaries
from querycloak.engines.pipeline import Pipeline, Stage, check_kept_labels, parse_stages
from querycloak.engines.source import check_columns
from querycloak.engines.source_state import Stored
from querycloak.errors import DataError, Refused
from querycloak.keys import Secret
from querycloak.log import Batch
from querycloak.protector import Labels, Protector
from querycloak.spark import dataframe, stage_worker, time_slices, windows
from querycloak.spark.session import translate_errors
from querycloak.spark.stage_worker import NOW, ORDER, TRUTH, TableWorker
from querycloak.spark.transfer import Plan

#: Workers for each core: more even out keys of unequal weight, fewer start faster.
_PARTS_A_CORE: Final = 4
#: What one machine can do for a method that must see everything at once, measured (docs/how-to/spark.md).
_ONE_MACHINE: Final = (
    "run it on one machine, without `--engine spark`; docs/explanation/sizing.md says up to which size"
)


#: Labels that a later method cannot work with, since it does not know the authors.
_RELABELS: Final = (Labels.OTHERS, Labels.GROUP)


class SkippedRows(UserWarning):
    """Rows of a DataFrame were bad and left out."""


def protect(
    log: DataFrame,
    *methods: str,
    seed: int | None = None,
    secret_file: str | Path | None = None,
    mapping: Mapping[str, str] | None = None,
    keep: Sequence[str] = (),
    strict: bool = False,
    truth: bool = False,
    parts: int | None = None,
    **settings: Any,
) -> DataFrame:
    """Run methods one after the other on a DataFrame; return the released rows, as lazily as Spark can.

    The rows are those that `querycloak.protect` releases for the same secret. `truth` adds the columns of
    the ground truth. Some counting is done at once; bad rows are reported by a `SkippedRows` warning.
    """
    secret = Secret.choose(seed, Path(secret_file) if secret_file else None)
    key = keys.release_key(secret, "", keys.release_id(secret, "", 0))
    stages = parse_stages(list(methods), settings)
    check_kept_labels(stages, None)
    if noisy := [s.method for s in stages if s.traits.system_noise]:
        raise Refused(
            f"`{noisy[0]}` draws new noise whenever Spark computes a part again, and two draws reveal more",
            hint="use `querycloak protect --engine spark`, which computes it once and stores it",
        )
    good = cleaned(log, mapping or {}, keep, strict)
    run = start(stages, key, good, parts=parts)
    return run.released(truth)


def cleaned(log: DataFrame, mapping: Mapping[str, str], keep: Sequence[str], strict: bool) -> DataFrame:
    """Exclude bad rows, counted by reason."""
    with translate_errors():  # an expression of the DataFrame can fail, and Spark would show the cell
        known = dataframe.canonical(log, mapping, keep)
        dataframe.check_numbers(known)  # also those of a Parquet file: a join or `explode` doubles them
        bad = {reason: count for reason, count in dataframe.left_out(known).items() if reason}
    if bad:
        listed = ", ".join(f"{reason} ({count:,})" for reason, count in sorted(bad.items()))
        if strict:
            raise DataError(
                f"the DataFrame has bad rows: {listed}", hint="without `strict` they are left out"
            )
        warnings.warn(f"{sum(bad.values()):,} bad rows were left out: {listed}", SkippedRows, stacklevel=3)
    return known.filter(F.col("_bad").isNull()).drop("_bad")


def check_distributable(stages: Sequence[Stage], key: bytes) -> None:
    """Refuse methods that must see all records at once, and orders of methods that only one machine keeps."""
    built = Pipeline(list(stages), key, Dictionaries()).stages
    if alone := [stage.method for stage in stages if stage.traits.spark_form]:
        if len(built) > 1:
            raise Refused(
                f"on Spark `{alone[0]}` runs alone",
                hint="protect with the other method first, and give its release to this one",
            )
        windows.window_of(stages[0])
        return
    for place, method in enumerate(built):
        if method.partition_key(Batch.empty(method.texts)) is None:
            raise Refused(f"`{method.name}` needs all records in one place", hint=_ONE_MACHINE)
        own = stages[place].traits
        if place < len(built) - 1 and (own.labels in _RELABELS or own.fresh_labels):
            raise Refused(
                f"on Spark `{method.name}` must come last, since it replaces labels",
                hint="name it last, or run on one machine",
            )


@dataclass(frozen=True)
class Run:
    """A log on its way through the methods: the plan, and the DataFrame that the last one gives."""

    plan: Plan
    result: DataFrame
    #: What columns that are passed through were called; here they go by other names.
    given: Mapping[str, str] = field(default_factory=dict)

    def released(self, truth: bool = False) -> DataFrame:
        """Return the released rows, or the table; with the ground truth of each row, if requested."""
        records = self.result.filter(F.col("_report").isNull())
        if self.plan.whole().table:
            return records.select(self.plan.table_columns())
        names = [n for n in self.result.columns if n.startswith(TRUTH)] if truth else []
        values = {name: F.col(name) for name in self.plan.columns}
        if "time" in values:
            values["time"] = F.timestamp_micros("time")
        shown = [value.alias(self.given.get(name, name)) for name, value in values.items()]
        return records.select(*shown, *(F.col(name).alias(name.removeprefix(TRUTH)) for name in names))


def start(
    stages: Sequence[Stage],
    key: bytes,
    log: DataFrame,
    *,
    parts: int | None = None,
    stored: Sequence[Stored] = (),
    slice_rows: int = time_slices.SLICE,
) -> Run:
    """Plan the work on valid rows: their places in the whole log, then one method after the other."""
    check_distributable(stages, key)
    check_columns(list(stages), log.columns)
    log, given = dataframe.neutral(log)
    columns = dataframe.of_log(log.columns)
    if stages[0].traits.spark_form:
        plan = Plan(tuple(stages), key, columns, log.count(), 1)
        _check_user_count(plan, log)
        return Run(plan, windows.start(plan, log, _result_schema(plan, 0, log)), given=given)
    log = _with_moments(log, key)
    count = log.count()
    cores = log.sparkSession.sparkContext.defaultParallelism
    plan = Plan(tuple(stages), key, columns, count, parts or _PARTS_A_CORE * cores, tuple(stored))
    _check_user_count(plan, log)
    slices = time_slices.cut(log, count, slice_rows)
    by_time = log.withColumn("_slice", slices.number())
    by_time = by_time.repartitionById(len(slices.before), F.col("_slice"))
    schema = _schema(log, columns, _PLACED)
    current = by_time.mapInArrow(partial(time_slices.place, plan, slices, schema), schema)
    sorting: tuple[str, ...] = ("_seq", "row")
    for place in range(len(stages)):
        split = current.repartitionById(plan.parts, F.coalesce("_lane", F.lit(0)))
        schema = _result_schema(plan, place, log)
        work = partial(stage_worker.run_partition, plan, place, schema)
        current = split.sortWithinPartitions(*sorting).mapInArrow(work, schema)
        sorting = ORDER
    return Run(plan, current, given=given)


def _with_moments(log: DataFrame, key: bytes) -> DataFrame:
    """Add the moment of each row; the order of a log without times is derived from the key."""
    if "time" in log.columns:
        return log.withColumn("_moment", F.col("time"))
    schema = StructType([*log.schema.fields, StructField("_moment", LongType())])
    return log.mapInArrow(lambda batches: time_slices.moments(batches, key, schema), schema)


def _check_user_count(plan: Plan, log: DataFrame) -> None:
    """Raise, before any work, if a method's settings cannot be met by this number of users."""
    asking = [s for s in plan.whole().stages if type(s).check_user_count is not Protector.check_user_count]
    if asking and plan.rows:
        users = log.select("user").distinct().count()
        for stage in asking:
            stage.check_user_count(users)


_PLACED: Final = {"_head": "long", "_seq": "long", "_lane": "integer"}
_LONG: Final = dict.fromkeys(("_seq", "_time", "_tie", "_head", "_blank"), "long")
_LEFT: Final = {"_closing": "boolean", **_LONG, "_lane": "integer", "_report": "binary"}
_TRUTH_TYPES: Final = {"original_user": "string", "original_label": "string", "label_user": "string"}


def _schema(log: DataFrame, columns: Sequence[str], more: Mapping[str, str]) -> StructType:
    schema = StructType([StructField("row", LongType())])
    for name in columns:
        schema.add(StructField(name, log.schema[name].dataType))
    for name, kind in more.items():
        schema.add(name, kind)
    return schema


def _result_schema(plan: Plan, place: int, log: DataFrame) -> StructType:
    """Return the schema of a method's rows: the log's between methods, the release's at the end."""
    if plan.is_last(place):
        if plan.whole().table:
            counted = {name: "long" if name == "count" else "string" for name in plan.table_columns()}
            return _schema(log, (), counted | {"_report": "binary"})
        truth = {TRUTH + name: _TRUTH_TYPES.get(name, "long") for name in _truth_columns(plan)}
        return _schema(log, plan.columns, truth | _LEFT)
    kinds = {name: log.schema[name].dataType.typeName() for name in plan.columns}
    return _schema(log, plan.columns, {NOW + n: kinds[n] for n in plan.rewritten(place)} | _LEFT)


def _truth_columns(plan: Plan) -> list[str]:
    """Return the columns of the ground truth, found by decoding an empty release."""
    kinds: dict[str, Any] = {"row": pl.Int64, "_head": pl.Int64}
    kinds |= {name: pl.Datetime("us", "UTC") if name == "time" else pl.String for name in plan.columns}
    nothing = pl.DataFrame(schema=kinds)
    last = TableWorker(replace(plan, stored=()), len(plan.stages) - 1)
    return last.truth_columns(nothing)
