"""Privacy budgets of users over all releases of a source."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import polars as pl
from numba import njit

from querycloak.dictionary import Dictionary
from querycloak.errors import DataError, Refused
from querycloak.log import Flags, FloatArray, IntArray
from querycloak.protector import Budget, StoredState
from querycloak.settings import setting


@njit(cache=True)
def take_within_limit(user, need, used, limit):  # type: ignore[no-untyped-def]
    """Return which records stay within the limits of their users; `used` grows by what these need."""
    taken = np.zeros(user.size, np.bool_)
    for i in range(user.size):
        who = user[i]
        if used[who] + need[i] <= limit[who]:
            used[who] += need[i]
            taken[i] = True
    return taken


#: Sums of floats may be that much off before a budget counts as overspent.
_ROUNDING = 1e-9
OVERSPENT = "the person's budget is spent"


#: Declares `epsilon`; the default is given.
epsilon_setting = partial(
    setting,
    at_least=0.001,
    at_most=1000,
    stronger="smaller",
    help="what a history may spend; less protects more",
)


def budget_setting(unit: str = "") -> Any:
    """Declare `budget`; `unit` follows the words about what is spent."""
    text = f"what a person may spend in all releases of a source{unit}; 0: no limit"
    return setting(0.0, at_least=0, at_most=1e6, stronger="smaller", weakest=(0,), help=text)


def budget_of(limit: float, when_spent: str = "refuse") -> Budget | None:
    """Return the trait of a method whose setting `budget` has this value; 0 means no limit."""
    return Budget(limit, "drop" if when_spent == "drop" else "refuse") if limit else None


#: The spent budgets of a source, which all methods with a budget share.
STORED: Final = StoredState(
    "budget", shared=True, totals=("spent_by_anyone_at_most", "delta_of_all_releases")
)


class PrivacyBudget:
    """Privacy budget per user over all releases of a source.

    Users' records are disjoint, so each user has an own budget. `max_spent_by_anyone` is the sum of what the
    releases so far cost at worst; None if that depends on the searches of users. `delta` is the sum of their
    probabilities of failure; None if the state of an earlier release is missing.

    `worst` and `delta` are those of this release. `spent` returns its users and what each of them spends.
    """

    name = "budget"

    def __init__(
        self,
        limit: float,
        users: Dictionary,
        spent: Callable[[], tuple[IntArray, FloatArray]],
        *,
        worst: float | None,
        delta: float = 0.0,
    ) -> None:
        self.limit = limit
        self.max_spent_by_anyone: float | None = 0.0
        self.delta: float | None = 0.0
        self._users = users
        self._spent = spent
        self._worst, self._own_delta = worst, delta
        self._before = np.zeros(0)

    def spent_before(self, users: IntArray) -> FloatArray:
        """Return what users had spent before this release."""
        known = np.zeros(int(users.max(initial=-1)) + 1)
        known[: self._before.size] = self._before[: known.size]
        return known[users]

    def affordable(self, users: IntArray, amount: FloatArray) -> Flags:
        """Return which users can spend such an amount now."""
        if not self.limit:
            return np.ones(users.size, np.bool_)
        return np.asarray(self.spent_before(users) + amount <= self.limit * (1 + _ROUNDING))

    def remaining(self, users: IntArray) -> FloatArray:
        """Return what users can still spend; infinity without a limit."""
        if not self.limit:
            return np.full(users.size, np.inf)
        return np.maximum(self.limit - self.spent_before(users), 0) * (1 + _ROUNDING)

    def raise_overspent(self, users: IntArray, way_out: str) -> None:
        """Raise Refused with the least budget that one of these users has left, without naming a user."""
        left = float(np.maximum(self.limit - self.spent_before(users), 0).min(initial=self.limit))
        raise Refused(
            f"people of this log have as little as {left:g} left of their budget of {self.limit:g}, "
            "and this release would spend more than that",
            hint=way_out,
        )

    def mark_incomplete(self) -> None:
        """Note that the spending of earlier releases is unknown. Raise Refused if there is a limit."""
        self.max_spent_by_anyone = self.delta = None
        if self.limit:
            raise Refused(
                "what people have spent in earlier releases of this source is not here",
                hint="give the `--state` of the earlier release",
            )

    def erase(self, users: IntArray) -> None:
        """Delete what erased users have spent: their codes never return."""
        self._before[users[users < self._before.size]] = 0

    def total_after(self) -> float | None:
        """Return the most that anyone can have spent after this release; None if it is unknown."""
        if self._worst is None or self.max_spent_by_anyone is None:
            return None
        total = self.max_spent_by_anyone + self._worst
        return round(min(total, max(self.max_spent_by_anyone, self.limit)) if self.limit else total, 9)

    def delta_after(self) -> float | None:
        """Return the probability that a guarantee fails in any release so far, this one included."""
        return None if self.delta is None else self.delta + self._own_delta

    def load(self, table: pl.DataFrame | None) -> IntArray:
        """Continue from what earlier releases spent; users who are not in this log are not in its truth."""
        if table is None:
            self.mark_incomplete()
            return np.empty(0, np.int64)
        totals = table.filter(pl.col("user").is_null())
        if totals.height != 1:
            raise DataError("the book of budgets is damaged")
        self.max_spent_by_anyone, self.delta = totals["spent"][0], totals["delta"][0]
        if self.delta is None:
            self.mark_incomplete()
        people = table.drop_nulls("user")
        users = self._users.encode(people["user"])
        self._before = np.zeros(int(users.max(initial=-1)) + 1)
        self._before[users] = people["spent"].to_numpy()
        return np.empty(0, np.int64)

    def save(self) -> pl.DataFrame:
        """Return what each user has spent after this release; the row without a user holds the totals."""
        users, amount = self._spent()
        after = np.zeros(max(int(users.max(initial=-1)) + 1, self._before.size))
        after[: self._before.size] = self._before
        after[users] += amount
        spenders = np.flatnonzero(after > 0)
        people = pl.DataFrame({"user": self._users.decode(spenders), "spent": after[spenders]}).sort("user")
        totals = pl.DataFrame(
            {"user": [None], "spent": [self.total_after()], "delta": [self.delta_after()]},
            schema={"user": pl.String, "spent": pl.Float64, "delta": pl.Float64},
        )
        return pl.concat([totals, people], how="diagonal")

    @staticmethod
    def merge(tables: list[pl.DataFrame], loaded: pl.DataFrame | None = None) -> pl.DataFrame:
        """Combine the tables of workers that loaded the same one: what a user has spent only grows."""
        most = pl.col("spent", "delta").max()
        return pl.concat(tables).group_by("user", maintain_order=True).agg(most)
