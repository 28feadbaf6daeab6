"""A case: a release, the log behind it and the truth about it; attacks get to see a part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from querycloak.attacks import scoring
from querycloak.errors import DataError
from querycloak.log import CANONICAL

#: A column of what a crowd submitted: who handed a query on to the first member who colludes.
HANDED_BY: Final = "handed_by"
#: A column with the words of the pages that a search led to.
LANDING: Final = "landing"


@dataclass(frozen=True)
class Case:
    """A release and all that is known about it; attacks get to see a part."""

    release: pl.DataFrame
    certificate: Mapping[str, Any]
    original: pl.DataFrame
    answers: scoring.Answers
    origins: pl.Series

    @classmethod
    def of(
        cls,
        release: pl.DataFrame,
        certificate: Mapping[str, Any],
        original: pl.DataFrame,
        truth: pl.DataFrame,
    ) -> Case:
        """Put a case together; a truth that belongs to another log or release is refused."""
        if "released_row" not in release.columns:
            release = release.rename({"row": "released_row"})
        shown = [name for name in ("released_row", *CANONICAL, HANDED_BY, LANDING) if name in release.columns]
        _check_original(original, truth)
        release = release.select(shown)
        answers = scoring.Answers.of(release, truth, original["user"])
        return cls(release, certificate, original, answers, scoring.aligned(release, truth)["original_row"])

    def asked(self) -> pl.Series:
        """Give the query that each released row came from."""
        asked = self.original.select(row=rows_of(self.original), query="query")
        rows = pl.DataFrame({"row": self.origins.cast(pl.Int64)})
        return rows.join(asked, on="row", how="left", maintain_order="left")["query"]


def rows_of(original: pl.DataFrame) -> pl.Series:
    """Give the number of each row, as truths have it."""
    return original["row"].cast(pl.Int64) if "row" in original.columns else pl.Series(range(original.height))


def _check_original(original: pl.DataFrame, truth: pl.DataFrame) -> None:
    """Compare the authors of some rows: a mistaken file shows at once."""
    rows = truth.drop_nulls("original_row").select("original_row", "original_user")
    some = rows.gather_every(max(1, rows.height // 1000))
    known = pl.DataFrame({"original_row": rows_of(original), "user": original["user"]})
    found = some.cast({"original_row": pl.Int64}).join(known, on="original_row", how="left")
    if not found.select((pl.col("user") == pl.col("original_user")).fill_null(False).all()).item():
        raise DataError(
            "the truth does not belong to this original: its rows have other users",
            hint="give the log that was protected, and read it the same way (`--format`, `--map`)",
        )
