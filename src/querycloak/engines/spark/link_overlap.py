"""`link-overlap` on DataFrames: joins on what histories and labels have in common, for logs of any size.

The answer is that of `querycloak.attacks.link_overlap`: whoever is looked for gets all labels that have most
in common with her, counted with repetitions, and is found with probability 1/t among t of them. Exact, and as
there without a look at every pair: things that few labels have are joined first. A label that shares none
of them shares at most the others, so once a better label is known, only labels that were met can win.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from querycloak.attacks import intervals
from querycloak.attacks.finding import Finding, NotApplicable
from querycloak.attacks.link_overlap import LinkOverlap, terms_of
from querycloak.engines.spark.km_sweeps import kept
from querycloak.errors import DataError

#: Things that more labels have than this are left for later, in the hope that rarer ones decide.
CUTS: Final = (64, 4096, np.iinfo(np.int64).max)
#: Rows of the truth that are compared with the original: a mistaken file shows at once.
_COMPARED: Final = 1000


def attack_overlap(
    release: DataFrame,
    original: DataFrame,
    truth: DataFrame,
    *,
    on: str = "queries",
    targets: int = 0,
    seed: int = 0,
    cuts: tuple[int, ...] = CUTS,
) -> Finding:
    """Look for the people of a log among the labels of its release; say how often that succeeds.

    `release` has `released_row` (or `row`), `user` and what is compared; `original` has `row` and the same;
    `truth` is what `protect --truth` writes. With `targets` some people are drawn by a hash; 0: all.
    """
    LinkOverlap.Settings(on=on, targets=targets, seed=seed)  # says what is wrong with them
    if "released_row" not in release.columns:
        release = release.withColumnRenamed("row", "released_row")
    _check_original(original, truth)
    begin = time.perf_counter()
    try:
        shown, goes_by = _shown(release, on), _labels(release, original, truth)
        looked_for, people = _looked_for(original, on, targets, seed)
        found = _Search(looked_for, shown, goes_by, cuts).run()
        return _finding(_Tally.of(found, people), time.perf_counter() - begin)
    except NotApplicable as reason:
        return Finding(LinkOverlap.name, LinkOverlap.game, "user", not_applicable=str(reason))


def _check_original(original: DataFrame, truth: DataFrame) -> None:
    """Compare the authors of some rows."""
    some = truth.filter("original_row is not null").select("original_row", "original_user").limit(_COMPARED)
    known = original.select(sf.col("row").cast("long").alias("original_row"), "user")
    some = kept(some)
    same = known.join(sf.broadcast(some), "original_row").filter("user = original_user")
    if same.count() < some.count():
        raise DataError(
            "the truth does not belong to this original: its rows have other users",
            hint="give the log that was protected, and read it the same way",
        )


def _shown(release: DataFrame, on: str) -> DataFrame:
    """Give what each label has, `label, thing, n`."""
    if release.isEmpty():
        raise NotApplicable("the release is empty")
    if "user" not in release.columns or release.filter("user is not null").isEmpty():
        raise NotApplicable("the release has no user")
    return kept(_contents(release, on, "release").withColumnRenamed("user", "label"))


def _looked_for(original: DataFrame, on: str, targets: int, seed: int) -> tuple[DataFrame, int]:
    """Give what each person has, `user, thing, n`, and how many people there are."""
    people = original.select("user").filter("user is not null").distinct()
    count = people.count()
    if targets and targets < count:
        people = people.orderBy(sf.xxhash64(sf.lit(seed), "user"), "user").limit(targets)
        original, count = original.join(kept(people), "user", "left_semi"), targets
    return _contents(original, on, "history"), count


def _contents(rows: DataFrame, on: str, side: str) -> DataFrame:
    """Count how often each history holds each thing."""
    column = "category" if on == "categories" else "query"
    if column not in rows.columns or rows.filter(sf.col(column).isNotNull()).isEmpty():
        raise NotApplicable(f"the {side} has no {column}")
    some = rows.select("user", sf.col(column).alias("thing")).na.drop()
    counted = some.groupBy("user", "thing").agg(sf.count(sf.lit(1)).alias("n"))
    if on != "terms":
        return counted
    terms = counted.mapInArrow(_in_terms, "user string, thing string, n long")
    return terms.groupBy("user", "thing").agg(sf.sum("n").alias("n"))


def _in_terms(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        frame = pl.DataFrame(pl.from_arrow(batch))
        words = frame.with_columns(thing=terms_of(frame["thing"])).explode("thing").drop_nulls()
        yield from words.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches(max_chunksize=1 << 16)


def _labels(release: DataFrame, original: DataFrame, truth: DataFrame) -> DataFrame:
    """Give every label that is right for a person, as `user, label`: her own, and those of her parts.

    Parts are labels that are nobody's own, under which only one person's rows were released (see
    `querycloak.attacks.scoring.Answers.labels`).
    """
    rows = release.select("released_row", sf.col("user").alias("shown")).join(truth, "released_row", "left")
    if rows.filter("released_after is null").limit(1).count():
        raise DataError(
            "the truth does not belong to this release: its rows are others",
            hint="give the truth that was written with this very release",
        )
    fresh = "label_user" in truth.columns
    label = "original_label" if "original_label" in truth.columns else "original_user"
    own = rows.select(sf.col("original_user").alias("user"), sf.col(label).alias("label")).na.drop()
    own = kept(own.groupBy("user").agg(sf.first("label").alias("label")))
    taken = own.select("label")
    taken = taken if fresh else taken.union(original.select("user"))
    behind = sf.col("label_user") if fresh else sf.lit(None).cast("string")
    parts = rows.select(
        sf.col("shown").alias("label"), sf.col("original_user").alias("user"), behind.alias("behind")
    )
    parts = parts.filter("label is not null").join(taken.distinct(), "label", "left_anti")
    wrote = own.select(sf.col("user").alias("behind"), sf.lit(True).alias("wrote"))
    parts = parts.join(wrote, "behind", "left")
    silent = sf.col("behind").isNotNull() & sf.col("wrote").isNull()
    several = sf.count_distinct("user") + sf.max(sf.col("user").isNull().cast("int"))
    hers = parts.groupBy("label").agg(
        sf.first("user").alias("user"), several.alias("people"), sf.max(silent).alias("silent")
    )
    found = hers.filter("people = 1 and not silent").select("user", "label").na.drop()
    return kept(own.select("user", "label").union(found).distinct())


@dataclass(frozen=True)
class _Search:
    """Looks histories up by things of few labels first, and by the others where those do not decide."""

    looked_for: DataFrame
    shown: DataFrame
    goes_by: DataFrame
    cuts: tuple[int, ...]

    def run(self) -> DataFrame:
        """Give for each person how many labels are best, and how many of them are right."""
        spread = self.shown.groupBy("thing").agg(sf.count("label").alias("spread"), sf.max("n").alias("most"))
        wanted = kept(
            self.looked_for.join(spread, "thing").withColumn("n", sf.least("n", "most")).drop("most")
        )
        found: list[DataFrame] = []
        for cut in self.cuts:
            tied, decided = self._settle(wanted, cut)
            found.append(kept(self._told(tied)))
            if cut == self.cuts[-1]:
                break
            wanted = kept(wanted.join(decided, "user", "left_anti"))
            if wanted.isEmpty():
                break
        every = found[0]
        for part in found[1:]:
            every = every.unionByName(part)
        return every

    def _settle(self, wanted: DataFrame, cut: int) -> tuple[DataFrame, DataFrame]:
        """Give the best labels of people for whom things of at most `cut` labels decide, and these people."""
        rare, other = wanted.filter(sf.col("spread") <= cut), wanted.filter(sf.col("spread") > cut)
        both = rare.join(self.shown.withColumnRenamed("n", "has"), "thing")
        met = kept(both.groupBy("user", "label").agg(sf.sum(sf.least("n", "has")).alias("common")))
        by_common = Window.partitionBy("user").orderBy(sf.col("common").desc(), "label")
        first = met.withColumn("place", sf.row_number().over(by_common)).filter("place = 1").drop("place")
        # One label looked at in full says what the others must reach; most of them cannot.
        reached = self._in_full(first, other).select("user", sf.col("full").alias("reached"))
        rest = other.groupBy("user").agg(sf.sum("n").alias("rest"))
        known = reached.join(rest, "user", "left").na.fill(0, ["rest"])
        decided = kept(known.filter(sf.col("reached") > sf.col("rest")))
        able = met.join(decided, "user").filter(sf.col("common") + sf.col("rest") >= sf.col("reached"))
        full = self._in_full(able.select("user", "label", "common"), other)
        best = sf.max("full").over(Window.partitionBy("user"))
        tied = full.withColumn("best", best).filter(sf.col("full") == sf.col("best"))
        return tied.select("user", "label"), decided.select("user")

    def _in_full(self, pairs: DataFrame, other: DataFrame) -> DataFrame:
        """Add what pairs have in common of the things that many labels have."""
        theirs = pairs.join(other.select("user", "thing", "n"), "user")
        shared = theirs.join(self.shown.withColumnRenamed("n", "has"), ["label", "thing"])
        more = shared.groupBy("user", "label").agg(sf.sum(sf.least("n", "has")).alias("more"))
        full = pairs.join(more, ["user", "label"], "left").na.fill(0, ["more"])
        return full.withColumn("full", sf.col("common") + sf.col("more"))

    def _told(self, tied: DataFrame) -> DataFrame:
        right = self.goes_by.withColumn("right", sf.lit(1))
        told = tied.join(right, ["user", "label"], "left")
        return told.groupBy("user").agg(sf.count("label").alias("many"), sf.count("right").alias("right"))


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Tally:
    """How many people have so many best labels, so many of them right: one element for each such pair."""

    many: Ints
    right: Ints
    people: Ints

    @classmethod
    def of(cls, found: DataFrame, everyone: int) -> _Tally:
        """Count; whoever was not found has no label."""
        counted = found.groupBy("many", "right").count().collect()
        rows = [(int(row["many"]), int(row["right"]), int(row["count"])) for row in counted]
        rows.append((0, 0, everyone - sum(row[2] for row in rows)))
        table = np.array([row for row in rows if row[2]], np.int64).reshape(-1, 3)
        return cls(table[:, 0], table[:, 1], table[:, 2])

    @property
    def hits(self) -> Floats:
        """How often each is found: with the same probability each of the best labels is named."""
        return self.right / np.maximum(self.many, 1)

    def mean(self, values: Floats | npt.NDArray[np.bool_]) -> float:
        """Give the mean over people."""
        return float((values * self.people).sum() / self.people.sum())

    def quantile(self, values: Floats | Ints, share: float) -> float:
        """Give what so large a share of people do not exceed, between neighbours as numpy does."""
        order = np.argsort(values, kind="stable")
        ends = np.cumsum(self.people[order])
        place = share * (int(ends[-1]) - 1)
        low, high = (
            float(values[order][np.searchsorted(ends, int(at), side="right")])
            for at in (np.floor(place), np.ceil(place))
        )
        return low + (high - low) * (place - float(np.floor(place)))

    def found(self) -> _Tally:
        """Leave out whoever was not found."""
        some = self.many > 0
        return _Tally(self.many[some], self.right[some], self.people[some])


def _finding(tally: _Tally, seconds: float) -> Finding:
    """Say how often people were found, each an independent trial, in the words of the local attack."""
    if not tally.people.size:
        raise NotApplicable("there is nothing to score: no released row has an author")
    people, mean = int(tally.people.sum()), tally.mean(tally.hits)
    variance = tally.mean((tally.hits - mean) ** 2) / (people - 1) if people > 1 else 0.0
    independent = min(mean * (1.0 - mean) / variance, float(people)) if variance > 0 else float(people)
    low, high = intervals.wilson(mean, independent, intervals.t_point(people - 1.0))
    some, none = tally.found(), tally.mean(tally.many == 0)
    details: dict[str, Any] = {
        "median_candidates": tally.quantile(tally.many, 0.5),
        "share_with_one_candidate": tally.mean(tally.many == 1),
        "share_not_found": none,
        "candidates": {
            "smallest": int(some.many.min()) if some.many.size else None,
            "empty": none,
            "median": some.quantile(some.many, 0.5) if some.many.size else None,
        },
        "targets": people,
        "guessed": 1.0 - none,
        "chance": tally.mean(np.where(tally.many > 0, 1.0 / np.maximum(tally.many, 1), 0.0)),
    }
    return Finding(
        attack=LinkOverlap.name,
        game=LinkOverlap.game,
        unit="user",
        success=mean,
        low=low,
        high=high,
        n=people,
        seconds=round(seconds, 3),
        median_user=tally.quantile(tally.hits, 0.5),
        worst_decile_user=tally.quantile(tally.hits, 0.9),
        details=details,
    )
