"""Runs a pipeline over a log on this machine: codes in, records out, nothing lost on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from querycloak.dictionary import Texts
from querycloak.engines.pipeline import Pipeline
from querycloak.log import BIT, CANONICAL, NO_TIME, Batch, IntArray

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
        pending.add(piece)
        yield render(pipeline, pipeline.push(encode(piece, pipeline, read)), pending)
        read += piece.height
        pending.forget(pipeline.drain_dropped())
    if read:
        pipeline.check_people()
    yield render(pipeline, at_moment(pipeline.close(), read), pending)


def at_moment(batch: Batch, read: int) -> Batch:
    """Note that what the end of the input set free left after the last row was read."""
    return batch.replace(seq=np.maximum(batch.seq, read))


def encode(piece: pl.DataFrame, pipeline: Pipeline, read: int) -> Batch:
    """Turn the searches of a piece into integers, in replay order; only the columns that are read."""
    when, order, head = (piece[name].to_numpy() for name in ("_when", "_order", "_head"))
    row = piece["row"].to_numpy()
    firsts = np.flatnonzero(head == row)
    firsts = firsts[np.lexsort((order[firsts], when[firsts]))]
    columns = {"row": row[firsts], "seq": read + _cumulated_sizes(head, row, firsts)}
    for name in pipeline.reads & set(piece.columns):
        columns[name] = _numbers(piece[name], name, pipeline.texts)[firsts]
    if "user" in columns:
        pipeline.meet(columns["user"])
    columns.setdefault("time", np.where(when == np.iinfo(np.int64).max, NO_TIME, when)[firsts])
    return Batch.of(columns, pipeline.texts)


def _cumulated_sizes(head: IntArray, row: IntArray, firsts: IntArray) -> IntArray:
    """Count the rows read once each search has been read whole."""
    if firsts.size == head.size:
        return np.arange(1, head.size + 1)
    sizes = np.bincount(np.searchsorted(np.sort(row[firsts]), head), minlength=firsts.size)
    return np.cumsum(sizes[np.searchsorted(np.sort(row[firsts]), row[firsts])])


def _numbers(column: pl.Series, name: str, texts: Texts) -> IntArray:
    if name == "time":
        return column.to_physical().fill_null(NO_TIME).to_numpy()
    if name == "rank":
        return column.fill_null(-1).to_numpy()
    codes: IntArray = getattr(texts, name).encode(column)
    return codes


class Pending:
    """The records that went in and have not come out yet, found by the first row of their search."""

    def __init__(self) -> None:
        self._frame: pl.DataFrame | None = None
        self._head = np.empty(0, np.int64)
        self._sorted: IntArray | None = None
        self._gone: list[IntArray] = []

    def add(self, piece: pl.DataFrame) -> None:
        """Take in the records of a piece; only now is the room of those that went used again."""
        piece = piece.drop("_when", "_order")
        head = piece["_head"].to_numpy()
        if self._frame is not None:
            stay = ~np.isin(self._head, np.concatenate([np.empty(0, np.int64), *self._gone]))
            piece = pl.concat([self._frame.filter(pl.Series(stay)), piece])
            head = np.concatenate([self._head[stay], head])
        self._frame, self._head, self._sorted, self._gone = piece, head, None, []

    def take(self, heads: IntArray) -> tuple[pl.DataFrame, IntArray]:
        """Give all rows of these searches, in their order, and which search each belongs to."""
        assert self._frame is not None
        if self._sorted is None:
            increasing = bool(np.all(self._head[1:] > self._head[:-1]))
            self._sorted = np.arange(self._head.size) if increasing else np.argsort(self._head, kind="stable")
        by_head = self._head[self._sorted]
        left = np.searchsorted(by_head, heads, side="left")
        sizes = np.searchsorted(by_head, heads, side="right") - left
        which = np.repeat(np.arange(heads.size), sizes)
        within = np.arange(which.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self._frame[self._sorted[left[which] + within]], which

    def forget(self, heads: IntArray) -> None:
        """Note that these searches left or were dropped."""
        self._gone.append(heads)


def render(pipeline: Pipeline, batch: Batch, pending: Pending) -> Released:
    """Spell out released records: what methods rewrote from the batch, the rest from the input."""
    source, which = pending.take(batch.row)
    batch = batch[which]
    columns = [name for name in source.columns if name not in ("row", "_head")]
    truth = _truth(pipeline, source, batch)
    frame = source.select(columns).with_columns(
        _spelled(batch, name) for name in sorted(pipeline.rewrites & set(columns))
    )
    pending.forget(batch.row)
    return Released(_blanked(frame, batch, pipeline.empties), truth)


def _truth(pipeline: Pipeline, source: pl.DataFrame, batch: Batch) -> pl.DataFrame:
    """Say where each released row came from; under fresh labels also who stands behind which."""
    known = {"original_row": source["row"], "original_user": source["user"], "released_after": batch.seq}
    if any(getattr(stage.settings, "labels", "keep") == "fresh" for stage in pipeline):
        known["original_label"] = pipeline.spelled_labels(source["user"])
        known["label_user"] = pipeline.behind(batch.user)
    for stage in pipeline:
        if hasattr(stage, "cohort_of") and getattr(stage.settings, "scope", "source") == "source":
            users = pipeline.texts.user.encode(source["user"])
            known["cohort"], known["cohort_size"] = stage.cohort_of(users)
    return pl.DataFrame(known)


def _spelled(batch: Batch, name: str) -> pl.Series:
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
