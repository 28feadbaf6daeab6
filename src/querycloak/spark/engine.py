"""`SparkEngine`: makes a release on Spark."""

from __future__ import annotations

import base64
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pyspark.sql import DataFrame, SparkSession

from querycloak.engines.codec import Released
from querycloak.engines.local import Outcome, Task
from querycloak.engines.source import LogSource
from querycloak.engines.source_state import Stored
from querycloak.log import COUNTS
from querycloak.protector import Protector, State
from querycloak.spark import batch, dataframe, session
from querycloak.spark.plan import Plan
from querycloak.spark.session import translate_errors
from querycloak.spark.stage_worker import ORDER, TRUTH
from querycloak.spark.transfer import with_times


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
    truth = found.select(name for name in found.columns if name.startswith(TRUTH))
    named = truth.rename(lambda name: name.removeprefix(TRUTH))
    return Released(with_times(found).select(run.plan.columns).rename(run.given), named)


def _nothing(plan: Plan) -> Released:
    """Return an empty part, which a table has instead of records."""
    truth = {"original_row": pl.Int64, "original_user": pl.String, "released_after": pl.Int64}
    return Released(pl.DataFrame(), pl.DataFrame(schema=truth))


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
    every = [json.loads(one) for one in reports]
    by_place = [[one for one in every if one["place"] == place] for place in range(len(methods))]
    return WorkerReports(
        [sum((Counter(one["dropped"]) for one in some), Counter()) for some in by_place],
        [_added([one["explanation"] for one in some]) for some in by_place],
        [_joined([one["tally"] for one in some]) for some in by_place],
        [
            _merged(method, [one["state"] for one in some], loaded)
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


def _joined(parts: list[dict[str, list[Any]]]) -> State:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: np.array([value for part in parts for value in part[name]]) for name in names}


def _merged(method: Protector, tables: list[str], loaded: Stored) -> pl.DataFrame | None:
    """Combine the state that workers of a method store for the next release."""
    found = [pl.read_ipc(io.BytesIO(base64.b64decode(table))) for table in tables if table]
    if not found or method.source_state is None:
        return None
    return method.source_state.merge(found, loaded if isinstance(loaded, pl.DataFrame) else None)
