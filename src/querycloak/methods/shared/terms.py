"""Terms of queries and clicked pages, and the records in which they occur."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from querycloak.dictionary import Dictionary
from querycloak.kernels.arrays import grown, spans
from querycloak.log import MISSING, Batch, Flags, IntArray
from querycloak.text.normalise import words


@dataclass
class Tokenizer:
    """Splits each distinct text of a dictionary once, and gives the terms of any of its codes."""

    source: Dictionary
    terms: Dictionary

    def __post_init__(self) -> None:
        self._known = 0  # texts that have been split
        self._start = np.zeros(1, np.int64)
        self._term = np.empty(0, np.int64)

    def _learn(self) -> None:
        known = self._known
        fresh = self.source.texts()[known:]
        if not len(fresh):
            return
        lists = words(fresh)
        sizes = lists.list.len().cast(pl.Int64).to_numpy()
        flat = lists.explode().drop_nulls() if int(sizes.sum()) else pl.Series([], dtype=pl.String)
        codes, end = self.terms.encode(flat), int(self._start[known])
        self._term = grown(self._term, end + codes.size)
        self._term[end : end + codes.size] = codes
        self._known = known + len(fresh)
        self._start = grown(self._start, self._known + 1)
        self._start[known + 1 : self._known + 1] = end + np.cumsum(sizes)

    def of(self, codes: IntArray) -> tuple[IntArray, IntArray]:
        """Return for each code's terms, in order: which of the codes they belong to, and the term."""
        self._learn()
        some = np.flatnonzero(codes >= 0)
        begin = self._start[codes[some]]
        sizes = self._start[codes[some] + 1] - begin
        return np.repeat(some, sizes), self._term[spans(begin, sizes)]


@dataclass(frozen=True)
class TermOccurrences:
    """One element for each term of each record, in order; `page` marks those of the page, not the query."""

    record: IntArray
    term: IntArray
    page: Flags

    @classmethod
    def of(cls, held: Batch, queries: Tokenizer, pages: Tokenizer | None) -> TermOccurrences:
        """Split the queries of records, and their pages if there is something to split them with."""
        record, term = queries.of(held.query)
        page = np.zeros(record.size, np.bool_)
        if pages is not None:
            more, their = pages.of(held.url)
            record, term = np.append(record, more), np.append(term, their)
            page = np.append(page, np.ones(more.size, np.bool_))
        return cls(record, term, page)

    def __getitem__(self, chosen: Flags) -> TermOccurrences:
        return TermOccurrences(self.record[chosen], self.term[chosen], self.page[chosen])

    def shown(self, stays: Flags, records: int) -> Flags:
        """Return which uses a release shows: a page stays whole or not at all, and falls with its query."""
        has_query = np.bincount(self.record[stays & ~self.page], minlength=records) > 0
        torn = np.bincount(self.record[self.page & ~stays], minlength=records) > 0
        return stays & has_query[self.record] & ~(self.page & torn[self.record])

    def queries(self, records: int, terms: Dictionary, source: Dictionary) -> IntArray:
        """Write each record's query from its terms, and give the codes; `MISSING` for none."""
        own = self[~self.page]
        table = pl.DataFrame({"record": own.record, "term": terms.decode(own.term)})
        new = table.group_by("record", maintain_order=True).agg(pl.col("term").str.join(" "))
        query = np.full(records, MISSING, np.int64)
        query[new["record"].to_numpy()] = source.encode(new["term"])
        return query

    def pages(self, records: int) -> Any:
        """Return which records still show their page."""
        return np.bincount(self.record[self.page], minlength=records) > 0
