"""What readers of all formats hand on: a table of raw values, and the rows that were already bad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from querycloak.log import IntArray

#: Bad rows by reason: sorted 0-based data rows.
Faults = dict[str, IntArray]


@dataclass(frozen=True)
class Options:
    """What the caller of `read` asked for."""

    mapping: Mapping[str, str] = field(default_factory=dict)
    keep: Sequence[str] = ()
    strict: bool = False
    required: Sequence[str] = ("user", "query", "time")


@dataclass
class Table:
    """A stretch of data rows: `first` up to, not including, `first + rows`.

    `frame` has `row` and the wanted columns under their canonical names, values as the file has them.
    A reader that knows that no text can hold a NUL or be too long says so, which saves a look at each.
    """

    frame: pl.DataFrame
    first: int
    rows: int
    bad: Faults = field(default_factory=dict)
    may_hold_nul: bool = True
    may_be_long: bool = True

    @property
    def end(self) -> int:
        """The number of the data row after this stretch."""
        return self.first + self.rows


def note(bad: Faults, reason: str, rows: IntArray) -> None:
    """Add bad rows of one reason, keeping them sorted."""
    if rows.size:
        known = bad.get(reason)
        bad[reason] = np.sort(rows if known is None else np.concatenate([known, rows]))


def as_rows(numbers: Sequence[int]) -> IntArray:
    """Give row numbers as the array that `note` takes."""
    return np.asarray(numbers, dtype=np.int64)
