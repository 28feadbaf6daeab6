"""`Log`: a table of searches as people see it. `Batch`: the same as integer arrays, for methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import polars as pl

    from querycloak.dictionary import Dictionaries

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

#: The columns that QueryCloak knows; `row` (the input's data row, from 0) goes beside them.
CANONICAL: Final = ("user", "query", "time", "rank", "url", "category")
#: The columns that a table of counts may have, in their order.
COUNTS: Final = ("user", "query", "category", "count")
#: Stands for "no value" in the columns of a Batch, except for times.
MISSING: Final = -1
#: Stands for "no time".
NO_TIME: Final = int(np.iinfo(np.int64).min)
#: One bit for each canonical column, for `Batch.blank`.
COLUMN_BIT: Final = {name: 1 << place for place, name in enumerate(CANONICAL)}


@dataclass
class Skipped:
    """Counts bad rows by reason and remembers the numbers of the first few; never their content."""

    counts: Counter[str] = field(default_factory=Counter)
    first_rows: dict[str, list[int]] = field(default_factory=dict)

    REMEMBERED: ClassVar = 20

    def add(self, reason: str, rows: Iterable[int]) -> None:
        """Note that these input rows (0-based data rows) were left out for this reason."""
        numbers = [int(row) for row in rows]
        if numbers:
            self.merge(Skipped(Counter({reason: len(numbers)}), {reason: numbers}))

    def merge(self, other: Skipped) -> None:
        """Take over what another piece of the same log skipped."""
        self.counts.update(other.counts)
        for reason, rows in other.first_rows.items():
            known = self.first_rows.setdefault(reason, [])
            known.extend(rows[: self.REMEMBERED - len(known)])

    @property
    def total(self) -> int:
        """How many rows were left out in all."""
        return sum(self.counts.values())


@dataclass(frozen=True)
class Log:
    """A log as a table: canonical column names, typed values, and the row each record came from.

    `frame` has `row` (Int64) and those of `user, query, url, category` (String), `time` (Datetime in
    microseconds, UTC), `rank` (Int64) that the input had, then the columns kept by name. `layout` is
    how the input looked, so that a release can look the same. `table` says that the rows are counts
    (a column `count`), not records: what some methods release.
    """

    frame: pl.DataFrame
    layout: Any = None
    skipped: Skipped = field(default_factory=Skipped)
    rows_read: int = 0
    dropped_columns: tuple[str, ...] = ()
    table: bool = False

    def __len__(self) -> int:
        return self.frame.height

    def with_frame(self, frame: pl.DataFrame) -> Log:
        """Return the same log with other records."""
        return replace(self, frame=frame)


_ABSENT: Final = {"time": NO_TIME, "blank": 0}


def _same(value: int, size: int) -> IntArray:
    """Return a column of one value that takes no room; a column that nobody reads should cost nothing."""
    return np.broadcast_to(np.int64(value), size)


def is_same(column: IntArray) -> bool:
    """Whether a column is one value repeated without taking room."""
    return column.strides == (0,)


def _picked(column: IntArray, chosen: Any, size: int) -> IntArray:
    return np.broadcast_to(column[0], size) if is_same(column) and column.size else column[chosen]


def _joined(one: IntArray, other: IntArray) -> IntArray:
    if is_same(one) and is_same(other) and one[0] == other[0]:
        return _same(int(one[0]), one.size + other.size)
    return np.concatenate([one, other])


@dataclass(frozen=True)
class Batch:
    """Equal-length integer columns of a piece of a log: what a method takes and hands back.

    One element is one search (or one click, for methods that ask for it). `row` says which input row
    it came from; a negative one was made up by a method. `seq` says how many input rows had been read
    when the record came to be here: at a method's door that is when it was read, in what a method
    hands back it is when it was let go. `user`, `query`, `url`, `category` are opaque codes that
    `texts` can spell out: equal codes mean equal texts, and nothing else can be told from them.
    `blank` holds the `COLUMN_BIT`s of columns that must leave empty.
    """

    row: IntArray
    seq: IntArray
    user: IntArray
    query: IntArray
    time: IntArray
    rank: IntArray
    url: IntArray
    category: IntArray
    blank: IntArray
    texts: Dictionaries

    COLUMNS: ClassVar = ("row", "seq", "user", "query", "time", "rank", "url", "category", "blank")

    def __len__(self) -> int:
        return int(self.row.size)

    def __getitem__(self, chosen: Any) -> Batch:
        row = self.row[chosen]
        columns = {name: _picked(getattr(self, name), chosen, row.size) for name in self.COLUMNS[1:]}
        return Batch(row=row, **columns, texts=self.texts)

    def __add__(self, other: Batch) -> Batch:
        if not len(other):
            return self
        if not len(self):
            return other
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in self.COLUMNS}
        joined = {name: _joined(*pair) for name, pair in pairs.items()}
        return Batch(**joined, texts=self.texts)

    def replace(self, **columns: IntArray) -> Batch:
        """Return the same batch with some columns exchanged."""
        return Batch(**(self.arrays() | columns), texts=self.texts)

    def without_blanks(self) -> Batch:
        """Return the same batch with missing values in the cells that must be empty in the release."""
        if not self.blank.any():
            return self
        return self.replace(
            **{
                name: np.where(self.blank & bit == 0, getattr(self, name), _ABSENT.get(name, MISSING))
                for name, bit in COLUMN_BIT.items()
            }
        )

    def arrays(self) -> dict[str, IntArray]:
        """Return the columns by name, for a snapshot."""
        return {name: getattr(self, name) for name in self.COLUMNS}

    @classmethod
    def of(cls, columns: Mapping[str, IntArray], texts: Dictionaries) -> Batch:
        """Build a batch from named columns; absent ones are filled with "nothing"."""
        size = len(columns["row"])
        absent = {
            name: _same(_ABSENT.get(name, MISSING), size) for name in cls.COLUMNS if name not in columns
        }
        return cls(**(dict(columns) | absent), texts=texts)

    @classmethod
    def empty(cls, texts: Dictionaries) -> Batch:
        """Return a batch with no element."""
        return cls.of({"row": np.empty(0, np.int64)}, texts)
