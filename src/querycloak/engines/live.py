"""A pipeline over a log without end: it holds records, refuses late ones, and dumps and loads its state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from querycloak.dictionary import Dictionaries
from querycloak.engines import state_codec
from querycloak.engines.pipeline import Pipeline, Stage
from querycloak.engines.record_store import RecordStore
from querycloak.log import Batch, IntArray

#: Why a record is dropped that comes too late for a method that needs time order.
OUT_OF_ORDER: Final = "came after later records, and the method needs the order of times"
_BEFORE_ALL: Final = int(np.iinfo(np.int64).min)


class LivePipeline:
    """Methods with the records that wait in them.

    The same records in the same order give the same release, wherever the state was dumped and loaded.
    """

    def __init__(
        self,
        stages: list[Stage],
        key: bytes,
        *,
        spare_texts: int,
        first: int = 0,
        build: Callable[[Dictionaries], Pipeline] | None = None,
    ) -> None:
        """Build the methods; with more than `spare_texts` unused texts, `dump` builds dictionaries anew.

        `build` makes the pipeline in another way than from the stages.
        """
        self._build = build or (lambda texts: Pipeline(stages, key, texts, first=first))
        self._spare = spare_texts
        self.store = RecordStore()
        self.newest = _BEFORE_ALL
        self.pipeline = self._build(Dictionaries())
        self._in_time_order = any(one.needs_time_order for one in self.pipeline.traits)

    def push(self, batch: Batch) -> tuple[Batch, IntArray]:
        """Push records that are in the store; return released ones, and the rows that came too late."""
        batch, late = self._without_late(batch)
        self.store.remove(late)
        return (self.pipeline.push(batch) if len(batch) else batch), late

    def _without_late(self, batch: Batch) -> tuple[Batch, IntArray]:
        """Leave out records that come after later ones, if a method needs the order of time."""
        if not self._in_time_order or not len(batch):
            return batch, np.empty(0, np.int64)
        newest = np.maximum(np.maximum.accumulate(batch.time), self.newest)
        self.newest = int(newest[-1])
        late = batch.time < newest
        return batch[~late], batch.row[late]

    def settle(self) -> None:
        """Remove the records that methods dropped, and free their memory."""
        self.store.remove(self.pipeline.drain_dropped())
        self.store.compact()

    def dump(self) -> dict[str, Any]:
        """Return the state by name. It holds raw records, so protect it like the log.

        Texts that are no longer in use are left out; if most are, the dictionaries are built anew.
        """
        texts = Dictionaries()
        old = self.pipeline.texts
        state = state_codec.compact_dictionaries(self.pipeline.snapshot(), self.pipeline, old, texts)
        if state_codec.is_outgrown(old, texts, self._spare):
            self.pipeline = self._build(texts)
            self.pipeline.restore(state)
        named = {f"pipeline/{name}": array for name, array in state.items()}
        return named | state_codec.dump_dictionaries(texts) | {"waiting": self.store.rows()}

    def load(self, parts: Mapping[str, Any]) -> None:
        """Continue from what `dump` returned."""
        state_codec.load_dictionaries(self.pipeline.texts, parts)
        self.pipeline.restore(state_codec.with_prefix("pipeline/", parts))
        if parts["waiting"] is not None:
            self.store.add(parts["waiting"])
