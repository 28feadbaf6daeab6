"""`SparkEngine`: makes a release on Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from querycloak.engines.codec import Released
from querycloak.engines.local import Outcome, Task
from querycloak.engines.source import LogSource
from querycloak.log import COUNTS
from querycloak.spark import batch, dataframe, session
from querycloak.spark.plan import Plan
from querycloak.spark.session import translate_errors
from querycloak.spark.side_outputs import combine
from querycloak.spark.stage_worker import ORDER, TRUTH

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkEngine:
    """Protects on Spark. Intermediate files are in the private folder that the log was read into.

    All workers must see that folder, which is beside the release.
    """

    def __init__(self, master: str = "local[*]", conf: Mapping[str, str] | None = None) -> None:
        self._master, self._conf = master, dict(conf or {})

    def run(self, source: LogSource, task: Task) -> Iterator[Released]:
        """Yield released records in release order."""
        batch.check_distributable(task.stages, task.key)
        session.check()
        self._task = task
        return self._parts(source)

    def _parts(self, source: LogSource) -> Iterator[Released]:
        self._folder = folder = source.to_parquet(self._task.key, self._task.stages)
        with translate_errors():
            spark = session.start(self._master, self._conf)
            self._run = self._started(spark, folder)
            self._task.progress("protect", 0, None)
            self._run.result.write.parquet(str(folder / "protected"))
            done = spark.read.parquet(str(folder / "protected"))
            reports = done.filter("_report IS NOT NULL").select("_report").collect()
            plan, found = self._run.plan, [bytes(row["_report"]) for row in reports]
            self._reports = combine(plan.whole().stages, plan.stored or [None] * len(plan.stages), found)
            records = done.filter("_report IS NULL").drop("_report")
            if self._task.pipeline.table:
                yield _nothing(self._run.plan)
            else:
                records.orderBy(*ORDER).write.parquet(str(folder / "ordered"))
        if not self._task.pipeline.table:
            yield from _in_order(folder / "ordered", self._run)

    def _started(self, spark: SparkSession, folder: Path) -> batch.Run:
        files = sorted(str(path) for path in folder.glob("run-*.parquet"))
        dataframe.check_names(name for name in pl.read_parquet_schema(files[0]) if name != "row")
        log: DataFrame = spark.read.parquet(*files)
        if "time" in log.columns:
            log = log.selectExpr("* EXCEPT (time)", "unix_micros(time) AS time")
        task = self._task
        return batch.start(task.stages, task.key, log, stored=task.stored)

    def outcome(self) -> Outcome:
        """Return what is known once `run` is exhausted, over all workers."""
        methods, stages = self._run.plan.opened().stages, self._task.stages
        explained = zip(stages, self._reports.explanation, strict=True)
        return Outcome(
            self._counts() if self._task.pipeline.table else None,
            {s.method: dict(d) for s, d in zip(stages, self._reports.dropped, strict=True)},
            {stage.method: found for stage, found in explained if found},
            [m.facts(tally) for m, tally in zip(methods, self._reports.tally, strict=True)],
            self._reports.stored,
        )

    def _counts(self) -> pl.DataFrame:
        found = pl.scan_parquet(self._folder / "protected" / "*.parquet").filter(pl.col("_report").is_null())
        table = found.collect()
        names = [name for name in COUNTS if name in table.columns]
        return table.select(names).sort([n for n in ("query", "category", "user") if n in names])


def _in_order(folder: Path, run: batch.Run) -> Iterator[Released]:
    """Yield ordered rows file by file: Spark numbers files in the order of rows."""
    for path in sorted(folder.glob("part-*.parquet")):
        yield _released(pl.read_parquet(path), run)


def _released(found: pl.DataFrame, run: batch.Run) -> Released:
    times = [pl.col("time").cast(pl.Datetime("us", "UTC"))] if "time" in run.plan.columns else []
    truth = found.select(name for name in found.columns if name.startswith(TRUTH))
    named = truth.rename(lambda name: name.removeprefix(TRUTH))
    return Released(found.select(run.plan.columns).with_columns(times).rename(run.given), named)


def _nothing(plan: Plan) -> Released:
    """Return an empty part, which a table has instead of records."""
    truth = {"original_row": pl.Int64, "original_user": pl.String, "released_after": pl.Int64}
    return Released(pl.DataFrame(), pl.DataFrame(schema=truth))
