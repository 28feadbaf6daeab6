"""The conformance suite's own checks on methods as Spark runs them: those that are about an engine.

What a method does between two pieces (restarts, erasures, moments, memory) no batch on Spark shows; the suite
checks it on the methods themselves, and tests/integration/spark/test_lanes.py on streams.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from querycloak.audits.evidence import Evidence
from querycloak.engines.codec import Released, encode_column
from querycloak.engines.pipeline import Stage, parse_stages
from querycloak.log import NO_TIME, Batch, IntArray
from querycloak.registry import METHODS
from querycloak.spark import batch as spark_batch
from querycloak.spark.engine import combine
from querycloak.spark.stage_worker import ORDER, TRUTH
from querycloak.testing import conformance
from querycloak.testing.harness import Harness
from tests.integration.spark.streams import made_up

METHOD_SETTINGS = {
    "swap": {"k": "2"},
    "cohort": {"k": "2", "shards": "1"},
    "dp-semantic": {},
    "frequent-only": {"k": "2"},
    "rules": {},
}
CHECKS = [
    conformance.pieces_make_no_difference,
    conformance.the_promise_holds_at_every_moment,
    conformance.nothing_is_made_up_shown_twice_or_lost,
    conformance.codes_make_no_difference,
]
#: Where the log is cut: on Spark, into how many slices of time, and over how many workers.
AT = (20, 21, 70)


class Engine:
    """Runs methods on Spark; the very same work once, since several checks ask for it."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark, self._folder = spark, folder
        self._done: dict[tuple[Any, ...], tuple[pl.DataFrame, Counter[str]]] = {}

    def run(self, stage: Stage, key: bytes, log: pl.DataFrame, parts: int, slice_rows: int) -> Any:
        """Give what Spark released, in order of release, and the reasons why it dropped the rest."""
        wanted = (stage.method, key, tuple(log["row"]), parts, slice_rows)
        if wanted not in self._done:
            path = self._folder / f"{len(self._done)}.parquet"
            log.write_parquet(path)
            table = self._spark.read.parquet(str(path))
            run = spark_batch.start([stage], key, table, parts=parts, slice_rows=slice_rows)
            everything = pl.DataFrame(pl.from_arrow(run.result.toArrow()))
            reports = everything["_report"].drop_nulls().to_list()
            found = everything.filter(pl.col("_report").is_null()).sort(ORDER)
            self._done[wanted] = found, combine(run.plan.whole().stages, [None], reports).dropped[0]
        return self._done[wanted]

    def released(self, method: str) -> int:
        """Count what a method has let go of in all runs."""
        return sum(found.height for wanted, (found, _) in self._done.items() if wanted[0] == method)


def on_spark(name: str, engine: Engine) -> type:
    """Make a method of what Spark does with it: it takes everything in, and lets go of it at the end."""

    class OnSpark(METHODS.get(name)):
        orders = True  # what comes back has the order of release already

        def push(self, batch: Batch) -> Batch:
            self.__dict__.setdefault("pieces", []).append(batch)
            return Batch.empty(self.texts)

        def close(self) -> Batch:
            pieces = self.__dict__.pop("pieces")
            log = sum(pieces, Batch.empty(self.texts))
            frame = spelled(log)[np.argsort(log.query, kind="stable")]  # codes decide the order of rows
            stage, parts = Stage(name, self.settings), 1 + len(pieces)
            self.found, self.dropped = engine.run(stage, self.key, frame, parts, max(map(len, pieces)))
            self._dropped_rows = [np.setdiff1d(log.row, self.found["row"].to_numpy())]
            return coded(self.found, self.texts)

    return OnSpark


def spelled(log: Batch) -> pl.DataFrame:
    """Give a batch as rows of a log, with the columns that it has."""
    texts = {name: getattr(log.texts, name).decode(getattr(log, name)) for name in ("user", "query")}
    texts |= {
        name: getattr(log.texts, name).decode(getattr(log, name))
        for name in ("url", "category")
        if (getattr(log, name) >= 0).any()
    }
    return pl.DataFrame({"row": log.row, "time": log.time} | texts)


def coded(found: pl.DataFrame, texts: Any) -> Batch:
    """Give what Spark released as a batch."""
    columns: dict[str, IntArray] = {
        "row": found["row"].to_numpy(),
        "seq": found["_seq"].to_numpy(),
        "blank": found["_blank"].to_numpy(),
        "time": found["time"].fill_null(NO_TIME).to_numpy(),
    }
    names = [name for name in ("user", "query", "url", "category") if name in found.columns]
    return Batch.of(columns | {name: encode_column(found[name], name, texts) for name in names}, texts)


class SparkBench(Harness):
    """A harness whose evidence is what Spark released and what it says about each row."""

    def evidence(self, method: Any, released: Batch) -> Evidence:
        if not hasattr(method, "found"):
            return super().evidence(method, released)
        truth = method.found.select(name for name in method.found.columns if name.startswith(TRUTH))
        names = [name for name in ("user", "query", "time", "url", "category") if name in method.found]
        frame = method.found.select(names).with_columns(pl.col("time").cast(pl.Datetime("us", "UTC")))
        return self.evidence_of(method, Released(frame, truth.rename(lambda name: name.removeprefix(TRUTH))))


@pytest.fixture(scope="module")
def log() -> pl.DataFrame:
    """A small log of searches without clicks: what is released is counted in rows."""
    searches = made_up(12).unique(["user", "query", "time"], keep="first", maintain_order=True)
    return searches.sort("row").head(120)


@pytest.fixture(scope="module")
def engine(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return Engine(spark, tmp_path_factory.mktemp("logs"))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", METHOD_SETTINGS)
def test_methods_conform_on_spark(
    name: str, check: conformance.Check, log: pl.DataFrame, engine: Engine
) -> None:
    (stage,) = parse_stages([name], METHOD_SETTINGS[name])
    check(SparkBench(on_spark(name, engine), stage.settings, log), AT)
    assert engine.released(name), "nothing was checked"


@pytest.mark.parametrize(
    ("check", "fault"),
    [
        (conformance.pieces_make_no_difference, lambda found, pieces: found[pieces - 1 :]),
        (conformance.nothing_is_made_up_shown_twice_or_lost, lambda found, pieces: pl.concat([found, found])),
    ],
    ids=["pieces", "twice"],
)
def test_an_engine_with_a_fault_does_not_conform(
    check: conformance.Check, fault: Any, log: pl.DataFrame, engine: Engine
) -> None:
    """One that loses a row for each slice, and one that gives each row twice."""
    (stage,) = parse_stages(["rules"], {})
    real = on_spark("rules", engine)

    class Faulty(real):  # type: ignore[misc, valid-type]
        def close(self) -> Batch:
            pieces = len(self.__dict__["pieces"])
            super().close()
            return coded(fault(self.found, pieces), self.texts)

    with pytest.raises(AssertionError):
        check(SparkBench(Faulty, stage.settings, log), AT)
