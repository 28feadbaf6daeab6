"""Rows on their way between workers: packed by lane, so that Spark moves few large values, not many rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from querycloak.dictionary import Dictionaries
from querycloak.engines import state_codec
from querycloak.engines.codec import encode_column
from querycloak.engines.time_order import in_order, shuffled
from querycloak.errors import DataError
from querycloak.kernels import siphash
from querycloak.keys import derive
from querycloak.log import CANONICAL, COLUMN_BIT, Batch, IntArray
from querycloak.spark.arrow import batches, frames
from querycloak.spark.worker import Plan, lane_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

#: What Spark sees of records between its operators: where they go, and their bytes.
PACKED: Final = "lane int, payload binary"
#: What a row carries beside the log's columns: its number, its search, when that came or was let go
#: (`_when`, then `_which` between those of one time), and which of its cells must leave empty.
CARRIED: Final = ("_row", "_head", "_when", "_which", "_blank")
#: Bytes of rows that are packed into one value, at most: Spark's own limit is 2 GB.
PAYLOAD: Final = 1 << 26
#: No row has a time so late: those without one come last.
NEVER: Final = int(np.iinfo(np.int64).max)
_MIX, _ID_LOW, _ID_HIGH = range(1, 4)


@cache
def told_by(plan: Plan) -> tuple[bool, frozenset[str]]:
    """Say whether each row goes its own way, and which columns leave empty; once for each worker."""
    whole = plan.whole()
    return whole.per_row, whole.empties


def pack(rows: pl.DataFrame) -> bytes:
    """Write rows as bytes, smaller than Spark's own form of them."""
    return state_codec.dump({"rows": rows.rechunk()})


def unpack(data: bytes) -> pl.DataFrame:
    """Read what `pack` wrote."""
    rows: pl.DataFrame = state_codec.load(data)["rows"]
    return rows


def put_in_lanes(plan: Plan, source: Iterable[Any]) -> Iterator[Any]:
    """Give each row of a Spark partition its lane; pack those of a lane together.

    The partition has all rows of its searches. The lane is the search's, not the row's: a click may have
    another category than the search that it belongs to.
    """
    method = plan.stages[0].build(plan.key, 0, texts := Dictionaries())
    per_row, _ = told_by(plan)
    columns = plan.stages[0].traits.reads | {"category"}
    for frame in frames(source) if per_row else frames(source, rows=1 << 62):
        rows = carried(typed(frame), plan.key, per_row)
        lane = lane_of(method.partition_key(coded(rows, columns, texts)), plan.parts)
        if not per_row:
            row, order = rows["_row"].to_numpy(), np.argsort(rows["_row"].to_numpy())
            lane = lane[order[np.searchsorted(row, rows["_head"].to_numpy(), sorter=order)]]
        yield from packed(rows, lane)


def typed(frame: pl.DataFrame) -> pl.DataFrame:
    """Make times of microseconds. A row without a number stops everything, since all draws go by it."""
    if frame["row"].null_count():
        raise DataError("a record of the stream has no number in its column `row`")
    times = [pl.col("time").cast(pl.Datetime("us", "UTC"))] if "time" in frame.columns else []
    return frame.with_columns(times)


def carried(frame: pl.DataFrame, key: bytes, per_row: bool) -> pl.DataFrame:
    """Add what rows carry."""
    placed = in_order(frame, key)
    row, when = placed["row"].to_numpy(), placed["_when"].to_numpy()
    head = row if per_row else _heads(placed, key)
    which = np.where(when == NEVER, shuffled(row, key), row)
    added = {"_row": row, "_head": head, "_when": when, "_which": which, "_blank": np.zeros_like(row)}
    names = [name for name in frame.columns if name != "row"]
    return frame.select(names).with_columns(pl.Series(name, column) for name, column in added.items())


def _heads(placed: pl.DataFrame, key: bytes) -> IntArray:
    """Give the first row of each search. Bad rows are left out later: no good one may belong to them."""
    if "_bad" not in placed.columns or placed["_bad"].null_count() == placed.height:
        return placed["_head"].to_numpy()
    good = placed["_bad"].is_null()
    head = placed["row"].to_numpy().copy()
    head[good.to_numpy()] = in_order(placed.filter(good), key)["_head"].to_numpy()
    return head


def coded(rows: pl.DataFrame, names: Iterable[str], texts: Dictionaries) -> Batch:
    """Turn rows into integers, in the order in which they are; the caller sets `seq`."""
    chosen = {"time", *names} & set(rows.columns) & set(CANONICAL)
    columns = {name: encode_column(rows[name], name, texts) for name in sorted(chosen)}
    columns |= {"row": rows["_row"].to_numpy(), "blank": rows["_blank"].to_numpy()}
    return Batch.of(columns, texts)


def packed(rows: pl.DataFrame, lane: IntArray) -> Iterator[Any]:
    """Give the rows of each lane as one value, or as several of a bounded size; each by itself."""
    import pyarrow as pa

    for number, payload in lanes_apart(rows, lane):
        columns = [pa.array([number], pa.int32()), pa.array([payload], pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, names=["lane", "payload"])


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


def mixed(rows: pl.DataFrame, key: bytes, parts: int) -> IntArray:
    """Deal released rows out by a keyed hash: by lane, files would tell whose records lie together."""
    drawn = siphash.draw(derive(key, "mix"), _MIX, rows["_row"].to_numpy())
    return (drawn % np.uint64(parts)).astype(np.int64)


def spell_out(plan: Plan, ids: bool, schema: StructType, source: Iterable[Any]) -> Iterator[Any]:
    """Unpack what left: in order of release, then of time; cells that may not leave are empty."""
    payloads = [value for batch in source for value in batch.column("payload").to_pylist()]
    if not payloads:
        return
    rows = pl.concat([unpack(payload) for payload in payloads])
    rows = rows[release_order(rows, plan.key)]
    shown = rows.select(*_blanked(rows, plan), *([_ids(rows, plan.key)] if ids else []))
    yield from batches(shown, schema)


def release_order(rows: pl.DataFrame, key: bytes) -> IntArray:
    """Order rows as methods meet them: by moment, then by time, then by a keyed hash of their search."""
    head = rows["_head"].to_numpy()
    ties = siphash.draw(derive(key, "order"), 1, head)  # the same draws as in `Pipeline`
    time = (
        encode_column(rows["time"], "time", Dictionaries()) if "time" in rows.columns else np.zeros_like(head)
    )
    when, which = rows["_when"].to_numpy(), rows["_which"].to_numpy()
    return np.lexsort((rows["_row"].to_numpy(), head, ties, time, which, when))


def _blanked(rows: pl.DataFrame, plan: Plan) -> Iterator[pl.Expr]:
    _, empties = told_by(plan)
    for name in plan.columns:
        bit = COLUMN_BIT.get(name, 0)
        if name in empties:
            yield pl.lit(None).alias(name)
        else:
            yield pl.when((pl.col("_blank") & bit) == 0).then(_plain(name)).alias(name)


def _plain(name: str) -> pl.Expr:
    """Give times as microseconds: so no time zone of Spark's has a say in them."""
    return pl.col(name).to_physical() if name == "time" else pl.col(name)


def _ids(rows: pl.DataFrame, key: bytes) -> pl.Series:
    """Give each row a name that is the same whenever it is written again, and tells nothing else."""
    own, row = derive(key, "released id"), rows["_row"].to_numpy()
    halves = (siphash.draw(own, purpose, row).tolist() for purpose in (_ID_LOW, _ID_HIGH))
    return pl.Series("id", [f"{high:016x}{low:016x}" for low, high in zip(*halves, strict=True)])
