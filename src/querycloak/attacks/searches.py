"""Rows of a log as searches, and the words of their queries.

Rows of the same person, query and time are one search with several clicks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.dictionary import Dictionary
from querycloak.log import IntArray
from querycloak.text.normalise import number, stemmer, words

#: Strings that are cut into words at a time, to bound memory.
PIECE = 1 << 20


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


@dataclass(frozen=True)
class Words:
    """The different stems of each string: those of string s are `word[begins[s]:begins[s + 1]]`, sorted."""

    begins: IntArray
    word: npt.NDArray[np.int32]
    different: int

    def counts(self, string: npt.NDArray[np.int32]) -> IntArray:
        """Count the records that hold each word."""
        strings = self.begins.size - 1
        records = np.bincount(string[string >= 0], minlength=strings)[:strings]
        each = np.repeat(records, np.diff(self.begins))
        return np.bincount(self.word, each, minlength=self.different).astype(np.int64)


def words_of(strings: pl.Series) -> Words:
    """Cut strings into lower-case stems, each counted once per string."""
    stems = Dictionary()
    lengths, codes = [np.zeros(1, np.int64)], [np.empty(0, np.int64)]
    for start in range(0, len(strings), PIECE):
        found = words(strings[start : start + PIECE])
        sizes = found.list.len().fill_null(0).to_numpy().astype(np.int64)
        tokens = found.filter(pl.Series(sizes > 0)).explode()
        owner = np.repeat(np.arange(sizes.size), sizes)
        code, distinct = number(tokens)
        stem = stems.encode(pl.Series(stemmer().stemWords(distinct), dtype=pl.String))
        once = np.unique(owner << 32 | stem[code])
        lengths.append(np.bincount(once >> 32, minlength=sizes.size))
        codes.append(once & 0xFFFFFFFF)
    word = np.concatenate(codes).astype(np.int32)
    return Words(np.cumsum(np.concatenate(lengths)), word, int(word.max(initial=-1)) + 1)


def in_terms(rows: pl.DataFrame, wanted: pl.Series | None = None) -> pl.DataFrame:
    """Split the queries of `user, thing` into terms, all or those that are wanted."""
    different = rows.select("thing").unique()
    split = different.with_columns(term=words(pl.col("thing"))).explode("term").drop_nulls()
    if wanted is not None:
        split = split.join(pl.DataFrame({"term": wanted}), on="term", how="semi")
    return rows.join(split, on="thing").select("user", thing=pl.col("term"))
