"""Two controls: one that must always be right, and the least that anyone can do."""

from __future__ import annotations

import polars as pl

from querycloak.attacks.base import Attack, AttackerView, Attribution
from querycloak.errors import NotApplicable


class Copy(Attack):
    """Copies the truth, so it must score 100 %: if it does not, scoring is at fault.

    The runner lets this very class, and no other, in through `peek`.
    """

    name = "copy"
    game = "control"
    columns = frozenset[str]()
    _answers: pl.Series | None = None

    @classmethod
    def sees(cls) -> list[str]:
        """Return the truth."""
        return ["truth"]

    def peek(self, answers: pl.Series) -> None:
        """Take the right answers."""
        self._answers = answers

    def guess(self, view: AttackerView) -> Attribution:
        """Return the right labels."""
        if self._answers is None:
            raise NotApplicable("there is no truth to copy")
        return Attribution(self._answers)


class Guess(Attack):
    """Guesses the most frequent label for every row: the baseline of a real attack."""

    name = "guess"
    game = "control"
    columns = frozenset({"user"})

    def guess(self, view: AttackerView) -> Attribution:
        """Find the most frequent label; of equals, the first by name."""
        counts = view.release["user"].drop_nulls().value_counts(name="rows")
        best = counts.sort("rows", "user", descending=[True, False])["user"].first()
        return Attribution(pl.repeat(best, view.release.height, dtype=pl.String, eager=True))
