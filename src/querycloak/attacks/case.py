"""A release under attack with its original, and the ground truth of each released row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

import polars as pl

from querycloak.errors import DataError
from querycloak.log import CANONICAL, Flags, IntArray, Log
from querycloak.protector import Labels
from querycloak.registry import labels_of

#: A column of what a crowd submitted: who forwarded a query to the first member who colludes.
HANDED_BY: Final = "handed_by"
#: A column with the words of the pages that a search led to.
LANDING: Final = "landing"


class Release(Protocol):
    """A protected log with its ground truth, as `Case.protect` returns it."""

    @property
    def log(self) -> Log:
        """The released log."""

    @property
    def truth(self) -> pl.DataFrame:
        """The ground truth."""


@dataclass(frozen=True)
class Truth:
    """Ground truth of each released row, in release order.

    `user` is the author of a row and `label` the label of the author, which a right guess names. `author` and
    `string` are codes of the author and of the query, -1 where there is none. `repeats` counts how often the
    author asked the row's query in this release. `released_label` is the label that a row carries,
    `label_owner` the user for whom that label stands, where the truth file has it. `fake` marks dummy
    queries. `labels` is what a label means.
    """

    released_row: IntArray
    user: pl.Series
    label: pl.Series
    author: IntArray
    string: IntArray | None
    repeats: IntArray | None
    released_label: pl.Series | None = None
    label_owner: pl.Series | None = None
    fake: Flags | None = None
    labels: Labels = Labels.OWN

    @classmethod
    def of(cls, release: pl.DataFrame, truth: pl.DataFrame, labels: Labels = Labels.OWN) -> Truth:
        """Align the truth file with the rows of a release."""
        truth = aligned(release, truth)
        label = truth["original_label" if "original_label" in truth.columns else "original_user"]
        author = codes(truth["original_user"]).copy()
        if "made_up" in truth.columns:
            author[truth["made_up"].to_numpy()] = -1  # a row that the method created has no author
        fake = truth["fake"].to_numpy() if "fake" in truth.columns else None
        if fake is not None:
            author[fake] = -1
        string, repeats = _strings(release, author)
        return cls(
            release["released_row"].cast(pl.Int64).to_numpy(),
            truth["original_user"],
            label,
            author,
            string,
            repeats,
            release.get_column("user", default=None),
            truth.get_column("label_user", default=None),
            fake,
            labels,
        )

    def has_author(self) -> Flags:
        """Return a mask of the rows with an author: not dummy queries, not rows that a method created."""
        return self.author >= 0

    @property
    def labels_are_parts(self) -> bool:
        """Whether a label stands for a part of a user's history, so that no label is the user's own."""
        return self.labels is Labels.PARTS

    def right_labels(self) -> pl.DataFrame:
        """Return every label that is right for a user, as `user, label`: the own one, and those of parts."""
        own = pl.DataFrame({"user": self.user, "label": self.label}).drop_nulls().unique("user", keep="first")
        if not self.labels_are_parts or self.released_label is None:
            return own
        rows = pl.DataFrame({"label": self.released_label, "user": self.user}).drop_nulls("label")
        parts = rows.join(own.select("label"), on="label", how="anti").group_by("label")
        found = parts.agg(pl.col("user").first(), authors=pl.col("user").n_unique())
        parts_of_one = found.filter(pl.col("authors") == 1).select("user", "label").drop_nulls()
        return pl.concat([own, parts_of_one]).unique()

    def clusters(self, rows: Any) -> list[IntArray]:
        """Return the clusterings by which these rows depend on each other: by author, and by query."""
        found = [self.author[rows]]
        if self.string is not None:
            found.append(self.string[rows] + 1)  # rows without a query are one cluster
        return found


def _strings(release: pl.DataFrame, author: IntArray) -> tuple[IntArray | None, IntArray | None]:
    """Return the codes of queries, and how often each row's author asked its query in the release."""
    if "query" not in release.columns or release["query"].null_count() == release.height:
        return None, None
    string = codes(release["query"])
    both = pl.DataFrame({"both": author * (int(string.max(initial=0)) + 2) + string + 1})
    return string, both.select(pl.len().over("both")).to_series().cast(pl.Int64).to_numpy()


@dataclass(frozen=True)
class Case:
    """A release and all that is known about it; attacks receive a part.

    `protect` runs the methods of the certificate on another log. It is None where that is impossible, such as
    for a method that is not installed.
    """

    release: pl.DataFrame
    certificate: Mapping[str, Any]
    original: pl.DataFrame
    truth: Truth
    origins: pl.Series
    protect: Callable[[Log], Release] | None = None

    @classmethod
    def of(
        cls,
        release: pl.DataFrame,
        certificate: Mapping[str, Any],
        original: pl.DataFrame,
        truth: pl.DataFrame,
        protect: Callable[[Log], Release] | None = None,
    ) -> Case:
        """Build a case. Raise DataError for the truth of another log or release."""
        if "released_row" not in release.columns:
            release = release.rename({"row": "released_row"})
        shown = [name for name in ("released_row", *CANONICAL, HANDED_BY, LANDING) if name in release.columns]
        _check_original(original, truth)
        release = release.select(shown)
        known = Truth.of(release, truth, labels_of(certificate))
        return cls(release, certificate, original, known, aligned(release, truth)["original_row"], protect)

    @property
    def labels(self) -> Labels:
        """What a label of the release means."""
        return self.truth.labels

    @cached_property
    def rows(self) -> pl.Series:
        """The number of each row of the original, as the truth has it."""
        return row_numbers(self.original)

    def original_queries(self) -> pl.Series:
        """Return the query that each released row came from; null for a row that a method created."""
        asked = self.original.select(row=self.rows, query="query")
        rows = pl.DataFrame({"row": self.origins.cast(pl.Int64)})
        return rows.join(asked, on="row", how="left", maintain_order="left")["query"]


def row_numbers(original: pl.DataFrame) -> pl.Series:
    """Return the number of each row, as truth files have it."""
    return original["row"].cast(pl.Int64) if "row" in original.columns else pl.Series(range(original.height))


def aligned(release: pl.DataFrame, truth: pl.DataFrame) -> pl.DataFrame:
    """Return the truth in the order of the rows of a release. Raise DataError for a row that it lacks."""
    rows, truth = release["released_row"].cast(pl.Int64), truth.cast({"released_row": pl.Int64})
    if truth.height == rows.len() and bool((truth["released_row"] == rows).all()):
        return truth
    found = pl.DataFrame({"released_row": rows}).join(
        truth, on="released_row", how="left", maintain_order="left"
    )
    if found.height != rows.len() or found["released_after"].null_count():
        raise DataError(
            "the truth does not belong to this release: its rows are others",
            hint="give the file that `protect --truth` wrote with this very release",
        )
    return found


def codes(texts: pl.Series) -> IntArray:
    """Number texts from 0, null as -1, by a 64-bit hash: a rare collision does no harm here."""
    numbers = texts.hash(0).rank("dense").cast(pl.Int64) - 1
    return numbers.set(texts.is_null(), -1).to_numpy()


def _check_original(original: pl.DataFrame, truth: pl.DataFrame) -> None:
    """Compare the authors of some rows, to detect a wrong file early."""
    rows = truth.drop_nulls("original_row").select("original_row", "original_user")
    some = rows.gather_every(max(1, rows.height // 1000))
    known = pl.DataFrame({"original_row": row_numbers(original), "user": original["user"]})
    found = some.cast({"original_row": pl.Int64}).join(known, on="original_row", how="left")
    if not found.select((pl.col("user") == pl.col("original_user")).fill_null(False).all()).item():
        raise DataError(
            "the truth does not belong to this original: its rows have other users",
            hint="give the log that was protected, and read it the same way (`--format`, `--map`)",
        )
