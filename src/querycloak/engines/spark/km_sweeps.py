"""The sweeps of `km` over DataFrames: term after term is deleted until no combination is too seldom.

One sweep of the local form goes through leading terms one after the other. Here ranks are cut into shards
that are worked out side by side. A shard depends on earlier ones only, so it is worked out again when what
it was told has changed, until nothing changes: then every shard knew what the local form would have known.
After as many rounds as there are shards that is so at the latest; as a rule it takes a few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from querycloak.engines.request import Progress, silent
from querycloak.engines.spark import km_gathered, km_shards
from querycloak.engines.spark.km_shards import FOUND, SENT, Sweep

#: Entries of histories that a worker has in memory at a time; each takes some 150 bytes.
ROOM: Final = 1 << 21
#: Entries from which the beginnings of shards are chosen.
_SAMPLE: Final = 1 << 22
#: Up to so many terms are sent to every worker; more are joined by shuffling.
_FEW_TERMS: Final = 1 << 20
#: Parts of the work for each core.
_PARTS_A_CORE: Final = 4
#: Histories that are sent to a worker together, and Spark's name for that.
_BATCH: Final = 2048
_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
#: Targets whose order of terms changes with what is left.
CHANGING: Final = ("distinct", "fis")


def kept(frame: DataFrame) -> DataFrame:
    """Work a DataFrame out now, into the checkpoint folder or onto the workers' disks, and forget how."""
    if frame.sparkSession.sparkContext.getCheckpointDir() is not None:
        return frame.checkpoint()
    return frame.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)


def rest(condition: Any, frame: DataFrame) -> DataFrame:
    """Send a small DataFrame to every worker instead of shuffling what it is joined with."""
    return sf.broadcast(frame) if condition else frame


@contextmanager
def _small_batches(spark: SparkSession) -> Iterator[None]:
    """Send lists to workers in small batches: Spark measures all of a batch anew for each row of it."""
    before = spark.conf.get(_ROWS)
    spark.conf.set(_ROWS, str(_BATCH))
    try:
        yield
    finally:
        spark.conf.set(_ROWS, str(before))


@dataclass
class Deletion:
    """Deletes from histories: rows of `history, person, items`, as `km_shards` describes them.

    `terms` has `rank, tie` and, for a target that changes its mind, what its worth is computed from.
    """

    k: int
    m: int
    target: str
    terms: DataFrame
    several: bool  # whether a person may have several histories
    room: int = ROOM
    progress: Progress = silent
    by_size: Counter[int] = field(default_factory=Counter)
    rounds: int = 0

    def run(self, entries: DataFrame, many: int, terms: int) -> DataFrame:
        """Delete from `history, person, rank`, so many of so many terms; give the `history, rank` left."""
        self._few, self._entries = terms <= _FEW_TERMS, many
        with _small_batches(entries.sparkSession):
            return self._to_the_end(entries)

    def _to_the_end(self, entries: DataFrame) -> DataFrame:
        left = kept(_histories(entries.withColumn("touched", sf.lit(True))))
        for size in range(2, self.m + 1):
            left = self._stage(left, size)
            if "items" not in left.columns:  # one worker had room for the rest
                return left
        alive = left.select("history", sf.explode("items").alias("item"))
        return alive.select("history", sf.shiftright("item", 1).alias("rank"))

    def _stage(self, left: DataFrame, size: int) -> DataFrame:
        """Break up combinations of at most so many terms until there are none to break."""
        left = left.withColumn("items", sf.transform("items", lambda item: item.bitwiseOR(sf.lit(1))))
        while True:
            if self._entries <= self.room:
                return self._finish(left, size)
            if self.target in CHANGING:
                left = self._ranked(left, size)
            gone = self._sweep(left, size)
            self.rounds += 1
            self.by_size.update(dict.fromkeys(range(2, size + 1), 0))
            self.progress("km", self.rounds, None)
            counted = gone.select(sf.explode("size").alias("size")).groupBy("size").count().collect()
            if not counted:
                return left
            self._gone({int(row["size"]): int(row["count"]) for row in counted})
            left = self._without(left, gone)

    def _finish(self, left: DataFrame, size: int) -> DataFrame:
        """Have one worker do all that is left to do, since it has room for all that is left."""
        tie = "tie" if self.target in CHANGING else sf.col("rank").cast("long").alias("tie")
        terms = self.terms.select("rank", tie)
        rules = km_gathered.Rest(self.k, self.m, size, self.target if self.target in CHANGING else "")
        done = kept(km_gathered.finish(_entries(left).join(terms, "rank"), rules))
        counted = km_gathered.told(done)
        self.rounds += counted.pop(0, 0)
        self.by_size.update(counted)
        return done.filter("history is not null").select("history", "rank")

    def _gone(self, by_size: dict[int, int]) -> None:
        self.by_size.update(by_size)
        self._entries -= sum(by_size.values())

    def _without(self, left: DataFrame, gone: DataFrame) -> DataFrame:
        """Take out what was deleted, and then terms that too few people are left with."""
        by_history = gone.groupBy("history").agg(sf.flatten(sf.collect_list("item")).alias("gone"))
        ranks = sf.transform("items", lambda item: sf.shiftright(item, 1))
        stays = sf.array_except(ranks, sf.coalesce("gone", sf.array().cast("array<int>")))
        entries = left.join(by_history, "history", "left").select(
            "history", "person", sf.explode(stays).alias("rank")
        )
        touched = gone.select(sf.explode("item").alias("rank")).distinct().withColumn("touched", sf.lit(True))
        terms = kept(self._supports(entries).join(touched, "rank", "left").na.fill(False, ["touched"]))
        rare = terms.filter(sf.col("people") < self.k).agg(sf.sum("entries")).first()
        self._gone({1: int(rare[0] or 0) if rare else 0})
        enough = terms.filter(sf.col("people") >= self.k).select("rank", "touched")
        return kept(_histories(entries.join(rest(self._few, enough), "rank")))

    def _supports(self, entries: DataFrame) -> DataFrame:
        """Count the people and the histories of each term."""
        people = sf.count_distinct("person") if self.several else sf.count("person")
        return entries.groupBy("rank").agg(people.alias("people"), sf.count("person").alias("entries"))

    def _ranked(self, left: DataFrame, size: int) -> DataFrame:
        """Give terms new ranks, by what they are worth now."""
        entries = _entries(left)
        terms = self.terms.drop("people").join(self._supports(entries).drop("entries"), "rank")
        if self.target == "fis":
            terms = terms.join(self._frequent(left, size), "rank", "left").na.fill(0)
        order = Window.orderBy(*(worth.desc() for worth in self._worth(size)), "tie")
        ranked = kept(terms.withColumn("new", (sf.row_number().over(order) - 1).cast("int")))
        self.terms = ranked.drop("rank", "2", "3", "4").withColumnRenamed("new", "rank")
        renamed = entries.join(rest(self._few, ranked.select("rank", "new")), "rank")
        return kept(_histories(renamed.drop("rank").withColumnRenamed("new", "rank")))

    def _worth(self, size: int) -> list[Column]:
        """Say what decides which terms go last: the first decides, the next ones break its ties."""
        if self.target == "fis":
            return [*(sf.col(str(one)) for one in range(size, 1, -1)), sf.col("people")]
        return [sf.lit(1.0) / (sf.greatest(sf.col("people") - self.k, sf.lit(0)) + sf.lit(1.0))]

    def _frequent(self, left: DataFrame, size: int) -> DataFrame:
        """Count the frequent combinations that hold each term, by their size."""
        marked = left.withColumn("items", sf.transform("items", lambda item: item.bitwiseOR(sf.lit(1))))
        sweep = self._cut(marked, size)
        seen = self._sent(marked, sweep).mapInArrow(
            partial(km_shards.look, sweep=sweep), "size int, rank long, count long"
        )
        sizes: list[Any] = list(range(2, size + 1))
        return (
            seen.groupBy(sf.col("rank").cast("int").alias("rank"))
            .pivot("size", sizes)
            .sum("count")
            .na.fill(0)
        )

    def _cut(self, left: DataFrame, size: int) -> Sweep:
        """Choose shards of about as much as a worker has room for, from all histories or from some."""
        share = min(1.0, _SAMPLE / max(self._entries, 1))
        some = (
            left
            if share == 1.0
            else left.filter(sf.pmod(sf.xxhash64("history"), sf.lit(1 << 20)) < share * (1 << 20))
        )
        begins: list[Any] = []
        if self._entries > self.room:
            found = some.select("items").repartition(1)
            begins = found.mapInArrow(partial(km_shards.cut, room=self.room * share), "begin long").collect()
        ranks = tuple(sorted(int(row["begin"]) for row in begins))
        return Sweep(self.k, size, ranks, frozenset(range(len(ranks) + 1)))

    def _sent(self, known: DataFrame, sweep: Sweep) -> DataFrame:
        """Send histories, with what is known of their entries, to the shards that are to be worked out."""
        for name in ("gone", "first", "second"):
            if name not in known.columns:
                known = known.withColumn(name, sf.lit(None).cast("array<int>"))
        cores = known.sparkSession.sparkContext.defaultParallelism
        parts = max(1, min(len(sweep.todo), _PARTS_A_CORE * cores))
        sent = known.mapInArrow(partial(km_shards.spread, sweep=sweep), SENT)
        return sent.repartition(parts, "shard").sortWithinPartitions("shard", "person", "history")

    def _sweep(self, left: DataFrame, size: int) -> DataFrame:
        """Look once at all combinations of touched terms; give what that deletes from which history."""
        every = sweep = self._cut(left, size)
        found: DataFrame | None = None
        while True:
            known = left if found is None else left.join(_by_history(found), "history", "left")
            fresh = self._sent(known, sweep).mapInArrow(partial(km_shards.work, sweep=sweep), FOUND)
            again = sf.col("shard").isin(list(sweep.todo))
            before, found = found, kept(fresh if found is None else found.filter(~again).unionByName(fresh))
            if not every.begins:
                return found
            old = found.limit(0) if before is None else before.filter(again)
            todo = _behind(left, _changed(old, found.filter(again), size), every)
            if not todo:
                return found
            sweep = replace(every, todo=todo)


def _histories(entries: DataFrame) -> DataFrame:
    """Put `history, person, rank, touched` together, terms by rank."""
    item = (sf.col("rank").cast("int") * 2 + sf.col("touched").cast("int")).cast("int")
    items = sf.sort_array(sf.collect_list(item)).alias("items")
    return entries.groupBy("history").agg(sf.first("person").alias("person"), items)


def _entries(left: DataFrame) -> DataFrame:
    """Take histories apart, into `history, person, rank, touched`."""
    return left.select("history", "person", sf.explode("items").alias("item")).select(
        "history",
        "person",
        sf.shiftright("item", 1).alias("rank"),
        (sf.col("item").bitwiseAND(sf.lit(1)) == 1).alias("touched"),
    )


def _by_history(found: DataFrame) -> DataFrame:

    parts = {"item": "gone", "first": "first", "second": "second"}
    told = found.groupBy("history").agg(sf.collect_list(sf.struct(*parts)).alias("told"))
    return told.select(
        "history", *(sf.flatten(sf.col(f"told.{name}")).alias(new) for name, new in parts.items())
    )


def _changed(old: DataFrame, new: DataFrame, size: int) -> DataFrame:
    """Name the histories of which shards now say something else, with the first of those shards.

    A pair only asks whether an entry is there; a triple also by which first term it went, and so on.
    """
    told = ["item", "first", "second"][: size - 1]
    both = old.select("shard", "history", sf.struct(*told).alias("old")).join(
        new.select("shard", "history", sf.struct(*told).alias("new")), ["shard", "history"], "full"
    )
    differ = both.filter(~sf.col("old").eqNullSafe(sf.col("new")))
    return differ.groupBy("history").agg(sf.min("shard").alias("changed"))


def _behind(left: DataFrame, changed: DataFrame, every: Sweep) -> frozenset[int]:
    """Find the shards that a change is news to."""
    moved = left.join(changed, "history").select("items", "changed")
    found = moved.mapInArrow(partial(km_shards.reached, sweep=every), "shard int").distinct().collect()
    return frozenset(int(row["shard"]) for row in found)
