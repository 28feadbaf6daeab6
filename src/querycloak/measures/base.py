"""The interface of measures: a pair of logs, a measure with its unit and kind, and the uses of a log."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Final

import polars as pl

from querycloak.errors import NotApplicable
from querycloak.guarantee import COUNTS_ONLY
from querycloak.registry import MEASURES
from querycloak.text.normalise import words


class Unit(StrEnum):
    """Unit of a measure's headline figure."""

    SHARE = "share"
    PERCENT = "percent"
    COUNT = "count"
    SECONDS = "seconds"


class Kind(StrEnum):
    """What a larger headline figure means."""

    #: The release is of more use.
    USE = "use"
    #: More is lost.
    LOSS = "loss"
    #: More is revealed about users.
    PRIVACY = "privacy"
    #: The release costs more, such as time.
    COST = "cost"


@dataclass(frozen=True)
class LogPair:
    """An original and its release, with the ground truth and marketing values if they are given."""

    original: pl.DataFrame
    released: pl.DataFrame
    truth: pl.DataFrame | None = None
    marketing: Mapping[str, Mapping[str, float]] | None = None

    def both(self, column: str) -> tuple[pl.Series, pl.Series]:
        """Return a column of both logs without nulls. Raise NotApplicable if one of them has none."""
        sides = []
        for frame, side in ((self.original, "original"), (self.released, "release")):
            if column not in frame.columns or frame[column].null_count() == frame.height:
                raise NotApplicable(f"the {side} has no {column}")
            sides.append(frame[column].drop_nulls())
        return sides[0], sides[1]

    def label_owner(self) -> pl.Series:
        """Return the user for whom each released row's label stands: by the truth where labels are fresh."""
        if self.truth is None or "label_user" not in self.truth.columns:
            return self.released["user"]
        return self.of_truth("label_user")

    def of_truth(self, column: str) -> pl.Series:
        """Return a column of the truth for each released row."""
        assert self.truth is not None
        rows = self.released.select("row").cast(pl.Int64)
        known = self.truth.select(pl.col("released_row").cast(pl.Int64).alias("row"), column)
        return rows.join(known, on="row", how="left", maintain_order="left")[column]


class Measure(ABC):
    """A measure of two logs: a number, or several by name."""

    name: ClassVar[str]
    help: ClassVar[str]
    unit: ClassVar[Unit]
    kind: ClassVar[Kind]
    #: The path of the figure that stands for the measure, such as `records.mean`; empty for a single number.
    headline: ClassVar[str] = ""

    @abstractmethod
    def __call__(self, pair: LogPair) -> float | dict[str, Any]:
        """Return the figures. Raise NotApplicable if the measure does not apply."""


def run(pair: LogPair, names: Sequence[str] = (), *, table: bool = False) -> dict[str, Any]:
    """Return the figures of the named measures, or of all; the reason for one that does not apply.

    `table`: whether the release is a table of counts, to which no measure applies.
    """
    return {name: _run(pair, name, table) for name in names or MEASURES.names()}


def _run(pair: LogPair, name: str, table: bool) -> Any:
    measure: Measure = MEASURES.get(name)()
    if table:
        return {"not_applicable": COUNTS_ONLY}
    try:
        return measure(pair)
    except NotApplicable as reason:
        return {"not_applicable": str(reason)}


def counted(values: pl.Series) -> Counter[Hashable]:
    """Return the distinct values of a column with their counts."""
    table = values.rename("value").value_counts(name="count")
    return Counter(dict(zip(table["value"].to_list(), table["count"].to_list(), strict=True)))


def words_of(queries: pl.Series) -> pl.Series:
    """Return the lower-case words of all queries in sequence."""
    return words(queries).explode().drop_nulls()


@dataclass(frozen=True)
class Use:
    """A use of a log, with the figure that shows how much of it is kept.

    `kind` is that of the figure's measure. The share that is kept is from 0 to 1; larger is better.
    """

    name: str
    title: str
    measure: str
    about: str
    kind: Kind = Kind.USE

    @property
    def reversed(self) -> bool:
        """Whether the share that is kept is one minus the figure."""
        return self.kind is not Kind.USE


_USES: Final = (
    Use("records", "records kept", "release_rate", "records that were released"),
    Use(
        "topics",
        "topics kept",
        "jensen_shannon.topics",
        "how alike the topics of the whole log are before and after: 100 % is the same shares of all topics",
        kind=Kind.LOSS,
    ),
    Use(
        "profiles",
        "people's topic profiles kept",
        "profile_loss.topics",
        "how alike each person's own mix of topics is before and after, on average over people",
        kind=Kind.LOSS,
    ),
    Use("terms", "words kept", "terms_kept", "words that people typed and that can still be counted"),
    Use(
        "top_queries",
        "top 100 queries kept",
        "top_preserved.queries_100",
        "queries that were among the hundred most frequent and still are",
    ),
    Use(
        "sessions",
        "sessions kept",
        "sessions_kept",
        "steps from one search to the same person's next that can still be seen as such",
    ),
    Use("clicks", "clicks kept", "clicks_kept", "clicks that can still be put to their query"),
    Use(
        "shared_texts",
        "texts not unique",
        "unique_texts",
        "released records whose text more than one person typed; a unique text may show who wrote it",
        kind=Kind.PRIVACY,
    ),
)
ALL_USES: Final[dict[str, Use]] = {use.name: use for use in _USES}
#: The uses proper, without what is about privacy.
USES: Final = tuple(use for use in _USES if use.kind is not Kind.PRIVACY)
#: The choices of `--keep`, with the word for each in a sentence.
KEEP: Final[dict[str, str]] = {
    "topics": "topics",
    "terms": "words",
    "sessions": "sessions",
    "clicks": "clicks",
}
