"""Streams for tests: a log cut into files between moments, its local release, a query in another process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pyspark.sql import DataFrame, SparkSession

from querycloak.dictionary import Dictionaries
from querycloak.engines import local, time_order
from querycloak.engines.pipeline import Pipeline
from querycloak.log import Log
from querycloak.spark.streaming import plan_of
from tests.support import logs

ROOT = Path(__file__).parents[3]
SEED = 9
LIMIT = 240.0
SCHEMA = "row bigint, user string, query string, time timestamp, rank bigint, url string, category string"


def made_up(users: int = 40) -> pl.DataFrame:
    """A log in the order of its times, as a stream brings it; its rows are numbered in another order.

    Some days long, and half of its searches are the same few: so every method has something to release.
    """
    frame = logs.made_up(users, seed=5, categories=True).frame.sort("time", maintain_order=True)
    moment, search = pl.col("time").to_physical(), pl.struct("user", "query").rank("dense")
    common = (search % 8 // 2).replace_strict(dict(enumerate(["weather", "news", "horoscope", "red shoes"])))
    return frame.with_columns(
        time=(moment.min() + (moment - moment.min()) // 400).cast(pl.Datetime("us", "UTC")),
        query=pl.when(search % 2 == 0).then(common).otherwise("query"),
        row=pl.int_range(pl.len(), dtype=pl.Int64).shuffle(seed=1),
    )


def cuts(log: pl.DataFrame, pieces: int) -> list[pl.DataFrame]:
    """Cut a log between moments, so that no search is torn."""
    time_of = log["time"].to_physical().to_numpy()
    at = [0]
    for piece in range(1, pieces):
        place = piece * log.height // pieces
        while time_of[place] == time_of[place - 1]:
            place += 1
        at.append(place)
    return [log[start:end] for start, end in zip(at, [*at[1:], log.height], strict=True)]


def write_pieces(log: pl.DataFrame, folder: Path, pieces: int) -> Path:
    """Write a log as files that Spark reads one after the other, each in an order of its own."""
    folder.mkdir()
    for number, piece in enumerate(cuts(log, pieces)):
        path = folder / f"{number}.parquet"
        piece.sample(fraction=1, shuffle=True, seed=number).write_parquet(path)
        os.utime(path, (10**9 + number, 10**9 + number))
    return folder


def source(spark: SparkSession, folder: Path | str) -> DataFrame:
    """Read such files as a stream, one in each micro-batch."""
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))


def expected(
    log: pl.DataFrame, methods: Sequence[str], settings: Mapping[str, Any]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give what the local engine releases while records come, and what the end of the log sets free."""
    columns = [name for name in log.columns if name != "row"]
    plan = plan_of(methods, columns, 1, SEED, None, "", settings)
    pipeline = Pipeline(list(plan.stages), plan.key, Dictionaries())
    parts = [part.frame.select(columns) for part in local.run(pipeline, time_order.whole(Log(log), plan.key))]
    return pl.concat(parts[:-1]), parts[-1]


def collected(table: DataFrame) -> pl.DataFrame:
    found = pl.from_arrow(table.toArrow())
    assert isinstance(found, pl.DataFrame)
    return found


def same(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Compare releases as bags of records."""
    other = other.select(one.columns).cast(dict(one.schema))
    return one.sort(one.columns).equals(other.sort(one.columns))


def written(out: Path) -> pl.DataFrame:
    """Read the files in the sink's own list: files of a killed attempt are not in it."""
    notes: dict[str, str] = {}
    folder = out / "_spark_metadata"
    logs = sorted(
        (p for p in folder.iterdir() if p.name[0].isdigit()), key=lambda p: int(p.stem.split(".")[0])
    )
    for path in logs:
        for line in path.read_text().splitlines()[1:]:
            entry = json.loads(line)
            notes[entry["path"]] = entry["action"]
    files = [path.removeprefix("file://") for path, action in notes.items() if action == "add"]
    return pl.concat([pl.read_parquet(path) for path in files])


class Child:
    """A query in a process of its own, with a JVM of its own that can be killed."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        master: str = "local[2]",
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._pid = folder / "jvm.pid"
        self._pid.unlink(missing_ok=True)
        command = [sys.executable, "-m", "tests.integration.spark.stream_child", str(folder), *arguments]
        given = {"SPARK_TEST_MASTER": master, "SPARK_TEST_OPTIONS": json.dumps(dict(options or {}))}
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def kill_jvm(self) -> None:
        """Let no line of Java run any more; the Python beside it finds out by itself."""
        os.kill(int(self._pid.read_text()), signal.SIGKILL)
        self._process.communicate(timeout=LIMIT)

    def wait_for(self, path: Path) -> bool:
        """Wait until a file is there; say whether the query still ran then."""
        end = time.monotonic() + LIMIT
        while not path.exists() and self._process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        return self._process.poll() is None and self._pid.exists()

    def finish(self) -> None:
        """Wait for the end, which must be a good one."""
        said, _ = self._process.communicate(timeout=LIMIT)
        assert self._process.returncode == 0, said.decode()[-3000:]

    def stop(self) -> None:
        if self._process.poll() is None:
            if self._pid.exists():
                os.kill(int(self._pid.read_text()), signal.SIGKILL)
            self._process.kill()
            self._process.communicate(timeout=LIMIT)
