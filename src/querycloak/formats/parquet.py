"""Reading Parquet, and the names of column types that a layout remembers."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import polars as pl

from querycloak.errors import DataError
from querycloak.formats import times
from querycloak.formats.clean import TimeParser
from querycloak.formats.columns import plan
from querycloak.formats.layout import default_layout
from querycloak.formats.streams import Source, shown
from querycloak.formats.table import Options, Table
from querycloak.log import CANONICAL

_STRETCH: Final = 1 << 20
_SIMPLE: Final = {
    str(kind): kind
    for kind in (
        *(pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64),
        *(pl.Float32, pl.Float64, pl.Boolean, pl.String, pl.Binary, pl.Date),
    )
}
_DATETIME: Final = re.compile(r"Datetime\((ms|us|ns)(?:, (.+))?\)")
#: What polars raises for a file it cannot read; a panic is no Exception, so it is named.
BROKEN: Final = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


def type_name(kind: pl.DataType) -> str:
    """Name a column type; nested and rare ones are remembered as text."""
    if isinstance(kind, pl.Datetime):
        return (
            f"Datetime({kind.time_unit}, {kind.time_zone})"
            if kind.time_zone
            else f"Datetime({kind.time_unit})"
        )
    return str(kind) if str(kind) in _SIMPLE else "String"


def type_named(name: str) -> Any:
    """Give the type that `type_name` named."""
    found = _DATETIME.fullmatch(name)
    if found:
        return pl.Datetime(found[1], found[2])  # type: ignore[arg-type]
    return _SIMPLE.get(name, pl.String)


class FrameReader:
    """Yields the tables of a polars frame, as of a file."""

    parse_time: TimeParser = staticmethod(times.parse)

    def __init__(
        self, scan: pl.LazyFrame, options: Options, where: str = "the table", compression: str = ""
    ) -> None:
        self._where, self._scan = where, scan
        try:
            schema = self._scan.collect_schema()
            self._rows = int(self._scan.select(pl.len()).collect().item())
        except BROKEN:
            raise self._damaged() from None
        names = schema.names()
        chosen = plan(names, options, self._where)
        self._sources = {name: names[place] for name, place in chosen.sources.items()}
        self.dropped = chosen.dropped
        self._check_time(schema)
        self.layout = replace(
            default_layout("parquet"),
            columns=tuple(names),
            mapping={name: column for name, column in self._sources.items() if name in CANONICAL},
            kept=tuple(name for name in self._sources if name not in CANONICAL),
            compression=compression,
            types={name: type_name(kind) for name, kind in schema.items()},
        )

    def tables(self) -> Iterator[Table]:
        """Give the file's rows in stretches."""
        columns = [pl.col(column).alias(name) for name, column in self._sources.items()]
        for first in range(0, self._rows, _STRETCH):
            size = min(_STRETCH, self._rows - first)
            try:
                frame = self._scan.select(columns).slice(first, size).collect()
            except BROKEN:
                raise self._damaged() from None
            numbers = pl.int_range(first, first + size, dtype=pl.Int64, eager=True).alias("row")
            yield Table(frame.insert_column(0, numbers), first, size)

    def _check_time(self, schema: pl.Schema) -> None:
        column = self._sources.get("time")
        if column is None:
            return
        kind = schema[column]
        if not (kind.is_numeric() or kind in (pl.Datetime, pl.Date, pl.String, pl.Null)):
            raise DataError(
                f"{self._where}: the column `{column}` has the type {type_name(kind)}, which is no time",
                hint="say which column holds the time: --map time=COLUMN",
            )

    def _damaged(self) -> DataError:
        return DataError(
            f"{self._where} is not a complete Parquet file", hint="it may be truncated: fetch it again"
        )


class ParquetReader(FrameReader):
    """Yields the tables of a Parquet file."""

    def __init__(self, source: Source, options: Options) -> None:
        path = source.path
        whole = source.compression or isinstance(path, bytes) or str(path) == "-"
        self._where = shown(path)
        try:
            scan = pl.scan_parquet(io.BytesIO(b"".join(source.chunks())) if whole else Path(str(path)))
        except BROKEN:
            raise self._damaged() from None
        super().__init__(scan, options, shown(path), source.compression)
