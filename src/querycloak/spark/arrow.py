"""Between Spark's Arrow batches and frames of polars, in pieces of a bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

#: Rows that are worked on together; a worker's memory is this and what its method holds.
PIECE = 1 << 18


def frames(batches: Iterable[Any], rows: int = PIECE) -> Iterator[pl.DataFrame]:
    """Give Arrow batches as frames of about so many rows; of nothing, nothing."""
    import pyarrow as pa

    some: list[Any] = []
    size = 0
    for batch in batches:
        some.append(batch)
        size += batch.num_rows
        if size >= rows:
            yield _frame(pa.Table.from_batches(some))
            some, size = [], 0
    if size:
        yield _frame(pa.Table.from_batches(some))


def _frame(table: Any) -> pl.DataFrame:
    found = pl.from_arrow(table)
    assert isinstance(found, pl.DataFrame)
    return found


def batches(frame: pl.DataFrame, schema: StructType) -> Iterator[Any]:
    """Give a frame as Arrow batches of the types that Spark asks for; a column it lacks is empty."""
    from pyspark.sql.pandas.types import to_arrow_schema

    wanted = to_arrow_schema(schema, timezone="UTC")
    absent = [pl.lit(None).alias(name) for name in wanted.names if name not in frame.columns]
    table = frame.with_columns(absent).select(wanted.names).to_arrow(compat_level=pl.CompatLevel.oldest())
    yield from table.cast(wanted).to_batches(max_chunksize=1 << 16)
