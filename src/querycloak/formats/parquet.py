"""Parquet: reader, streaming encoder, and the names of column types that a layout stores."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import queue
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import polars as pl
from polars.io.plugins import register_io_source

from querycloak import temporary_files
from querycloak.errors import DataError, UsageError, is_full
from querycloak.formats import times
from querycloak.formats.columns import map_columns
from querycloak.formats.layout import STANDARD, Layout
from querycloak.formats.output import Encoder, OutputFile
from querycloak.formats.reading import RawTable, ReadOptions
from querycloak.formats.registry import Format, FormatTraits, Match, Reader
from querycloak.formats.source import Source
from querycloak.formats.validation import TEXTS
from querycloak.log import CANONICAL
from querycloak.temporary_files import TemporaryPath

_SLICE: Final = 1 << 20
_SIMPLE: Final = {
    str(kind): kind
    for kind in (
        *(pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64),
        *(pl.Float32, pl.Float64, pl.Boolean, pl.String, pl.Binary, pl.Date),
    )
}
_DATETIME: Final = re.compile(r"Datetime\((ms|us|ns)(?:, (.+))?\)")
#: What polars raises for a file that it cannot read; a panic is no Exception.
BROKEN: Final = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
_TYPES: Final[dict[str, Any]] = {"time": times.TIME, "rank": pl.Int64}
_POLL = 0.2  # seconds between checks whether the writing thread is still alive


class Parquet(Format):
    """Apache Parquet."""

    name = "parquet"
    traits = FormatTraits(extensions=(".parquet", ".pq"), same_bytes=False)
    default_time_style = times.NATIVE

    def detect(self, head: bytes, file_name: str) -> Match:
        """Return how well a file fits: by its first bytes, or its name."""
        if head.startswith(b"PAR1"):
            return Match.CERTAIN
        return Match.NO if head.lstrip()[:1] == b"{" else super().detect(head, file_name)

    def reader(self, source: Source, options: ReadOptions) -> Reader:
        """Return a reader of an opened input."""
        in_memory = source.compression or isinstance(source.path, bytes) or str(source.path) == "-"
        content = io.BytesIO(b"".join(source.chunks())) if in_memory else Path(str(source.path))
        try:
            scan = pl.scan_parquet(content)
        except BROKEN:
            raise _damaged(options) from None
        return FrameReader(scan, options)

    def encoder(self, layout: Layout, output: OutputFile) -> Encoder:
        """Return an encoder that writes records to `output`."""
        return ParquetEncoder(layout, output)


def _damaged(options: ReadOptions) -> DataError:
    return DataError(
        f"{options.where} is not a complete Parquet file", hint="it may be truncated: fetch it again"
    )


def type_name(kind: pl.DataType) -> str:
    """Return the name of a column type; nested and rare ones are stored as text."""
    if isinstance(kind, pl.Datetime):
        return f"Datetime({kind.time_unit}{f', {kind.time_zone}' if kind.time_zone else ''})"
    return str(kind) if str(kind) in _SIMPLE else "String"


def type_named(name: str) -> Any:
    """Return the type of a name that `type_name` returned."""
    found = _DATETIME.fullmatch(name)
    if found:
        return pl.Datetime(found[1], found[2])  # type: ignore[arg-type]
    return _SIMPLE.get(name, pl.String)


class FrameReader:
    """Reader of a polars frame."""

    def __init__(self, scan: pl.LazyFrame, options: ReadOptions) -> None:
        self._options, self._scan = options, scan
        try:
            schema = self._scan.collect_schema()
            self._rows = int(self._scan.select(pl.len()).collect().item())
        except BROKEN:
            raise _damaged(options) from None
        names = schema.names()
        chosen = map_columns(names, options)
        self._sources = {name: names[place] for name, place in chosen.sources.items()}
        self.dropped = chosen.dropped
        self._check_time(schema)
        self._check_texts(schema)
        self.layout = replace(
            Layout.default("parquet", STANDARD),
            columns=tuple(names),
            mapping={name: column for name, column in self._sources.items() if name in CANONICAL},
            kept=tuple(name for name in self._sources if name not in CANONICAL),
            types={name: type_name(kind) for name, kind in schema.items()},
        )

    def tables(self) -> Iterator[RawTable]:
        """Yield the rows."""
        columns = [pl.col(column).alias(name) for name, column in self._sources.items()]
        for first in range(0, self._rows, _SLICE):
            size = min(_SLICE, self._rows - first)
            try:
                frame = self._scan.select(columns).slice(first, size).collect()
            except BROKEN:
                raise _damaged(self._options) from None
            numbers = pl.int_range(first, first + size, dtype=pl.Int64, eager=True).alias("row")
            yield RawTable(pl.DataFrame([numbers, *frame.get_columns()]), first, size)

    def _check_texts(self, schema: pl.Schema) -> None:
        for name in (*TEXTS, "rank"):
            kind = schema[self._sources[name]] if name in self._sources else pl.String()
            if kind.is_nested() or kind == pl.Object:
                raise DataError(
                    f"{self._options.where}: the column `{name}` has the type {kind.base_type()}",
                    hint=f"name another column: --map {name}=COLUMN",
                )

    def _check_time(self, schema: pl.Schema) -> None:
        column = self._sources.get("time")
        if column is None:
            return
        kind = schema[column]
        if not (kind.is_numeric() or kind in (pl.Datetime, pl.Date, pl.String, pl.Null)):
            raise DataError(
                f"{self._options.where}: the column `{column}` is no time but {type_name(kind)}",
                hint="name the column with the time: --map time=COLUMN",
            )


class ParquetStream:
    """Writes frames of one schema to a file-like object in a thread of its own, while more are computed."""

    def __init__(self, schema: pl.Schema, target: Any) -> None:
        self.schema = schema
        self._target = target
        self._frames: queue.Queue[pl.DataFrame | None] = queue.Queue(maxsize=1)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        try:
            frames = register_io_source(self._pending_frames, schema=self.schema)
            frames.sink_parquet(self._target, compression="zstd", compression_level=1)
        except BaseException as error:
            self._error = error

    def _pending_frames(
        self, columns: list[str] | None, predicate: Any, rows: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        """Yield the frames as they come; to write all, polars passes no columns, predicate or rows."""
        while (frame := self._frames.get()) is not None:
            yield frame

    def put(self, frame: pl.DataFrame | None) -> None:
        """Add the next frame; wait while two are pending. None ends the file."""
        while self._error is None:
            try:
                self._frames.put(frame, timeout=_POLL)
                return
            except queue.Full:
                continue
        raise self._error

    def close(self) -> None:
        """Wait until everything is written."""
        self.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error


class ParquetEncoder(Encoder):
    """Writes frames as they come; a single frame is written at once.

    Column types are those of the first frame. If a later frame cannot have them, the rows written so far
    become a part, later frames become parts too, and types are settled when all are known.
    """

    def __init__(self, layout: Layout, output: OutputFile) -> None:
        self._layout, self._output = layout, output
        self._held: pl.DataFrame | None = None
        self._stream: ParquetStream | None = None
        self._spools: TemporaryPath | None = None
        self._parts: list[pl.LazyFrame] = []
        self._finished = False

    def write(self, frame: pl.DataFrame) -> None:
        """Write the next records."""
        frames = [_typed(frame, self._layout)]
        if self._held is None and self._stream is None and not self._parts:
            self._held = frames[0]
            return
        if self._held is not None:
            frames, self._held = [self._held, *frames], None
        with self._translated_errors():
            for typed in frames:
                self._add(typed)

    @contextlib.contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Translate polars and OS errors into `DataError` and `UsageError`."""
        try:
            yield
        except BROKEN as error:
            if is_full(self._output.fault or error):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
            if self._output.fault is not None:
                raise UsageError(
                    f"the output cannot be written: {self._output.fault.strerror}",
                    hint="check the free space on the disk",
                ) from None
            raise DataError(
                "the records do not fit the column types of the layout", hint="choose another format"
            ) from None

    def _add(self, typed: pl.DataFrame) -> None:
        if self._stream is None and not self._parts and not self._layout.compression:
            self._stream = ParquetStream(typed.schema, self._output)  # compressed bytes cannot be read back
        if self._stream is not None and typed.schema == self._stream.schema:
            self._stream.put(typed)
            return
        if self._stream is not None:
            self._stream.close()
            self._stream = None
            self._parts.append(pl.scan_parquet(self._output.take_over(self._part("begun.parquet"))))
        self._spool(typed)

    def _spool(self, typed: pl.DataFrame) -> None:
        part = self._part(f"{len(self._parts):08d}.arrow")
        typed.write_ipc(part)  # fast: these bytes are read again once, soon
        self._parts.append(pl.scan_ipc(part))

    def _part(self, name: str) -> Path:
        self._spools = self._spools or temporary_files.new_folder()
        return self._spools.file(name)

    def finish(self) -> None:
        """Write what completes the file."""
        if self._finished:
            return
        self._finished = True
        with self._translated_errors():
            self._write_rest()
        if self._spools is not None:
            self._spools.remove()

    def _write_rest(self) -> None:
        if self._stream is not None:
            self._stream.close()
        elif self._parts:
            shapes = [part.collect_schema().to_frame() for part in self._parts]
            schema = pl.concat(shapes, how="vertical_relaxed").schema  # each column's type over all parts
            parts = pl.concat([part.cast(schema) for part in self._parts])
            parts.sink_parquet(self._output, compression="zstd", compression_level=1)  # type: ignore[call-overload]
        else:
            empty = pl.DataFrame(schema={name: _TYPES.get(name, pl.String) for name in self._layout.mapping})
            frame = self._held if self._held is not None else _typed(empty, self._layout)
            buffer = io.BytesIO()
            frame.write_parquet(buffer, compression="zstd", compression_level=1)
            self._output.write(buffer.getvalue())

    def abandon(self) -> None:
        """Stop; the file is incomplete."""
        if self._stream is not None and not self._finished:
            with contextlib.suppress(Exception):
                self._stream.close()
        if self._spools is not None:
            self._spools.remove()


def frame_layout(frame: pl.DataFrame, like: Layout | None, keep: Sequence[str]) -> Layout:
    """Return the layout of a log in memory: that of the Parquet file which would hold it."""
    layout = Layout.for_output(
        "log.parquet", like=like, columns=[name for name in frame.columns if name != "row"]
    )
    types = _typed(frame.head(1000), layout).schema
    return replace(
        layout,
        compression="",
        mapping={name: column for name, column in layout.mapping.items() if name in frame.columns},
        kept=tuple(keep),
        types={name: type_name(kind) for name, kind in types.items()},
    )


def _typed(frame: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    """Return the layout's columns with the types that the input had, where the values allow it."""
    native = layout.time_style == times.NATIVE and "time" in frame.columns
    columns = []
    arranged = layout.arrange(frame.drop("time") if native else frame).get_columns()
    for name, column in zip(layout.columns, arranged, strict=True):
        is_time = native and layout.mapping.get("time") == name
        values = frame["time"].cast(times.TIME) if is_time else column
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
    """Restore the unit and zone of the input, unless the unit is too coarse for a value."""
    zone = wanted.time_zone
    local = column.dt.convert_time_zone(zone) if zone else column.dt.replace_time_zone(None)
    changed = local.cast(pl.Datetime(wanted.time_unit, zone), strict=False)
    exact = changed.cast(local.dtype, strict=False).equals(local, null_equal=True)
    return changed if exact else local
