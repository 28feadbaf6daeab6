"""Deletion of terms until every combination of at most m of them is held by k users or by none.

In stages: single terms first, then pairs to the end, then triples, since each stage leaves less to the
next. Of a rare combination the term of lowest priority is deleted (paper 001, Algorithms 1 and 2); the target
decides the priority (those of the paper, and our own).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.errors import UsageError
from querycloak.kernels import siphash
from querycloak.log import Flags, FloatArray, IntArray
from querycloak.methods.km.kernel import Bytes, SweepResult, delete_rare_combinations
from querycloak.methods.shared.terms import TermOccurrences

Words = npt.NDArray[np.uint64]
_CHANCE = 1
#: What a marketing file is needed for.
MARKETING: Final = ("bid", "clicks", "impressions", "revenue")
TARGETS: Final = ("random", "fis", "distinct", "logsize", "users", *MARKETING)


@dataclass(frozen=True)
class HistoryTerms:
    """One entry for each term of each history, `history` rising; `person` is its user.

    The histories of a user are adjacent. `times` says how often the term occurs; `tie[term]` decides
    between terms of equal priority; `draw` has a number for each entry, for chance.
    """

    history: IntArray
    person: IntArray
    term: IntArray
    times: IntArray
    tie: Words
    draw: Words

    @classmethod
    def of(
        cls, uses: TermOccurrences, history: IntArray, user: IntArray, users: Words, prints: Words, key: bytes
    ) -> tuple[HistoryTerms, IntArray]:
        """Return one entry for each term of each history, and the entry that each use belongs to.

        `history` numbers the history of each record; for each history, `user` is its user and
        `users` has a keyed number; `prints` has one for each term.
        """
        terms = max(prints.size, 1)
        pairs, entry, times = np.unique(
            history[uses.record] * terms + uses.term, return_inverse=True, return_counts=True
        )
        owner, term = pairs // terms, pairs % terms
        draw = siphash.draw(key, _CHANCE, (users[owner] ^ prints[term]).view(np.int64))
        return cls(owner, user[owner], term, times, prints, draw), entry

    @property
    def terms(self) -> int:
        """How many terms there are, those that no history holds any more included."""
        return int(self.tie.size)

    def __len__(self) -> int:
        return int(self.term.size)

    def __getitem__(self, chosen: Flags | IntArray) -> HistoryTerms:
        parts = {name: getattr(self, name)[chosen] for name in ("history", "person", "term", "times", "draw")}
        return HistoryTerms(**parts, tie=self.tie)

    def supports(self) -> IntArray:
        """Count the people of each term."""
        if not bool(((np.diff(self.history) != 0) & (np.diff(self.person) == 0)).any()):
            return np.bincount(self.term, minlength=self.terms)  # no user has several histories
        pairs = np.unique(self.person * max(self.terms, 1) + self.term)
        return np.bincount(pairs % max(self.terms, 1), minlength=self.terms)

    def starts(self) -> IntArray:
        """Return where each history that has entries begins, and where the last one ends."""
        new = np.flatnonzero(np.diff(self.history, prepend=-1)) if len(self) else np.empty(0, np.int64)
        return np.append(new, len(self)).astype(np.int64)


#: Returns the priority of each term from the entries as they are now and, where needed, from counts of all
#: combinations.
Priority = Callable[[HistoryTerms, SweepResult | None], list[FloatArray]]


@dataclass
class Outcome:
    """Which entries stay, and how many went because of combinations of which size."""

    kept: Flags
    by_size: Counter[int] = field(default_factory=Counter)
    rounds: int = 0


@dataclass(frozen=True)
class DeletionRule:
    """The rules of one run: `priority` orders terms, if so set from counts and anew each round."""

    k: int
    m: int
    priority: Priority
    by_chance: bool = False
    needs_combination_counts: bool = False
    reranks_each_round: bool = False

    def run(self, entries: HistoryTerms) -> Outcome:
        """Delete to the fixpoint."""
        outcome = Outcome(np.ones(len(entries), np.bool_))
        left = self._singles(entries, np.arange(len(entries)), outcome)
        for size in range(2, self.m + 1):
            left = self._stage(entries, left, size, outcome)
        return outcome

    def fill_empty(self, entries: HistoryTerms, outcome: Outcome) -> None:
        """Restore the most frequent term of every empty history."""
        support = entries[outcome.kept].supports()
        empty = np.ones(int(entries.history.max(initial=-1)) + 1, np.bool_)
        empty[entries.history[outcome.kept]] = False
        open_ones = np.flatnonzero(empty[entries.history] & (support[entries.term] >= self.k))
        term = entries.term[open_ones]
        order = np.lexsort((entries.tie[term], -support[term], entries.history[open_ones]))
        chosen = open_ones[order]
        first = np.flatnonzero(np.diff(entries.history[chosen], prepend=-1))
        outcome.kept[chosen[first]] = True

    def _singles(self, entries: HistoryTerms, left: IntArray, outcome: Outcome) -> IntArray:
        """Delete terms that too few histories hold at all."""
        support = entries[left].supports()
        rare = support[entries.term[left]] < self.k
        outcome.kept[left[rare]] = False
        outcome.by_size[1] += int(rare.sum())
        return left[~rare]

    def _stage(self, entries: HistoryTerms, left: IntArray, size: int, outcome: Outcome) -> IntArray:
        """Break up combinations of at most so many terms until there are none to break."""
        touched = np.ones(entries.terms, np.uint8)
        rank: IntArray | None = None
        while left.size:
            if rank is None or self.reranks_each_round:
                rank = self._ranks(entries[left], size)
                left = left[np.lexsort((rank[entries.term[left]], entries.history[left]))]
            before = left
            left = self._delete_rare(entries, left, rank, size, touched, outcome)
            left = self._singles(entries, left, outcome)
            outcome.rounds += 1
            if left.size == before.size:
                break
            gone = before[~outcome.kept[before]]
            touched = np.zeros(entries.terms, np.uint8)
            touched[entries.term[gone]] = 1
        return left

    def _ranks(self, now: HistoryTerms, size: int) -> IntArray:
        """Number terms from the highest priority down; a keyed number decides ties."""
        seen = None
        if self.needs_combination_counts:
            by_term = now[np.lexsort((now.term, now.history))]
            touched = np.ones(now.terms, np.uint8)
            seen = self._pass(by_term, by_term.term, size, touched, count_only=True)
        priority = self.priority(now, seen)  # the first decides, the next ones break its ties
        order = np.lexsort((now.tie, *(-part for part in reversed(priority))))
        rank = np.empty(now.terms, np.int64)
        rank[order] = np.arange(now.terms)
        return rank

    def _delete_rare(
        self,
        entries: HistoryTerms,
        left: IntArray,
        rank: IntArray,
        size: int,
        touched: Bytes,
        outcome: Outcome,
    ) -> IntArray:
        now = entries[left]
        ranked = np.zeros(entries.terms, np.uint8)
        ranked[rank] = touched
        done = self._pass(now, rank[now.term], size, ranked, draw=now.draw if self.by_chance else None)
        outcome.by_size.update({one: int(done.deleted[one]) for one in range(2, size + 1)})
        outcome.kept[left[~done.kept]] = False
        return left[done.kept]

    def _pass(self, now: HistoryTerms, item: IntArray, size: int, touched: Bytes, **how: Any) -> SweepResult:
        starts = now.starts()
        return delete_rare_combinations(starts, item, now.person, now.terms, self.k, size, touched, **how)


def rule_for(target: str, k: int, m: int, entries: HistoryTerms, values: FloatArray | None) -> DeletionRule:
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
    weight = np.bincount(entries.term, entries.times, minlength=entries.terms).astype(np.float64)
    if values is not None and target in (*MARKETING, "file"):
        weight *= values  # each term's own value by how often it occurs, as the paper does
    return DeletionRule(k, m, lambda now, _: [weight])


def _frequent_sets(now: HistoryTerms, seen: SweepResult | None) -> list[FloatArray]:
    """Count the frequent combinations that hold a term, the largest size first; then its histories."""
    assert seen is not None
    sizes = range(seen.frequent.shape[0] - 1, 1, -1)
    return [*(seen.frequent[size].astype(np.float64) for size in sizes), now.supports().astype(np.float64)]


def _slack(now: HistoryTerms, k: int) -> FloatArray:
    """Prefer the term with least slack: one that loses its k-th history is lost to the log."""
    return 1.0 / (np.maximum(now.supports() - k, 0) + 1.0)


def greedy(target: str, k: int, m: int, entries: HistoryTerms, values: FloatArray | None) -> Outcome:
    """Run one greedy deletion; with target `users`, restore one frequent term to each emptied history."""
    rule = rule_for(target, k, m, entries, values)
    outcome = rule.run(entries)
    if target == "users":
        rule.fill_empty(entries, outcome)
    return outcome


def read_values(path: str | Path, target: str, terms: pl.Series) -> FloatArray:
    """Read the priorities of terms from a file: `term, bid, impressions, clicks`, or `term, utility`."""
    try:
        table = pl.read_csv(path, infer_schema=False)
    except (OSError, pl.exceptions.PolarsError):
        raise UsageError("the file of terms' values cannot be read", hint=_needs(target)) from None
    column = _column(table, target)
    value = table.select("term", value=column).unique("term", keep="first")
    found = pl.DataFrame({"term": terms}).join(value, on="term", how="left", maintain_order="left")
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
