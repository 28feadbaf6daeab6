"""What a term is worth when one of a combination must go: the target functions of paper 001, and ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from querycloak.errors import UsageError
from querycloak.kernels import combos
from querycloak.methods.deletion import Deletion, Entries, Floats, Mask, Outcome, Worth

#: What a marketing file is needed for.
MARKETING: Final = ("bid", "clicks", "impressions", "revenue")
TARGETS: Final = ("random", "fis", "distinct", "logsize", "users", *MARKETING)
#: How strongly the search distrusts terms that stand in many combinations that are too seldom.
_CAUTIONS: Final = (1.0, 2.0, 4.0)


def deletion(target: str, k: int, m: int, entries: Entries, values: Floats | None) -> Deletion:
    """Give the rules of a run for a target; `values` are a term's own, from a file, where it needs one."""
    if target == "random":
        return Deletion(k, m, lambda now, _: [np.zeros(now.terms)], by_chance=True)
    if target == "fis":
        return Deletion(k, m, _frequent_sets, looks=True, changes=True)
    if target == "distinct":
        return Deletion(k, m, lambda now, _: [_slack(now, k)], changes=True)
    if target == "users":
        users = entries.supports().astype(np.float64)
        return Deletion(k, m, lambda now, _: [users])
    worth = weights(target, entries, values)
    return Deletion(k, m, lambda now, _: [worth])


def weights(target: str, entries: Entries, values: Floats | None) -> Floats:
    """Weigh each term's own value by how often it occurs, as the paper does."""
    often: Floats = np.bincount(entries.term, entries.times, minlength=entries.terms).astype(np.float64)
    return often if values is None or target not in (*MARKETING, "file") else often * values


def _frequent_sets(now: Entries, seen: combos.Sweep | None) -> list[Floats]:
    """Count the frequent combinations that hold a term, the largest size first; then its histories."""
    assert seen is not None
    sizes = range(seen.frequent.shape[0] - 1, 1, -1)
    return [*(seen.frequent[size].astype(np.float64) for size in sizes), now.supports().astype(np.float64)]


def _slack(now: Entries, k: int) -> Floats:
    """Prefer the term that can spare least: one that loses its k-th history is lost to the log."""
    return 1.0 / (np.maximum(now.supports() - k, 0) + 1.0)


def kept(target: str, entries: Entries, alive: Mask, values: Floats | None) -> float:
    """Say how much of what the target is after is left."""
    left = entries[alive]
    if target == "distinct":
        return float(np.count_nonzero(left.supports()))
    if target == "users":
        return float(np.unique(left.person).size)
    own = values if values is not None and target in (*MARKETING, "file") else np.ones(entries.terms)
    return float((own[left.term] * left.times).sum())


def greedy(target: str, k: int, m: int, entries: Entries, values: Floats | None) -> Outcome:
    """Delete once, as the paper does; who cares for users also gives the emptied ones a term back."""
    rules = deletion(target, k, m, entries, values)
    outcome = rules.run(entries)
    if target == "users":
        rules.fill_empty(entries, outcome)
    return outcome


def search(
    target: str, k: int, m: int, entries: Entries, values: Floats | None
) -> tuple[Outcome, dict[str, float]]:
    """Try several orders, put back what has become harmless, and keep the best outcome.

    A term that stands in many combinations that are too seldom takes others with it, and often goes
    itself in the end: some orders lower its worth by the share of its company that is frequent.
    """
    plain = deletion(target, k, m, entries, values)
    first = plain.run(entries)
    best = replace(first, alive=first.alive.copy())
    if target == "users":
        plain.fill_empty(entries, best)
    score = {"greedy": kept(target, entries, best.alive, values)}
    if target in ("random", "fis"):
        return best, score
    for name, rules in _orders(plain, target, entries).items():
        outcome = first if rules is plain else rules.run(entries)
        plain.regrow(entries, outcome)
        if target == "users":
            plain.fill_empty(entries, outcome)
        score[name] = kept(target, entries, outcome.alive, values)
        if score[name] >= max(score.values()):
            best = outcome
    return best, score


def _orders(plain: Deletion, target: str, entries: Entries) -> dict[str, Deletion]:
    """Give the rules that a search tries, by name."""
    found = {"put back": plain}
    company = _company(plain, entries)
    for caution in _CAUTIONS:
        found[f"caution {caution:g}"] = replace(plain, worth=_cautious(plain, company**caution))
    if target == "users":
        found["distinct"] = deletion("distinct", plain.k, plain.m, entries, None)
    return found


def _cautious(plain: Deletion, company: Floats) -> Worth:
    return lambda now, seen: [part * company for part in plain.worth(now, seen)]


def _company(plain: Deletion, entries: Entries) -> Floats:
    """Give, for each term, the share of the pairs it stands in that enough histories have."""
    now = entries[entries.supports()[entries.term] >= plain.k]
    now = now[np.lexsort((now.term, now.history))]
    touched = np.ones(now.terms, np.uint8)
    seen = combos.sweep(now.starts(), now.term, now.person, now.terms, plain.k, 2, touched, only_look=True)
    sizes = np.diff(now.starts())
    pairs = np.bincount(now.term, np.repeat(sizes - 1, sizes), minlength=now.terms)
    return 1.0 - seen.seldom / np.maximum(pairs, 1)


def read_values(path: str | Path, target: str, terms: pl.Series) -> Floats:
    """Read what a file says a term is worth: `term, bid, impressions, clicks`, or `term, utility`."""
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
