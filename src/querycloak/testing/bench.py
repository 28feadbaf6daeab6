"""A bench for methods: builds them, runs them over a small log, and shows what came out to an audit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import polars as pl

from querycloak.dictionary import Texts
from querycloak.engines.local import Pending, Released, encode, render
from querycloak.engines.pipeline import Pipeline
from querycloak.engines.replay import in_order
from querycloak.guarantees import Evidence
from querycloak.log import Batch
from querycloak.protector import Protector
from querycloak.settings import Settings

_TEXTS = ("user", "query", "url", "category")
KEY = b"a key for tests, of thirty-two b"


class Bench:
    """A method with a log to try it on: builds fresh instances, runs them, and shows what came out."""

    def __init__(
        self, method: type[Protector], settings: Settings, log: pl.DataFrame, texts: Texts | None = None
    ) -> None:
        self.method, self.settings = method, settings
        self.frame = in_order(log, KEY)
        self.texts = texts or Texts()
        self.batch = encode(self.frame, self.pipeline(self.make()), 0)

    def make(self) -> Protector:
        """Build a fresh instance on the shared dictionary."""
        return self.method(self.settings, KEY, self.texts)

    def pipeline(self, method: Protector) -> Pipeline:
        """Put a method into a pipeline of its own, as engines run it."""
        pipeline = Pipeline([], KEY, method.texts)
        pipeline.stages = [method]
        return pipeline

    def run(self, at: Sequence[int] = ()) -> Batch:
        """Run a fresh instance over the log, cut at these places."""
        pipeline = self.pipeline(self.make())
        released = Batch.empty(self.texts)
        for piece in cut(self.batch, at):
            released += pipeline.push(piece)
        return released + pipeline.close_at(self.frame.height)

    def counts(self, method: Protector) -> pl.DataFrame:
        """Give the table of a method that has ended, as the engine would write it."""
        return self.pipeline(method).counts()

    def evidence(self, method: Protector, released: Batch) -> Evidence:
        """Spell out what a method released so far, as an audit sees it; of a table, once it has ended."""
        pending = Pending()
        pending.add(self.frame)
        pipeline = self.pipeline(method)
        pipeline.meet(self.batch.user)
        return self.evidence_of(method, render(pipeline, released, pending))

    def evidence_of(self, method: Protector, shown: Released, erased: pl.DataFrame | None = None) -> Evidence:
        """Put what was spelled out beside the original; with those who were erased meanwhile."""
        frame = self.counts(method) if method.table else shown.frame
        release = frame.with_row_index("released_row").cast({"released_row": pl.Int64})
        truth = shown.truth.with_row_index("released_row").cast({"released_row": pl.Int64})
        rewritten = "query" in self.method.rewrites
        return Evidence(
            release.lazy(),
            self.frame.lazy(),
            truth.lazy(),
            rewritten=rewritten,
            table=method.table,
            erased=None if erased is None else erased.lazy(),
        )


def cut(batch: Batch, at: Sequence[int]) -> Iterator[Batch]:
    """Cut a batch into pieces at these places; some may be empty."""
    places = [0, *sorted(min(place, len(batch)) for place in at), len(batch)]
    for start, end in pairwise(places):
        yield batch[start:end]


def spelled_rows(batch: Batch) -> list[tuple[object, ...]]:
    """Give a batch as plain tuples with texts in the place of their codes, to compare over dictionaries."""
    texts = {name: getattr(batch.texts, name).decode(getattr(batch, name)) for name in _TEXTS}
    columns = (texts.get(name, getattr(batch, name)) for name in Batch.COLUMNS)
    return list(
        zip(
            *(column.to_list() if isinstance(column, pl.Series) else column.tolist() for column in columns),
            strict=True,
        )
    )


def rows(batch: Batch) -> list[tuple[int, ...]]:
    """Give a batch as plain tuples, to compare."""
    return list(zip(*(getattr(batch, name).tolist() for name in Batch.COLUMNS), strict=True))
