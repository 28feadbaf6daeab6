"""What people have spent of their privacy budget, over all releases of a source."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.dictionary import Dictionary
from querycloak.errors import DataError, Refused
from querycloak.log import IntArray

Floats = npt.NDArray[np.float64]

#: Sums of floats may be that much off before a budget counts as overspent.
_ROUNDING = 1e-9
OVERSPENT = "the person's budget is spent"


class Spending:
    """By user code: what each has spent before this release. Histories are disjoint, so each has her own.

    `everybody` is what anyone may have spent at most: the sum over all releases so far, whoever was in them;
    none, if only somebody's searches could tell. `delta` is the sum of the chances that releases fail with;
    none, if an earlier release's book is missing: then nobody knows what is left.
    """

    def __init__(self, limit: float, users: Dictionary) -> None:
        self.limit = limit
        self.everybody: float | None = 0.0
        self.delta: float | None = 0.0
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

    def refuse(self, users: IntArray, way_out: str) -> None:
        """Say that a release is one too many, and what is left; no user is named."""
        left = float(np.maximum(self.limit - self.before(users), 0).min(initial=self.limit))
        raise Refused(
            f"people of this log have as little as {left:g} left of their budget of {self.limit:g}, "
            "and this release would spend more than that",
            hint=way_out,
        )

    def miss(self) -> None:
        """Note that what was spent before is not known; with a limit, nothing can be spent then."""
        self.everybody = self.delta = None
        if self.limit:
            raise Refused(
                "what people have spent in earlier releases of this source is not here",
                hint="give the `--state` of the earlier release",
            )

    def forget(self, users: IntArray) -> None:
        """Forget what people have spent who never come back under these codes."""
        self._before[users[users < self._before.size]] = 0

    def after(self, worst: float | None) -> float | None:
        """Give what anyone may have spent at most after a release that costs so much at worst."""
        if worst is None or self.everybody is None:
            return None
        total = self.everybody + worst
        return round(min(total, max(self.everybody, self.limit)) if self.limit else total, 9)

    def delta_after(self, delta: float) -> float | None:
        """Give the chance that any release so far fails with, after one more."""
        return None if self.delta is None else self.delta + delta

    def book(self, users: IntArray, amount: Floats, worst: float | None, delta: float = 0.0) -> pl.DataFrame:
        """Give what everyone has spent after this release; the line of no user stands for everybody."""
        size = max(int(users.max(initial=-1)) + 1, self._before.size)
        after = np.zeros(size)
        after[: self._before.size] = self._before
        after[users] += amount
        who = np.flatnonzero(after > 0)
        people = pl.DataFrame({"user": self._users.decode(who), "spent": after[who]}).sort("user")
        nobody = pl.DataFrame(
            {"user": [None], "spent": [self.after(worst)], "delta": [self.delta_after(delta)]},
            schema={"user": pl.String, "spent": pl.Float64, "delta": pl.Float64},
        )
        return pl.concat([nobody, people], how="diagonal")

    @staticmethod
    def merged(books: list[pl.DataFrame]) -> pl.DataFrame:
        """Put together the books of workers that began with the same one: what is spent only grows."""
        most = pl.col("spent", "delta").max()
        return pl.concat(books).group_by("user", maintain_order=True).agg(most)

    def open(self, book: pl.DataFrame) -> None:
        """Carry on with what earlier releases spent."""
        everybody = book.filter(pl.col("user").is_null())
        if everybody.height != 1:
            raise DataError("the book of budgets is damaged")
        self.everybody, self.delta = everybody["spent"][0], everybody["delta"][0]
        if self.delta is None:
            self.miss()
        people = book.drop_nulls("user")
        users = self._users.encode(people["user"])
        self._before = np.zeros(int(users.max(initial=-1)) + 1)
        self._before[users] = people["spent"].to_numpy()
