"""What a log can still be used for: its terms, sessions and clicks; and texts that only one person asked."""

from __future__ import annotations

from typing import Final

import polars as pl

from querycloak.errors import NotApplicable
from querycloak.measures.base import Kind, LogPair, Measure, Unit, words_of

#: Minutes between two searches of one person, at most, for them to be of one session.
GAP: Final = 30


def overlap(before: pl.DataFrame, after: pl.DataFrame) -> float:
    """Return the share of rows that have a partner with the same values on the other side, each once."""
    names = before.columns
    both = (
        before.group_by(names).len("old").join(after.group_by(names).len("new"), on=names, nulls_equal=True)
    )
    return float(both.select(pl.min_horizontal("old", "new").sum()).item() / before.height)


class TermsKept(Measure):
    """How many of the words that people typed are there to be counted."""

    name, help = "terms_kept", "share of all words typed that the release still has, each as often as it was"
    unit, kind = Unit.SHARE, Kind.USE

    def __call__(self, pair: LogPair) -> float:
        """Count words on both sides; words that a method put in do not count."""
        before, after = (words_of(side).to_frame("word") for side in pair.both("query"))
        if not before.height:
            raise NotApplicable("the original has no words")
        return overlap(before, after)


class ClicksKept(Measure):
    """How many clicks can still be put to their queries."""

    name, help = "clicks_kept", "share of clicks that the release still has, with the query they answered"
    unit, kind = Unit.SHARE, Kind.USE

    def __call__(self, pair: LogPair) -> float:
        """Count pairs of query and clicked address on both sides."""
        sides = []
        for frame, side in ((pair.original, "original"), (pair.released, "release")):
            if not {"query", "url"} <= set(frame.columns):
                raise NotApplicable(f"the {side} has no url")
            sides.append(frame.select("query", "url").drop_nulls())
        if not sides[0].height:
            raise NotApplicable("the original has no url")
        return overlap(*sides)


class SessionsKept(Measure):
    """How many steps from one search to the next can still be seen."""

    name, help = (
        "sessions_kept",
        f"share of steps from one search to the person's next within {GAP} minutes that the release still "
        "shows: both texts, one label, times no further apart (needs the truth)",
    )
    unit, kind = Unit.SHARE, Kind.USE

    def __call__(self, pair: LogPair) -> float:
        """Follow each step of the original into the release, by the truth."""
        if pair.truth is None:
            raise NotApplicable("the truth was not given")
        if "time" not in pair.original.columns:
            raise NotApplicable("the original has no time")
        steps = _steps(pair.original)
        if not steps.height:
            raise NotApplicable(f"nobody searched twice within {GAP} minutes")
        if not {"user", "time"} <= set(pair.released.columns):
            return 0.0
        there = _released(pair)
        seen = steps.join(there, left_on="first", right_on="place").join(
            there, left_on="second", right_on="place", suffix="_next"
        )
        near = (pl.col("time_next") - pl.col("time")).abs() <= pl.duration(minutes=GAP)
        return seen.filter(near & (pl.col("user") == pl.col("user_next"))).height / steps.height


def _steps(original: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of each search and of the same person's next one, if it came soon."""
    searches = (
        original.select("row", "user", "query", "time")
        .drop_nulls()
        .sort("time", "row")
        .unique(["user", "query", "time"], keep="first", maintain_order=True)
    )
    after = searches.with_columns(
        second=pl.col("row").shift(-1).over("user"),
        gap=pl.col("time").shift(-1).over("user") - pl.col("time"),
    )
    return after.filter(pl.col("gap") <= pl.duration(minutes=GAP)).select(
        pl.col("row").cast(pl.Int64).alias("first"), pl.col("second").cast(pl.Int64)
    )


def _released(pair: LogPair) -> pl.DataFrame:
    """Return label and time of each original row that left with its own text."""
    assert pair.truth is not None
    known = pair.truth.drop_nulls("original_row").select(
        pl.col("released_row").cast(pl.Int64).alias("row"),
        pl.col("original_row").cast(pl.Int64).alias("place"),
    )
    before = pair.original.select(pl.col("row").cast(pl.Int64).alias("place"), asked="query")
    shown = pair.released.select(pl.col("row").cast(pl.Int64), "user", "query", "time")
    both = shown.join(known, on="row").join(before, on="place")
    return both.filter(pl.col("query") == pl.col("asked")).select("place", "user", "time").drop_nulls()


class UniqueTexts(Measure):
    """How many released texts only one person asked: who knows one of them knows whose it is."""

    name, help = "unique_texts", "share of released records whose query only one person of the original asked"
    unit, kind = Unit.SHARE, Kind.PRIVACY

    def __call__(self, pair: LogPair) -> float:
        """Look every released query up among the original's."""
        if "user" not in pair.original.columns:
            raise NotApplicable("the original has no user")
        pair.both("query")
        people = pair.original.drop_nulls("query").group_by("query").agg(pl.col("user").n_unique())
        shown = pair.released.select("query").drop_nulls()
        found = shown.join(people, on="query", how="left")["user"]
        return float((found == 1).fill_null(value=False).sum() / shown.height)
