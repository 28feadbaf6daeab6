"""What people have spent of their privacy budget, over all releases of a source."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.dictionary import Dictionary
from querycloak.errors import Refused
from querycloak.log import IntArray

Floats = npt.NDArray[np.float64]

#: Sums of floats may be that much off before a budget counts as overspent.
_ROUNDING = 1e-9
_LEAVE_OUT = ", or leave them out with `overspent=drop`"
OVERSPENT = "the person's budget is spent"


class Spending:
    """By user code: what each has spent before this release. Histories are disjoint, so each has her own.

    `everybody` is what anyone may have spent at most: the sum over all releases so far, whoever was in them;
    none, if only somebody's searches could tell. `delta` is the sum of the chances that releases fail with.
    """

    def __init__(self, limit: float, users: Dictionary) -> None:
        self.limit = limit
        self.everybody: float | None = 0.0
        self.delta = 0.0
        self._users = users
        self._before = np.zeros(0)

    def before(self, users: IntArray) -> Floats:
        """Give what users had spent before this release."""
        known = np.zeros(int(users.max(initial=-1)) + 1)
        known[: self._before.size] = self._before[: known.size]
        return known[users]

    def fits(self, users: IntArray, amount: Floats) -> npt.NDArray[np.bool_]:
        """Say who can spend such an amount now."""
        if not self.limit:
            return np.ones(users.size, np.bool_)
        return np.asarray(self.before(users) + amount <= self.limit * (1 + _ROUNDING))

    def left(self, users: IntArray) -> Floats:
        """Give what users can still spend: without a limit, all there is."""
        if not self.limit:
            return np.full(users.size, np.inf)
        return np.maximum(self.limit - self.before(users), 0) * (1 + _ROUNDING)

    def refuse(self, users: IntArray, wanted: float, way_out: str = _LEAVE_OUT) -> None:
        """Say that a release is one too many, and what is left; no user is named."""
        left = float(np.maximum(self.limit - self.before(users), 0).min(initial=self.limit))
        raise Refused(
            f"people of this log have as little as {left:g} left of their budget of {self.limit:g}, "
            f"and this release would spend {wanted:g} of it",
            hint="lower `epsilon`" + way_out,
        )

    def after(self, worst: float | None) -> float | None:
        """Give what anyone may have spent at most after a release that costs so much at worst."""
        return None if worst is None or self.everybody is None else round(self.everybody + worst, 9)

    def book(self, users: IntArray, amount: Floats, worst: float | None, delta: float = 0.0) -> pl.DataFrame:
        """Give what everyone has spent after this release; the line of no user stands for everybody."""
        size = max(int(users.max(initial=-1)) + 1, self._before.size)
        after = np.zeros(size)
        after[: self._before.size] = self._before
        after[users] += amount
        who = np.flatnonzero(after > 0)
        people = pl.DataFrame({"user": self._users.decode(who), "spent": after[who]}).sort("user")
        nobody = pl.DataFrame(
            {"user": [None], "spent": [self.after(worst)], "delta": [self.delta + delta]},
            schema={"user": pl.String, "spent": pl.Float64, "delta": pl.Float64},
        )
        return pl.concat([nobody, people], how="diagonal")

    def open(self, book: pl.DataFrame) -> None:
        """Carry on with what earlier releases spent."""
        everybody = book.row(by_predicate=pl.col("user").is_null(), named=True)
        self.everybody, self.delta = everybody["spent"], everybody["delta"]
        people = book.drop_nulls("user")
        users = self._users.encode(people["user"])
        self._before = np.zeros(int(users.max(initial=-1)) + 1)
        self._before[users] = people["spent"].to_numpy()
