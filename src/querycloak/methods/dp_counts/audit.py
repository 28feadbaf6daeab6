"""Audits of tables of counts: their columns, keys and counts, and that each query was asked."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import polars as pl

from querycloak.audits.evidence import Evidence
from querycloak.audits.lineage import faults
from querycloak.errors import QueryCloakError
from querycloak.guarantee import Audit, NotCheckable
from querycloak.log import CANONICAL


def _filled(table: pl.DataFrame) -> set[str]:
    """Return the columns that are not empty; a reader may add empty ones for what a file lacks."""
    return {name for name in table.columns if table[name].null_count() < table.height} - {"released_row"}


def _columns(allowed: frozenset[str], evidence: Evidence) -> str:
    table = evidence.text().collect()
    further = _filled(table) - allowed
    named = sorted(further & set(CANONICAL)) + ["another column"] * bool(further - set(CANONICAL))
    if named:
        return f"the table also has {', '.join(named)}"
    lacking = sorted(allowed - set(table.columns)) if table.height else []
    if lacking:
        return f"the table has no {', '.join(lacking)}"
    empty = pl.any_horizontal(pl.col(name).is_null() for name in sorted(allowed)) if table.height else False
    return faults(table.lazy().filter(empty), "have an empty cell")


def _once(keys: list[str], evidence: Evidence) -> str:
    table = evidence.text()
    if set(keys) - set(table.collect_schema().names()):
        raise NotCheckable("the table lacks the column")
    return faults(table.filter(pl.len().over(keys) > 1), f"show the same {' and '.join(keys)} again")


def _counts(evidence: Evidence) -> pl.LazyFrame:
    table = evidence.text()
    if "count" not in table.collect_schema().names():
        raise NotCheckable("the table has no counts")
    written = pl.col("count").cast(pl.String)
    return table.with_columns(written=written, count=written.cast(pl.Int64, strict=False))


def _whole(evidence: Evidence) -> str:
    odd = pl.col("count").is_null() | (pl.col("count") < 0)
    other = pl.col("written") != pl.col("count").cast(pl.String)  # 07, +7
    return faults(_counts(evidence).filter(odd | other), "have a count that is no whole number from 0 up")


def _asked(evidence: Evidence) -> str:
    if evidence.rewritten:
        raise NotCheckable("a method of this release rewrites queries")
    asked = evidence.asked.lazy().select("query").unique()
    return faults(evidence.release.join(asked, on="query", how="anti"), "show a query that no user asked")


def _unseen(evidence: Evidence) -> str:
    raise NotCheckable("one table does not show probabilities; the proof is on the page of the method")


def query_counts() -> tuple[Audit, ...]:
    """Return the audits of a table `query, count`.

    None of them compares a count with the true one: refusing a release for its noise would disclose
    something about the log.
    """
    allowed = frozenset({"query", "count"})
    what = "each line has a query and a count, and nothing else"
    return (
        Audit(what, lambda e: _columns(allowed, e), on_counts=True),
        Audit("each query has one line", lambda e: _once(["query"], e), on_counts=True),
        Audit("each count is a whole number from 0 up", _whole, on_counts=True),
        Audit("each query of the table was asked", _asked, needs_truth=True, on_counts=True),
        Audit("the noise has the stated distribution", _unseen, on_counts=True),
    )


def _in_domain(names: Callable[[], set[str]], allowed: frozenset[str], evidence: Evidence) -> str:
    column = "query" if "query" in allowed else "category"
    known = pl.Series(sorted(names()), dtype=pl.String)
    table = evidence.text()
    if column not in table.collect_schema().names():
        raise NotCheckable("the table lacks the column")
    return faults(table.filter(~pl.col(column).is_in(known.implode())), "count something else")


def _complete(names: Callable[[], set[str]], allowed: frozenset[str], evidence: Evidence) -> str:
    bins, table = len(names()), evidence.text().collect()
    if "user" not in allowed:
        return "" if table.height == bins else f"the table has {table.height:,} lines for {bins:,} bins"
    sizes = table.group_by("user").len()["len"]
    return "" if bool((sizes == bins).all()) else "a user has fewer lines than there are bins"


def _above(least: int, evidence: Evidence) -> str:
    return faults(_counts(evidence).filter(pl.col("count") < least), "have a smaller count")


def bin_counts(allowed: frozenset[str], names: Callable[[], set[str]], at_least: int) -> tuple[Audit, ...]:
    """Return the audits of a table with a line for every bin, or for bins with a large noisy count."""

    @cache  # two audits read them
    def known() -> set[str]:
        try:
            return names()
        except QueryCloakError:
            raise NotCheckable("the taxonomy is not here: a certificate names no folders") from None

    keys: list[str] = [name for name in ("user", "query", "category") if name in allowed]
    found = [
        Audit(f"each line has {', '.join(keys)} and count", lambda e: _columns(allowed, e), on_counts=True),
        Audit("each bin has one line", lambda e: _once(keys, e), on_counts=True),
        Audit("each count is a whole number from 0 up", _whole, on_counts=True),
        Audit("only bins of the domain are counted", lambda e: _in_domain(known, allowed, e), on_counts=True),
        Audit("the noise has the stated distribution", _unseen, on_counts=True),
    ]
    if at_least:
        what = f"no count is below {at_least}"
        found.append(Audit(what, lambda e: _above(at_least, e), on_counts=True))
    else:
        what = "every bin has a line, also without a search"
        found.append(Audit(what, lambda e: _complete(known, allowed, e), on_counts=True))
    return tuple(found)


def _too_many(d: int, evidence: Evidence) -> str:
    rows = evidence.placed("released_row", "original_user").lazy()
    many = pl.col("head").n_unique().over("original_user") > d
    return faults(rows.filter(many), f"belong to a user with more than {d} searches")


def at_most(d: int) -> tuple[Audit, ...]:
    """Return the audit of "at most d searches of each person are released"."""
    return (Audit(f"no user has more than {d} searches", lambda e: _too_many(d, e), True),)
