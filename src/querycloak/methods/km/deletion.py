"""Deletion of terms until every combination of at most m of them is held by k users or by none.

In stages: single terms first, then pairs to the end, then triples, since each stage leaves less to the
next. Of a rare combination the term of lowest priority is deleted (paper 001, Algorithms 1 and 2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from querycloak.kernels import siphash
from querycloak.log import IntArray
from querycloak.methods.km import kernel as combos
from querycloak.methods.shared.terms import TermOccurrences

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
_CHANCE = 1


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
        cls,
        uses: TermOccurrences,
        history: IntArray,
        person: IntArray,
        people: Words,
        prints: Words,
        key: bytes,
    ) -> tuple[HistoryTerms, IntArray]:
        """Return one entry for each term of each history, and the entry that each use belongs to.

        `history` numbers the history of each record; for each history, `person` is its user and
        `people` has a keyed number; `prints` has one for each term.
        """
        terms = max(prints.size, 1)
        pairs, entry, times = np.unique(
            history[uses.record] * terms + uses.term, return_inverse=True, return_counts=True
        )
        owner, term = pairs // terms, pairs % terms
        draw = siphash.draw(key, _CHANCE, (people[owner] ^ prints[term]).view(np.int64))
        return cls(owner, person[owner], term, times, prints, draw), entry

    @property
    def terms(self) -> int:
        """How many terms there are, those that no history holds any more included."""
        return int(self.tie.size)

    def __len__(self) -> int:
        return int(self.term.size)

    def __getitem__(self, chosen: Mask | IntArray) -> HistoryTerms:
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
Priority = Callable[[HistoryTerms, combos.SweepResult | None], list[Floats]]


@dataclass
class Outcome:
    """Which entries stay, and how many went because of combinations of which size."""

    kept: Mask
    by_size: dict[int, int] = field(default_factory=dict)
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
        order = np.lexsort(
            (
                entries.tie[entries.term[open_ones]],
                -support[entries.term[open_ones]],
                entries.history[open_ones],
            )
        )
        chosen = open_ones[order]
        first = np.flatnonzero(np.diff(entries.history[chosen], prepend=-1))
        outcome.kept[chosen[first]] = True

    def _note(self, outcome: Outcome, size: int, gone: IntArray) -> None:
        outcome.kept[gone] = False
        outcome.by_size[size] = outcome.by_size.get(size, 0) + int(gone.size)

    def _singles(self, entries: HistoryTerms, left: IntArray, outcome: Outcome) -> IntArray:
        """Delete terms that too few histories hold at all."""
        support = entries[left].supports()
        rare = support[entries.term[left]] < self.k
        self._note(outcome, 1, left[rare])
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
            seen = combos.delete_rare_combinations(
                by_term.starts(),
                by_term.term,
                by_term.person,
                now.terms,
                self.k,
                size,
                touched,
                count_only=True,
            )
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
        touched: combos.Flags,
        outcome: Outcome,
    ) -> IntArray:
        now = entries[left]
        ranked = np.zeros(entries.terms, np.uint8)
        ranked[rank] = touched
        item = rank[now.term]
        draw = now.draw if self.by_chance else None
        done = combos.delete_rare_combinations(
            now.starts(), item, now.person, entries.terms, self.k, size, ranked, draw=draw
        )
        for one in range(2, size + 1):
            outcome.by_size[one] = outcome.by_size.get(one, 0) + int(done.deleted[one])
        outcome.kept[left[~done.kept]] = False
        return left[done.kept]
