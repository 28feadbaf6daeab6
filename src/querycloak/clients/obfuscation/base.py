"""`CoverMethod`: the interface of an obfuscation method, with its settings and its dummy searches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import polars as pl

from querycloak import settings as declared
from querycloak.clients.obfuscation.history import SearchHistory
from querycloak.clients.obfuscation.random_stream import KeyedStream
from querycloak.log import IntArray
from querycloak.registry import COVERS
from querycloak.settings import setting

#: Largest number of dummy searches per real search.
MAX_FAKES = 100


@dataclass(frozen=True, kw_only=True)
class CoverSettings(declared.Settings):
    """Settings of an obfuscation method; `fakes` is the number of dummy searches per real search."""

    fakes: float = setting(1.0, at_least=0, at_most=MAX_FAKES, help="dummy searches per real search")

    @property
    def per_real(self) -> float:
        """Expected number of dummy searches per real search."""
        return float(self.fakes)


@dataclass(frozen=True, kw_only=True)
class TimedSettings(CoverSettings):
    """Settings of a method whose dummy searches a machine sends."""

    timing: str = setting("random", choices=("random", "burst", "regular"), help="times of dummy searches")


@dataclass(frozen=True, eq=False)
class DummySearches:
    """Rows of dummy searches; rows with the same `search` (from 0 for each user) are clicks of one search.

    `source` is the number of the query and `click` that of the clicked address, or `MISSING`. The method
    that made them knows what the numbers mean.
    """

    search: IntArray
    time: IntArray
    source: IntArray
    click: IntArray

    @classmethod
    def joined(cls, parts: Sequence[DummySearches]) -> Self:
        """Return the rows of several parts one after the other."""
        empty = np.zeros(0, np.int64)
        columns = ([getattr(part, f.name) for part in parts] for f in fields(cls))
        return cls(*(np.concatenate([empty, *column]) for column in columns))

    def __len__(self) -> int:
        return self.search.size


class LiveCover(Protocol):
    """The live form of a method: a source of dummy queries that learns from results."""

    def next_query(self) -> str:
        """Return the next dummy query."""

    def observe(self, titles: Iterable[str]) -> None:
        """Learn from the titles of results."""


class CoverMethod(ABC):
    """An obfuscation method: makes dummy searches for one user after the other."""

    name: ClassVar[str]
    Settings: ClassVar[type[CoverSettings]] = CoverSettings
    #: Whether dummy searches are searches of other users, who can come from a pool.
    borrows: ClassVar[bool] = False

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "Settings" in vars(cls):
            cls.Settings.method = cls.name  # for messages

    def __init__(self, history: SearchHistory, settings: Any, key: bytes) -> None:
        self.history, self.settings, self.key = history, settings, key

    @abstractmethod
    def fakes(self, user: int, stream: KeyedStream) -> DummySearches:
        """Return the dummy searches of one user; the stream is that user's own."""

    @abstractmethod
    def columns(self, dummies: DummySearches) -> pl.DataFrame:
        """Return every column of the log but `row`, `user` and `time`."""

    @classmethod
    def live(cls, settings: Any, stream: KeyedStream) -> LiveCover | None:
        """Return the live form; None if the method has none."""
        return None


def choose(method: str, given: Mapping[str, Any]) -> tuple[type[CoverMethod], CoverSettings]:
    """Return the method of that name and its settings; values that are None are not given."""
    cover: type[CoverMethod] = COVERS.get(method)
    return cover, cover.Settings.given({name: value for name, value in given.items() if value is not None})
