"""The plainest method that gives a table: it counts, adds no noise and promises nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from querycloak import settings as declared
from querycloak.guarantee import Audit, Guarantee
from querycloak.log import Batch
from querycloak.protector import Protector, Traits
from querycloak.settings import setting


class Tally(Protector):
    """Count who asked what.

    Guarantee: none.

    Limits:
        - anything
    """

    name = "tally"

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        by: str = setting("query", kind=str, choices=("query", "all"), help="what is counted")

    def __init__(self, settings, key, texts) -> None:
        super().__init__(settings, key, texts)
        self._seen = Batch.empty(texts)
        self._closed = False

    @classmethod
    def examples(cls):
        return [cls.Settings(), cls.Settings(by="all")]

    @classmethod
    def traits(cls, settings) -> Traits:
        return Traits(
            reads=frozenset({"user", "query", "category"}),
            output="counts",
            coded_state={"query": "query", "url": "url", "category": "category"},
        )

    @classmethod
    def promise(cls, settings) -> Guarantee:
        columns = Audit("the table has counts", cls._no_counts, on_counts=True)
        return Guarantee("none: it only counts", ("anything",), (columns,))

    @staticmethod
    def _no_counts(evidence) -> str:
        table = evidence.text().collect()
        return "" if "count" in table.columns or not table.height else "it has none"

    def push(self, batch: Batch) -> Batch:
        self._seen += batch
        self.drop(batch.row, "counted, not shown")
        return Batch.empty(self.texts)

    def close(self) -> Batch:
        self._closed = True
        return Batch.empty(self.texts)

    def counts(self) -> pl.DataFrame:
        assert self._closed
        names = ["query"] if self.settings.by == "query" else ["category", "query", "user"]
        spelled = {name: getattr(self.texts, name).decode(getattr(self._seen, name)) for name in names}
        counted = pl.DataFrame(spelled).group_by(names, maintain_order=True).len(name="count")
        return counted.cast({"count": pl.Int64})

    def erase(self, users, rows) -> None:
        self._seen = self._seen[~np.isin(self._seen.user, users)]

    def snapshot(self):
        return {
            name: np.array(array) for name, array in self._seen.arrays().items()
        } | self._snapshot_dropped()

    def restore(self, state) -> None:
        self._seen = Batch.of({name: state[name] for name in Batch.COLUMNS}, self.texts)
        self._restore_dropped(state)
