"""`link-next`: a repeated query has the author of its last occurrence."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from querycloak import settings as declared
from querycloak.attacks import Attack, AttackerView, Attribution
from querycloak.settings import setting


class LinkNext(Attack):
    """Attributes a record to the label under which its query was released last, if the query is rare.

    Limits: a popular query is repeated by many users, so only queries released at most `rare` times are used.
    """

    name = "link-next"
    game = "attribution"

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `link-next`."""

        rare: int = setting(5, kind=int, at_least=1, help="a query released at most so often is rare")

    settings: Settings

    def guess(self, view: AttackerView) -> Attribution:
        """Return the last label of each rare query, or the row's own label."""
        last = pl.col("user").shift(1).over("query", order_by="released_row")
        rare = pl.len().over("query") <= self.settings.rare
        guess = pl.when(rare).then(last).fill_null(pl.col("user"))
        return Attribution(view.release.select(guess)["user"])
