"""What one worker does: streams the rows of its keys through one method, and tells what became of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from querycloak.dictionary import Dictionaries
from querycloak.engines import codec, record_store
from querycloak.engines.pipeline import Pipeline, Stage
from querycloak.engines.source_state import Stored, load_state, save_state
from querycloak.log import COUNTS, MISSING, Batch, IntArray
from querycloak.spark.arrow import batches, frames
from querycloak.spark.telling import report

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

#: What a row carries beside the log's own columns: its search, when that came or left, and its worker.
#: `_closing` says that only the end of the log set it free; `_tie` decides between rows of one moment.
CARRIED: Final = ("_closing", "_seq", "_time", "_tie", "_head", "_lane", "_blank")
#: The order of rows in which a later method, or a reader of the release, meets them.
ORDER: Final = ("_closing", "_seq", "_time", "_tie", "_head", "row")
#: The value that a method before this one gave a column.
NOW: Final = "_now_"
#: A column of the private truth about a released row.
TRUTH: Final = "_truth_"


@dataclass(frozen=True)
class Plan:
    """What all workers know: the methods, the release's key, and the log's columns and size."""

    stages: tuple[Stage, ...]
    key: bytes = field(repr=False)
    columns: tuple[str, ...]
    rows: int
    parts: int
    stored: tuple[Stored, ...] = field(default=(), repr=False)

    def whole(self, texts: Dictionaries | None = None) -> Pipeline:
        """Build all methods, as one machine would."""
        return Pipeline(list(self.stages), self.key, texts or Dictionaries())

    def opened(self) -> Pipeline:
        """Build all methods with what earlier releases left to them."""
        whole = self.whole()
        for method, stored in zip(whole, self.stored, strict=bool(self.stored)):
            load_state(method, stored)
        return whole

    def is_last(self, place: int) -> bool:
        """Say whether no method comes after this one."""
        return place == len(self.stages) - 1

    def rewritten(self, place: int) -> list[str]:
        """Name the log's columns that methods up to this one gave other values."""
        traits = [stage.traits for stage in self.stages[: place + 1]]
        changed = frozenset[str]().union(*(one.rewrites | one.empties for one in traits))
        return [name for name in self.columns if name in changed]


class _Alone(Pipeline):
    """One method of several, which carries what the others did to a record."""

    def __init__(self, plan: Plan, place: int) -> None:
        super().__init__([plan.stages[place]], plan.key, Dictionaries(), first=place)
        whole = plan.whole()
        self._rewrites, self._empties = whole.rewrites, whole.empties
        earlier = frozenset(plan.rewritten(place - 1)) if place else frozenset[str]()
        self._reads = self.traits[0].reads | earlier | {"time"}

    @property
    def reads(self) -> frozenset[str]:
        """Columns that a batch must carry: also those that an earlier method has changed."""
        return self._reads

    @property
    def rewrites(self) -> frozenset[str]:
        """Columns whose released value comes from the batch, whichever method put it there."""
        return self._rewrites

    @property
    def empties(self) -> frozenset[str]:
        """Columns that leave empty because of any method."""
        return self._empties


class StageRun:
    """One method at work on the rows of some of its keys, in their order."""

    def __init__(self, plan: Plan, place: int) -> None:
        self.plan, self.place = plan, place
        self.pipeline = _Alone(plan, place)
        self.pipeline.check_ready()
        (self.stage,), (self._traits,) = self.pipeline.stages, self.pipeline.traits
        if plan.stored:
            self.pipeline.register_users(load_state(self.stage, plan.stored[place]))
        self._pending = record_store.RecordStore()
        texts = self.pipeline.texts
        self._next = None if plan.is_last(place) else plan.stages[place + 1].build(plan.key, place + 1, texts)

    def push(self, frame: pl.DataFrame, closing: bool = False) -> pl.DataFrame:
        """Take rows of whole searches; give those that leave."""
        self._pending.add(frame.select("row", "_head", *self.plan.columns))
        batch = self._coded(frame.filter(pl.col("row") == pl.col("_head")))
        if "user" in self._traits.reads:
            self.pipeline.register_users(batch.user)
        gone = self.pipeline.push(batch)
        shown = self._shown(gone, closing)
        self._pending.remove(self.pipeline.drain_dropped())
        return shown

    def close(self) -> pl.DataFrame:
        """End the input: give what that sets free, or the table."""
        if not self._traits.is_table:
            return self._shown(self.pipeline.close(), True)
        self.pipeline.close()
        return self.pipeline.counts()

    def _coded(self, firsts: pl.DataFrame) -> Batch:
        """Turn searches into integers, each column as the method before this one left it."""
        columns = {"row": firsts["_head"].to_numpy(), "seq": firsts["_seq"].to_numpy()}
        if "_blank" in firsts.columns:
            columns["blank"] = firsts["_blank"].to_numpy()
        for name in sorted(self.pipeline.reads & set(self.plan.columns)):
            now = NOW + name if NOW + name in firsts.columns else name
            columns[name] = codec.encode_column(firsts[now], name, self.pipeline.texts)
        return Batch.of(columns, self.pipeline.texts)

    def _shown(self, batch: Batch, closing: bool) -> pl.DataFrame:
        if closing and self.plan.is_last(self.place):  # the end is one moment for all
            batch = batch.replace(seq=np.maximum(batch.seq, self.plan.rows))
        if not len(batch):
            return pl.DataFrame()
        if self._next is None:
            told, which = codec.decode_originals(self.pipeline, batch, self._pending)
            truth = told.truth.rename(lambda name: TRUTH + name)
            shown = pl.concat([told.frame, truth], how="horizontal")
            row = told.truth["original_row"].alias("row")
        else:
            shown, which = self._pending.take(batch.row)
            self._pending.remove(batch.row)
            batch, row = self._hidden(batch), shown["row"]
            shown = shown.drop("row").with_columns(self._now(batch, which))
        return shown.with_columns(row, *self._carried(batch[which], closing))

    def _carried(self, batch: Batch, closing: bool) -> Iterator[pl.Series]:
        """Say how each row stands in the order of release, and who takes it next."""
        size = len(batch)
        yield pl.Series("_closing", [closing]).new_from_index(0, size)
        yield pl.Series("_seq", batch.seq)
        yield pl.Series("_time", batch.time)
        yield pl.Series("_tie", self.pipeline.ties(batch.row))
        yield pl.Series("_head", batch.row)
        yield pl.Series("_blank", batch.blank)
        if self._next is not None:
            yield pl.Series("_lane", lane_of(self._next.partition_key(batch), self.plan.parts))

    def _hidden(self, batch: Batch) -> Batch:
        """Take away what the next method may not go by, since this one may not show it."""
        hidden = sorted(self._traits.empties & {"rank", "url", "category"})
        return batch.replace(**{name: np.full(len(batch), MISSING) for name in hidden})

    def _now(self, batch: Batch, which: IntArray | slice) -> Iterator[pl.Series]:
        for name in self.plan.rewritten(self.place):
            value = codec.decode_column(batch[which], name)
            yield (value.to_physical() if name == "time" else value).alias(NOW + name)

    def told_about(self, rows: pl.DataFrame) -> list[str]:
        """Name what the truth tells about rows like these."""
        self._pending.add(rows)
        told, _ = codec.decode_originals(self.pipeline, Batch.empty(self.pipeline.texts), self._pending)
        return told.truth.columns

    def report(self) -> bytes:
        """Tell the driver what rows cannot: what was dropped and why, and what must be kept."""
        table = save_state(self.stage) if self.plan.stored else None
        tally = {name: array.tolist() for name, array in self.stage.tally().items()}
        return report(self.place, dict(self.stage.dropped), self.stage.explanation, tally, table)


def lane_of(key: IntArray | None, parts: int) -> IntArray:
    """Give the worker of each key."""
    assert key is not None
    return np.asarray(key % parts, np.int32)


def run(plan: Plan, place: int, schema: StructType, rows: Iterable[Any]) -> Iterator[Any]:
    """Do the work of one Spark partition; its last row is the report, with those of stages before."""
    work = StageRun(plan, place)
    earlier: list[bytes] = []
    for frame, closing in _whole_searches(_without_reports(frames(rows), earlier)):
        yield from batches(work.push(frame, closing), schema)
    yield from batches(work.close(), schema)
    yield from batches(pl.DataFrame({"_report": [*earlier, work.report()]}), schema)


def _without_reports(pieces: Iterator[pl.DataFrame], reports: list[bytes]) -> Iterator[pl.DataFrame]:
    """Set aside what workers of earlier stages told."""
    for frame in pieces:
        if "_report" not in frame.columns:
            yield _typed(frame)
            continue
        reports += frame["_report"].drop_nulls().to_list()
        yield _typed(frame.filter(pl.col("_report").is_null()))


def _typed(frame: pl.DataFrame) -> pl.DataFrame:
    """Make times of microseconds: so no time zone of Spark's has a say in them."""
    times = [pl.col("time").cast(pl.Datetime("us", "UTC"))] if "time" in frame.columns else []
    return frame.with_columns(times)


def _whole_searches(pieces: Iterator[pl.DataFrame]) -> Iterator[tuple[pl.DataFrame, bool]]:
    """Cut pieces between searches, and where the end of the log for the method before begins."""
    left: pl.DataFrame | None = None
    for piece in pieces:
        frame = piece if left is None else pl.concat([left, piece])
        last = frame["_head"].tail(1)
        cut = int((frame["_head"] != last[0]).sum()) if frame.height else 0
        left = frame[cut:]
        yield from _by_closing(frame[:cut])
    if left is not None:
        yield from _by_closing(left)


def _by_closing(frame: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, bool]]:
    if not frame.height:
        return
    ended = int((~frame["_closing"]).sum()) if "_closing" in frame.columns else frame.height
    for start, end in pairwise((0, ended, frame.height)):
        if end > start:
            yield frame[start:end], start >= ended


def table_columns(plan: Plan) -> list[str]:
    """Name the columns of the table that the last method gives: an empty log's has the same."""
    whole = plan.whole()
    whole.close()
    found = whole.counts().columns
    return [name for name in COUNTS if name in found]
