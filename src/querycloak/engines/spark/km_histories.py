"""A log as the histories that `km` works on: searches, windows, parts, terms and labels, by Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import polars as pl
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from querycloak.dictionary import fingerprint
from querycloak.engines.replay import shuffled
from querycloak.errors import Refused
from querycloak.kernels import siphash
from querycloak.keys import derive
from querycloak.methods import histories
from querycloak.methods.km import Km
from querycloak.methods.labels import pseudonyms, tells_a_person
from querycloak.methods.times import HOUR

_ORDER: Final = 1
_MONDAY: Final = 3 * histories.DAY  # the first day of 1970 was a Thursday
_SIGN: Final = np.uint64(
    1 << 63
)  # with this bit turned over, unsigned numbers keep their order as signed ones
_EPOCH: Final = "timestamp_ntz'1970-01-01 00:00:00'"


@dataclass(frozen=True)
class People:
    """Turns rows into searches of people's histories, as the settings of `km` say."""

    settings: Km.Settings
    release_key: bytes

    @property
    def has_parts(self) -> bool:
        """Say whether a person may have several histories."""
        return self.settings.history != "all" or self.settings.window != "none"

    @property
    def per_row(self) -> bool:
        """Say whether each row is a search of its own."""
        return self.settings.urls == "terms"

    def placed(self, log: DataFrame) -> DataFrame:
        """Add to each row its moment, search, window, part, history and person.

        The person, the history and the search are each named by the least of their rows.
        """
        rows = log.withColumn("_us", microseconds(log))
        rows = rows.withColumn("_window", self._calendar(self.settings.window))
        rows = rows.withColumn("_head", self._head()).withColumn("_part", sf.lit(0).cast("long"))
        if self.settings.history != "all":
            rows = self._parts(rows)
        own = ("user", "_window", "_part") if self.has_parts else ("user",)
        return rows.withColumn("_history", _least("row", *own)).withColumn("_person", _least("row", "user"))

    def _head(self) -> Column:

        if self.per_row:
            return sf.col("row")
        return sf.when(sf.col("_us").isNull(), sf.col("row")).otherwise(_least("row", "user", "query", "_us"))

    def _calendar(self, span: str) -> Column:
        """Number days or weeks as `histories.calendar` does."""
        if span == "none":
            return sf.lit(0).cast("long")
        length, ahead = (histories.DAY, 0) if span == "day" else (histories.WEEK, _MONDAY)
        moved = sf.col("_us") + sf.lit(ahead)
        number = (moved - sf.pmod(moved, sf.lit(length))) / sf.lit(length)
        return sf.coalesce(sf.floor(number), sf.lit(histories.NEVER)).cast("long")

    def _parts(self, rows: DataFrame) -> DataFrame:

        how = self.settings.history
        if how in ("day", "week"):
            return rows.withColumn("_part", self._calendar(str(how)))
        if how == "session":
            return with_sessions(rows).withColumn("_part", sf.col("_session")).drop("_session")
        return self._turns(rows, int(how))

    def _turns(self, rows: DataFrame, several: int) -> DataFrame:
        """Number people's searches in the order of the replay, and put several of them into each part."""
        work = partial(_shuffle, key=self.release_key)
        rows = rows.mapInArrow(work, with_columns(rows, _shuffled="long"))
        place = sf.when(sf.col("_us").isNull(), sf.col("_shuffled")).otherwise(sf.col("row"))
        rows = rows.withColumn("_place", place)
        rows = rows.withColumn("_place", _least("_place", "user", "_window", "query", "_us"))
        order = Window.partitionBy("user", "_window").orderBy(sf.col("_us").asc_nulls_last(), "_place")
        turn = sf.dense_rank().over(order) - 1
        return rows.withColumn("_part", sf.floor(turn / sf.lit(several)).cast("long")).drop(
            "_shuffled", "_place"
        )

    def bots(self, placed: DataFrame) -> DataFrame | None:
        """Name the people, and their windows, with more searches in a session than people make."""
        if not self.settings.bots or "time" not in placed.columns:
            return None
        searches = placed.filter("_us is not null").select("user", "_window", "query", "_us").distinct()
        by_session = with_sessions(searches).groupBy("user", "_window", "_session").count()
        fast = by_session.filter(sf.col("count") > self.settings.bots)
        return fast.select("user", "_window").distinct()

    def uses(self, searches: DataFrame) -> DataFrame:
        """Split the queries of searches into terms, and their pages where those count."""
        names = ["_head", "_history", "_person", "_window", "query", *(["url"] if self.per_row else [])]
        kind = "head long, history long, person long, window long, page boolean, place int, term string"
        return searches.select(names).mapInArrow(_split, kind)

    def check_labels(self, placed: DataFrame) -> None:
        """Refuse to keep ids that are addresses."""
        if self.has_parts or self.settings.labels != "keep":
            return
        doubtful = placed.filter("_person = row").select("user").filter(sf.col("user").rlike("[@.:]"))
        if not doubtful.mapInArrow(_addresses, "found int").isEmpty():
            raise Refused(
                "the user ids look like e-mail or IP addresses, so they cannot be kept as labels",
                hint="use `-s labels=fresh` for new pseudonyms",
            )


def with_columns(rows: DataFrame, **kinds: str) -> StructType:
    """Give the columns of rows, and some more."""
    schema = StructType(list(rows.schema.fields))
    for name, kind in kinds.items():
        schema.add(name, kind)
    return schema


def microseconds(log: DataFrame) -> Column:
    """Give the moment of each row in microseconds since 1970, whatever type and zone its time has."""
    if "time" not in log.columns:
        return sf.lit(None).cast("long")
    kind = dict(log.dtypes)["time"]
    if kind == "timestamp":
        return sf.unix_micros("time")
    if kind == "timestamp_ntz":
        return sf.expr(f"timestampdiff(MICROSECOND, {_EPOCH}, time)")
    return sf.col("time").cast("long")


def as_time(log: DataFrame, moment: Column) -> Column:
    """Give microseconds in the type that times of the log have."""
    kind = dict(log.dtypes)["time"]
    if kind == "timestamp":
        return sf.timestamp_micros(moment)
    if kind == "timestamp_ntz":
        return sf.timestamp_add("MICROSECOND", moment, sf.expr(_EPOCH))
    return moment.cast(kind)


def coarsened(moment: Column) -> Column:
    """Cut moments to the hour."""
    return moment - sf.pmod(moment, sf.lit(HOUR))


def _least(column: str, *owners: str) -> Column:

    return sf.min(column).over(Window.partitionBy(*owners))


def with_sessions(rows: DataFrame) -> DataFrame:
    """Number the sessions of each person and window as `histories.sessions` does: no time comes first."""
    order = Window.partitionBy("user", "_window").orderBy(sf.col("_us").asc_nulls_first())
    before, first = sf.lag("_us").over(order), sf.row_number().over(order) == 1
    pause = sf.col("_us") - before > histories.PAUSE
    # what has no time is before 1970 there, and joins the first session after it
    new = (
        sf.when(first, False)
        .when(before.isNull(), sf.coalesce(sf.col("_us") < 0, sf.lit(False)))
        .otherwise(pause)
    )
    rows = rows.withColumn("_new", new.cast("long"))
    return rows.withColumn(
        "_session", sf.sum("_new").over(order.rowsBetween(Window.unboundedPreceding, 0))
    ).drop("_new")


def _frames(batches: Iterable[Any]) -> Iterator[pl.DataFrame]:
    for batch in batches:
        frame = pl.from_arrow(batch)
        assert isinstance(frame, pl.DataFrame)
        yield frame


def _out(frame: pl.DataFrame) -> Iterator[Any]:
    """Give a frame as batches of the plain types that Spark reads."""
    return iter(frame.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches(max_chunksize=1 << 16))


def _shuffle(batches: Iterable[Any], key: bytes) -> Iterator[Any]:
    for batch in batches:
        import pyarrow as pa

        yield batch.append_column("_shuffled", pa.array(shuffled(batch.column("row").to_numpy(), key)))


def _split(batches: Iterable[Any]) -> Iterator[Any]:
    for frame in _frames(batches):
        yield from _out(_terms(frame, "query", False))
        if "url" in frame.columns:
            yield from _out(_terms(frame, "url", True))


def _terms(frame: pl.DataFrame, column: str, page: bool) -> pl.DataFrame:
    lists = frame.select(
        head="_head",
        history="_history",
        person="_person",
        window="_window",
        page=pl.lit(page),
        term=histories.split(frame[column]),
    ).filter(pl.col("term").list.len() > 0)
    places = pl.int_ranges(pl.col("term").list.len(), dtype=pl.Int32)
    found = lists.with_columns(place=places).explode("place", "term")
    return found.select("head", "history", "person", "window", "page", "place", "term")


def _addresses(batches: Iterable[Any]) -> Iterator[Any]:
    for frame in _frames(batches):
        found = [1 for user in frame["user"].to_list() if tells_a_person(user)]
        yield from _out(pl.DataFrame({"found": pl.Series(found, dtype=pl.Int32)}))


def valued(batches: Iterable[Any], key: bytes, values: pl.DataFrame | None) -> Iterator[Any]:
    """Add the keyed number that decides between terms of equal worth, and what a file says one is worth."""
    for frame in _frames(batches):
        prints = fingerprint(frame["term"].to_list(), key) ^ _SIGN
        frame = frame.with_columns(tie=pl.Series(prints.view(np.int64)))  # noqa: PLW2901
        if values is None:
            yield from _out(frame.with_columns(value=pl.lit(1.0)))
        else:
            known = frame.join(values, on="term", how="left", maintain_order="left")
            yield from _out(known.with_columns(pl.col("value").fill_null(0.0)))


def shown(batches: Iterable[Any], policy: str, key: bytes, order_key: bytes) -> Iterator[Any]:
    """Add to released rows their labels, and the number that decides between rows of one moment."""
    import pyarrow as pa

    for batch in batches:
        labels = _labels(pl.DataFrame(pl.from_arrow(batch.select(["user", "_window", "_part"]))), policy, key)
        ties = siphash.draw(order_key, _ORDER, batch.column("_head").to_numpy()) ^ _SIGN
        labelled = batch.append_column("_label", labels.to_arrow().cast(pa.string()))
        yield labelled.append_column("_tie", pa.array(ties.view(np.int64)))


def _labels(rows: pl.DataFrame, policy: str, key: bytes) -> pl.Series:
    """Spell out the labels of rows: people's own, fresh ones, or one for each part of a history."""
    if policy == "keep":
        return rows["user"]
    own = ["user", "_window", "_part"] if policy == "parts" else ["user"]
    some = rows.select(own).unique()
    names = ["\0".join(map(str, one)) for one in some.iter_rows()]
    purpose = "labels of parts" if policy == "parts" else "labels"
    labels = some.with_columns(label=pl.Series(pseudonyms(names, derive(key, purpose)), dtype=pl.String))
    return rows.join(labels, on=own, how="left", maintain_order="left")["label"]
