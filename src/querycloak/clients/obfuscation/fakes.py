"""`Fakes`: rows to be mixed into a trace, as numbers; and what every way of making them offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import polars as pl

from querycloak.clients.obfuscation.draws import Draws
from querycloak.clients.obfuscation.searches import Searches
from querycloak.clients.obfuscation.settings import Settings
from querycloak.log import MISSING, IntArray


@dataclass(frozen=True, eq=False)
class Fakes:
    """Rows of fake searches: several of the same `search` (from 0 for each person) are its clicks.

    `source` says where the query is taken from and `click` where the address is, or `MISSING`.
    """

    search: IntArray
    time: IntArray
    source: IntArray
    click: IntArray

    @classmethod
    def joined(cls, parts: Sequence[Fakes]) -> Self:
        """Put those of several people one after the other."""
        empty = np.zeros(0, np.int64)
        return cls(**{f.name: np.concatenate([empty, *(getattr(p, f.name) for p in parts)])
                      for f in fields(cls)})  # fmt: skip

    def __len__(self) -> int:
        return self.search.size


class Method(ABC):
    """A way to make fakes, for one person after the other."""

    def __init__(self, searches: Searches, settings: Settings, key: bytes) -> None:
        self.searches, self.settings, self.key = searches, settings, key

    @abstractmethod
    def fakes(self, person: int, draws: Draws) -> Fakes:
        """Make one person's fakes; the draws are hers alone."""

    @abstractmethod
    def spelled(self, fakes: Fakes) -> pl.DataFrame:
        """Give every column of the log but `row`, `user` and `time`."""


class FromPeople(Method):
    """Fakes that somebody else once asked: `source` and `click` are rows of the sorted log."""

    def spelled(self, fakes: Fakes) -> pl.DataFrame:
        """Copy what others asked; clicks may come from another row than the query."""
        frame = self.searches.frame.drop("row", "user", "time", strict=False)
        clicked = [name for name in ("rank", "url") if name in frame.columns]
        row = pl.Series(fakes.click).replace(MISSING, None)
        asked = frame[fakes.source.astype(np.uint32)]
        return asked.with_columns(frame[name].gather(row) for name in clicked)

    def _as_asked(self, searches: IntArray, time: IntArray, keep: IntArray | None = None) -> Fakes:
        """Repeat these searches at these times, with their clicks, or without where `keep` is 0."""
        rows, which = self.searches.rows_of(searches)
        click = rows
        if keep is not None:
            bare, again = keep[which] == 0, np.diff(which, prepend=-1) == 0
            click = np.where(bare, MISSING, click)
            rows, which, click = (part[~(bare & again)] for part in (rows, which, click))
        return Fakes(which, time[which], rows, click)
