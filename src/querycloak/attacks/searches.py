"""Rows of a log as searches: rows of the same person, query and time are one search with several clicks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from querycloak.log import IntArray


@dataclass(frozen=True)
class Searches:
    """The searches of a log in the order of their first rows, and which of them each row belongs to."""

    frame: pl.DataFrame
    of_row: IntArray
    first_row: IntArray

    @classmethod
    def of(cls, frame: pl.DataFrame) -> Searches:
        """Find the searches; rows without a time are searches of their own."""
        names = [name for name in ("user", "query", "time") if name in frame.columns]
        rows = frame.select(names).with_row_index("_row")
        alone = pl.col("_row") if "time" not in names else pl.when(pl.col("time").is_null()).then("_row")
        keys = rows.with_columns(_alone=alone)
        head = keys.select(pl.col("_row").min().over(*names, "_alone").cast(pl.Int64)).to_series().to_numpy()
        first, of_row = np.unique(head, return_inverse=True)
        return cls(frame, of_row.astype(np.int64), first.astype(np.int64))

    def __len__(self) -> int:
        return int(self.first_row.size)

    @property
    def query(self) -> pl.Series:
        """The query of each search."""
        return self.column("query")

    def column(self, name: str) -> pl.Series:
        """Return what the first row of each search has in a column; null without one."""
        if name not in self.frame.columns:
            return pl.Series(name, [None] * len(self), dtype=pl.String)
        return self.frame[name][self.first_row]

    def distinct(self, name: str) -> pl.DataFrame:
        """Return `search` and the distinct values of its rows in a column, in their order; no nulls."""
        if name not in self.frame.columns:
            return pl.DataFrame(schema={"search": pl.Int64, name: pl.String})
        rows = pl.DataFrame({"search": self.of_row, name: self.frame[name].cast(pl.String)})
        return rows.drop_nulls().unique(maintain_order=True)


def in_time(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows in time order; those without a time come last, in their order."""
    return rows.sort("time", nulls_last=True, maintain_order=True) if "time" in rows.columns else rows
