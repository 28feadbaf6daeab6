"""A second log to borrow from: people whom the engine that sees the first one does not see."""

from __future__ import annotations

from typing import Final

import polars as pl

from querycloak.errors import DataError

_WEEK: Final = 7 * 24 * 3600 * 1_000_000


def fitted(pool: pl.DataFrame, log: pl.DataFrame) -> pl.DataFrame:
    """Give those rows of a pool that can stand in a log's traces, in the log's columns.

    It is moved by whole weeks to begin with the log, so that hours and weekdays stay; what would come before
    or after the log's time is left out, and so are people whom the log has too.
    """
    missing = [name for name in log.columns if name not in (*pool.columns, "row")]
    if missing:
        raise DataError(f"the pool has no column `{missing[0]}`, and the log has one")
    found = pool.join(log.select("user").unique(), on="user", how="anti", maintain_order="left")
    if "time" in log.columns and log.height:
        found = _moved(found, log["time"])
    if not found.height:
        raise DataError(
            "the pool has nobody to borrow from",
            hint="people whom the log has too are left out, and what lasts longer than the log",
        )
    found = found.with_columns(row=pl.lit(None, pl.Int64))
    return found.select(pl.col(name).cast(kind) for name, kind in log.schema.items())


def _moved(pool: pl.DataFrame, times: pl.Series) -> pl.DataFrame:
    if pool["time"].null_count():
        raise DataError("some rows of the pool have no time")
    if not pool.height:
        return pool
    kind, physical = times.dtype, times.to_physical()
    first, last = physical.min(), physical.max()
    moments = pool["time"].cast(kind).to_physical()
    begin = moments.min()
    assert isinstance(first, int)
    assert isinstance(begin, int)
    weeks = -((begin - first) // _WEEK)
    moved = pool.with_columns(time=(moments + weeks * _WEEK).cast(kind))
    return moved.filter((moments + weeks * _WEEK).is_between(first, last))
