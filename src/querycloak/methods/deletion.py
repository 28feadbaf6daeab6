"""Deletes terms from histories until every combination of at most m of them is k people's or nobody's.

In stages: single terms first, then pairs to the end, then triples, since each stage leaves less to the
next. Of a combination that is too seldom, the term of least worth goes (paper 001, Algorithms 1 and 2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from querycloak.kernels import combos, regrowth
from querycloak.log import IntArray

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Entries:
    """One entry for each term of each history, `history` rising; `person` says whose history it is.

    A person's histories stand together. `times` says how often the term occurs; `tie[term]` decides
    between terms of equal worth; `draw` has a number for each entry, for chance.
    """

    history: IntArray
    person: IntArray
    term: IntArray
    times: IntArray
    tie: Words
    draw: Words

    @property
    def terms(self) -> int:
        """How many terms there are, those that no history holds any more included."""
        return int(self.tie.size)

    def __len__(self) -> int:
        return int(self.term.size)

    def __getitem__(self, chosen: Mask | IntArray) -> Entries:
        parts = {name: getattr(self, name)[chosen] for name in ("history", "person", "term", "times", "draw")}
        return Entries(**parts, tie=self.tie)

    def supports(self) -> IntArray:
        """Count the people of each term."""
        if not bool(((np.diff(self.history) != 0) & (np.diff(self.person) == 0)).any()):
            return np.bincount(self.term, minlength=self.terms)  # nobody has several histories
        pairs = np.unique(self.person * max(self.terms, 1) + self.term)
        return np.bincount(pairs % max(self.terms, 1), minlength=self.terms)

    def starts(self) -> IntArray:
        """Say where each history that has entries begins, and where the last one ends."""
        new = np.flatnonzero(np.diff(self.history, prepend=-1)) if len(self) else np.empty(0, np.int64)
        return np.append(new, len(self)).astype(np.int64)


#: Gives each term its worth, from the entries as they are now and, where asked for, from what a look at
#: all combinations saw.
Worth = Callable[[Entries, combos.Sweep | None], list[Floats]]


@dataclass
class Outcome:
    """Which entries stay, and how many went because of combinations of which size."""

    alive: Mask
    by_size: dict[int, int] = field(default_factory=dict)
    rounds: int = 0


@dataclass(frozen=True)
class Deletion:
    """The rules of one run: `worth` orders terms; `looks` and `changes` say what that order depends on."""

    k: int
    m: int
    worth: Worth
    by_chance: bool = False
    looks: bool = False
    changes: bool = False

    def run(self, entries: Entries) -> Outcome:
        """Delete to the fixpoint."""
        outcome = Outcome(np.ones(len(entries), np.bool_))
        left = self._singles(entries, np.arange(len(entries)), outcome)
        for size in range(2, self.m + 1):
            left = self._stage(entries, left, size, outcome)
        return outcome

    def regrow(self, entries: Entries, outcome: Outcome) -> int:
        """Put back what has become harmless, most worth first; say how much that was."""
        if self.m > regrowth.LARGEST or self.by_chance:
            return 0
        rank = self._ranks(entries[outcome.alive], min(self.m, 2))
        order = np.lexsort((rank[entries.term], entries.history))
        sorted_ones, alive = entries[order], outcome.alive[order].copy()
        back = regrowth.regrow(
            sorted_ones.starts(),
            rank[sorted_ones.term],
            sorted_ones.person,
            alive,
            entries.terms,
            self.k,
            self.m,
        )
        outcome.alive[order] = alive
        return back

    def fill_empty(self, entries: Entries, outcome: Outcome) -> None:
        """Give every empty history its most common term back: a single frequent term harms nobody."""
        support = entries[outcome.alive].supports()
        empty = np.ones(int(entries.history.max(initial=-1)) + 1, np.bool_)
        empty[entries.history[outcome.alive]] = False
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
        outcome.alive[chosen[first]] = True

    def _note(self, outcome: Outcome, size: int, gone: IntArray) -> None:
        outcome.alive[gone] = False
        outcome.by_size[size] = outcome.by_size.get(size, 0) + int(gone.size)

    def _singles(self, entries: Entries, left: IntArray, outcome: Outcome) -> IntArray:
        """Delete terms that too few histories hold at all."""
        support = entries[left].supports()
        rare = support[entries.term[left]] < self.k
        self._note(outcome, 1, left[rare])
        return left[~rare]

    def _stage(self, entries: Entries, left: IntArray, size: int, outcome: Outcome) -> IntArray:
        """Break up combinations of at most so many terms until there are none to break."""
        touched = np.ones(entries.terms, np.uint8)
        rank: IntArray | None = None
        while left.size:
            if rank is None or self.changes:
                rank = self._ranks(entries[left], size)
                left = left[np.lexsort((rank[entries.term[left]], entries.history[left]))]
            before = left
            left = self._sweep(entries, left, rank, size, touched, outcome)
            left = self._singles(entries, left, outcome)
            outcome.rounds += 1
            if left.size == before.size:
                break
            gone = before[~outcome.alive[before]]
            touched = np.zeros(entries.terms, np.uint8)
            touched[entries.term[gone]] = 1
        return left

    def _ranks(self, now: Entries, size: int) -> IntArray:
        """Number terms from the one of greatest worth down; ties fall by a keyed number."""
        seen = None
        if self.looks:
            by_term = now[np.lexsort((now.term, now.history))]
            touched = np.ones(now.terms, np.uint8)
            seen = combos.sweep(
                by_term.starts(),
                by_term.term,
                by_term.person,
                now.terms,
                self.k,
                size,
                touched,
                only_look=True,
            )
        worth = self.worth(now, seen)  # the first decides, the next ones break its ties
        order = np.lexsort((now.tie, *(-part for part in reversed(worth))))
        rank = np.empty(now.terms, np.int64)
        rank[order] = np.arange(now.terms)
        return rank

    def _sweep(
        self,
        entries: Entries,
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
        done = combos.sweep(now.starts(), item, now.person, entries.terms, self.k, size, ranked, draw=draw)
        for one in range(2, size + 1):
            outcome.by_size[one] = outcome.by_size.get(one, 0) + int(done.deleted[one])
        outcome.alive[left[~done.alive]] = False
        return left[done.alive]
