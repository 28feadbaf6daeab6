"""A bench for methods: builds them, runs them over a small log, and shows what came out to an audit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise

import polars as pl

from querycloak.audits.evidence import Evidence
from querycloak.dictionary import Dictionaries
from querycloak.engines.codec import Released, decode, encode_and_register
from querycloak.engines.pipeline import Pipeline
from querycloak.engines.record_store import RecordStore
from querycloak.engines.time_order import in_order
from querycloak.log import Batch
from querycloak.protector import Protector, Traits
from querycloak.settings import Settings

_TEXTS = ("user", "query", "url", "category")
KEY = b"a key for tests, of thirty-two b"


class Bench:
    """A method with a log to try it on: builds fresh instances, runs them, and shows what came out."""

    def __init__(
        self,
        method: type[Protector],
        settings: Settings,
        log: pl.DataFrame,
        texts: Dictionaries | None = None,
    ) -> None:
        self.method, self.settings = method, settings
        self.frame = in_order(log, KEY)
        self.texts = texts or Dictionaries()
        self.batch = encode_and_register(self.frame, self.pipeline(self.make()), 0)

    @property
    def traits(self) -> Traits:
        """The properties of the method with these settings."""
        return self.method.traits(self.settings)

    def make(self) -> Protector:
        """Build a fresh instance on the shared dictionary."""
        return self.method(self.settings, KEY, self.texts)

    def pipeline(self, method: Protector) -> Pipeline:
        """Return a pipeline with this method alone, as engines run it."""
        pipeline = Pipeline([], KEY, method.texts)
        pipeline.stages, pipeline.traits = [method], [method.traits(method.settings)]
        return pipeline

    def run(self, at: Sequence[int] = ()) -> Batch:
        """Run a fresh instance over the log, cut at these places."""
        pipeline = self.pipeline(self.make())
        released = Batch.empty(self.texts)
        for piece in cut(self.batch, at):
            released += pipeline.push(piece)
        return released + pipeline.close_at(self.frame.height)

    @cached_property
    def whole(self) -> Batch:
        """What a fresh instance releases of the log in one piece, for checks to share."""
        return self.run()

    def counts(self, method: Protector) -> pl.DataFrame:
        """Return the table of a method that has ended, as the engine would write it."""
        return self.pipeline(method).counts()

    def evidence(self, method: Protector, released: Batch) -> Evidence:
        """Spell out what a method released so far, as an audit sees it; of a table, once it has ended."""
        pending = RecordStore()
        pending.add(self.frame)
        pipeline = self.pipeline(method)
        pipeline.register_users(self.batch.user)
        return self.evidence_of(method, decode(pipeline, released, pending))

    def evidence_of(self, method: Protector, shown: Released, erased: pl.DataFrame | None = None) -> Evidence:
        """Return the evidence of a release, with the users who were erased meanwhile."""
        own = self.traits
        frame = self.counts(method) if own.is_table else shown.frame
        release = frame.with_row_index("released_row").cast({"released_row": pl.Int64})
        truth = shown.truth.with_row_index("released_row").cast({"released_row": pl.Int64})
        rewritten = "query" in own.rewrites
        return Evidence(
            release.lazy(),
            self.frame.lazy(),
            truth.lazy(),
            rewritten=rewritten,
            table=own.is_table,
            erased=None if erased is None else erased.lazy(),
        )


def cut(batch: Batch, at: Sequence[int]) -> Iterator[Batch]:
    """Cut a batch into pieces at these places; some may be empty."""
    places = [0, *sorted(min(place, len(batch)) for place in at), len(batch)]
    for start, end in pairwise(places):
        yield batch[start:end]


def spelled_rows(batch: Batch) -> list[tuple[object, ...]]:
    """Return a batch as plain tuples with texts in the place of their codes, to compare over dictionaries."""
    texts = {name: getattr(batch.texts, name).decode(getattr(batch, name)) for name in _TEXTS}
    columns = (texts.get(name, getattr(batch, name)) for name in Batch.COLUMNS)
    return list(
        zip(
            *(column.to_list() if isinstance(column, pl.Series) else column.tolist() for column in columns),
            strict=True,
        )
    )


def rows(batch: Batch) -> list[tuple[int, ...]]:
    """Return a batch as plain tuples, to compare."""
    return list(zip(*(getattr(batch, name).tolist() for name in Batch.COLUMNS), strict=True))
