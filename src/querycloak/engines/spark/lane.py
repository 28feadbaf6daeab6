"""One method at work on one lane of an endless log: rows in, rows out, and all of it as bytes in between."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak.dictionary import Texts
from querycloak.engines import frozen
from querycloak.engines.local import spelled
from querycloak.engines.pipeline import Pipeline
from querycloak.engines.recode import outgrown, recoded
from querycloak.engines.spark.packing import NEVER, coded, release_order
from querycloak.engines.spark.worker import Plan, lane_of
from querycloak.engines.waiting import Scattered
from querycloak.log import Batch, IntArray

#: Why a record is dropped that comes too late for a method that needs the order of times.
OUT_OF_ORDER: Final = "came after later records, and the method needs the order of times"
#: Texts that nothing refers to any more before their room is used again.
SPARE_TEXTS: Final = 10_000
_COUNTS: Final = ("accepted", "released", "moments", "newest")


class LaneRun:
    """The state of a lane: its method, and the rows that wait in it.

    The same rows in the same pieces give the same rows back, wherever it was stopped and carried on.
    """

    def __init__(self, plan: Plan, place: int) -> None:
        self._plan, self._place = plan, place
        self._build(Texts())
        self.waiting = Scattered()
        self.accepted = self.released = self.moments = 0
        self.newest = int(np.iinfo(np.int64).min)
        self._dropped: Counter[str] = Counter()

    def _build(self, texts: Texts) -> Pipeline:
        key, stages = self._plan.key, self._plan.stages
        self._pipeline = Pipeline([stages[self._place]], key, texts, first=self._place)
        (self._method,) = self._pipeline.stages
        after = stages[self._place + 1 : self._place + 2]
        self._next = after[0].build(key, self._place + 1, texts) if after else None
        return self._pipeline

    @property
    def held(self) -> int:
        """Count the rows that wait."""
        return self.waiting.count

    def reasons(self) -> dict[str, int]:
        """Count what was dropped, by reason; searches, not rows."""
        return dict(self._dropped + Counter(self._method.dropped))

    def push(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Take in rows of whole searches; give those that leave, each with its lane in the next method."""
        self.accepted += rows.height
        rows = self._good(rows)
        rows = rows[release_order(rows, self._plan.key)]
        self.waiting.add(rows.drop("_when", "_which"))
        firsts = rows.filter(pl.col("_row") == pl.col("_head"))
        when, which = firsts["_when"].to_numpy(), firsts["_which"].to_numpy()
        fresh = np.ones(when.size, bool)
        fresh[1:] = (np.diff(when) != 0) | (np.diff(which) != 0)
        batch = coded(firsts, self._method.reads, self._pipeline.texts)
        batch = self._in_time(batch.replace(seq=self.moments + np.cumsum(fresh)))
        gone = self._pipeline.push(batch) if len(batch) else batch
        shown = self._shown(gone, when[fresh], which[fresh])
        self.moments += int(fresh.sum())
        return shown

    def close(self) -> pl.DataFrame:
        """End the input: give what that sets free, all at the last moment."""
        never = np.full(1, NEVER)
        return self._shown(self._pipeline.close_at(self.moments + 1), never, never)

    def _good(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Leave out bad rows, for the same reasons as those of files."""
        if "_bad" not in rows.columns:
            return rows
        self._dropped.update(rows["_bad"].drop_nulls().to_list())
        return rows.filter(pl.col("_bad").is_null()).drop("_bad")

    def _in_time(self, batch: Batch) -> Batch:
        """For a method that needs the order of times, leave out what comes too late."""
        if not self._method.wants_order or not len(batch):
            return batch
        newest = np.maximum(np.maximum.accumulate(batch.time), self.newest)
        self.newest = int(newest[-1])
        late = batch.time < newest
        self._dropped[OUT_OF_ORDER] += int(late.sum())
        self.waiting.forget(batch.row[late])
        return batch[~late]

    def _shown(self, batch: Batch, when: IntArray, which: IntArray) -> pl.DataFrame:
        """Spell out what leaves; the moment of each is that of the search which let it go."""
        if len(batch):
            rows, of = self.waiting.take(batch.row)
            batch = batch[of]
            moment = np.clip(batch.seq - self.moments - 1, 0, when.size - 1)
            added = {
                "_head": batch.row,
                "_blank": batch.blank,
                "_when": when[moment],
                "_which": which[moment],
            }
            added["_lane"] = self._lanes(batch)
            changed = [spelled(batch, name) for name in sorted(self._method.rewrites & set(rows.columns))]
            series = [pl.Series(name, column) for name, column in added.items()]
            rows = rows.with_columns(*changed, *series).with_columns(self._hidden(rows))
            self.released += rows.height
            self.waiting.forget(batch.row)
        else:
            rows = pl.DataFrame()
        self.waiting.forget(self._pipeline.drain_dropped())
        self.waiting.tidy()
        return rows

    def _hidden(self, rows: pl.DataFrame) -> list[pl.Expr]:
        """Empty what the next method may not go by, since this one may not show it."""
        hidden = self._method.empties & {"rank", "url", "category"} if self._next else frozenset[str]()
        return [pl.lit(None, rows.schema[name]).alias(name) for name in sorted(hidden & set(rows.columns))]

    def _lanes(self, batch: Batch) -> IntArray:
        """Ask the next method which searches must stay together."""
        if self._next is None:
            return np.zeros(len(batch), np.int32)
        return lane_of(self._next.partition_key(batch), self._plan.parts)

    def freeze(self) -> bytes:
        """Give everything as bytes. They hold raw records: guard them."""
        own: dict[str, Any] = {f"own/{name}": getattr(self, name) for name in _COUNTS}
        texts = Texts()
        state = recoded(self._pipeline.snapshot(), self._pipeline, self._pipeline.texts, texts)
        if outgrown(self._pipeline.texts, texts, SPARE_TEXTS):
            self._build(texts).restore(state)
        named = {f"pipeline/{name}": array for name, array in state.items()}
        waiting = {"own/dropped": dict(self._dropped), "waiting": self.waiting.frame()}
        return frozen.freeze(own | waiting | named | frozen.dictionaries(texts))

    @classmethod
    def thaw(cls, plan: Plan, place: int, data: bytes) -> LaneRun:
        """Carry on from what `freeze` gave."""
        parts, run = frozen.thaw(data), cls(plan, place)
        for name in _COUNTS:
            setattr(run, name, int(parts[f"own/{name}"]))
        run._dropped = Counter(parts["own/dropped"])
        frozen.fill(run._pipeline.texts, parts)
        run._pipeline.restore(frozen.under("pipeline/", parts))
        if parts["waiting"] is not None:
            run.waiting.add(parts["waiting"])
        return run
