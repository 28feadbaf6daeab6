"""The plan of a run on Spark, which is sent to all workers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from querycloak.dictionary import Dictionaries
from querycloak.engines.pipeline import Pipeline, Stage
from querycloak.engines.source_state import Stored, load_state
from querycloak.log import COUNTS, IntArray


@dataclass(frozen=True)
class Plan:
    """What all workers need: the methods, the key of the release, and the log's columns and size."""

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
        """Build all methods with the stored state of earlier releases."""
        whole = self.whole()
        for method, stored in zip(whole, self.stored, strict=bool(self.stored)):
            load_state(method, stored)
        return whole

    def is_last(self, place: int) -> bool:
        """Whether no method comes after this one."""
        return place == len(self.stages) - 1

    def rewritten(self, place: int) -> list[str]:
        """Return the log's columns that methods up to this one changed."""
        traits = [stage.traits for stage in self.stages[: place + 1]]
        changed = frozenset[str]().union(*(one.rewrites | one.empties for one in traits))
        return [name for name in self.columns if name in changed]

    def table_columns(self) -> list[str]:
        """Return the columns of the table that the last method writes."""
        whole = self.whole()
        whole.close()
        found = whole.counts().columns
        return [name for name in COUNTS if name in found]


def lane_of(key: IntArray | None, parts: int) -> IntArray:
    """Return the lane (the number of a worker) of each key."""
    assert key is not None
    return np.asarray(key % parts, np.int32)
