"""Counts what each label released, by category, and adds it to the profiles now and then."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import polars as pl

from querycloak.service.sinks.profiles import Profiles

#: Records that are gathered before they are counted and written, and for how long at most.
RECORDS: Final = 200_000
SECONDS: Final = 2.0


class Tally:
    """Gathers counts in memory; a crash loses none, since replay counts again what the profiles lack."""

    def __init__(self, store: Profiles, clock: Callable[[], float] = time.monotonic) -> None:
        self.store, self._clock = store, clock
        self._parts: list[pl.DataFrame] = []
        self._records, self._upto, self._since = 0, store.last, clock()
        #: What the store did not take: it may have it all the same, so it gets it again just as it was.
        self._refused: tuple[int, list[tuple[str, str, int]]] | None = None

    def add(self, released: pl.DataFrame) -> None:
        """Count released records that the store does not have yet."""
        first, last = released["offset"][0], int(released["offset"][-1])
        fresh = released[max(0, max(self._upto, self.store.last) + 1 - first) :]
        if not fresh.height:
            return
        if not self._parts:
            self._since = self._clock()
        self._parts.append(pl.DataFrame([fresh["user"], fresh["category"]]))
        self._records += fresh.height
        self._upto = last

    def due(self) -> bool:
        """Say whether it is time to write."""
        if self._refused:
            return True
        return self._records >= RECORDS or (bool(self._parts) and self._clock() - self._since >= SECONDS)

    def forget(self, label: str) -> None:
        """Forget a label's profile, whatever is still to be written of it too."""
        self.flush()
        self.store.forget(label)

    def flush(self) -> None:
        """Write what was refused before, if anything, and then what was gathered since."""
        while self._refused or self._parts:
            self._refused = self._refused or self._counted()
            self.store.add(*self._refused)
            self._refused = None

    def _counted(self) -> tuple[int, list[tuple[str, str, int]]]:
        """Count what was gathered, and begin to gather anew."""
        counted = pl.concat(self._parts).drop_nulls("user").group_by("user", "category").len()
        self._parts, self._records = [], 0
        return self._upto, counted.with_columns(pl.col("category").fill_null("")).rows()
