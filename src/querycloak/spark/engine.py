"""`SparkEngine`: makes a release on Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from pyspark.sql import DataFrame, SparkSession

from querycloak.engines import state_codec
from querycloak.engines.codec import Released
from querycloak.engines.local import Outcome, Task
from querycloak.engines.pipeline import ordered_counts
from querycloak.engines.source import LogSource
from querycloak.engines.source_state import Stored
from querycloak.engines.state_codec import with_prefix
from querycloak.protector import Protector, State
from querycloak.spark import batch, dataframe, session
from querycloak.spark.session import translate_errors
from querycloak.spark.stage_worker import ORDER, TRUTH
from querycloak.spark.transfer import with_times

_TRUTH_OF_TABLES: Final = {"original_row": pl.Int64, "original_user": pl.String, "released_after": pl.Int64}


class SparkEngine:
    """Protects on Spark. Intermediate files are in the private folder that the log was read into.

    All workers must see that folder, which is beside the release.
    """

    def __init__(self, master: str = "local[*]", conf: Mapping[str, str] | None = None) -> None:
        self._master, self._conf = master, dict(conf or {})

    def run(self, source: LogSource, task: Task) -> Iterator[Released]:
        """Yield released records in release order."""
        batch.check_distributable(task.stages, task.key)
        self._task = task
        return self._parts(source)

    def _parts(self, source: LogSource) -> Iterator[Released]:
        self._folder = folder = source.to_parquet(self._task.key, self._task.stages)
        with translate_errors():
            spark = session.start_session(self._master, self._conf)
            self._run = self._started(spark, folder)
            self._task.progress("protect", 0, None)
            self._run.result.write.parquet(str(folder / "protected"))
            done = spark.read.parquet(str(folder / "protected"))
            reports = done.filter("_report IS NOT NULL").select("_report").collect()
            plan, found = self._run.plan, [bytes(row["_report"]) for row in reports]
            self._reports = combine(plan.whole().stages, plan.stored or [None] * len(plan.stages), found)
            records = done.filter("_report IS NULL").drop("_report")
            if not self._task.pipeline.table:
                records.orderBy(*ORDER).write.parquet(str(folder / "ordered"))
        if self._task.pipeline.table:  # instead of records, an empty part
            yield Released(pl.DataFrame(), pl.DataFrame(schema=_TRUTH_OF_TABLES))
        for path in sorted((folder / "ordered").glob("part-*.parquet")):  # numbered in the order of rows
            yield _released(pl.read_parquet(path), self._run)

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
        methods, reports = self._run.plan.opened().stages, self._reports
        done = pl.scan_parquet(self._folder / "protected" / "*.parquet").filter(pl.col("_report").is_null())
        names = [stage.method for stage in self._task.stages]
        return Outcome(
            ordered_counts(done.collect()) if self._task.pipeline.table else None,
            {name: dict(found) for name, found in zip(names, reports.dropped, strict=True)},
            {name: found for name, found in zip(names, reports.explanation, strict=True) if found},
            [m.facts(tally) for m, tally in zip(methods, reports.tally, strict=True)],
            reports.stored,
        )


def _released(found: pl.DataFrame, run: batch.Run) -> Released:
    truth = found.select(name for name in found.columns if name.startswith(TRUTH))
    named = truth.rename(lambda name: name.removeprefix(TRUTH))
    return Released(with_times(found).select(run.plan.columns).rename(run.given), named)


@dataclass
class WorkerReports:
    """The reports of all workers, combined by method."""

    dropped: list[Counter[str]]
    explanation: list[dict[str, Any]]
    tally: list[State]
    stored: list[pl.DataFrame | None]


def combine(
    methods: Sequence[Protector], stored: Sequence[Stored], reports: Iterable[bytes]
) -> WorkerReports:
    """Combine the reports of all workers."""
    every = [state_codec.load(one) for one in reports]
    by_place = [[one for one in every if one["place"] == place] for place in range(len(methods))]
    return WorkerReports(
        [sum((Counter(one["dropped"]) for one in some), Counter()) for some in by_place],
        [_added([one["explanation"] for one in some]) for some in by_place],
        [_joined([with_prefix("tally/", one) for one in some]) for some in by_place],
        [
            _merged(method, [one["stored"] for one in some], loaded)
            for method, some, loaded in zip(methods, by_place, stored, strict=True)
        ],
    )


def _added(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Add numbers at any depth; other values are the same in all parts."""
    found: dict[str, Any] = {}
    for name, value in (pair for part in parts for pair in part.items()):
        if isinstance(value, dict):
            found[name] = _added([found.get(name, {}), value])
        else:
            found[name] = found.get(name, 0) + value if isinstance(value, int | float) else value
    return found


def _joined(parts: list[State]) -> State:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def _merged(method: Protector, tables: list[pl.DataFrame | None], loaded: Stored) -> pl.DataFrame | None:
    """Combine the state that workers of a method store for the next release."""
    found = [table for table in tables if table is not None]
    if not found or method.source_state is None:
        return None
    return method.source_state.merge(found, loaded if isinstance(loaded, pl.DataFrame) else None)
