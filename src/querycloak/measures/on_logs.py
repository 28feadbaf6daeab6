"""The measures as `querycloak measure` runs them: on two logs, by counts, never row by row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from querycloak.dictionary import Dictionary
from querycloak.measures import live, profiles
from querycloak.measures.distributions import jensen_shannon, largest_tree_emd, tree_emd
from querycloak.measures.kept import top_preserved_counts
from querycloak.measures.marketing import retention_of


class NotApplicable(Exception):
    """Raised when a measure has nothing to say about these logs; the text says why."""


@dataclass(frozen=True)
class Pair:
    """An original and its release, with whatever else was given."""

    original: pl.DataFrame
    released: pl.DataFrame
    truth: pl.DataFrame | None = None
    marketing: Mapping[str, Mapping[str, float]] | None = None

    def both(self, column: str) -> tuple[pl.Series, pl.Series]:
        """Give a column of both logs, or say that one of them has none."""
        sides = []
        for frame, side in ((self.original, "original"), (self.released, "release")):
            if column not in frame.columns or frame[column].null_count() == frame.height:
                raise NotApplicable(f"the {side} has no {column}")
            sides.append(frame[column].drop_nulls())
        return sides[0], sides[1]

    def behind(self) -> pl.Series:
        """Give the user whom each released row's label stands for: by the truth where labels are fresh."""
        if self.truth is None or "label_user" not in self.truth.columns:
            return self.released["user"]
        rows = self.released.select("row").cast(pl.Int64)
        known = self.truth.select(pl.col("released_row").cast(pl.Int64).alias("row"), "label_user")
        return rows.join(known, on="row", how="left", maintain_order="left")["label_user"]


class LogMeasure(ABC):
    """One measure of two logs: a number, or several by name."""

    name: ClassVar[str]
    help: ClassVar[str]

    @abstractmethod
    def __call__(self, pair: Pair) -> float | dict[str, Any]:
        """Measure, or raise `NotApplicable`."""


def counted(values: pl.Series) -> Counter[Hashable]:
    """Count the distinct values of a column."""
    table = values.rename("value").value_counts(name="count")
    return Counter(dict(zip(table["value"].to_list(), table["count"].to_list(), strict=True)))


def words_of(queries: pl.Series) -> pl.Series:
    """Split queries into lower-case terms, at everything but letters and digits."""
    words = queries.str.to_lowercase().str.extract_all(r"[\p{L}\p{N}][\p{L}\p{M}\p{N}]*")
    return words.explode().drop_nulls()


class ReleaseRate(LogMeasure):
    """The share of records that were released."""

    name, help = "release_rate", "share of the original's records that were released"

    def __call__(self, pair: Pair) -> float:
        """Compare the numbers of rows."""
        return pair.released.height / pair.original.height if pair.original.height else float("nan")


class TopPreserved(LogMeasure):
    """The share of the most frequent queries, words and categories that are still the most frequent."""

    name, help = "top_preserved", "share of the 10 and 100 most frequent queries, words and categories kept"

    def __call__(self, pair: Pair) -> dict[str, Any]:
        """Compare the tops of both logs."""
        found: dict[str, Any] = {}
        for what, column, split in (
            ("queries", "query", None),
            ("words", "query", words_of),
            ("categories", "category", None),
        ):
            try:
                before, after = (counted(split(side) if split else side) for side in pair.both(column))
            except NotApplicable:
                continue
            found |= {f"{what}_{n}": top_preserved_counts(before, after, n) for n in (10, 100)}
        if not found:
            raise NotApplicable("the release has neither queries nor categories")
        return found


class Retention(LogMeasure):
    """What is left of terms, log size, users and value to advertisers, in percent."""

    name, help = (
        "retention",
        "percent of distinct terms, log size, users (and bid, clicks, impressions, revenue) kept",
    )

    def __call__(self, pair: Pair) -> dict[str, float]:
        """Compare counts of terms and users."""
        before, after = ((counted(words_of(side)), 0) for side in pair.both("query"))
        shares = retention_of(before, after, pair.marketing)  # type: ignore[arg-type]
        shares["users"] = self._users(pair)
        return shares

    @staticmethod
    def _users(pair: Pair) -> float:
        try:
            before, after = pair.both("user")
        except NotApplicable:
            return float("nan")
        return 100.0 * after.n_unique() / before.n_unique()


def _level_one(categories: pl.Series) -> pl.Series:
    return categories.str.split("/").list.first()


class JensenShannon(LogMeasure):
    """How far the release's mixture of topics and of queries is from the original's."""

    name, help = (
        "jensen_shannon",
        "divergence (base 2, 0 to 1) of the whole log's topics, categories and queries",
    )

    def __call__(self, pair: Pair) -> dict[str, float]:
        """Compare the distributions over level-1 topics, whole categories, and queries."""
        found = {"queries": self._of(*pair.both("query"))}
        try:
            before, after = pair.both("category")
        except NotApplicable:
            return found
        found["categories"] = self._of(before, after)
        found["topics"] = self._of(_level_one(before), _level_one(after))
        return found

    @staticmethod
    def _of(before: pl.Series, after: pl.Series) -> float:
        p, q = counted(before), counted(after)
        every = list(p | q)
        return jensen_shannon([p[item] for item in every], [q[item] for item in every])


class TreeEmd(LogMeasure):
    """How far categories moved on the tree, as a share of the farthest they could have moved."""

    name, help = (
        "tree_emd",
        "exact earth mover's distance of the whole log's categories, and as a share of the largest",
    )

    def __call__(self, pair: Pair) -> dict[str, float]:
        """Compare the distributions over categories."""
        before, after = (counted(side) for side in pair.both("category"))
        distance = tree_emd(before, after)  # type: ignore[arg-type]
        largest = largest_tree_emd([str(path) for path in before | after])
        return {"distance": distance, "share_of_largest": distance / largest if largest else 0.0}


class ProfileLoss(LogMeasure):
    """How far each person's released profile of categories is from the original one."""

    name, help = (
        "profile_loss",
        "people's profiles: exact earth mover's distance as a share of the largest, and divergence of topics",
    )

    def __call__(self, pair: Pair) -> dict[str, float]:
        """Compare what people asked about with what was released under their labels."""
        pair.both("category"), pair.both("user")
        people, paths = Dictionary(), Dictionary()
        sides = [
            profiles.Records(people.encode(user), paths.encode(frame["category"]))
            for frame, user in ((pair.original, pair.original["user"]), (pair.released, pair.behind()))
        ]
        tree = profiles.Tree.of(paths.texts().to_list())
        found = profiles.loss_of_records(tree, len(people.texts()), *sides)
        if not found["people"]:
            raise NotApplicable(
                "no label of the release is a user of the original; fresh ones need the truth"
            )
        return found


class Delay(LogMeasure):
    """How many records were read, and how much time passed, between a record's entry and its release."""

    name, help = "delay", "records read and seconds passed between entry and release (needs the truth)"

    def __call__(self, pair: Pair) -> dict[str, Any]:
        """Replay the original's order of arrival and look up when each released row had entered."""
        truth = self._usable(pair)
        row = pair.original["row"].to_numpy()
        when = pair.original["time"].to_physical().fill_null(live.NEVER).to_numpy()
        order = np.argsort(row, kind="stable")
        place = order[np.searchsorted(row[order], truth["original_row"].to_numpy())]
        after = truth["released_after"].cast(pl.Int64).to_numpy()
        found = live.waiting(after, place, when, _heads(pair.original, when, row))
        rate = live.release_rate_over_time(np.sort(after), row.size)  # type: ignore[arg-type]
        return found | {"release_rate_by_tenths": rate}

    @staticmethod
    def _usable(pair: Pair) -> pl.DataFrame:
        if pair.truth is None:
            raise NotApplicable("only the truth says when a record was released: give `--truth`")
        if "time" not in pair.original.columns or pair.original["time"].null_count() == pair.original.height:
            raise NotApplicable("the original has no times, so the order in which records came is unknown")
        return pair.truth.drop_nulls("original_row").cast({"original_row": pl.Int64})


def _heads(frame: pl.DataFrame, when: live.IntArray, row: live.IntArray) -> live.IntArray:
    """Find the first row of each row's search, as the replay does."""
    from querycloak.kernels.order import heads

    both = frame.select((pl.col("user").hash(1) ^ pl.col("query").hash(2)).alias("h")).to_series()
    found: live.IntArray = heads(
        when, both.to_numpy().view(np.int64), row, np.lexsort((row, when)), live.NEVER
    )
    return found
