"""The measures as `querycloak measure` runs them: on two logs, by counts, never row by row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

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
    return queries.str.to_lowercase().str.extract_all(r"[\p{L}\p{Nd}]+").explode().drop_nulls()


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
