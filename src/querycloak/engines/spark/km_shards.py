"""What workers do in a sweep of `km`: histories go to the shards that need them, and shards are worked out.

A shard is a stretch of ranks. It gets every history that holds one of its terms, up to the last of them: what
becomes of these terms depends on nothing else. A history is a list of numbers that rise, each `2 * rank`, or
`2 * rank + 1` where the term is touched: only combinations with such a term are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from querycloak.kernels import combo_shards
from querycloak.log import IntArray

if TYPE_CHECKING:
    import pyarrow as pa

#: Stands for "was not deleted" where numbers have 32 bits.
STAYS: Final = np.iinfo(np.int32).max
#: Entries that are sent on together.
_AT_ONCE: Final = 1 << 20
#: What a history looks like, on its way to a shard, and what a shard says of one.
SENT: Final = "shard int, history long, person long, items array<int>, first array<int>, second array<int>"
FOUND: Final = (
    "shard int, history long, item array<int>, first array<int>, second array<int>, size array<int>"
)


@dataclass(frozen=True)
class Sweep:
    """What all workers know: the rules, where shards begin, and which of them are to be worked out."""

    k: int
    size: int
    begins: tuple[int, ...]
    todo: frozenset[int]


@dataclass(frozen=True)
class Lists:
    """Lists of numbers, one after the other: the i-th is `values[starts[i]:starts[i + 1]]`."""

    starts: IntArray
    values: IntArray

    @classmethod
    def of(cls, column: pa.Array) -> Lists:
        """Read a column of lists; nothing counts as an empty one."""
        sizes = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        values = column.flatten().to_numpy(zero_copy_only=False)
        return cls(_starts(sizes), values.astype(np.int64))

    @property
    def owner(self) -> IntArray:
        """Say which list each value belongs to."""
        return np.repeat(np.arange(self.starts.size - 1), np.diff(self.starts))

    def arrow(self) -> pa.Array:
        """Give the lists as a column, with numbers of 32 bits."""
        import pyarrow as pa

        return pa.ListArray.from_arrays(self.starts.astype(np.int32), pa.array(self.values.astype(np.int32)))


def _starts(sizes: npt.NDArray[Any]) -> IntArray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def cut(batches: Iterable[pa.RecordBatch], room: float) -> Iterator[pa.RecordBatch]:
    """Choose where shards begin, from histories that are all in one place."""
    import pyarrow as pa

    parts = [Lists.of(batch.column("items")) for batch in batches]
    values = np.concatenate([np.empty(0, np.int64), *(part.values for part in parts)])
    sizes = np.concatenate([np.empty(0, np.int64), *(np.diff(part.starts) for part in parts)])
    found = combo_shards.cuts(_starts(sizes), values >> 1, (values & 1).astype(np.bool_), room)
    yield pa.RecordBatch.from_pydict({"begin": pa.array(found, pa.int64())})


def spread(batches: Iterable[pa.RecordBatch], sweep: Sweep) -> Iterator[pa.RecordBatch]:
    """Send each history to every shard that has one of its terms, cut off behind the last of them."""
    for batch in batches:
        items = Lists.of(batch.column("items"))
        shards = _shard_of(items.values, sweep)
        ahead, last, shard = _stops(items, shards, sweep)
        entries = (items.values, shards, *_known(batch, items))
        length = last - items.starts[ahead] + 1
        piece = np.cumsum(length) // _AT_ONCE
        for part in np.split(np.arange(length.size), np.flatnonzero(np.diff(piece)) + 1):
            if part.size:
                yield _sent(batch, items.starts, (ahead[part], last[part], shard[part]), entries, sweep)


def _stops(items: Lists, shard: IntArray, sweep: Sweep) -> tuple[IntArray, IntArray, IntArray]:
    """Find the last entry of each history in each shard, but for shards that nothing touched would go to."""
    owner = items.owner
    ends = np.ones(owner.size, np.bool_)
    ends[:-1] = (owner[1:] != owner[:-1]) | (shard[1:] != shard[:-1])
    met = np.cumsum(items.values & 1)
    before = np.concatenate([[0], met])[items.starts[:-1]]
    last = np.flatnonzero(ends & (met > before[owner]) & np.isin(shard, list(sweep.todo)))
    return owner[last], last, shard[last]


def _shard_of(values: IntArray, sweep: Sweep) -> IntArray:
    found: IntArray = np.searchsorted(np.asarray(sweep.begins, np.int64), values >> 1, side="right")
    return found


def _known(batch: pa.RecordBatch, items: Lists) -> tuple[IntArray, IntArray]:
    """Say for each entry when it went, as far as shards have told."""
    first, second = (np.full(items.values.size, value, np.int64) for value in (STAYS, combo_shards.NONE))
    gone = Lists.of(batch.column("gone"))
    if gone.values.size:
        wide = 1 + max(int(items.values.max()) >> 1, int(gone.values.max()))
        place = np.searchsorted(items.owner * wide + (items.values >> 1), gone.owner * wide + gone.values)
        first[place] = Lists.of(batch.column("first")).values
        second[place] = Lists.of(batch.column("second")).values
    return first, second


def _sent(
    batch: pa.RecordBatch,
    starts: IntArray,
    stops: tuple[IntArray, IntArray, IntArray],
    entries: tuple[IntArray, IntArray, IntArray, IntArray],
    sweep: Sweep,
) -> pa.RecordBatch:
    """Copy the beginnings of histories, up to a shard's last term, with what is known of their entries."""
    import pyarrow as pa

    owner, last, shard = stops
    sizes = last - starts[owner] + 1
    place = np.arange(int(sizes.sum())) + np.repeat(starts[owner] - _starts(sizes)[:-1], sizes)
    values, shards, first, second = entries
    spans = _starts(sizes)
    if sweep.size == 2:  # a pair need only know that an entry before its shard is there
        kept = (first[place] == STAYS) | (shards[place] == np.repeat(shard, sizes))
        spans, place = np.concatenate([[0], np.cumsum(kept)])[spans], place[kept]
        told = [Lists(np.zeros_like(spans), place[:0]).arrow()] * 2
    else:
        told = [Lists(spans, part[place]).arrow() for part in (first, second)]
    people = [batch.column(name).take(pa.array(owner)) for name in ("history", "person")]
    return pa.RecordBatch.from_arrays(
        [pa.array(shard.astype(np.int32)), *people, Lists(spans, values[place]).arrow(), *told],
        names=["shard", "history", "person", "items", "first", "second"],
    )


def reached(batches: Iterable[pa.RecordBatch], sweep: Sweep) -> Iterator[pa.RecordBatch]:
    """Name the shards behind a change: the histories that changed, each with the first shard that did."""
    import pyarrow as pa

    found: set[int] = set()
    for batch in batches:
        items = Lists.of(batch.column("items"))
        ahead, _, shard = _stops(items, _shard_of(items.values, sweep), sweep)
        changed = batch.column("changed").to_numpy(zero_copy_only=False)
        found |= set(shard[shard > changed[ahead]].tolist())
    yield pa.RecordBatch.from_pydict({"shard": pa.array(sorted(found), pa.int32())})


def work(batches: Iterable[pa.RecordBatch], sweep: Sweep) -> Iterator[pa.RecordBatch]:
    """Work out the shards of a Spark partition, one after the other."""
    for shard, table in runs(batches, "shard"):
        yield from _settled(shard, table, sweep)


def look(batches: Iterable[pa.RecordBatch], sweep: Sweep) -> Iterator[pa.RecordBatch]:
    """Count by term the combinations of each size that are frequent, and delete nothing."""
    import pyarrow as pa

    for shard, table in runs(batches, "shard"):
        seen, *_ = _swept(shard, table, sweep, only_look=True)
        for size in range(2, sweep.size + 1):
            some = np.flatnonzero(seen.frequent[size])
            counted = {"rank": seen.names[some], "count": seen.frequent[size][some]}
            columns = {name: pa.array(values, pa.int64()) for name, values in counted.items()}
            sizes = pa.array(np.full(some.size, size), pa.int32())
            yield pa.RecordBatch.from_pydict({"size": sizes, **columns})


def runs(batches: Iterable[pa.RecordBatch], column: str) -> Iterator[tuple[int, pa.Table]]:
    """Put together the rows of each number of a column: they come by it, and one is in memory at a time."""
    import pyarrow as pa

    held: list[pa.RecordBatch] = []
    current = None
    for batch in batches:
        number = batch.column(column).to_numpy()
        turns = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), number.size]
        for begin, end in pairwise(turns):
            if begin == end:
                continue
            if held and current is not None and int(number[begin]) != current:
                yield current, pa.Table.from_batches(held)
                held = []
            current = int(number[begin])
            held.append(batch.slice(begin, end - begin))
    if held and current is not None:
        yield current, pa.Table.from_batches(held)


def _swept(
    shard: int, table: pa.Table, sweep: Sweep, only_look: bool = False
) -> tuple[combo_shards.Gone, Lists, IntArray]:
    items, first, second = (
        Lists.of(table.column(name).combine_chunks()) for name in ("items", "first", "second")
    )
    rank = items.values >> 1
    targets = sweep.begins[shard - 1] if shard else 0
    person = np.repeat(table.column("person").to_numpy(), np.diff(items.starts))
    touched = np.flatnonzero(np.bincount(items.values)[1::2])
    gone = (np.where(first.values == STAYS, combo_shards.NEVER, first.values), second.values)
    if sweep.size == 2:  # what is gone was not sent
        gone = np.full(rank.size, combo_shards.NEVER), np.full(rank.size, combo_shards.NONE)
    done = combo_shards.sweep(
        items.starts, rank, person, targets, sweep.k, sweep.size, touched, gone, only_look=only_look
    )
    return done, items, np.flatnonzero((done.size > 0) & (rank >= targets))


def _settled(shard: int, table: pa.Table, sweep: Sweep) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    done, items, gone = _swept(shard, table, sweep)
    some, sizes = np.unique(items.owner[gone], return_counts=True)
    starts = _starts(sizes)
    for begin in range(0, some.size, 1 << 16):
        rows = some[begin : begin + (1 << 16)]
        span = slice(int(starts[begin]), int(starts[begin + rows.size]))
        own = starts[begin : begin + rows.size + 1] - span.start
        told = (items.values >> 1, done.first, done.second, done.size)
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(np.full(rows.size, shard, np.int32)),
                table.column("history").take(pa.array(rows)).combine_chunks(),
                *(Lists(own, values[gone[span]]).arrow() for values in told),
            ],
            names=["shard", "history", "item", "first", "second", "size"],
        )
