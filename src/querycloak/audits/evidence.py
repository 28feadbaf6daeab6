"""What an audit may look at: the release, the original, the ground truth, and facts about other methods."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.guarantee import NotApplicable, NotCheckable
from querycloak.log import MISSING, IntArray

T = TypeVar("T")
#: Drawn anew in each process, so that nobody can plan for two texts to get the same number.
_SEED: Final = secrets.randbits(63)
_LAST: Final = np.iinfo(np.int64).max  # when a row without a time is replayed
NO_TIMES: Final = "the original has no times, so only the key knows in which order it was replayed"
_TEXTS: Final = ("user", "query", "original_user", "label_user", "original_label")


def number(text: pl.Expr) -> pl.Expr:
    """Turn texts into numbers by a 64-bit hash; among millions two meet by chance once in a million runs."""
    return text.cast(pl.String).hash(_SEED).reinterpret(signed=True)


def numbered(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Replace users and queries by numbers, which audits compare faster and in less memory."""
    schema = frame.collect_schema()
    texts = [name for name in _TEXTS if name in schema and schema[name] != pl.Int64]
    return frame.with_columns(number(pl.col(name)).alias(name) for name in texts)


class Searches(NamedTuple):
    """For each row of the original, by place: where its search starts, and when that had been read whole.

    `entered` counts the rows read once the whole search was read, in the order of replay: by time, ties
    by row.
    """

    head: IntArray
    entered: IntArray


@dataclass(frozen=True)
class Part:
    """A part of a stream: `original` has what came in it, from row `since` on, and what still waited then.

    `present` has the `user` and `category` of every label that was waiting then, for methods that hold
    labels apart from records; without it nobody knows.
    """

    since: int = 0
    present: pl.DataFrame | None = None


@dataclass(frozen=True)
class Evidence:
    """What an audit may look at; users and queries are numbers in all of it but `text()`.

    `release` has `released_row`, `user` and `query`; `text()` gives it in words, with all columns, and is
    for audits that need those. `original` has the canonical columns and `row`; `truth` is the private
    file of `protect --truth`. `later` and `earlier` name the methods that ran after and before the
    audited one;
    `rewritten` says that some method of the release may show other queries than were asked, and
    `rewritten_later` that one of the later ones may (`reworded_later`: with words of its own);
    `makes_rows` that some method may show rows that come from none of the original. `table` says
    that the release is a table of counts, whose rows are no records. `erased` says who was erased while
    the release was made: `user`, and `erased_after`, the number of rows read by then. `part` says that all
    of this is a part of a stream. What one audit works out is kept in `memo` for the next.
    """

    release: pl.LazyFrame
    original: pl.LazyFrame | None = None
    truth: pl.LazyFrame | None = None
    later: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    rewritten: bool = False
    rewritten_earlier: bool = False
    rewritten_later: bool = False
    reworded_later: bool = False
    makes_rows: bool = False
    table: bool = False
    erased: pl.LazyFrame | None = None
    part: Part | None = None
    spell: Callable[[], pl.LazyFrame] | None = field(default=None, repr=False, compare=False)
    query_texts: Callable[[], pl.LazyFrame] | None = field(default=None, repr=False, compare=False)
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        given = self.release
        if self.spell is None:
            object.__setattr__(self, "spell", lambda: given)
        before = self.original
        kind = before.collect_schema().get("query") if before is not None else None
        if self.query_texts is None and before is not None and kind == pl.String:
            object.__setattr__(self, "query_texts", lambda: before.select("row", "query"))
        names = [n for n in ("released_row", "user", "query") if n in given.collect_schema()]
        object.__setattr__(self, "release", numbered(given.select(names)))
        for name in ("original", "truth", "erased"):
            frame = getattr(self, name)
            if frame is not None:
                object.__setattr__(self, name, numbered(frame))

    def text(self) -> pl.LazyFrame:
        """Return the release as its readers see it, with `released_row`."""
        assert self.spell is not None
        return self.spell()

    def asked_texts(self) -> pl.LazyFrame:
        """Return the queries of the original as texts: `row`, `query`."""
        if self.query_texts is None:
            raise NotCheckable("the texts of the original are not given")
        return self.query_texts()

    def undecided(self, reason: str) -> NotCheckable | NotApplicable:
        """Return what a check of the release alone raises if it cannot decide.

        With the ground truth, a stronger check of the same guarantee decides.
        """
        if self.original is not None and self.truth is not None:
            return NotApplicable("the check with the ground truth decides")
        return NotCheckable(reason)

    def once(self, name: str, make: Callable[[], T]) -> T:
        """Return what `make` returned on the first call with this name."""
        if name not in self.memo:
            self.memo[name] = make()
        return cast("T", self.memo[name])

    @property
    def asked(self) -> pl.DataFrame:
        """The original by row: `row`, `user`, `query`, and `time` if it has one."""
        return self.once("asked", self._asked)

    def _asked(self) -> pl.DataFrame:
        assert self.original is not None
        names = [n for n in ("row", "user", "query", "time") if n in self.original.collect_schema()]
        rows = self.original.select(names).collect()
        return rows if rows["row"].is_sorted() else rows.sort("row")

    @property
    def traced(self) -> pl.LazyFrame:
        """Each released row beside the truth about it, `user` being the one whom its label stands for.

        `place` is where its original row stands in `asked`, -1 if nowhere.
        """
        return self.once("traced", self._traced).lazy()

    def _traced(self) -> pl.DataFrame:
        assert self.truth is not None
        shown = self.release.collect()
        truth = self.truth.collect()
        if shown["released_row"].equals(truth["released_row"]):
            beside = pl.concat([shown, truth.drop("released_row")], how="horizontal")
        else:
            beside = shown.join(truth, on="released_row", how="left", maintain_order="left")
        if "label_user" in beside.columns:
            beside = beside.with_columns(user=pl.col("label_user")).drop("label_user")
        rows = beside["original_row"].fill_null(MISSING).to_numpy()
        return beside.with_columns(place=pl.Series(places(self.asked["row"].to_numpy(), rows)))

    def placed(self, *columns: str) -> pl.DataFrame:
        """Return these columns and `place` of the rows from the original, with the `head` of their search."""
        rows = self.traced.filter(pl.col("place") >= 0).select("place", *columns).collect()
        return rows.with_columns(head=pl.Series(self.searches.head[rows["place"].to_numpy()]))

    @property
    def searches(self) -> Searches:
        """The searches of the original."""
        return self.once("searches", self._searches)

    def _searches(self) -> Searches:
        if "time" not in self.asked.columns:
            raise NotCheckable(NO_TIMES)
        who = pl.col("user").hash(3) ^ pl.col("query").hash(4)
        keys = self.asked.select(time=pl.col("time").to_physical().fill_null(_LAST), who=who)
        place = keys.select(pl.arg_sort_by("time", "who", maintain_order=True)).to_series().to_numpy()
        first = _starts(keys["time"].to_numpy()[place], keys["who"].to_numpy()[place])
        size = np.diff(np.append(first, place.size))
        head = place[first]
        in_order = np.lexsort((head, keys["time"].to_numpy()[head]))
        entered = np.empty(first.size, np.int64)
        entered[in_order] = np.cumsum(size[in_order])
        result = Searches(np.empty(place.size, np.int64), np.empty(place.size, np.int64))
        result.head[place] = np.repeat(head, size)
        result.entered[place] = np.repeat(entered, size)
        return result


def _starts(*columns: npt.NDArray[Any]) -> IntArray:
    """Return the places where any of the columns has another value than before."""
    new = np.zeros(columns[0].size, np.bool_)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(new)


def places(known: IntArray, wanted: IntArray) -> IntArray:
    """Find numbers in a sorted array: where each stands, or -1."""
    if not known.size:
        return np.full(wanted.size, MISSING, np.int64)
    if known[-1] - known[0] == known.size - 1:  # no gaps: no need to search
        place = wanted - known[0]
        return np.where((wanted >= known[0]) & (wanted <= known[-1]), place, MISSING)
    place = np.minimum(np.searchsorted(known, wanted), known.size - 1)
    return np.where(known[place] == wanted, place, MISSING)
