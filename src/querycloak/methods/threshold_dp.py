"""`threshold-dp`: noisy counts of the queries that enough searches asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_UP, Context, Decimal
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import polars as pl

from querycloak import settings as declared
from querycloak.accounting import rounded_up
from querycloak.dictionary import Texts
from querycloak.errors import ParameterError
from querycloak.guarantees import Guarantee
from querycloak.guarantees.counts import at_most, query_counts
from querycloak.kernels import noise
from querycloak.log import BIT, Batch, IntArray
from querycloak.methods.budget import Spending
from querycloak.protector import Protector, State
from querycloak.settings import setting

#: From here on, a promise would say too little to be called one.
LARGEST_DELTA = 0.1
#: More than the last digits by which an exponential may be wrong.
_SLACK = 1e-9
#: What is smaller may have vanished in the machine's numbers, and δ = 0 would say too much.
_LEAST = 1e-300


def epsilon_of(d: int, b: float, b_q: float) -> float:
    """Give ε = d/b + d/b_q, rounded up: one history moves d counts by one, and both noises hide that."""
    return rounded_up(Fraction(d) / Fraction(b) + Fraction(d) / Fraction(b_q))


def delta_of(d: int, K: int, b: float) -> float:  # noqa: N803 - the paper's letter
    """Give δ, rounded up: how likely any query is shown that one person alone asked, at worst.

    A query asked n times is shown with probability P(X ≥ K + 1 − n), X being the noise. One person has d
    searches, so no mixture of such queries is worse than d times the largest of these over n.
    """
    times = np.arange(1, d + 1)
    worst = float((laplace_tail(K + 1 - times, b) / times).max())
    return min(1.0, max(_LEAST, d * worst * (1 + _SLACK)))


def laplace_tail(least: IntArray, b: float) -> Any:
    """Give P(X ≥ least) of the discrete Laplace distribution, P(X = x) ∝ exp(-|x| / b)."""
    p = math.exp(-1 / b)
    above = np.exp(-np.maximum(least, 0) / b) / (1 + p)
    below = 1 - np.exp(-np.maximum(1 - least, 0) / b) / (1 + p)
    return np.where(least >= 0, above, below)


def _least_threshold(d: int, b: float, delta: float) -> int:
    """Find the smallest K that gives at most this δ."""
    low, high = 0, 1
    while delta_of(d, high, b) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if delta_of(d, middle, b) <= delta else (middle, high)
    return high


def _shown(value: float) -> str:
    """Write a number with three digits, rounded up."""
    return f"{Decimal(value).normalize(Context(prec=3, rounding=ROUND_UP)):g}".replace("E", "e")


class ThresholdDp(Protector):
    """Count the first searches of each person and show the noisy counts of queries above a threshold.

    Promise: the table of counts is (ε, δ)-differentially private for one person's whole history more or
    less, with ε = `d`/`b` + `d`/`b_q` and a δ that follows from `d`, `K` and `b`. With `output=log`: none.

    Does not protect against:
        - what a query says that many searches share
        - one person with several accounts: each account is a history
        - several tables of the same people: ε and δ add up

    Reference: Korolova, Kenthapadi, Mishra, Ntoulas, *Releasing search queries and clicks privately*, 2009.
    """

    name = "threshold-dp"
    streams = False
    reads = frozenset({"user", "query"})
    wants_order = True
    wants_people = True
    keeps_book = True
    book_name = "budget"
    own_noise = True
    extra = "dp"
    coded: ClassVar[dict[str, str]] = {**Protector.coded, "counted_query": "query"}

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `threshold-dp`."""

        d: int = setting(
            20,
            kind=int,
            at_least=1,
            at_most=100_000,
            help="searches of each person that count, the first ones",
        )
        K: int = setting(
            170,
            kind=int,
            at_least=1,
            at_most=10**12,
            help="a query is shown if its noisy count is above this",
        )
        b: float = setting(
            10.0, kind=float, at_least=0.01, at_most=1e6, help="scale of the noise that decides what is shown"
        )
        b_q: float = setting(
            20.0, kind=float, at_least=0.01, at_most=1e6, help="scale of the fresh noise on a shown count"
        )
        budget: float = setting(
            0.0,
            kind=float,
            at_least=0,
            at_most=1e6,
            help="what a person may spend in all releases of a source, a history exchanged; 0: no limit",
        )
        output: str = setting(
            "counts",
            kind=str,
            choices=("counts", "log"),
            help="a table of counts, or the searches themselves: for evaluation, with no promise",
        )

        def __post_init__(self) -> None:
            super().__post_init__()
            delta = delta_of(self.d, self.K, self.b)
            if self.output == "counts" and delta >= LARGEST_DELTA:
                better = _least_threshold(self.d, self.b, 1e-6)
                raise ParameterError(
                    f"ThresholdDp: `K` is too low for `d` and `b`: δ = {_shown(delta)} is no promise",
                    hint=f"with these, K={better} gives δ ≤ 1e-6",
                )

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Texts) -> None:
        super().__init__(settings, key, texts)
        self.table = self.wants_alone = settings.output == "counts"
        self._seen = np.zeros(0, np.int64)  # by user: searches that count so far
        self._counted = np.zeros((2, 0), np.int64)  # user and query of each of those
        self._held = Batch.empty(texts)
        self._spending = Spending(settings.budget, texts.user)
        self._result: pl.DataFrame | None = None

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Name the settings that the conformance suite tries."""
        small = cls.Settings(d=2, K=2, b=0.3, b_q=0.3)
        still = cls.Settings(d=2, K=2, b=0.02, b_q=0.02, output="log")  # noise of one in 10²¹ runs
        return [cls.Settings(), small, still]

    def promise(self) -> Guarantee:
        """Say what is proven, and what of it an independent audit can test."""
        if not self.table:
            return self._no_promise()
        s = self.settings
        epsilon, delta = epsilon_of(s.d, s.b, s.b_q), delta_of(s.d, s.K, s.b)
        return Guarantee(
            words=(
                f"the table is (ε, δ)-differentially private for one history more or less, "
                f"ε = {_shown(epsilon)}, δ = {_shown(delta)}; for one history exchanged, both twice"
            ),
            does_not_protect_against=(
                "what a query says that many searches share",
                "one person with several accounts: each account is a history",
                "several tables of the same people: ε and δ add up",
            ),
            audits=query_counts(),
            facts={
                "epsilon": epsilon,
                "delta": delta,
                "unit": "history",
                "neighbours": "one history more or less",
                "epsilon_if_exchanged": 2 * epsilon,
                "delta_if_exchanged": min(1.0, 2 * delta),
            },
        )

    def _no_promise(self) -> Guarantee:
        return Guarantee(
            words=f"no promise of privacy: at most {self.settings.d} searches of each person, as they were",
            does_not_protect_against=(
                "anything: whose a search was, its words and its time leave as they are",
                "`output=log` is there to compare with other methods, not to be published",
            ),
            audits=at_most(self.settings.d),
        )

    def prepare(self) -> None:
        """Say that OpenDP is missing before a long log is read."""
        noise.require()

    def push(self, batch: Batch) -> Batch:
        """Count what is among the first d searches of its person; nothing leaves before the end."""
        whole = (batch.query >= 0) & (batch.user >= 0) & (batch.blank & BIT["query"] == 0)
        self.drop(batch.row[~whole], "no user or no query")
        batch = batch[whole]
        first = self._among_first(batch.user)
        self.drop(batch.row[~first], "beyond the person's share")
        taken = batch[first]
        self._counted = np.concatenate([self._counted, [taken.user, taken.query]], axis=1)
        if self.table:
            self.drop(taken.row, "counted, not shown")
        else:
            self._held += taken
        return Batch.empty(self.texts)

    def _among_first(self, users: IntArray) -> Any:
        """Say which of these searches, in the order of time, are among the first d of their person."""
        self._seen = _grown(self._seen, users)
        order = np.argsort(users, kind="stable")
        ordered = users[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        earlier = np.empty(users.size, np.int64)
        earlier[order] = np.arange(users.size) - np.repeat(starts, np.diff(np.append(starts, users.size)))
        first = self._seen[users] + earlier < self.settings.d
        self._seen += np.bincount(users[first], minlength=self._seen.size)
        return first

    def close(self) -> Batch:
        """Draw the noise, once: which queries pass, and what count each of them shows."""
        people = np.flatnonzero(self._seen)
        if self.table and not self._spending.fits(people, np.full(people.size, self._exchanged)).all():
            self._spending.refuse(people, "raise `b` and `b_q`, or lower `d`")
        queries, asked = np.unique(self._counted[1], return_counts=True)
        passes = noise.add_laplace(asked, self.settings.b) > self.settings.K
        passed = queries[passes]
        if self.table:
            shown = np.maximum(noise.add_laplace(asked[passes], self.settings.b_q), 0)
            self._result = pl.DataFrame({"query": self.texts.query.decode(passed), "count": shown})
        free = np.isin(self._held.query, passed)
        self.drop(self._held.row[~free], "its query stayed below the threshold")
        released, self._held = self._held[free], Batch.empty(self.texts)
        return released

    @property
    def _exchanged(self) -> float:
        """What a history exchanged for another costs: the unit in which all methods share a budget."""
        return 2 * epsilon_of(self.settings.d, self.settings.b, self.settings.b_q)

    @property
    def _delta_exchanged(self) -> float:
        return 2 * delta_of(self.settings.d, self.settings.K, self.settings.b)

    def book(self) -> pl.DataFrame:
        """Give what everyone has spent by now: all there is, if `output=log` promises nothing."""
        people = np.flatnonzero(self._seen)
        if not self.table:
            return self._spending.book(people, np.full(people.size, np.inf), None)
        cost = np.full(people.size, self._exchanged)
        return self._spending.book(people, cost, self._exchanged, self._delta_exchanged)

    def miss_book(self) -> None:
        """Carry on knowing that earlier releases left a book which is not here."""
        self._spending.miss()

    def open_book(self, book: pl.DataFrame) -> IntArray:
        """Carry on with what earlier releases spent."""
        self._spending.open(book)
        return np.empty(0, np.int64)

    def facts(self, tally: State | None = None) -> dict[str, Any]:
        """State what is spent over releases; nothing here is computed from anybody's searches."""
        if not self.table:
            return {}
        return {
            "spent_by_anyone_at_most": self._spending.after(self._exchanged),
            "delta_of_all_releases": self._spending.delta_after(self._delta_exchanged),
            "budget": self.settings.budget or None,
        }

    def counts(self) -> pl.DataFrame:
        """Give the table that `close` drew."""
        if self._result is None:
            raise RuntimeError("the counts are there once the input has ended")
        return self._result

    def erase(self, users: IntArray, rows: IntArray) -> None:
        """Count as if they had never been here."""
        self._held = self._held[self.forget(self._held, users, rows)]
        self._counted = self._counted[:, ~np.isin(self._counted[0], users)]
        self._seen = _grown(self._seen, users)
        self._seen[users] = 0
        self._spending.forget(users)

    def snapshot(self) -> State:
        """Give what counts so far and the held searches."""
        held = {f"held_{name}": array for name, array in self._held.arrays().items()}
        users = np.flatnonzero(self._seen)
        counts = {"users": users, "seen": self._seen[users]}
        counts |= {"counted_user": self._counted[0], "counted_query": self._counted[1]}
        return held | counts | self._snapshot_dropped()

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        self._held = Batch.of({name: state[f"held_{name}"] for name in Batch.COLUMNS}, self.texts)
        self._seen = _grown(np.zeros(0, np.int64), state["users"])
        self._seen[state["users"]] = state["seen"]
        self._counted = np.stack([state["counted_user"], state["counted_query"]])
        self._restore_dropped(state)


def _grown(counts: IntArray, codes: IntArray) -> IntArray:
    """Make room for codes that are new."""
    room = int(codes.max(initial=-1)) + 1
    if room <= counts.size:
        return counts
    return np.concatenate([counts, np.zeros(max(room, 2 * counts.size) - counts.size, np.int64)])
