"""The work of a release on Spark: from the log that was read, to rows in the order of release."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from querycloak.engines.local import Released
from querycloak.engines.request import Reading, Request
from querycloak.engines.spark import batch, rows, session
from querycloak.engines.spark.faults import told_plainly
from querycloak.engines.spark.telling import told
from querycloak.engines.spark.worker import ORDER, TRUTH, Plan
from querycloak.engines.state import Book
from querycloak.log import COUNTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkWork:
    """Protects on Spark. What is under way lies in the private folder that the log was read into.

    All workers must see that folder, which is beside the release.
    """

    def __init__(self, request: Request, reading: Reading, key: bytes, books: list[Book]) -> None:
        self._request, self._reading, self._key, self._books = request, reading, key, books
        batch.distributable(request.stages, key)
        session.check()

    def parts(self) -> Iterator[Released]:
        """Give what leaves, in order of release."""
        folder = self._reading.kept()
        with told_plainly():
            spark = session.start(self._request.master, self._request.spark)
            self._run = self._started(spark, folder)
            self._request.progress("protect", 0, None)
            self._run.result.write.parquet(str(folder / "protected"))
            done = spark.read.parquet(str(folder / "protected"))
            reports = done.filter("_report IS NOT NULL").select("_report").collect()
            everything = [*self._run.reports, *(bytes(row["_report"]) for row in reports)]
            self._told = told(self._run.plan.whole().stages, everything)
            records = done.filter("_report IS NULL").drop("_report")
            if self._run.plan.whole().table:
                yield _nothing(self._run.plan)
            else:
                records.orderBy(*ORDER).write.parquet(str(folder / "ordered"))
        self._folder = folder
        if not self._run.plan.whole().table:
            yield from _in_order(folder / "ordered", self._run)

    def _started(self, spark: SparkSession, folder: Path) -> batch.Run:
        files = sorted(str(path) for path in folder.glob("run-*.parquet"))
        rows.check_names(name for name in pl.read_parquet_schema(files[0]) if name != "row")
        log: DataFrame = spark.read.parquet(*files)
        if "time" in log.columns:
            log = log.selectExpr("* EXCEPT (time)", "unix_micros(time) AS time")
        return batch.start(
            self._request.stages, self._key, log, books=self._books, progress=self._request.progress
        )

    def counts(self) -> pl.DataFrame:
        """Give the table of counts."""
        found = pl.scan_parquet(self._folder / "protected" / "*.parquet").filter(pl.col("_report").is_null())
        table = found.collect()
        names = [name for name in COUNTS if name in table.columns]
        return table.select(names).sort([n for n in ("query", "category", "user") if n in names])

    def dropped(self) -> dict[str, dict[str, int]]:
        """Count what was dropped, by method and reason."""
        return {s.method: dict(d) for s, d in zip(self._request.stages, self._told.dropped, strict=True)}

    def explanation(self) -> dict[str, dict[str, Any]]:
        """Say why methods did what they did, where they tell."""
        pairs = zip(self._request.stages, self._told.explanation, strict=True)
        return {stage.method: found for stage, found in pairs if found}

    def facts(self) -> list[dict[str, Any]]:
        """Give what the certificate states about each method's part, over all workers."""
        methods = self._run.plan.opened().stages
        return [m.facts(tally) for m, tally in zip(methods, self._told.tally, strict=True)]

    def books(self) -> list[pl.DataFrame | None]:
        """Give what must be kept of each method over releases."""
        return self._told.books


def _in_order(folder: Path, run: batch.Run) -> Iterator[Released]:
    """Give ordered rows file by file: Spark numbers files as it orders rows."""
    for path in sorted(folder.glob("part-*.parquet")):
        yield _released(pl.read_parquet(path), run)


def _released(found: pl.DataFrame, run: batch.Run) -> Released:
    times = [pl.col("time").cast(pl.Datetime("us", "UTC"))] if "time" in run.plan.columns else []
    truth = found.select(name for name in found.columns if name.startswith(TRUTH))
    named = truth.rename(lambda name: name.removeprefix(TRUTH))
    return Released(found.select(run.plan.columns).with_columns(times).rename(run.given), named)


def _nothing(plan: Plan) -> Released:
    """Give the part that a table has instead of records."""
    truth = {"original_row": pl.Int64, "original_user": pl.String, "released_after": pl.Int64}
    return Released(pl.DataFrame(), pl.DataFrame(schema=truth))
