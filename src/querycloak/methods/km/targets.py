"""Target functions: the priority of a term when one of a rare combination is deleted (paper 001; ours)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from querycloak.errors import UsageError
from querycloak.methods.km import kernel as combos
from querycloak.methods.km.deletion import DeletionRule, Floats, HistoryTerms, Outcome

#: What a marketing file is needed for.
MARKETING: Final = ("bid", "clicks", "impressions", "revenue")
TARGETS: Final = ("random", "fis", "distinct", "logsize", "users", *MARKETING)


def deletion(target: str, k: int, m: int, entries: HistoryTerms, values: Floats | None) -> DeletionRule:
    """Return the rules of a run for a target; `values` are a term's own, from a file, where it needs one."""
    if target == "random":
        return DeletionRule(k, m, lambda now, _: [np.zeros(now.terms)], by_chance=True)
    if target == "fis":
        return DeletionRule(k, m, _frequent_sets, needs_combination_counts=True, reranks_each_round=True)
    if target == "distinct":
        return DeletionRule(k, m, lambda now, _: [_slack(now, k)], reranks_each_round=True)
    if target == "users":
        users = entries.supports().astype(np.float64)
        return DeletionRule(k, m, lambda now, _: [users])
    weighed = weights(target, entries, values)
    return DeletionRule(k, m, lambda now, _: [weighed])


def weights(target: str, entries: HistoryTerms, values: Floats | None) -> Floats:
    """Weigh each term's own value by how often it occurs, as the paper does."""
    often: Floats = np.bincount(entries.term, entries.times, minlength=entries.terms).astype(np.float64)
    return often if values is None or target not in (*MARKETING, "file") else often * values


def _frequent_sets(now: HistoryTerms, seen: combos.SweepResult | None) -> list[Floats]:
    """Count the frequent combinations that hold a term, the largest size first; then its histories."""
    assert seen is not None
    sizes = range(seen.frequent.shape[0] - 1, 1, -1)
    return [*(seen.frequent[size].astype(np.float64) for size in sizes), now.supports().astype(np.float64)]


def _slack(now: HistoryTerms, k: int) -> Floats:
    """Prefer the term with least slack: one that loses its k-th history is lost to the log."""
    return 1.0 / (np.maximum(now.supports() - k, 0) + 1.0)


def greedy(target: str, k: int, m: int, entries: HistoryTerms, values: Floats | None) -> Outcome:
    """Run one greedy deletion; with target `users`, restore one frequent term to each emptied history."""
    rules = deletion(target, k, m, entries, values)
    outcome = rules.run(entries)
    if target == "users":
        rules.fill_empty(entries, outcome)
    return outcome


def read_values(path: str | Path, target: str, terms: pl.Series) -> Floats:
    """Read the priorities of terms from a file: `term, bid, impressions, clicks`, or `term, utility`."""
    try:
        table = pl.read_csv(path, infer_schema=False)
    except (OSError, pl.exceptions.PolarsError):
        raise UsageError("the file of terms' values cannot be read", hint=_needs(target)) from None
    column = _column(table, target)
    found = pl.DataFrame({"term": terms}).join(
        table.select("term", value=column).unique("term", keep="first"),
        on="term",
        how="left",
        maintain_order="left",
    )
    return found["value"].fill_null(0.0).to_numpy()


def _column(table: pl.DataFrame, target: str) -> pl.Expr:
    names = {"revenue": ("bid", "clicks"), "file": ("utility",)}.get(target, (target,))
    if missing := [name for name in ("term", *names) if name not in table.columns]:
        raise UsageError(f"the file of terms' values lacks {', '.join(missing)}", hint=_needs(target))
    value = pl.lit(1.0)
    for name in names:
        value = value * pl.col(name).cast(pl.Float64, strict=False).fill_null(0.0).fill_nan(0.0)
    return value


def _needs(target: str) -> str:
    if target == "file":
        return "it is a CSV with the columns term, utility"
    return "it is a CSV with the columns term, bid, impressions, clicks"
