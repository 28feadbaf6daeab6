"""Run a pipeline over a log on this machine."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

import polars as pl

from querycloak.dictionary import Dictionaries
from querycloak.engines.codec import Released, decode, encode_and_register
from querycloak.engines.pipeline import Pipeline, Stage
from querycloak.engines.record_store import RecordStore
from querycloak.engines.source import LogSource, Progress
from querycloak.engines.source_state import Stored, save_state
from querycloak.engines.time_order import in_order

#: Searches that are pushed and decoded together, so that memory beside the log itself stays small.
SLICE: Final = 1 << 20


def run(pipeline: Pipeline, pieces: Iterable[pl.DataFrame]) -> Iterator[Released]:
    """Push every piece (see `time_order`) through the pipeline; yield released records, in release order."""
    store = RecordStore()
    read = 0
    for piece in pieces:
        rows = piece.with_columns(_head=pl.col("row")) if pipeline.per_row else piece
        store.compact()
        store.add(rows)
        batch = encode_and_register(rows, pipeline, read)
        for start in range(0, max(len(batch), 1), SLICE):
            yield decode(pipeline, pipeline.push(batch[start : start + SLICE]), store)
            store.remove(pipeline.drain_dropped())
        read += piece.height
    if read:
        pipeline.check_user_count()
    yield decode(pipeline, pipeline.close_at(read), store)


@dataclass(frozen=True)
class Task:
    """What an engine needs beside the log: the methods with their key, and the state of earlier releases."""

    stages: list[Stage]
    key: bytes
    pipeline: Pipeline
    stored: list[Stored]
    progress: Progress


@dataclass(frozen=True)
class Outcome:
    """What an engine reports at the end: the counts of a table, and by method what was dropped and why."""

    counts: pl.DataFrame | None
    dropped: dict[str, dict[str, int]]
    explanation: dict[str, dict[str, Any]]
    facts: list[dict[str, Any]]
    #: By method the table that the next release of the source loads.
    stored: list[pl.DataFrame | None]


class Engine(Protocol):
    """Runs methods over a log."""

    def run(self, source: LogSource, task: Task) -> Iterator[Released]:
        """Yield released records in release order."""

    def outcome(self) -> Outcome:
        """Return what is known once `run` is exhausted."""


class LocalEngine:
    """Protects a log in this process."""

    def run(self, source: LogSource, task: Task) -> Iterator[Released]:
        """Yield released records in release order."""
        self._pipeline = task.pipeline
        warming = threading.Thread(target=warm_up, args=(task.stages,), name="warm-up", daemon=True)
        warming.start()  # while the file is read
        return run(task.pipeline, source.pieces(task.key, task.stages))

    def outcome(self) -> Outcome:
        """Return what is known once `run` is exhausted."""
        pipeline = self._pipeline
        return Outcome(
            pipeline.counts() if pipeline.table else None,
            pipeline.dropped(),
            {stage.name: stage.explanation for stage in pipeline if stage.explanation},
            [stage.facts() for stage in pipeline],
            [save_state(stage) for stage in pipeline],
        )


def warm_up(stages: list[Stage]) -> None:
    """Protect two made-up records: the first call of each kernel loads it, whatever it has to do."""
    columns = {"row": [0, 1], "user": ["a", "b"], "query": ["c", "d"], "category": ["e/f", "e/g"]}
    frame = pl.DataFrame(columns).with_columns(time=pl.int_range(2).cast(pl.Datetime("us", "UTC")))
    with contextlib.suppress(Exception):  # if it fails, the real run will say why
        pipeline = Pipeline(stages, bytes(32), Dictionaries())
        for _ in run(pipeline, [in_order(frame, bytes(32))]):
            pass
