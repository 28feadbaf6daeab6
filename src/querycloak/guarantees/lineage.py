"""Audits for every release: nothing made up, nothing shown twice, nothing changed on the way."""

from __future__ import annotations

import polars as pl

from querycloak.guarantees import Audit, Evidence, NotCheckable, rows_text


def faults(rows: pl.LazyFrame, what: str) -> str:
    """Turn the rows at fault into a text that names them by number; no row, no text."""
    numbers = rows.select("released_row").collect().to_series().sort().to_list()
    return f"{rows_text(numbers, len(numbers))} {what}" if numbers else ""


def _nothing_made_up(evidence: Evidence) -> str:
    assert evidence.original is not None
    known = evidence.original.select("row", exists=pl.lit(True))
    found = evidence.traced.join(known, left_on="original_row", right_on="row", how="left")
    return faults(found.filter(pl.col("exists").is_null()), "come from no row of the original")


def _nothing_twice(evidence: Evidence) -> str:
    twice = evidence.traced.filter(pl.col("original_row").is_not_null())
    return faults(
        twice.filter(pl.col("original_row").is_duplicated()), "show an original row that another shows too"
    )


def _queries_unchanged(evidence: Evidence) -> str:
    assert evidence.original is not None
    if evidence.rewritten:
        raise NotCheckable("another method of this release rewrites queries")
    asked = evidence.original.select("row", asked="query")
    beside = evidence.traced.join(asked, left_on="original_row", right_on="row", how="left")
    return faults(
        beside.filter(~pl.col("query").eq_missing(pl.col("asked"))), "show another query than was asked"
    )


NOTHING_MADE_UP = Audit("every released row comes from a row of the original", _nothing_made_up, True)
NOTHING_TWICE = Audit("no row of the original is shown twice", _nothing_twice, True)
QUERIES_UNCHANGED = Audit("every released query is the one that was asked", _queries_unchanged, True)

#: What holds for a release whatever methods made it.
LINEAGE = (NOTHING_MADE_UP, NOTHING_TWICE, QUERIES_UNCHANGED)
