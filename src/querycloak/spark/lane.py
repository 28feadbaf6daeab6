"""One method at work on one lane of an endless log: rows in, rows out, and all of it as bytes in between."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak.dictionary import Dictionaries
from querycloak.engines import state_codec
from querycloak.engines.codec import decode_column
from querycloak.engines.live import OUT_OF_ORDER, LivePipeline
from querycloak.engines.pipeline import Pipeline
from querycloak.engines.record_store import RecordStore
from querycloak.log import Batch, IntArray
from querycloak.protector import Protector
from querycloak.spark.packing import NEVER, coded, release_order
from querycloak.spark.worker import Plan, lane_of

#: Texts that nothing refers to any more before their room is used again.
SPARE_TEXTS: Final = 10_000
_COUNTS: Final = ("accepted", "released", "moments", "newest")


class LaneRun:
    """The state of a lane: its method, and the rows that wait in it.

    The same rows in the same pieces give the same rows back, wherever it was stopped and carried on.
    """

    def __init__(self, plan: Plan, place: int) -> None:
        self._plan, self._place = plan, place
        stage = plan.stages[place]
        self._live = LivePipeline([stage], plan.key, spare_texts=SPARE_TEXTS, first=place)
        self._traits = stage.traits
        self._after: tuple[Dictionaries, Protector] | None = None
        self.accepted = self.released = self.moments = 0
        self._dropped: Counter[str] = Counter()

    @property
    def _pipeline(self) -> Pipeline:
        return self._live.pipeline

    @property
    def _method(self) -> Protector:
        return self._pipeline.stages[0]

    @property
    def waiting(self) -> RecordStore:
        """The rows that wait."""
        return self._live.store

    @property
    def newest(self) -> int:
        """The latest time of a record so far."""
        return self._live.newest

    @newest.setter
    def newest(self, time: int) -> None:
        self._live.newest = time

    def _next(self) -> Protector | None:
        """Return the method after this one, built on the dictionaries in use now."""
        texts, place = self._pipeline.texts, self._place + 1
        if self._plan.is_last(self._place):
            return None
        if self._after is None or self._after[0] is not texts:
            self._after = texts, self._plan.stages[place].build(self._plan.key, place, texts)
        return self._after[1]

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
        batch = coded(firsts, self._traits.reads, self._pipeline.texts)
        gone, late = self._live.push(batch.replace(seq=self.moments + np.cumsum(fresh)))
        self._dropped[OUT_OF_ORDER] += int(late.size)
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
            changed = [
                decode_column(batch, name) for name in sorted(self._traits.rewrites & set(rows.columns))
            ]
            series = [pl.Series(name, column) for name, column in added.items()]
            rows = rows.with_columns(*changed, *series).with_columns(self._hidden(rows))
            self.released += rows.height
            self.waiting.remove(batch.row)
        else:
            rows = pl.DataFrame()
        self._live.settle()
        return rows

    def _hidden(self, rows: pl.DataFrame) -> list[pl.Expr]:
        """Empty what the next method may not go by, since this one may not show it."""
        last = self._plan.is_last(self._place)
        hidden = frozenset[str]() if last else self._traits.empties & {"rank", "url", "category"}
        return [pl.lit(None, rows.schema[name]).alias(name) for name in sorted(hidden & set(rows.columns))]

    def _lanes(self, batch: Batch) -> IntArray:
        """Ask the next method which searches must stay together."""
        after = self._next()
        if after is None:
            return np.zeros(len(batch), np.int32)
        return lane_of(after.partition_key(batch), self._plan.parts)

    def freeze(self) -> bytes:
        """Give everything as bytes. They hold raw records: guard them."""
        own: dict[str, Any] = {f"own/{name}": getattr(self, name) for name in _COUNTS}
        own["own/dropped"] = dict(self._dropped)
        return state_codec.dump(own | self._live.dump())

    @classmethod
    def thaw(cls, plan: Plan, place: int, data: bytes) -> LaneRun:
        """Carry on from what `freeze` gave."""
        parts, run = state_codec.load(data), cls(plan, place)
        for name in _COUNTS:
            setattr(run, name, int(parts[f"own/{name}"]))
        run._dropped = Counter(parts["own/dropped"])
        run._live.load(parts)
        return run
