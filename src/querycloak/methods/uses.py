"""Where terms are used: by which record, in its query or in the page that was clicked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from querycloak.dictionary import Dictionary
from querycloak.kernels import siphash
from querycloak.log import NOTHING, Batch, IntArray
from querycloak.methods.deletion import Entries, Mask, Words
from querycloak.methods.histories import Splitter

_CHANCE = 1


@dataclass(frozen=True)
class Uses:
    """One element for each term of each record, in order; `page` marks those of the page, not the query."""

    record: IntArray
    term: IntArray
    page: Mask

    @classmethod
    def of(cls, held: Batch, queries: Splitter, pages: Splitter | None) -> Uses:
        """Split the queries of records, and their pages if there is something to split them with."""
        record, term = queries.of(held.query)
        page = np.zeros(record.size, np.bool_)
        if pages is not None:
            more, words = pages.of(held.url)
            record, term = np.append(record, more), np.append(term, words)
            page = np.append(page, np.ones(more.size, np.bool_))
        return cls(record, term, page)

    def __getitem__(self, chosen: Mask) -> Uses:
        return Uses(self.record[chosen], self.term[chosen], self.page[chosen])

    def entries(
        self, history: IntArray, person: IntArray, people: Words, prints: Words, key: bytes
    ) -> tuple[Entries, IntArray]:
        """Give one entry for each term of each history, and the entry that each use belongs to.

        `history` numbers the history of each record; for each history, `person` says whose it is and
        `people` has a keyed number; `prints` has one for each term.
        """
        terms = max(prints.size, 1)
        pairs, entry, times = np.unique(
            history[self.record] * terms + self.term, return_inverse=True, return_counts=True
        )
        owner, term = pairs // terms, pairs % terms
        draw = siphash.draw(key, _CHANCE, (people[owner] ^ prints[term]).view(np.int64))
        return Entries(owner, person[owner], term, times, prints, draw), entry

    def shown(self, stays: Mask, records: int) -> Mask:
        """Say which uses a release shows: a page stays whole or not at all, and falls with its query."""
        has_query = np.zeros(records, np.bool_)
        has_query[self.record[stays & ~self.page]] = True
        torn = np.zeros(records, np.bool_)
        torn[self.record[self.page & ~stays]] = True
        return stays & has_query[self.record] & ~(self.page & torn[self.record])

    def queries(self, records: int, terms: Dictionary, source: Dictionary) -> IntArray:
        """Write each record's query from its terms, and give the codes; `NOTHING` for none."""
        own = self[~self.page]
        table = pl.DataFrame({"record": own.record, "term": terms.decode(own.term)})
        new = table.group_by("record", maintain_order=True).agg(pl.col("term").str.join(" "))
        query = np.full(records, NOTHING, np.int64)
        query[new["record"].to_numpy()] = source.encode(new["term"])
        return query

    def pages(self, records: int) -> Any:
        """Say which records still show their page."""
        there = np.zeros(records, np.bool_)
        there[self.record[self.page]] = True
        return there
