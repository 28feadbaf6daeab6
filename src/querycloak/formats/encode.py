"""Records as the bytes of a text format: columns in the layout's order, values in its style."""

from __future__ import annotations

import csv
import io
import json
from typing import Final

import polars as pl

from querycloak.errors import DataError
from querycloak.formats import times
from querycloak.formats.jsonl import from_kept
from querycloak.formats.layout import UNQUOTED, Layout

_NUMBERS: Final = ("Int64", "Float64")


def arranged(frame: pl.DataFrame, layout: Layout, first: int = 0) -> pl.DataFrame:
    """Give the layout's columns, by number since names may occur twice; absent ones are empty."""
    columns = []
    for place, column in enumerate(layout.columns):
        name = layout.name_in_frame(column)
        if name is None or name not in frame.columns:
            values = pl.Series([None], dtype=pl.String).new_from_index(0, frame.height)
        elif name == "time" and frame.schema[name] == pl.Datetime:
            values = times.write(frame[name].cast(times.TIME), layout.time_style, first)
        else:
            values = frame[name]
        columns.append(values.alias(str(place)))
    return pl.DataFrame(columns)


def header(layout: Layout) -> bytes:
    """Give the header line, if the format has one."""
    if not layout.header:
        return b""
    if layout.format in UNQUOTED:
        return (layout.delimiter.join(layout.columns) + layout.newline).encode()
    text = io.StringIO()
    csv.writer(text, delimiter=layout.delimiter, lineterminator=layout.newline).writerow(layout.columns)
    return text.getvalue().encode()


def delimited(frame: pl.DataFrame, layout: Layout, first: int) -> bytes:
    """Write rows of AOL, Excite, CSV or TSV; `first` is the number of the first in the output."""
    table = arranged(frame, layout, first)
    _refuse_nested(table, layout)
    unquoted = layout.format in UNQUOTED
    data = table.write_csv(
        include_header=False,
        separator=layout.delimiter,
        line_terminator=layout.newline,
        quote_style="never" if unquoted else "necessary",
    ).encode()
    if unquoted and not _counts_right(data, table, layout):
        raise _unwritable(table, layout, first)
    return data


def _counts_right(data: bytes, table: pl.DataFrame, layout: Layout) -> bool:
    """Check that no value held a tab or a line end: then their numbers are known."""
    returns = table.height if layout.newline == "\r\n" else 0
    return (
        data.count(b"\n") == table.height
        and data.count(b"\r") == returns
        and data.count(b"\t") == table.height * (table.width - 1)
    )


def _unwritable(table: pl.DataFrame, layout: Layout, first: int) -> DataError:
    for place, column in enumerate(layout.columns):
        texts = table.to_series(place).cast(pl.String)
        wrong = texts.str.contains("[\t\r\n]").fill_null(False)
        if wrong.any():
            return DataError(
                f"output row {first + int(wrong.arg_true()[0])}: the column `{column}` holds a tab or a line "
                f"end, which the format {layout.format} cannot hold",
                hint="choose another format for the output, for example csv",
            )
    return DataError(f"the rows cannot be written as {layout.format}")


def _refuse_nested(table: pl.DataFrame, layout: Layout) -> None:
    for column, kind in zip(layout.columns, table.dtypes, strict=True):
        if kind.is_nested() or kind == pl.Object:
            raise DataError(
                f"the column `{column}` has nested values, which the format {layout.format} cannot hold",
                hint="choose jsonl or parquet for the output",
            )


def json_lines(frame: pl.DataFrame, layout: Layout) -> bytes:
    """Write one object a line; numbers stay numbers where the input had numbers."""
    table = arranged(frame, layout)
    columns = [_typed(table.to_series(p), c, layout) for p, c in enumerate(layout.columns)]
    kept = [place for place, column in enumerate(layout.columns) if column in layout.kept]
    if any(column is None for column in columns) or any(table.dtypes[place] == pl.String for place in kept):
        return _slowly(table, layout)
    named = pl.DataFrame(
        {name: column for name, column in zip(layout.columns, columns, strict=True) if column is not None}
    )
    return named.write_ndjson().encode()


def _typed(column: pl.Series, name: str, layout: Layout) -> pl.Series | None:
    """Make texts numbers where the input had numbers; None if only some of them are."""
    if column.dtype != pl.String or layout.types.get(name) not in _NUMBERS or name in layout.kept:
        return column
    whole = column.cast(pl.Int64, strict=False)
    if (whole.cast(pl.String) == column).fill_null(column.is_null()).all():
        return whole
    number = column.cast(pl.Float64, strict=False)
    return number if layout.types[name] == "Float64" and number.null_count() == column.null_count() else None


def _slowly(table: pl.DataFrame, layout: Layout) -> bytes:
    """Write row by row: for kept columns of any type, and for columns of mixed types."""
    lines = []
    kinds = [(name, name in layout.kept, layout.types.get(name) in _NUMBERS) for name in layout.columns]
    for row in table.iter_rows():
        item = {
            name: _json_value(value, kept, number)
            for (name, kept, number), value in zip(kinds, row, strict=True)
        }
        lines.append(json.dumps(item, ensure_ascii=False, separators=(",", ":"), default=str) + "\n")
    return "".join(lines).encode()


def _json_value(value: object, kept: bool, number: bool) -> object:
    if kept and isinstance(value, str):
        return from_kept(value)
    if number and isinstance(value, str):
        try:
            whole = int(value)
        except ValueError:
            return value
        return whole if str(whole) == value else value
    return value
