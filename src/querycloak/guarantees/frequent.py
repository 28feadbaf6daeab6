"""Audits for promises about how many people asked a released query."""

from __future__ import annotations

import polars as pl

from querycloak.guarantees import Audit, Evidence, NotCheckable, rows_text
from querycloak.guarantees.lineage import faults


def replayed(original: pl.LazyFrame) -> pl.LazyFrame:
    """Number the original's rows as they are replayed: by time, ties by input row; `read` from 1."""
    if "time" not in original.collect_schema().names():
        raise NotCheckable("the original has no times, so only the key knows in which order it was replayed")
    return original.sort("time", "row", nulls_last=True).with_row_index("read", offset=1)


def _counts(k: int, evidence: Evidence) -> str:
    rare = evidence.release.filter(pl.len().over("query") < k).select("released_row")
    rows = rare.collect().to_series().sort().to_list()
    if rows and evidence.later:
        raise NotCheckable("later methods may have removed rows of a query that enough people asked")
    return f"{rows_text(rows, len(rows))} show a query that stands in fewer than {k} rows" if rows else ""


def _askers(k: int, evidence: Evidence) -> str:
    """Count the people behind each released text, in the original and behind the released rows."""
    assert evidence.original is not None
    shown = evidence.traced.select("released_row", "query", user="original_user")
    pairs = pl.concat([evidence.original.select("query", "user"), shown.select("query", "user")])
    askers = pairs.unique().group_by("query", maintain_order=False).agg(askers=pl.len())
    beside = shown.join(askers, on="query", how="left", nulls_equal=True)
    return faults(beside.filter(pl.col("askers") < k), f"show a query that fewer than {k} people asked")


def _in_time(k: int, evidence: Evidence) -> str:
    """Check that k people had asked a query before its first row left."""
    assert evidence.original is not None
    if evidence.rewritten:
        raise NotCheckable("another method of this release rewrites queries")
    first_asked = replayed(evidence.original).group_by("query", "user").agg(pl.col("read").min())
    ripe = first_asked.group_by("query").agg(ripe=pl.col("read").sort().get(k - 1, null_on_oob=True))
    beside = evidence.traced.join(ripe, on="query", how="left", nulls_equal=True)
    early = pl.col("ripe").is_null() | (pl.col("released_after") < pl.col("ripe"))
    return faults(beside.filter(early), f"left before {k} people had asked their query")


def asked_by(k: int) -> tuple[Audit, ...]:
    """Give the audits of "each released query was asked by at least k people"."""
    return (
        Audit(f"each released query stands in at least {k} rows", lambda e: _counts(k, e)),
        Audit(f"each released query was asked by at least {k} people", lambda e: _askers(k, e), True),
        Audit(f"no query left before {k} people had asked it", lambda e: _in_time(k, e), True),
    )
