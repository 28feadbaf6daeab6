"""Writing Parquet: one frame goes straight to the file, several wait beside it until the end."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any, Final

import polars as pl

from querycloak.errors import DataError
from querycloak.io import times
from querycloak.io.encode import arranged
from querycloak.io.layout import Layout
from querycloak.io.parquet import BROKEN, type_named
from querycloak.io.sinks import Sink, hidden_name

_TYPES: Final[dict[str, Any]] = {"time": times.TIME, "rank": pl.Int64}


class ParquetOutput:
    """Collects frames as parts; the types of columns are settled when all parts are known."""

    def __init__(self, path: str | Path, layout: Layout, private: bool) -> None:
        self._layout = layout
        self._sink = Sink(path, layout.compression, private)
        self._held: list[pl.DataFrame] = []
        self._folder = hidden_name(self._sink.temporary)
        self._parts: list[Path] = []
        self._shapes: list[pl.DataFrame] = []
        self._finished = False

    def write(self, frame: pl.DataFrame) -> None:
        """Take the next records; all but the first frame go to disk at once."""
        if self._held:
            self._spool(self._held.pop())
            self._spool(frame)
        elif self._parts:
            self._spool(frame)
        else:
            self._held.append(frame)

    def _spool(self, frame: pl.DataFrame) -> None:
        if not self._parts:
            self._folder.mkdir(mode=0o700)
        part = self._folder / f"{len(self._parts):08d}.arrow"
        typed = _typed(frame, self._layout)
        typed.write_ipc(part)  # as it lies in memory: these bytes are read again soon, and once
        self._parts.append(part)
        self._shapes.append(typed.clear())

    def finish(self) -> None:
        """Write the file from its parts."""
        if self._finished:
            return
        self._finished = True
        try:
            self._pour()
        except BROKEN:
            raise DataError(
                "the records do not fit the column types of the layout", hint="choose another format"
            ) from None
        self._sink.finish()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _pour(self) -> None:
        if self._parts:
            self._join_parts()
            return
        empty = pl.DataFrame(schema={name: _TYPES.get(name, pl.String) for name in self._layout.mapping})
        buffer = io.BytesIO()
        frame = _typed(self._held.pop() if self._held else empty, self._layout)
        frame.write_parquet(buffer, compression="zstd", compression_level=1)
        self._sink.write(buffer.getvalue())

    def _join_parts(self) -> None:
        """Settle each column's type over all parts, then stream them into one file."""
        schema = pl.concat(self._shapes, how="vertical_relaxed").schema
        parts = pl.concat([pl.scan_ipc(part).cast(schema) for part in self._parts])
        parts.sink_parquet(self._sink, compression="zstd", compression_level=1)  # type: ignore[call-overload]

    def commit(self) -> None:
        """Give the output its name."""
        self._sink.commit()

    def discard(self) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._sink.discard()

    @property
    def temporary(self) -> Path:
        """Where the unfinished output is."""
        return self._sink.temporary

    @property
    def sha256(self) -> str:
        """The hash of the finished bytes."""
        return self._sink.sha256


def _typed(frame: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    """Give the layout's columns with the types that the input had, where the values allow it."""
    if layout.time_style == times.NATIVE and "time" in frame.columns:
        times_as_such = frame["time"].cast(times.TIME)
        frame = frame.drop("time")
    else:
        times_as_such = None
    columns = []
    for name, column in zip(layout.columns, arranged(frame, layout).get_columns(), strict=True):
        is_time = times_as_such is not None and layout.mapping.get("time") == name
        values = times_as_such if is_time and times_as_such is not None else column
        columns.append(_as_before(values, layout.types.get(name)).alias(name))
    return pl.DataFrame(columns)


def _as_before(column: pl.Series, type_name: str | None) -> pl.Series:
    if type_name is None:
        return column
    wanted = type_named(type_name)
    if isinstance(wanted, pl.Datetime) and column.dtype == pl.Datetime:
        return _as_time(column, wanted)
    if column.dtype == wanted:
        return column
    changed = column.cast(wanted, strict=False)
    lossless = changed.null_count() == column.null_count() and (
        changed.cast(column.dtype, strict=False).equals(column, null_equal=True)
    )
    return changed if lossless else column


def _as_time(column: pl.Series, wanted: pl.Datetime) -> pl.Series:
    """Go back to the unit and zone of the input, unless the unit is too coarse for a value."""
    zone = wanted.time_zone
    local = column.dt.convert_time_zone(zone) if zone else column.dt.replace_time_zone(None)
    changed = local.cast(pl.Datetime(wanted.time_unit, zone), strict=False)
    exact = changed.cast(local.dtype, strict=False).equals(local, null_equal=True)
    return changed if exact else local
