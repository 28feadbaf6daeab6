"""From raw values to typed records: every row is either good as a whole or counted as bad."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import polars as pl

from querycloak.errors import DataError
from querycloak.formats import reasons, times
from querycloak.formats.table import Options, Table, note
from querycloak.log import CANONICAL

TEXTS: Final = ("user", "query", "url", "category")
_EMPTY: Final = {"user": reasons.NO_USER, "query": reasons.NO_QUERY, "time": reasons.NO_TIME}
TimeParser = Callable[[pl.Series], pl.Series]


def clean(table: Table, options: Options, parse_time: TimeParser = times.parse) -> Table:
    """Type the columns of a table and move its bad rows to `bad`."""
    frame = _with_texts(table.frame)
    wrong = pl.Series([False]).new_from_index(0, frame.height)
    typed: list[pl.Series] = []
    for reason, mask in _faults(frame, table, options, parse_time, typed):
        if mask.any():
            fresh = mask.fill_null(False) & ~wrong
            note(table.bad, reason, frame["row"].filter(fresh).to_numpy())
            wrong = wrong | fresh
    frame = frame.with_columns(typed)
    if wrong.any():
        frame = frame.filter(~wrong)
    if options.strict:
        refuse_first(table, options)
    return Table(frame.select("row", *ordered(frame.columns)), table.first, table.rows, table.bad)


def ordered(names: Sequence[str]) -> list[str]:
    """Canonical columns in their order, then the others; without `row`."""
    return [n for n in CANONICAL if n in names] + [n for n in names if n not in (*CANONICAL, "row")]


def refuse_first(table: Table, options: Options) -> None:
    """Under `strict`, stop at the earliest bad row."""
    if options.strict and table.bad:
        row, reason = min((int(rows[0]), reason) for reason, rows in table.bad.items())
        raise DataError(
            f"data row {row} (counted from 0): {reason}; {reasons.REASONS[reason]}",
            hint="without --strict, bad rows are counted and left out",
        )


def _with_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """Make text columns texts, and empty ones null."""
    changes = []
    for name in (*TEXTS, "time", "rank"):
        if name not in frame.columns:
            continue
        kind = frame.schema[name]
        if name in TEXTS and kind not in (pl.String, pl.Binary):
            changes.append(pl.col(name).cast(pl.String))
        elif kind == pl.String and bool((frame[name] == "").any()):
            changes.append(pl.when(pl.col(name) != "").then(pl.col(name)).alias(name))
    return frame.with_columns(changes)


def _faults(
    frame: pl.DataFrame, table: Table, options: Options, parse_time: TimeParser, typed: list[pl.Series]
) -> Iterator[tuple[str, pl.Series]]:
    """Give reasons and the rows they hold for, in the order in which they count."""
    texts = [s for s in frame.get_columns() if s.dtype == pl.String]
    for column in (s for s in frame.get_columns() if s.dtype == pl.Binary and s.name in TEXTS):
        text = column.cast(pl.String, strict=False)
        texts.append(text)
        yield reasons.NOT_UTF8, text.is_null() & column.is_not_null()
        typed.append(text.set((text == "").fill_null(False), None))
    suspects = _suspects(texts, table)
    for column in texts:
        if suspects.get(f"nul {column.name}"):
            yield reasons.NUL_BYTE, column.str.contains("\0", literal=True)
    for column in texts:
        if column.name == "query" and suspects.get(f"size {column.name}", 0) > reasons.QUERY_LIMIT:
            yield reasons.QUERY_TOO_LONG, column.str.len_bytes() > reasons.QUERY_LIMIT
    for column in texts:
        if suspects.get(f"size {column.name}", 0) > reasons.FIELD_LIMIT:
            yield reasons.FIELD_TOO_LONG, column.str.len_bytes() > reasons.FIELD_LIMIT
    yield from _empty_cells(frame, ("user", "query"), options)
    if "time" in frame.columns:
        typed.append(_as_times(frame["time"], parse_time))
        yield reasons.UNREADABLE_TIME, typed[-1].is_null() & frame["time"].is_not_null()
    yield from _empty_cells(frame, ("time",), options)
    if "rank" in frame.columns:
        typed.append(_as_ranks(frame["rank"]))
        yield reasons.UNREADABLE_RANK, typed[-1].is_null() & frame["rank"].is_not_null()


def _suspects(texts: list[pl.Series], table: Table) -> dict[str, int]:
    """Look at all texts side by side, on every core, for what hardly any table has."""
    looks = []
    for column in texts:
        if table.may_hold_nul:
            nul = pl.col(column.name).str.contains("\0", literal=True)
            looks.append(nul.any().alias(f"nul {column.name}"))
        if table.may_be_long:
            looks.append(pl.col(column.name).str.len_bytes().max().fill_null(0).alias(f"size {column.name}"))
    return pl.DataFrame(texts).select(looks).row(0, named=True) if looks else {}


def _empty_cells(
    frame: pl.DataFrame, names: Sequence[str], options: Options
) -> Iterator[tuple[str, pl.Series]]:
    for name in names:
        if name in options.required and name in frame.columns:
            empty = frame[name].is_null()
            if frame.schema[name] == pl.Binary:
                empty = empty | (frame[name].bin.size() == 0)
            yield _EMPTY[name], empty


def _as_times(column: pl.Series, parse_time: TimeParser) -> pl.Series:
    if column.dtype in (pl.Datetime, pl.Date):
        return times.native(column)
    return parse_time(column.cast(pl.String))


def _as_ranks(column: pl.Series) -> pl.Series:
    """Whole numbers; `3.0` is one, since tables with gaps are often written so."""
    if column.dtype == pl.String:
        digits = column.str.strip_suffix(".0") if column.str.contains(".", literal=True).any() else column
        return digits.cast(pl.Int64, strict=False)
    if column.dtype.is_float():
        whole = column.cast(pl.Int64, strict=False)
        return whole.set((whole.cast(column.dtype) != column).fill_null(True), None)
    return column.cast(pl.Int64, strict=False)
