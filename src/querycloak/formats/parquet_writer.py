"""Writing Parquet, frame by frame, with column types like the input's where the values allow it."""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import polars as pl

from querycloak.errors import DataError, UsageError
from querycloak.formats import times
from querycloak.formats.encode import arranged
from querycloak.formats.layout import Layout, layout_for
from querycloak.formats.parquet import BROKEN, type_name, type_named
from querycloak.formats.parquet_stream import ParquetStream
from querycloak.formats.sinks import MemorySink, Sink, hidden_name

_TYPES: Final[dict[str, Any]] = {"time": times.TIME, "rank": pl.Int64}


class ParquetOutput:
    """Writes frames as they come, beside their maker; one frame alone is written at once.

    The types of columns are those of the first frame. If a later one cannot have them, what was written
    is read back as a part, the rest waits as parts, and the types are settled when all are known.
    """

    def __init__(self, path: str | Path | None, layout: Layout, private: bool) -> None:
        self._layout = layout
        self._sink = MemorySink() if path is None else Sink(path, layout.compression, private)
        self._held: pl.DataFrame | None = None
        self._stream: ParquetStream | None = None
        self._folder = _folder_beside(self._sink.temporary)
        self._parts: list[pl.LazyFrame] = []
        self._finished = False

    def write(self, frame: pl.DataFrame) -> None:
        """Take the next records."""
        typed = _typed(frame, self._layout)
        with self._explained():
            if self._parts:
                self._spool(typed)
            elif self._stream is not None:
                self._go_on(typed)
            elif self._held is None:
                self._held = typed
            else:
                first, self._held = self._held, None
                self._begin(first, typed)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Say in words what went wrong while writing."""
        try:
            yield
        except BROKEN:
            if self._sink.fault is not None:
                raise UsageError(
                    f"the output cannot be written: {self._sink.fault.strerror}", hint="look for free space"
                ) from None
            raise DataError(
                "the records do not fit the column types of the layout", hint="choose another format"
            ) from None

    def _begin(self, first: pl.DataFrame, second: pl.DataFrame) -> None:
        if self._layout.compression or first.schema != second.schema:  # packed bytes cannot be read back
            self._spool(first)
            self._spool(second)
            return
        self._stream = ParquetStream(first.schema, self._sink)
        for frame in (first, second):
            self._stream.put(frame)

    def _go_on(self, typed: pl.DataFrame) -> None:
        assert self._stream is not None
        if typed.schema == self._stream.schema:
            self._stream.put(typed)
            return
        self._stream.close()
        self._stream = None
        self._folder.mkdir(mode=0o700)
        self._parts.append(pl.scan_parquet(self._sink.moved_to(self._folder / "begun.parquet")))
        self._spool(typed)

    def _spool(self, typed: pl.DataFrame) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        part = self._folder / f"{len(self._parts):08d}.arrow"
        typed.write_ipc(part)  # as it lies in memory: these bytes are read again soon, and once
        self._parts.append(pl.scan_ipc(part))

    def finish(self) -> None:
        """Complete the file."""
        if self._finished:
            return
        self._finished = True
        with self._explained():
            self._pour()
        self._sink.finish()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _pour(self) -> None:
        if self._stream is not None:
            self._stream.close()
        elif self._parts:
            self._join_parts()
        else:
            empty = pl.DataFrame(schema={name: _TYPES.get(name, pl.String) for name in self._layout.mapping})
            frame = self._held if self._held is not None else _typed(empty, self._layout)
            buffer = io.BytesIO()
            frame.write_parquet(buffer, compression="zstd", compression_level=1)
            self._sink.write(buffer.getvalue())

    def _join_parts(self) -> None:
        """Settle each column's type over all parts, then stream them into one file."""
        shapes = [part.collect_schema().to_frame() for part in self._parts]
        schema = pl.concat(shapes, how="vertical_relaxed").schema
        parts = pl.concat([part.cast(schema) for part in self._parts])
        parts.sink_parquet(self._sink, compression="zstd", compression_level=1)  # type: ignore[call-overload]

    def commit(self) -> None:
        """Give the output its name."""
        self._sink.commit()

    def discard(self) -> None:
        """Leave nothing behind."""
        if self._stream is not None and not self._finished:
            self._stream.abandon()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._sink.discard()

    @property
    def temporary(self) -> Path | bytes:
        """The file with the unfinished output, or its bytes."""
        return self._sink.temporary

    @property
    def sha256(self) -> str:
        """The hash of the finished bytes."""
        return self._sink.sha256


def _folder_beside(unfinished: Path | bytes) -> Path:
    """Return a name for the folder of parts; nothing is made until there are some."""
    in_memory = isinstance(unfinished, bytes)
    return hidden_name(Path(tempfile.gettempdir(), "release") if in_memory else str(unfinished))


def frame_layout(frame: pl.DataFrame, like: Layout | None, keep: Sequence[str]) -> Layout:
    """Return the layout of a log in memory: that of the Parquet file which would hold it."""
    layout = layout_for("log.parquet", like=like, columns=[name for name in frame.columns if name != "row"])
    types = _typed(frame.head(1000), layout).schema
    return replace(
        layout,
        compression="",
        mapping={name: column for name, column in layout.mapping.items() if name in frame.columns},
        kept=tuple(keep),
        types={name: type_name(kind) for name, kind in types.items()},
    )


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
