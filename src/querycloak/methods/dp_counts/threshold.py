"""`threshold-dp`: noisy counts of the queries that enough searches asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_UP, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from querycloak import settings as declared
from querycloak.accounting import rounded_up
from querycloak.dictionary import Dictionaries
from querycloak.errors import ParameterError
from querycloak.guarantee import Guarantee
from querycloak.log import COLUMN_BIT, Batch, IntArray
from querycloak.methods import dp_counts
from querycloak.methods.dp_counts.audit import at_most, query_counts
from querycloak.methods.shared.budget import STORED, budget_of, budget_setting
from querycloak.methods.shared.records import RecordBuffer
from querycloak.protector import HELD_CODES, State, Traits
from querycloak.settings import setting

#: A larger δ is no useful guarantee.
LARGEST_DELTA = 0.1
#: Relative error of a floating-point exponential, and more.
_SLACK = 1e-9
#: Smaller numbers may have underflowed to 0, and δ = 0 would claim too much.
_LEAST = 1e-300


def epsilon_of(d: int, b: float, b_q: float) -> float:
    """Return ε = d/b + d/b_q, rounded up: one history moves d counts by one, and both noises hide that."""
    return rounded_up(Fraction(d) / Fraction(b) + Fraction(d) / Fraction(b_q))


def delta_of(d: int, K: int, b: float) -> float:  # noqa: N803 - the paper's letter
    """Return δ, rounded up: how likely any query is shown that one person alone asked, at worst.

    A query asked n times is shown with probability P(X ≥ K + 1 − n), X being the noise. One person has d
    searches, so no mixture of such queries is worse than d times the largest of these over n.
    """
    times = np.arange(1, d + 1)
    worst = float((laplace_tail(K + 1 - times, b) / times).max())
    return min(1.0, max(_LEAST, d * worst * (1 + _SLACK)))


def laplace_tail(least: IntArray, b: float) -> Any:
    """Return P(X ≥ least) of the discrete Laplace distribution, P(X = x) ∝ exp(-|x| / b)."""
    p = math.exp(-1 / b)
    above = np.exp(-np.maximum(least, 0) / b) / (1 + p)
    below = 1 - np.exp(-np.maximum(1 - least, 0) / b) / (1 + p)
    return np.where(least >= 0, above, below)


def _least_threshold(d: int, b: float, delta: float) -> int:
    """Return the smallest K that gives at most this δ."""
    low, high = 0, 1
    while delta_of(d, high, b) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if delta_of(d, middle, b) <= delta else (middle, high)
    return high


def _shown(value: float) -> str:
    """Format a number with three digits, rounded up."""
    return f"{Decimal(value).normalize(Context(prec=3, rounding=ROUND_UP)):g}".replace("E", "e")


class ThresholdDp(dp_counts.CountsProtector):
    """Count the first searches of each person and show the noisy counts of queries above a threshold.

    Guarantee: the table of counts is (ε, δ)-differentially private for one person's whole history more or
    less, with ε = `d`/`b` + `d`/`b_q` and a δ that follows from `d`, `K` and `b`. With `output=log`: none.

    Limits: what a query says that many searches share; one person with several accounts: each account is a
    history; several tables of the same people: ε and δ add up.

    Reference: Korolova, Kenthapadi, Mishra, Ntoulas, *Releasing search queries and clicks privately*, 2009.
    """

    name = "threshold-dp"
    _way_out = "raise `b` and `b_q`, or lower `d`"

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `threshold-dp`."""

        d: int = setting(
            20, at_least=1, at_most=100_000, help="searches of each person that count, the first ones"
        )
        K: int = setting(
            170, at_least=1, at_most=10**12, help="a query is shown if its noisy count is above this"
        )
        b: float = setting(
            10.0, at_least=0.01, at_most=1e6, help="scale of the noise that decides what is shown"
        )
        b_q: float = setting(
            20.0, at_least=0.01, at_most=1e6, help="scale of the fresh noise on a shown count"
        )
        budget: float = budget_setting(", a history exchanged")
        output: str = setting(
            "counts",
            choices=("counts", "log"),
            stronger=("log", "counts"),
            help="a table of counts, or the searches themselves: for evaluation, with no promise",
        )

        def __post_init__(self) -> None:
            super().__post_init__()
            delta = delta_of(self.d, self.K, self.b)
            if self.output == "counts" and delta >= LARGEST_DELTA:
                better = _least_threshold(self.d, self.b, 1e-6)
                raise ParameterError(
                    f"threshold-dp: `K` is too low for `d` and `b`: δ = {_shown(delta)} is no promise",
                    hint=f"with these, K={better} gives δ ≤ 1e-6",
                )

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Dictionaries) -> None:
        s = settings
        # all methods count budgets in histories exchanged: twice what one more or less costs
        epsilon, delta = 2 * epsilon_of(s.d, s.b, s.b_q), 2 * delta_of(s.d, s.K, s.b)
        cost, delta = (epsilon, delta) if s.output == "counts" else (None, 0.0)
        super().__init__(s, key, texts, limit=s.d, cost=cost, delta=delta)
        self._held = RecordBuffer(texts)

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Return the settings that the conformance suite tries."""
        small = cls.Settings(d=2, K=2, b=0.3, b_q=0.3)
        still = cls.Settings(d=2, K=2, b=0.02, b_q=0.02, output="log")  # noise of one in 10²¹ runs
        return [cls.Settings(), small, still]

    @classmethod
    def traits(cls, settings: Settings) -> Traits:
        """Return the properties of `threshold-dp` with these settings."""
        counts = settings.output == "counts"
        return Traits(
            needs_whole_log=True,
            needs_time_order=True,
            output="counts" if counts else "records",
            needs_authors=True,
            needs_user_independent_input=counts,
            stored_state=STORED,
            budget=budget_of(settings.budget),
            system_noise=True,
            coded_state={**HELD_CODES, "counted_query": "query"},
            main_setting="d",
            comparison_only=not counts,
        )

    @classmethod
    def promise(cls, settings: Settings) -> Guarantee:
        """Return the guarantee of `threshold-dp` with these settings."""
        s = settings
        if s.output == "log":
            return _no_promise(s)
        epsilon, delta = epsilon_of(s.d, s.b, s.b_q), delta_of(s.d, s.K, s.b)
        return Guarantee(
            statement=(
                f"the table is (ε, δ)-differentially private for one history more or less, "
                f"ε = {_shown(epsilon)}, δ = {_shown(delta)}; for one history exchanged, both twice"
            ),
            does_not_protect_against=(
                "the text of a query that many users asked",
                "one person with several accounts: each account is a history",
                "several tables of the same users: ε and δ add up",
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

    def push(self, batch: Batch) -> Batch:
        """Count the first d searches of each user; nothing is released before the end."""
        whole = (batch.query >= 0) & (batch.user >= 0) & (batch.blank & COLUMN_BIT["query"] == 0)
        self.drop(batch.row[~whole], "no user or no query")
        batch = batch[whole]
        first = self._take_first(batch.user, np.ones(len(batch), np.int64))
        self.drop(batch.row[~first], dp_counts.BEYOND)
        taken = batch[first]
        self._counts.add(taken.user, taken.query)
        if self.settings.output == "counts":
            self.drop(taken.row, dp_counts.COUNTED)
        else:
            self._held.add(taken)
        return Batch.empty(self.texts)

    def _people(self) -> IntArray:
        return np.flatnonzero(self._used)

    def close(self) -> Batch:
        """Draw the noise, once: that of the threshold, and that of the released counts."""
        self._check_budget()
        _, query, times = self._counts.cells()
        queries, place = np.unique(query, return_inverse=True)
        asked = np.bincount(place, times, minlength=queries.size).astype(np.int64)
        passes = dp_counts.add_laplace(asked, self.settings.b) > self.settings.K
        passed = queries[passes]
        if self.settings.output == "counts":
            shown = np.maximum(dp_counts.add_laplace(asked[passes], self.settings.b_q), 0)
            self._result = pl.DataFrame({"query": self.texts.query.decode(passed), "count": shown})
        held = self._held.take()
        free = np.isin(held.query, passed)
        self.drop(held.row[~free], "its query stayed below the threshold")
        return held[free]

    def facts(self, tally: State | None = None) -> dict[str, Any]:
        """Return what is spent over releases; nothing here is computed from the searches of users."""
        if self.settings.output == "log":
            return {}
        return {
            "spent_by_anyone_at_most": self._budget.total_after(),
            "delta_of_all_releases": self._budget.delta_after(),
            "budget": self.settings.budget or None,
        }

    def erase(self, users: IntArray, rows: IntArray) -> None:
        """Count as if these users had never been in the log."""
        self._held.keep(self.drop_erased(self._held.records(), users, rows))
        super().erase(users, rows)

    def snapshot(self) -> State:
        """Return what counts so far and the held searches."""
        users, (counted_user, counted_query, times) = self._people(), self._counts.cells()
        counts = {"users": users, "seen": self._used[users]}
        counts |= {"counted_user": counted_user.repeat(times), "counted_query": counted_query.repeat(times)}
        return self._held.snapshot() | counts | self._snapshot_dropped()

    def restore(self, state: State) -> None:
        """Continue from a snapshot."""
        self._held.restore(state)
        self._used = np.zeros(int(state["users"].max(initial=-1)) + 1, np.int64)
        self._used[state["users"]] = state["seen"]
        user, query = state["counted_user"], state["counted_query"]
        self._counts.replace(np.stack([user, query, np.ones_like(user)]))
        self._restore_dropped(state)


def _no_promise(settings: ThresholdDp.Settings) -> Guarantee:
    return Guarantee(
        statement=f"no guarantee of privacy: at most {settings.d} searches of each user, unchanged",
        does_not_protect_against=(
            "any attack: users, words and times are released unchanged",
            "`output=log` is for comparison with other methods, not for publication",
        ),
        audits=at_most(settings.d),
    )
