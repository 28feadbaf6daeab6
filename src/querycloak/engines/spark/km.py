"""`km` on Spark: supports by joins, sweeps to the fixpoint, and the same release as on one machine.

No machine sees the whole log. A worker holds the histories of some terms at a time (see `km_sweeps`), the
driver a few counts. What stays in between is on the workers' disks, encrypted if the session is ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from typing import Any, Final

import polars as pl
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from querycloak.engines.pipeline import Stage
from querycloak.engines.request import Progress, check_columns, silent
from querycloak.engines.spark import km_gathered, km_histories
from querycloak.engines.spark.km_histories import People
from querycloak.engines.spark.km_sweeps import CHANGING, ROOM, Deletion, kept
from querycloak.errors import ParameterError
from querycloak.keys import derive
from querycloak.log import NO_TIME
from querycloak.methods import targets
from querycloak.methods.km import BOT, EMPTIED, Km

_SHOWN: Final = 20
_MOMENT: Final = "struct<seq: long, closing: boolean>"


@dataclass(frozen=True)
class Protected:
    """What a method without a key made of a log: the released rows, why others are not, and why so.

    `frame` has `row` and the log's columns as they may leave; the truth about each row (`original_row`,
    `original_user`, `released_after` and, for fresh labels, `original_label` and `label_user`); and what
    rows are ordered by: `_closing, _seq, _time, _tie, _head, row`.
    """

    frame: DataFrame
    dropped: dict[str, int] = field(default_factory=dict)
    explanation: dict[str, Any] = field(default_factory=dict)


def protect_km(
    log: DataFrame,
    settings: Km.Settings,
    key: bytes,
    *,
    release_key: bytes = bytes(32),
    progress: Progress = silent,
    room: int = ROOM,
) -> Protected:
    """Delete terms until every combination of at most m of a history is k people's.

    `log` has `row` (a number of its own for each row) and canonical columns; `time` is a timestamp or
    microseconds. `key` is the stage's. `release_key` decides the order of rows of one moment, and which
    searches come first where there are no times. `room` is how many entries a worker has in memory at a time.
    """
    check_columns([Stage(Km.name, settings)], log.columns)
    return _Run(log, settings, key, release_key, progress, room).protect()


#: Methods without a partition key that have a distributed form.
DISTRIBUTED: Final[dict[str, Callable[..., Protected]]] = {Km.name: protect_km}


#: What is left as `history, rank`; the terms; how much went by size of combination; and the rounds.
_Left = tuple[DataFrame, DataFrame, Counter[int], int]


class _Run:
    """One log on its way through `km`."""

    def __init__(
        self,
        log: DataFrame,
        settings: Km.Settings,
        key: bytes,
        release_key: bytes,
        progress: Progress,
        room: int,
    ) -> None:
        self._log, self._settings, self._key, self._release_key = log, settings, key, release_key
        self._progress, self._room = progress, room
        self._people = People(settings, release_key)
        self._explanation: dict[str, Any] = {}
        self._by_size: dict[str, int] = {}

    def protect(self) -> Protected:
        """Work all out but the last join, which is left to whoever asks for the rows."""
        placed = self._placed = kept(self._people.placed(self._log))
        windows = _windows(placed)
        self._check_people(placed, windows)
        bots = self._people.bots(placed)
        bots = None if bots is None else kept(bots)
        some_bots = bots is not None and not bots.isEmpty()
        held = (
            placed.join(bots, ["user", "_window"], "left_anti") if bots is not None and some_bots else placed
        )
        self._people.check_labels(held)
        searches = held.filter("_head = row")
        uses = self._thinned(kept(self._people.uses(searches)))
        queries = kept(_queries(uses))
        all_searches = sum(window.searches for window in windows)
        left = searches.count() if some_bots else all_searches
        dropped = {BOT: all_searches - left, EMPTIED: left - queries.count()}
        frame = self._released(held, queries, _moments(placed, windows))
        return Protected(frame, {why: count for why, count in dropped.items() if count}, self._explanation)

    def _check_people(self, placed: DataFrame, windows: list[_Span]) -> None:
        """Refuse a k that nothing in the log can meet, with the same words as on one machine."""
        k, people = self._settings.k, sum(window.people for window in windows)
        if not windows or people >= k:
            return
        searches = placed.filter("_head = row").filter(sf.col("_window") == windows[-1].number)
        by_term = self._people.uses(searches).groupBy("term").agg(sf.count_distinct("person").alias("people"))
        most = by_term.agg(sf.max("people").alias("most")).first()
        found = int(most["most"] or 0) if most else 0
        raise ParameterError(
            f"Km: `k` is {k}, but the log has only {people} users",
            hint=f"the largest k at which a term stays is {found}" if found > 1 else "",
        )

    def _thinned(self, uses: DataFrame) -> DataFrame:
        """Delete until what is shown is what was counted: a page that loses a word takes the others along."""
        while True:
            alive = self._alive(uses).withColumn("stays", sf.lit(True))
            marked = uses.join(alive, ["history", "term"], "left").na.fill(False, ["stays"])
            if not self._people.per_row:
                return kept(marked.filter("stays").drop("stays"))
            record = Window.partitionBy("head")
            has_query = sf.max(sf.col("stays") & ~sf.col("page")).over(record)
            torn = sf.max(sf.col("page") & ~sf.col("stays")).over(record)
            shown = sf.col("stays") & has_query & ~(sf.col("page") & torn)
            marked = kept(marked.withColumn("shown", shown))
            again = marked.filter("stays and not shown").limit(1).count()
            uses = marked.filter("shown").drop("stays", "shown")
            if not again:
                return uses

    def _alive(self, uses: DataFrame) -> DataFrame:
        """Delete once; give the `history, term` that are left."""
        s = self._settings
        entries = uses.groupBy("window", "history", "term").agg(
            sf.first("person").alias("person"), sf.count("head").alias("times")
        )
        entries = kept(entries)
        people = sf.count_distinct("person") if self._people.has_parts else sf.count("person")
        known = entries.groupBy("window", "term").agg(
            people.alias("people"), sf.sum("times").alias("often"), sf.count("person").alias("entries")
        )
        known = kept(known)
        rare, many, some = _counted(known, s.k)
        terms = kept(self._ranks(known.filter(sf.col("people") >= s.k)))
        ranked = entries.join(terms.select("window", "term", "rank"), ["window", "term"])
        work = self._gathered if s.target == "random" or s.optimise == "search" else self._swept
        left, terms, by_size, rounds = work(ranked, terms, many, some)
        alive = left.join(terms.select("rank", "window", "term", "tie"), "rank").drop("rank")
        if s.target == "users" and s.optimise == "greedy":
            alive = alive.unionByName(self._put_back(entries, alive))
        alive = kept(alive.select("history", "window", "term"))
        by_size[1] += rare
        self._explain(by_size, rounds, known, alive)
        return alive.drop("window")

    def _swept(self, ranked: DataFrame, terms: DataFrame, many: int, some: int) -> _Left:
        """Delete in shards, side by side."""
        s, several = self._settings, self._people.has_parts
        target = s.target if s.target in targets.TARGETS else "file"
        work = Deletion(s.k, s.m, target, terms, several=several, room=self._room, progress=self._progress)
        alive = work.run(ranked.select("history", "person", "rank"), many, some)
        return alive, work.terms, work.by_size, work.rounds

    def _gathered(self, ranked: DataFrame, terms: DataFrame, many: int, some: int) -> _Left:
        """Delete on one worker for each window, as the local form does."""
        s = self._settings
        km_gathered.check_size(many)
        rules = km_gathered.Rules(s.k, s.m, s.target, s.optimise == "search", self._key)
        owners = self._placed.filter("_history = row").select(
            sf.col("row").alias("history"), "user", "_window", "_part"
        )
        marks = owners.mapInArrow(partial(km_gathered.marked, key=self._key), "history long, mark long")
        done = kept(km_gathered.run(ranked, terms, marks, rules))
        by_size = Counter(km_gathered.told(done))
        rounds = by_size.pop(0, 0)
        return done.filter("history is not null").select("history", "rank"), terms, by_size, rounds

    def _ranks(self, known: DataFrame) -> DataFrame:
        """Number frequent terms from the one of greatest worth down; ties fall by a keyed number."""
        kind = "window long, term string, people long, often long, entries long, tie long, value double"
        work = partial(km_histories.valued, key=derive(self._key, "terms"), values=self._values())
        worth = sf.col("people" if self._settings.target == "users" else "often") * sf.col("value")
        if self._settings.target in CHANGING:
            worth = sf.lit(0.0)
        order = Window.orderBy(worth.desc(), "tie")
        return known.mapInArrow(work, kind).withColumn("rank", (sf.row_number().over(order) - 1).cast("int"))

    def _values(self) -> pl.DataFrame | None:
        """Read what a file says terms are worth, for a target that needs one."""
        s = self._settings
        if s.target in targets.TARGETS and s.target not in targets.MARKETING:
            return None
        path, target = (s.marketing, s.target) if s.target in targets.MARKETING else (s.target, "file")
        targets.read_values(path, target, pl.Series([], dtype=pl.String))  # says what is wrong with the file
        terms = pl.read_csv(path, infer_schema=False)["term"].drop_nulls().unique()
        return pl.DataFrame({"term": terms, "value": targets.read_values(path, target, terms)})

    def _put_back(self, entries: DataFrame, alive: DataFrame) -> DataFrame:
        """Give every empty history its most common term back: a single frequent term harms nobody."""
        owners = entries.select("history", "person").distinct()
        people = (
            alive.join(owners, "history")
            .groupBy("window", "term")
            .agg(sf.count_distinct("person").alias("people"), sf.first("tie").alias("tie"))
        )
        empty = entries.join(alive.select("history").distinct(), "history", "left_anti")
        choice = empty.join(people.filter(sf.col("people") >= self._settings.k), ["window", "term"])
        order = Window.partitionBy("history").orderBy(sf.col("people").desc(), "tie")
        best = choice.withColumn("place", sf.row_number().over(order)).filter("place = 1")
        return best.select("history", "window", "term", "tie")

    def _explain(self, by_size: Counter[int], rounds: int, known: DataFrame, alive: DataFrame) -> None:
        """Add up why terms went; a term is named only if k histories had it: then it names nobody."""
        for size, count in sorted(by_size.items()):
            self._by_size[str(size)] = self._by_size.get(str(size), 0) + count
        left = alive.groupBy("window", "term").agg(sf.count("history").alias("left"))
        frequent = known.filter(sf.col("people") >= self._settings.k)
        gone = frequent.join(left, ["window", "term"], "left").na.fill(0, ["left"])
        by_term = gone.groupBy("term").agg(sf.sum(sf.col("entries") - sf.col("left")).alias("gone"))
        top = by_term.filter("gone > 0").orderBy(sf.col("gone").desc(), "term").limit(_SHOWN).collect()
        most = Counter(self._explanation.get("most_often_deleted", {}))
        most.update({str(row["term"]): int(row["gone"]) for row in top})
        self._explanation = {
            "deleted_by_size_of_combination": self._by_size,
            "target": self._settings.as_dict()["target"],
            "rounds": self._explanation.get("rounds", 0) + rounds,
            "most_often_deleted": dict(most.most_common(_SHOWN)),
        }

    def _released(self, held: DataFrame, queries: DataFrame, moments: Column) -> DataFrame:
        """Put the release together: what may leave of each row, the truth about it, and its place."""
        rows = held.join(queries, "_head")
        rows = rows.withColumn("_seq", moments["seq"]).withColumn("_closing", moments["closing"])
        moment = sf.lit(None) if self._settings.time == "drop" else km_histories.coarsened(sf.col("_us"))
        rows = rows.withColumn("_time", sf.coalesce(moment.cast("long"), sf.lit(NO_TIME)))
        fresh = self._settings.labels == "fresh" and not self._people.has_parts
        work = partial(
            km_histories.shown,
            policy="parts" if self._people.has_parts else self._settings.labels,
            key=self._key,
            order_key=derive(self._release_key, "order"),
        )
        told = rows.mapInArrow(work, km_histories.with_columns(rows, _label="string", _tie="long"))
        shown = self._shown()
        log = [shown.get(name, sf.col(f"`{name}`")).alias(name) for name in self._log.columns]
        truth = {"original_row": "row", "original_user": "user", "released_after": "_seq"}
        truth |= {"original_label": "_label", "label_user": "user"} if fresh else {}
        order = ("_closing", "_seq", "_time", "_tie", "_head")
        return told.select(*log, *(sf.col(name).alias(new) for new, name in truth.items()), *order)

    def _shown(self) -> dict[str, Column]:
        """Give the columns that do not leave as they came."""
        kinds = dict(self._log.dtypes)
        hidden = [name for name in ("rank", "category", "url") if name in kinds]
        values: dict[str, Column] = {name: sf.lit(None).cast(kinds[name]) for name in hidden}
        if self._people.per_row and "url" in kinds:
            values["url"] = sf.when(sf.col("_page"), sf.col("url"))
        if "time" in kinds:
            moment = sf.when(sf.col("_time") != NO_TIME, sf.col("_time"))
            values["time"] = km_histories.as_time(self._log, moment)
        return values | {"query": sf.col("_query"), "user": sf.col("_label")}


def _counted(known: DataFrame, k: int) -> tuple[int, int, int]:
    """Count the entries of terms that too few people have, those of the others, and the others."""
    few, one = sf.col("people") < k, sf.lit(1)
    sums = [sf.sum(sf.when(few, sf.col("entries"))), sf.sum(sf.when(~few, sf.col("entries")))]
    found = known.agg(*sums, sf.sum(sf.when(~few, one))).first()
    rare, many, terms = (int(number or 0) for number in found) if found else (0, 0, 0)
    return rare, many, terms


@dataclass(frozen=True)
class _Span:
    """A window of the log: its number, how many rows, searches and people not met before, its first row."""

    number: int
    rows: int
    searches: int
    people: int
    first: int


def _windows(placed: DataFrame) -> list[_Span]:
    """Count what is in each window, from the earliest on."""
    counted = placed.groupBy("_window").agg(
        sf.count("row").alias("rows"),
        sf.sum((sf.col("_head") == sf.col("row")).cast("long")).alias("searches"),
        sf.sum((sf.col("_person") == sf.col("row")).cast("long")).alias("people"),
        sf.min(sf.struct("_us", "row")).alias("first"),
    )
    names = ("_window", "rows", "searches", "people", "first.row")
    return [_Span(*map(int, row)) for row in counted.select(*names).orderBy("_window").collect()]


def _moments(placed: DataFrame, windows: list[_Span]) -> Column:
    """Say after how many rows each window left: when the first search of the next one had been read."""
    sizes: dict[int, int] = {}
    if len(windows) > 1:
        firsts = placed.filter(sf.col("_head").isin([window.first for window in windows]))
        sizes = {int(row["_head"]): int(row["count"]) for row in firsts.groupBy("_head").count().collect()}
    moments: list[Column] = []
    read = 0
    for window, after in zip_longest(windows, windows[1:]):
        read += window.rows
        seq = read + (sizes[after.first] if after else 0)
        when = sf.struct(sf.lit(seq).cast("long").alias("seq"), sf.lit(after is None).alias("closing"))
        moments += [sf.lit(window.number).cast("long"), when]
    known = sf.create_map(*moments) if moments else sf.lit(None).cast(f"map<long, {_MOMENT}>")
    return known[sf.col("_window")]


def _queries(uses: DataFrame) -> DataFrame:
    """Write each search's query from its terms, and say whether its page is shown."""
    word = sf.when(~sf.col("page"), sf.struct("place", "term"))
    words = sf.array_sort(sf.collect_list(word))
    written = uses.groupBy(sf.col("head").alias("_head")).agg(
        words.alias("words"), sf.max("page").alias("_page")
    )
    return written.select("_head", sf.concat_ws(" ", "words.term").alias("_query"), "_page")
