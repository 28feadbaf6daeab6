"""What of `km` one worker does with all entries: chance, the search for a better order, and small rests.

By chance or in a search, terms go and come back in an order in which no worker could know what another has
done. And where one worker has room for all that is left, it is done soonest. Only numbers are gathered, an
entry for each term of a history; the records stay where they are. What runs is the code of the local form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from querycloak.dictionary import fingerprint
from querycloak.engines.spark.km_shards import runs
from querycloak.errors import Refused
from querycloak.kernels import combos, siphash
from querycloak.keys import derive
from querycloak.log import IntArray
from querycloak.methods import targets
from querycloak.methods.deletion import Deletion, Entries, Outcome

_CHANCE: Final = 1
_SIGN: Final = np.uint64(1 << 63)
#: Entries that are gathered, at most, each of some 150 bytes.
MOST: Final = 50_000_000
#: Entries that stay; and, without a history, how many went by size of combination, and rounds under size 0.
_KIND: Final = "history long, rank int, size int, count long"


@dataclass(frozen=True)
class Rules:
    """How a worker deletes."""

    k: int
    m: int
    target: str
    search: bool
    key: bytes = field(repr=False)

    def has_values(self) -> bool:
        """Say whether a file tells what terms are worth."""
        return self.target in targets.MARKETING or self.target not in targets.TARGETS


@dataclass(frozen=True)
class Rest:
    """How a worker goes on from a stage: with a target whose mind changes, or without one by rank."""

    k: int
    m: int
    size: int
    target: str


@dataclass(frozen=True)
class _Resumed(Deletion):
    """A deletion of which some has been done: the first look is for terms that were touched before."""

    before: list[combos.Flags] = field(default_factory=list)

    def rest(self, entries: Entries, size: int) -> Outcome:
        """Delete to the fixpoint, from a stage on."""
        outcome = Outcome(np.ones(len(entries), np.bool_))
        left = np.arange(len(entries))
        for one in range(size, self.m + 1):
            left = self._stage(entries, left, one, outcome)
        return outcome

    def _sweep(
        self,
        entries: Entries,
        left: IntArray,
        rank: IntArray,
        size: int,
        touched: combos.Flags,
        outcome: Outcome,
    ) -> IntArray:
        touched = self.before.pop() if self.before else touched
        return super()._sweep(entries, left, rank, size, touched, outcome)


def check_size(entries: int) -> None:
    """Refuse more than one worker should hold."""
    if entries > MOST:
        raise Refused(
            f"`km` with `target=random` or `optimise=search` needs all {entries:,} terms of histories in one "
            f"place, and {MOST:,} is the most",
            hint="use another target and `optimise=greedy`, which need no such place, or one window a day",
        )


def run(entries: DataFrame, terms: DataFrame, marks: DataFrame, rules: Rules) -> DataFrame:
    """Delete from `window, history, person, rank, times`; give what is left and how much went.

    `terms` has `rank, tie, value`, and `marks` has a keyed number for each history.
    """
    known = entries.join(terms.select("rank", "tie", "value"), "rank").join(marks, "history")
    whole = known.repartition("window").sortWithinPartitions("window", "person", "history", "rank")
    names = ("window", "history", "person", "rank", "times", "tie", "value", "mark")
    return whole.select(*names).mapInArrow(partial(_work, rules=rules), _KIND)


def told(done: DataFrame) -> dict[int, int]:
    """Read how many entries went by which size, and the rounds under 0."""
    counted = done.filter("history is null").groupBy("size").agg(sf.sum("count").alias("count")).collect()
    return {int(row["size"]): int(row["count"]) for row in counted}


def marked(batches: Iterable[Any], key: bytes) -> Iterator[Any]:
    """Give each history the keyed number that its chances are drawn from, as the local form does."""
    for batch in batches:
        rows = pl.DataFrame(pl.from_arrow(batch))
        mark = fingerprint(rows["user"].to_list(), derive(key, "people"))
        for purpose, column in (("windows", "_window"), ("parts", "_part")):
            mark = mark ^ siphash.draw(derive(key, purpose), _CHANCE, rows[column].to_numpy())
        frame = rows.select("history", mark=pl.Series(mark.view(np.int64)))
        yield from frame.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches()


def finish(entries: DataFrame, rest: Rest) -> DataFrame:
    """Go on deleting from `history, person, rank, touched, tie` on one worker; give what `run` gives."""
    whole = entries.select("history", "person", "rank", "touched", "tie").repartition(1)
    return whole.sortWithinPartitions("person", "history").mapInArrow(partial(_finish, rest=rest), _KIND)


def _finish(batches: Iterable[Any], rest: Rest) -> Iterator[Any]:
    import pyarrow as pa

    if not (parts := list(batches)):
        return
    rows = pl.DataFrame(pl.from_arrow(pa.Table.from_batches(parts)))
    history, person = rows["history"].to_numpy(), rows["person"].to_numpy()
    ranks, first, term = np.unique(rows["rank"].to_numpy(), return_index=True, return_inverse=True)
    tie = rows["tie"].to_numpy()[first].view(np.uint64) ^ _SIGN
    nothing = np.zeros(term.size, np.int64)
    entries = Entries(_numbers(history), _numbers(person), term, nothing, tie, nothing.view(np.uint64))
    touched = rows["touched"].to_numpy()[first].astype(np.uint8)
    plain = Deletion(rest.k, rest.m, lambda now, _: [np.zeros(now.terms)])
    rules = targets.deletion(rest.target, rest.k, rest.m, entries, None) if rest.target else plain
    resumed = _Resumed(rest.k, rest.m, rules.worth, False, rules.looks, rules.changes, [touched])
    yield from _told(history, ranks[term], resumed.rest(entries, rest.size))


def _numbers(names: IntArray) -> IntArray:
    """Number runs of equal names, from nought."""
    return np.cumsum(np.diff(names, prepend=names[:1]) != 0)


def _work(batches: Iterable[Any], rules: Rules) -> Iterator[Any]:
    for _, table in runs(batches, "window"):
        yield from _window(pl.DataFrame(pl.from_arrow(table)), rules)


def _window(rows: pl.DataFrame, rules: Rules) -> Iterator[Any]:
    history, person = rows["history"].to_numpy(), rows["person"].to_numpy()
    ranks, first, term = np.unique(rows["rank"].to_numpy(), return_index=True, return_inverse=True)
    prints = rows["tie"].to_numpy().view(np.uint64) ^ _SIGN
    marks = rows["mark"].to_numpy().view(np.uint64) ^ prints
    entries = Entries(
        _numbers(history),
        _numbers(person),
        term,
        rows["times"].to_numpy(),
        prints[first],
        siphash.draw(derive(rules.key, "chance"), _CHANCE, marks.view(np.int64)),
    )
    target = rules.target if rules.target in targets.TARGETS else "file"
    values = rows["value"].to_numpy()[first] if rules.has_values() else None
    if rules.search:
        outcome, _ = targets.search(target, rules.k, rules.m, entries, values)
    else:
        outcome = targets.greedy(target, rules.k, rules.m, entries, values)
    yield from _told(history, ranks[term], outcome)


def _told(history: IntArray, rank: IntArray, outcome: Outcome) -> Iterator[Any]:
    """Write down what stays, how much went by size of combination, and in how many rounds."""
    kinds: Any = {"history": pl.Int64, "rank": pl.Int32, "size": pl.Int32, "count": pl.Int64}
    stays = {"history": history[outcome.alive], "rank": rank[outcome.alive]}
    counts = outcome.by_size | {0: outcome.rounds}
    for columns in (stays, {"size": list(counts), "count": list(counts.values())}):
        frame = pl.DataFrame(columns, schema_overrides={name: kinds[name] for name in columns})
        absent = [pl.lit(None, kind).alias(name) for name, kind in kinds.items() if name not in columns]
        table = frame.with_columns(absent).select(*kinds).to_arrow(compat_level=pl.CompatLevel.oldest())
        yield from table.to_batches(max_chunksize=1 << 16)
