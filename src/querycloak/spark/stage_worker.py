"""One method on one partition, for tables and for streams: rows in, released rows out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np
import polars as pl
from pyspark.sql.types import StructType

from querycloak.dictionary import Dictionaries
from querycloak.engines import codec, state_codec
from querycloak.engines.live import OUT_OF_ORDER, LivePipeline
from querycloak.engines.pipeline import Pipeline
from querycloak.engines.source_state import load_state, save_state
from querycloak.log import MISSING, Batch, IntArray
from querycloak.protector import Protector
from querycloak.spark.transfer import NEVER, Plan, batches, coded, frames, lane_of, release_order, with_times

#: The order of rows in which a later method, or a reader of the release, gets them. `_closing`: released only
#: at the end of the log; `_tie` orders rows of one moment.
ORDER: Final = ("_closing", "_seq", "_time", "_tie", "_head", "row")
#: Prefix of a column's value as an earlier method left it.
NOW: Final = "_now_"
#: Prefix of a column of the ground truth.
TRUTH: Final = "_truth_"
#: Unused texts in the dictionaries before these are built anew.
SPARE_TEXTS: Final = 10_000
_COUNTS: Final = ("accepted", "released", "moments")


class StageWorker:
    """One method of a plan with the records that it holds. Subclasses define how rows travel."""

    def __init__(
        self, plan: Plan, place: int, build: Callable[[Dictionaries], Pipeline] | None = None
    ) -> None:
        self.plan, self.place = plan, place
        stage = plan.stages[place]
        self.traits = stage.traits
        self.live = LivePipeline([stage], plan.key, spare_texts=SPARE_TEXTS, first=place, build=build)
        self._next: tuple[Dictionaries, Protector] | None = None

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline that contains the method alone."""
        return self.live.pipeline

    @property
    def method(self) -> Protector:
        """The method."""
        return self.pipeline.stages[0]

    @property
    def hidden(self) -> frozenset[str]:
        """Columns that the next method must not read, because this one does not release them."""
        if self.plan.is_last(self.place):
            return frozenset()
        return self.traits.empties & {"rank", "url", "category"}

    def lanes(self, batch: Batch) -> IntArray:
        """Return the lane of each record in the next method; 0 after the last one."""
        if self.plan.is_last(self.place):
            return np.zeros(len(batch), np.int32)
        texts, place = self.pipeline.texts, self.place + 1
        if self._next is None or self._next[0] is not texts:
            self._next = texts, self.plan.stages[place].build(self.plan.key, place, texts)
        return lane_of(self._next[1].partition_key(batch), self.plan.parts)


class _OneOfSeveral(Pipeline):
    """The pipeline of one method among several: rows keep what the other methods did to them."""

    reads = rewrites = empties = frozenset[str]()  # each instance has its own

    def __init__(self, plan: Plan, place: int, texts: Dictionaries) -> None:
        super().__init__([plan.stages[place]], plan.key, texts, first=place)
        whole = plan.whole()
        self.rewrites, self.empties = whole.rewrites, whole.empties
        earlier = frozenset(plan.rewritten(place - 1)) if place else frozenset[str]()
        self.reads = self.traits[0].reads | earlier | {"time"}


class TableWorker(StageWorker):
    """One method on a table; rows keep their original values too, for the ground truth."""

    def __init__(self, plan: Plan, place: int) -> None:
        super().__init__(plan, place, lambda texts: _OneOfSeveral(plan, place, texts))
        self.pipeline.check_ready()
        if plan.stored:
            self.pipeline.register_users(load_state(self.method, plan.stored[place]))

    def push(self, frame: pl.DataFrame, closing: bool = False) -> pl.DataFrame:
        """Push rows of whole searches; return released ones."""
        self.live.store.add(frame.select("row", "_head", *self.plan.columns))
        batch = self._encoded(frame.filter(pl.col("row") == pl.col("_head")))
        if "user" in self.traits.reads:
            self.pipeline.register_users(batch.user)
        released, _ = self.live.push(batch)
        rows = self._decoded(released, closing)
        self.live.settle()
        return rows

    def close(self) -> pl.DataFrame:
        """End the input; return what that releases, or the table."""
        if not self.traits.is_table:
            return self._decoded(self.pipeline.close(), True)
        self.pipeline.close()
        return self.pipeline.counts()

    def _encoded(self, firsts: pl.DataFrame) -> Batch:
        """Return searches as integers, each column as the method before this one left it."""
        inside = {"_head": "row", "_seq": "seq", "_blank": "blank"}
        numbers = {name: firsts[n].to_numpy() for n, name in inside.items() if n in firsts.columns}
        now = firsts.select(pl.col(f"^{NOW}.*$").name.map(lambda name: name.removeprefix(NOW)))
        return coded(firsts.with_columns(*now), self.pipeline.reads, self.pipeline.texts, **numbers)

    def _decoded(self, batch: Batch, closing: bool) -> pl.DataFrame:
        last = self.plan.is_last(self.place)
        if closing and last:  # the end is one moment for all
            batch = batch.replace(seq=np.maximum(batch.seq, self.plan.rows))
        if not len(batch):
            return pl.DataFrame()
        if last:
            released, which = codec.decode_originals(self.pipeline, batch, self.live.store)
            truth = released.truth.rename(lambda name: TRUTH + name)
            rows = pl.concat([released.frame, truth], how="horizontal")
            row = released.truth["original_row"].alias("row")
        else:
            rows, which = self.live.store.take(batch.row)
            self.live.store.remove(batch.row)
            batch = batch.replace(**{name: np.full(len(batch), MISSING) for name in sorted(self.hidden)})
            row = rows["row"]
            rows = rows.drop("row").with_columns(self._current_values(batch, which))
        batch = batch[which]
        order = {"_seq": batch.seq, "_time": batch.time, "_head": batch.row, "_blank": batch.blank}
        order["_tie"] = self.pipeline.ties(batch.row)
        if not last:
            order["_lane"] = self.lanes(batch)
        added = (pl.Series(name, numbers) for name, numbers in order.items())
        return rows.with_columns(row, *added, _closing=pl.lit(closing))

    def _current_values(self, batch: Batch, which: IntArray | slice) -> Iterator[pl.Series]:
        for name in self.plan.rewritten(self.place):
            value = codec.decode_column(batch[which], name)
            yield (value.to_physical() if name == "time" else value).alias(NOW + name)

    def truth_columns(self, rows: pl.DataFrame) -> list[str]:
        """Return the columns of the ground truth for rows like these."""
        self.live.store.add(rows)
        released, _ = codec.decode_originals(self.pipeline, Batch.empty(self.pipeline.texts), self.live.store)
        return released.truth.columns


class StreamWorker(StageWorker):
    """One method on one lane of an endless log; its whole state can be dumped to bytes.

    The same rows in the same pieces give the same rows back, wherever the state was dumped and loaded.
    """

    def __init__(self, plan: Plan, place: int) -> None:
        super().__init__(plan, place)
        self.accepted = self.released = self.moments = 0
        self._dropped: Counter[str] = Counter()

    @property
    def held(self) -> int:
        """The number of rows that are held."""
        return self.live.store.count

    def reasons(self) -> dict[str, int]:
        """Return the number of dropped searches by reason."""
        return dict(self._dropped + Counter(self.method.dropped))

    def push(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Push rows of whole searches; return released ones, each with its lane in the next method."""
        self.accepted += rows.height
        rows = self._good(rows)
        rows = rows[release_order(rows, self.plan.key)]
        self.live.store.add(rows.drop("_when", "_which"))
        firsts = rows.filter(pl.col("_row") == pl.col("_head"))
        when, which = firsts["_when"].to_numpy(), firsts["_which"].to_numpy()
        fresh = np.ones(when.size, bool)
        fresh[1:] = (np.diff(when) != 0) | (np.diff(which) != 0)
        numbers = {"row": firsts["_row"].to_numpy(), "blank": firsts["_blank"].to_numpy()}
        numbers["seq"] = self.moments + np.cumsum(fresh)
        batch = coded(firsts, self.traits.reads | {"time"}, self.pipeline.texts, **numbers)
        released, late = self.live.push(batch)
        self._dropped[OUT_OF_ORDER] += int(late.size)
        found = self._decoded(released, when[fresh], which[fresh])
        self.moments += int(fresh.sum())
        return found

    def close(self) -> pl.DataFrame:
        """End the input; return what that releases, all at the last moment."""
        never = np.full(1, NEVER)
        return self._decoded(self.pipeline.close_at(self.moments + 1), never, never)

    def _good(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Drop bad rows, for the same reasons as those of files."""
        if "_bad" not in rows.columns:
            return rows
        self._dropped.update(rows["_bad"].drop_nulls().to_list())
        return rows.filter(pl.col("_bad").is_null()).drop("_bad")

    def _decoded(self, batch: Batch, when: IntArray, which: IntArray) -> pl.DataFrame:
        """Return released rows; the moment of each is that of the search whose arrival released it."""
        if not len(batch):
            self.live.settle()
            return pl.DataFrame()
        rows, of = self.live.store.take(batch.row)
        batch = batch[of]
        moment = np.clip(batch.seq - self.moments - 1, 0, when.size - 1)
        added = {"_head": batch.row, "_blank": batch.blank, "_lane": self.lanes(batch)}
        added |= {"_when": when[moment], "_which": which[moment]}
        changed = [
            codec.decode_column(batch, name) for name in sorted(self.traits.rewrites & set(rows.columns))
        ]
        hidden = [
            pl.lit(None, rows.schema[name]).alias(name) for name in sorted(self.hidden & set(rows.columns))
        ]
        series = [pl.Series(name, column) for name, column in added.items()]
        rows = rows.with_columns(*changed, *series).with_columns(hidden)
        self.released += rows.height
        self.live.store.remove(batch.row)
        self.live.settle()
        return rows

    def dump(self) -> bytes:
        """Return the state as bytes. It contains raw records, so protect it like the log."""
        own: dict[str, Any] = {f"own/{name}": getattr(self, name) for name in _COUNTS}
        own |= {"own/newest": self.live.newest, "own/dropped": dict(self._dropped)}
        return state_codec.dump(own | self.live.dump())

    @classmethod
    def load(cls, plan: Plan, place: int, data: bytes) -> StreamWorker:
        """Continue from what `dump` returned."""
        parts, worker = state_codec.load(data), cls(plan, place)
        for name in _COUNTS:
            setattr(worker, name, int(parts[f"own/{name}"]))
        worker.live.newest = int(parts["own/newest"])
        worker._dropped = Counter(parts["own/dropped"])
        worker.live.load(parts)
        return worker


def report(method: Protector, place: int, table: pl.DataFrame | None = None) -> bytes:
    """Return what rows do not contain: dropped records by reason, facts, and the state to be stored."""
    tally = {f"tally/{name}": array for name, array in method.tally().items()}
    own = {"place": place, "dropped": dict(method.dropped), "explanation": method.explanation}
    return state_codec.dump(own | tally | {"stored": table})


def run_partition(plan: Plan, place: int, schema: StructType, rows: Iterable[Any]) -> Iterator[Any]:
    """Run a method on one Spark partition; the last row is its report, with those of earlier methods."""
    work = TableWorker(plan, place)
    earlier: list[bytes] = []
    for frame, closing in _whole_searches(_without_reports(frames(rows), earlier)):
        yield from batches(work.push(frame, closing), schema)
    yield from batches(work.close(), schema)
    own = report(work.method, place, save_state(work.method) if plan.stored else None)
    yield from batches(pl.DataFrame({"_report": [*earlier, own]}), schema)


def _without_reports(pieces: Iterator[pl.DataFrame], reports: list[bytes]) -> Iterator[pl.DataFrame]:
    """Yield rows; collect the reports of earlier methods."""
    for frame in pieces:
        if "_report" not in frame.columns:
            yield with_times(frame)
            continue
        reports += frame["_report"].drop_nulls().to_list()
        yield with_times(frame.filter(pl.col("_report").is_null()))


def _whole_searches(pieces: Iterator[pl.DataFrame]) -> Iterator[tuple[pl.DataFrame, bool]]:
    """Cut pieces between searches, and where the previous method's end of input begins."""
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
