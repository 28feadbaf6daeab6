"""What workers get: the plan of a run, and rows: Arrow to polars and back, packed by lane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from querycloak.dictionary import Dictionaries
from querycloak.engines import state_codec
from querycloak.engines.codec import encode_column
from querycloak.engines.pipeline import Pipeline, Stage
from querycloak.engines.source_state import Stored, load_state
from querycloak.engines.time_order import in_order, shuffled
from querycloak.errors import DataError
from querycloak.kernels import siphash
from querycloak.keys import derive
from querycloak.log import CANONICAL, COLUMN_BIT, Batch, IntArray

#: Rows that are worked on together; a worker's memory is this and what its method holds.
PIECE: Final = 1 << 18
#: What Spark sees of records between its operators: where they go, and their bytes.
PACKED: Final = "lane int, payload binary"
#: Bytes of rows that are packed into one value, at most: Spark's own limit is 2 GB.
PAYLOAD: Final = 1 << 26
#: No row has a time so late: those without one come last.
NEVER: Final = int(np.iinfo(np.int64).max)
_MIX, _ID_LOW, _ID_HIGH = range(1, 4)


@dataclass(frozen=True)
class Plan:
    """What all workers need: the methods, the key of the release, and the log's columns and size."""

    stages: tuple[Stage, ...]
    key: bytes = field(repr=False)
    columns: tuple[str, ...]
    rows: int
    parts: int
    stored: tuple[Stored, ...] = field(default=(), repr=False)

    def whole(self, texts: Dictionaries | None = None) -> Pipeline:
        """Build all methods, as one machine would."""
        return Pipeline(list(self.stages), self.key, texts or Dictionaries())

    def opened(self) -> Pipeline:
        """Build all methods with the stored state of earlier releases."""
        whole = self.whole()
        for method, stored in zip(whole, self.stored, strict=bool(self.stored)):
            load_state(method, stored)
        return whole

    def is_last(self, place: int) -> bool:
        """Whether no method comes after this one."""
        return place == len(self.stages) - 1

    def rewritten(self, place: int) -> list[str]:
        """Return the log's columns that methods up to this one changed."""
        traits = [stage.traits for stage in self.stages[: place + 1]]
        changed = frozenset[str]().union(*(one.rewrites | one.empties for one in traits))
        return [name for name in self.columns if name in changed]

    def table_columns(self) -> list[str]:
        """Return the columns of the table that the last method writes."""
        whole = self.whole()
        whole.close()
        return whole.counts().columns


def lane_of(key: IntArray | None, parts: int) -> IntArray:
    """Return the lane (the number of a worker) of each key."""
    assert key is not None
    return np.asarray(key % parts, np.int32)


def frames(batches: Iterable[Any], rows: int = PIECE) -> Iterator[pl.DataFrame]:
    """Yield Arrow batches as frames of about this many rows."""
    some: list[Any] = []
    size = 0
    for batch in batches:
        some.append(batch)
        size += batch.num_rows
        if size >= rows:
            yield pl.DataFrame(pa.Table.from_batches(some))
            some, size = [], 0
    if size:
        yield pl.DataFrame(pa.Table.from_batches(some))


def batches(frame: pl.DataFrame, schema: StructType) -> Iterator[Any]:
    """Yield a frame as Arrow batches of Spark's types; a missing column is null."""
    wanted = to_arrow_schema(schema, timezone="UTC")
    absent = [pl.lit(None).alias(name) for name in wanted.names if name not in frame.columns]
    table = frame.with_columns(absent).select(wanted.names).to_arrow(compat_level=pl.CompatLevel.oldest())
    yield from table.cast(wanted).to_batches(max_chunksize=1 << 16)


@cache
def plan_traits(plan: Plan) -> tuple[bool, frozenset[str]]:
    """Return whether the unit is a row, and the emptied columns; computed once per worker."""
    whole = plan.whole()
    return whole.per_row, whole.empties


def pack(rows: pl.DataFrame) -> bytes:
    """Write rows as bytes, smaller than Spark's own form of them."""
    return state_codec.dump({"rows": rows.rechunk()})


def unpack(data: bytes) -> pl.DataFrame:
    """Read what `pack` wrote."""
    rows: pl.DataFrame = state_codec.load(data)["rows"]
    return rows


def with_times(frame: pl.DataFrame) -> pl.DataFrame:
    """Read times as microseconds, so that Spark's time zone has no influence."""
    times = [pl.col("time").cast(pl.Datetime("us", "UTC"))] if "time" in frame.columns else []
    return frame.with_columns(times)


def coded(rows: pl.DataFrame, names: Iterable[str], texts: Dictionaries, **numbers: IntArray) -> Batch:
    """Return the named columns that rows have as integers, beside columns of numbers, in the given order."""
    known = set(names) & set(rows.columns) & set(CANONICAL)
    columns = {name: encode_column(rows[name], name, texts) for name in sorted(known)}
    return Batch.of(columns | numbers, texts)


def put_in_lanes(plan: Plan, source: Iterable[Any]) -> Iterator[Any]:
    """Route each row of a Spark partition to its lane; pack the rows of a lane together.

    The partition has all rows of its searches. The lane is the search's, not the row's: a click may have
    another category than the search that it belongs to.
    """
    method = plan.stages[0].build(plan.key, 0, texts := Dictionaries())
    per_row, _ = plan_traits(plan)
    columns = plan.stages[0].traits.reads | {"category", "time"}
    for frame in frames(source) if per_row else frames(source, rows=1 << 62):
        if frame["row"].null_count():  # all draws depend on it
            raise DataError("a record of the stream has no number in its column `row`")
        rows = carried(with_times(frame), plan.key, per_row)
        batch = coded(rows, columns, texts, row=rows["_row"].to_numpy())
        lane = lane_of(method.partition_key(batch), plan.parts)
        if not per_row:
            row, order = rows["_row"].to_numpy(), np.argsort(rows["_row"].to_numpy())
            lane = lane[order[np.searchsorted(row, rows["_head"].to_numpy(), sorter=order)]]
        yield from (in_arrow([part]) for part in lanes_apart(rows, lane))


def carried(frame: pl.DataFrame, key: bytes, per_row: bool) -> pl.DataFrame:
    """Add what rows carry: number, search, time (`_which` orders those of one time) and cells to empty."""
    placed = in_order(frame, key)
    row, when = placed["row"].to_numpy(), placed["_when"].to_numpy()
    head = row if per_row else _heads(placed, key)
    which = np.where(when == NEVER, shuffled(row, key), row)
    added = {"_row": row, "_head": head, "_when": when, "_which": which, "_blank": np.zeros_like(row)}
    names = [name for name in frame.columns if name != "row"]
    return frame.select(names).with_columns(pl.Series(name, column) for name, column in added.items())


def _heads(placed: pl.DataFrame, key: bytes) -> IntArray:
    """Return the first row of each search. Bad rows are dropped later, so no good row may belong to one."""
    if "_bad" not in placed.columns or placed["_bad"].null_count() == placed.height:
        return placed["_head"].to_numpy()
    good = placed["_bad"].is_null()
    head = placed["row"].to_numpy().copy()
    head[good.to_numpy()] = in_order(placed.filter(good), key)["_head"].to_numpy()
    return head


def in_arrow(parts: Sequence[tuple[int, bytes]]) -> Any:
    """Return packed rows of lanes in Spark's form (`PACKED`)."""
    columns = {"lane": pa.int32(), "payload": pa.binary()}
    rows = [dict(zip(columns, part, strict=True)) for part in parts]
    return pa.RecordBatch.from_pylist(rows, pa.schema(columns))


def lanes_apart(rows: pl.DataFrame, lane: IntArray) -> list[tuple[int, bytes]]:
    """Pack the rows of each lane, in pieces of a bounded size."""
    together = rows.with_columns(pl.Series("_lane", lane, pl.Int32))
    parts = together.partition_by("_lane", as_dict=True, include_key=False, maintain_order=True)
    ordered = sorted(parts.items())
    return [(int(number), pack(piece)) for (number,), part in ordered for piece in _pieces(part)]


def _pieces(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Cut rows so that none of the pieces is larger than a value may be."""
    each = rows.height * PAYLOAD // max(rows.estimated_size(), 1)
    return rows.iter_slices(max(int(each), 1))


def shuffle_lanes(rows: pl.DataFrame, key: bytes, parts: int) -> IntArray:
    """Distribute released rows by a keyed hash: files by lane would reveal which records belong together."""
    drawn = siphash.draw(derive(key, "mix"), _MIX, rows["_row"].to_numpy())
    return (drawn % np.uint64(parts)).astype(np.int64)


def spell_out(plan: Plan, ids: bool, schema: StructType, source: Iterable[Any]) -> Iterator[Any]:
    """Unpack released rows in release order, then by time; emptied cells are null."""
    payloads = [value for batch in source for value in batch.column("payload").to_pylist()]
    if not payloads:
        return
    rows = pl.concat([unpack(payload) for payload in payloads])
    rows = rows[release_order(rows, plan.key)]
    shown = rows.select(*_blanked(rows, plan), *([_ids(rows, plan.key)] if ids else []))
    yield from batches(shown, schema)


def release_order(rows: pl.DataFrame, key: bytes) -> IntArray:
    """Return the order in which methods get rows: by moment, time, and a keyed hash of the search."""
    row, head, when, which = (rows[name].to_numpy() for name in ("_row", "_head", "_when", "_which"))
    ties = siphash.draw(derive(key, "order"), 1, head)  # the same draws as in `Pipeline`
    time = coded(rows, ["time"], Dictionaries(), row=row).time
    return np.lexsort((row, head, ties, time, which, when))


def _blanked(rows: pl.DataFrame, plan: Plan) -> Iterator[pl.Expr]:
    _, empties = plan_traits(plan)
    for name in plan.columns:
        bit = COLUMN_BIT.get(name, 0)
        if name in empties:
            yield pl.lit(None).alias(name)
        else:
            value = pl.col(name).to_physical() if name == "time" else pl.col(name)
            yield pl.when((pl.col("_blank") & bit) == 0).then(value).alias(name)


def _ids(rows: pl.DataFrame, key: bytes) -> pl.Series:
    """Return an id per row: the same whenever it is written again, and without other information."""
    own, row = derive(key, "released id"), rows["_row"].to_numpy()
    halves = (siphash.draw(own, purpose, row).tolist() for purpose in (_ID_LOW, _ID_HIGH))
    return pl.Series("id", [f"{high:016x}{low:016x}" for low, high in zip(*halves, strict=True)])
