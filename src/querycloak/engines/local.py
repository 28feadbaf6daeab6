"""Runs a pipeline over a log on this machine: codes in, records out, nothing lost on the way."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import polars as pl

from querycloak.dictionary import Texts
from querycloak.engines.pipeline import Pipeline, Stage
from querycloak.engines.replay import in_order
from querycloak.kernels.distinct import among, distinct
from querycloak.kernels.order import searches
from querycloak.log import BIT, CANONICAL, NO_TIME, Batch, IntArray

#: Searches that are pushed and spelled out together: what is under way stays small beside the log itself.
SLICE = 1 << 20
#: Pieces below this are turned into numbers faster than threads are started.
SMALL = 1 << 14
#: How much longer than the rows themselves a table by their numbers may be.
_SPARSE = 16
_TEXT = ("user", "query", "url", "category")


@dataclass(frozen=True)
class Released:
    """Records that left: the columns a release may show, and the private truth about each row."""

    frame: pl.DataFrame
    truth: pl.DataFrame


def run(pipeline: Pipeline, pieces: Iterable[pl.DataFrame]) -> Iterator[Released]:
    """Push every piece (see `replay`) through the pipeline; yield what leaves, in order of release."""
    pending = Pending()
    read = 0
    for piece in pieces:
        rows = piece.with_columns(_head=pl.col("row")) if pipeline.per_row else piece
        pending.add(rows)
        batch = encode(rows, pipeline, read)
        for start in range(0, max(len(batch), 1), SLICE):
            yield render(pipeline, pipeline.push(batch[start : start + SLICE]), pending)
            pending.forget(pipeline.drain_dropped())
        read += piece.height
    if read:
        pipeline.check_people()
    yield render(pipeline, pipeline.close_at(read), pending)


class LocalWork:
    """The work of a release on this machine: what engines share is what `release` asks of them."""

    def __init__(self, pipeline: Pipeline, pieces: Iterable[pl.DataFrame]) -> None:
        self._pipeline, self._pieces = pipeline, pieces

    def parts(self) -> Iterator[Released]:
        """Give what leaves, in order of release."""
        return run(self._pipeline, self._pieces)

    def counts(self) -> pl.DataFrame:
        """Give the table of counts, once all parts were given."""
        return self._pipeline.counts()

    def dropped(self) -> dict[str, dict[str, int]]:
        """Count what was dropped, by method and reason."""
        return self._pipeline.dropped()

    def explanation(self) -> dict[str, dict[str, Any]]:
        """Say why methods did what they did, where they tell."""
        return {stage.name: stage.explanation for stage in self._pipeline if stage.explanation}

    def facts(self) -> list[dict[str, Any]]:
        """Give what the certificate states about each method's part."""
        return [stage.facts() for stage in self._pipeline]

    def books(self) -> list[pl.DataFrame | None]:
        """Give what must be kept of each method over releases."""
        return [stage.book() for stage in self._pipeline]


def encode(piece: pl.DataFrame, pipeline: Pipeline, read: int) -> Batch:
    """Turn the searches of a piece into integers, and remember whom they are about."""
    batch = coded(piece, pipeline, read)
    if "user" in pipeline.reads:
        pipeline.meet(batch.user)
    return batch


def coded(piece: pl.DataFrame, pipeline: Pipeline, read: int) -> Batch:
    """Turn the searches of a piece into integers, in replay order; only the columns that are read."""
    row, place, head = (piece[name].to_numpy() for name in ("row", "_place", "_head"))
    firsts, sizes = searches(place, head, row) if row.size else (row, row)
    columns = {"row": row[firsts], "seq": read + sizes}
    names = (pipeline.reads | {"time"}) & set(piece.columns)  # the order of release goes by time

    def numbers(name: str) -> IntArray:
        found: IntArray = numbers_of(piece[name], name, pipeline.texts)[firsts]
        return found

    if piece.height < SMALL:
        columns |= {name: numbers(name) for name in names}
    else:
        with ThreadPoolExecutor() as pool:  # each column has a dictionary of its own
            columns |= dict(zip(names, pool.map(numbers, names), strict=True))
    return Batch.of(columns, pipeline.texts)


def warm_up(stages: list[Stage]) -> None:
    """Protect two made-up records: the first call of each kernel loads it, whatever it has to do."""
    columns = {"row": [0, 1], "user": ["a", "b"], "query": ["c", "d"], "category": ["e/f", "e/g"]}
    frame = pl.DataFrame(columns).with_columns(time=pl.int_range(2).cast(pl.Datetime("us", "UTC")))
    with contextlib.suppress(Exception):  # if it fails, the real run will say why
        pipeline = Pipeline(stages, bytes(32), Texts())
        for _ in run(pipeline, [in_order(frame, bytes(32))]):
            pass


def numbers_of(column: pl.Series, name: str, texts: Texts) -> IntArray:
    """Turn a column of a log into integers."""
    if name == "time":
        return column.to_physical().fill_null(NO_TIME).to_numpy()
    if name == "rank":
        return column.fill_null(-1).to_numpy()
    codes: IntArray = getattr(texts, name).encode(column)
    return codes


class Waiting(Protocol):
    """Whatever keeps the records that went in until they come out."""

    def take(self, heads: IntArray) -> tuple[pl.DataFrame, IntArray | slice]:
        """Give all rows of these searches, in their order, and which search each belongs to."""

    def forget(self, heads: IntArray) -> None:
        """Note that these searches left or were dropped."""


class Pending:
    """The records that went in and have not come out yet, found by the first row of their search."""

    def __init__(self) -> None:
        self._frame: pl.DataFrame | None = None
        self._head = np.empty(0, np.int64)
        self._rows: Rows | None = None
        self._gone: list[IntArray] = []

    def add(self, piece: pl.DataFrame) -> None:
        """Take in the records of a piece; only now is the room of those that went used again."""
        piece = piece.drop("_when", "_place", strict=False)
        head = piece["_head"].to_numpy()
        if self._frame is not None:
            stay = ~among(self._head, np.concatenate([np.empty(0, np.int64), *self._gone]))
            piece = pl.concat([self._frame.filter(pl.Series(stay)), piece])
            head = np.concatenate([self._head[stay], head])
        self._frame, self._head, self._rows, self._gone = piece, head, None, []

    def take(self, heads: IntArray) -> tuple[pl.DataFrame, IntArray | slice]:
        """Give all rows of these searches, in their order, and which search each belongs to."""
        assert self._frame is not None
        frame = self._frame.drop("_head")
        if self._rows is None:
            self._rows = Rows(self._head)
        places, which = self._rows.of(heads)
        return frame.select(pl.all().gather(pl.Series(places))), which

    def forget(self, heads: IntArray) -> None:
        """Note that these searches left or were dropped."""
        self._gone.append(heads)


class Rows:
    """Finds the places of a search's rows by the number of its first row."""

    def __init__(self, head: IntArray) -> None:
        self._base = int(head.min(initial=0))
        span = int(head.max(initial=-1)) - self._base + 1
        # A table as long as the rows' numbers reach would be mostly empty where they are few of many.
        self._known = distinct(head) if span > _SPARSE * head.size else None
        head = self._number(head)
        sizes = np.bincount(head, minlength=max(span if self._known is None else self._known.size, 0))
        self._single = bool((sizes <= 1).all())
        if self._single:
            self._start = np.empty(sizes.size, np.int64)
            self._start[head] = np.arange(head.size)
        else:
            self._order = np.argsort(head, kind="stable")
            self._start = np.cumsum(sizes) - sizes
            self._sizes = sizes

    def _number(self, heads: IntArray) -> IntArray:
        return heads - self._base if self._known is None else np.searchsorted(self._known, heads)

    def of(self, heads: IntArray) -> tuple[IntArray, IntArray | slice]:
        """Give the places of all rows of these searches, and which search each belongs to."""
        number = self._number(heads)
        begin = self._start[number]
        if self._single:
            return begin, slice(None)
        sizes = self._sizes[number]
        which = np.repeat(np.arange(heads.size), sizes)
        within = np.arange(which.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self._order[begin[which] + within], which


def render(pipeline: Pipeline, batch: Batch, pending: Waiting) -> Released:
    """Spell out released records: what methods rewrote from the batch, the rest from the input.

    Records that a method made up (their row is negative) have nothing but what is in the batch.
    """
    made = batch.row < 0
    if not made.any():
        return rendered(pipeline, batch, pending)[0]
    real, which = rendered(pipeline, batch[~made], pending)
    fresh = _made_up(pipeline, batch[made], real)
    place = np.flatnonzero(~made)
    order = np.argsort(np.concatenate([place[which], np.flatnonzero(made)]), kind="stable")
    frame, truth = (
        pl.concat([a, b])[order] for a, b in ((real.frame, fresh.frame), (real.truth, fresh.truth))
    )
    return Released(frame, truth)


def rendered(pipeline: Pipeline, batch: Batch, pending: Waiting) -> tuple[Released, IntArray | slice]:
    """Spell out records that come from the input; say which element of the batch each row belongs to."""
    source, which = pending.take(batch.row)
    batch = batch if isinstance(which, slice) else batch[which]
    columns = [name for name in source.columns if name != "row"]
    truth = _truth(pipeline, source, batch)
    frame = source.select(columns).with_columns(
        spelled(batch, name) for name in sorted(pipeline.rewrites & set(columns))
    )
    pending.forget(batch.row)
    return Released(_blanked(frame, batch, pipeline.empties), truth), which


def _made_up(pipeline: Pipeline, batch: Batch, like: Released) -> Released:
    """Spell out records of which the batch is all there is; columns that it does not have are empty."""
    known: dict[str, pl.Series] = {n: spelled(batch, n) for n in CANONICAL if n in like.frame.columns}
    nothing = pl.Series([None]).new_from_index(0, len(batch))
    frame = pl.DataFrame(
        {name: known.get(name, nothing).cast(kind) for name, kind in like.frame.schema.items()}
    )
    people = pipeline.behind(batch.user)
    told = {"original_user": people, "released_after": pl.Series(batch.seq), "label_user": people}
    told["original_label"] = pipeline.texts.user.decode(batch.user)
    told["made_up"] = pl.Series([True]).new_from_index(0, len(batch))
    truth = pl.DataFrame(
        {name: told.get(name, nothing).cast(kind) for name, kind in like.truth.schema.items()}
    )
    return Released(_blanked(frame, batch, pipeline.empties), truth)


def _truth(pipeline: Pipeline, source: pl.DataFrame, batch: Batch) -> pl.DataFrame:
    """Say where each released row came from; under fresh labels also who stands behind which."""
    known = {"original_row": source["row"], "original_user": source["user"], "released_after": batch.seq}
    fresh = any(getattr(stage.settings, "labels", "keep") == "fresh" for stage in pipeline)
    if fresh and not any(stage.has_parts for stage in pipeline):
        known["original_label"] = pipeline.spelled_labels(source["user"])
        known["label_user"] = pipeline.behind(batch.user)
    if any(stage.makes_rows for stage in pipeline):
        known["made_up"] = pl.Series([False]).new_from_index(0, len(batch))
    for stage in pipeline:
        if hasattr(stage, "cohort_of") and getattr(stage.settings, "scope", "source") == "source":
            users = pipeline.texts.user.encode(source["user"])
            known["cohort"], known["cohort_size"] = stage.cohort_of(users)
    return pl.DataFrame(known)


def spelled(batch: Batch, name: str) -> pl.Series:
    """Spell out one column of a batch."""
    values = getattr(batch, name)
    if name in _TEXT:
        spelled: pl.Series = getattr(batch.texts, name).decode(values)
        return spelled.alias(name)
    series = pl.Series(name, values)
    if name == "time":
        return series.set(series == NO_TIME, None).cast(pl.Datetime("us", "UTC"))
    return series.set(series < 0, None)


def _blanked(frame: pl.DataFrame, batch: Batch, empties: frozenset[str]) -> pl.DataFrame:
    """Empty what may not leave: whole columns, and single cells by their bit."""
    bits = int(np.bitwise_or.reduce(batch.blank)) if len(batch) else 0
    changed = []
    for name in CANONICAL:
        if name not in frame.columns:
            continue
        if name in empties:
            changed.append(pl.lit(None, frame.schema[name]).alias(name))
        elif bits & BIT[name]:
            stays = pl.Series((batch.blank & BIT[name]) == 0)
            changed.append(pl.when(stays).then(pl.col(name)).alias(name))
    return frame.with_columns(changed) if changed else frame
