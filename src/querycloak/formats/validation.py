"""Validate rows; a row with any fault is excluded and counted under one reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from querycloak.errors import DataError
from querycloak.formats import times
from querycloak.log import CANONICAL, IntArray

if TYPE_CHECKING:
    from querycloak.formats.reading import RawTable, ReadOptions

NOT_UTF8: Final = "not UTF-8"
NUL_BYTE: Final = "NUL byte"
BAD_QUOTING: Final = "bad quoting"
STRAY_RETURN: Final = "stray carriage return"
TOO_FEW: Final = "too few fields"
TOO_MANY: Final = "too many fields"
NOT_JSON: Final = "not JSON"
FIELD_TOO_LONG: Final = "field too long"
QUERY_TOO_LONG: Final = "query too long"
NO_USER: Final = "no user"
NO_QUERY: Final = "no query"
UNREADABLE_TIME: Final = "unreadable time"
NO_TIME: Final = "no time"
UNREADABLE_RANK: Final = "unreadable rank"
CLICK_ALONE: Final = "click without its query"
NOT_A_SEARCH: Final = "not a search"

#: The longest query, and the longest field of any kind, in bytes of UTF-8.
QUERY_LIMIT: Final = 1 << 20
FIELD_LIMIT: Final = 4 << 20

#: Every reason with its explanation. A row with several faults counts under the first that applies.
REASONS: Final = {
    NOT_UTF8: "the row holds bytes, or a JSON escape, that are not valid UTF-8",
    NUL_BYTE: "a text of the row holds a NUL character",
    BAD_QUOTING: "a quoted field does not end where it should; reading resumes at the next line",
    STRAY_RETURN: "a carriage return inside a row of a format that has no quoting",
    TOO_FEW: "the row has fewer fields than the header (a blank line is such a row)",
    TOO_MANY: "the row has more fields than the header",
    NOT_JSON: "the line is not one JSON object",
    QUERY_TOO_LONG: "the query is longer than 1 MiB",
    FIELD_TOO_LONG: "a field other than the query is longer than 4 MiB",
    NO_USER: "the user is empty, or is not a text or number",
    NO_QUERY: "the query is empty, or is not a text or number",
    UNREADABLE_TIME: "the time has none of the known forms, is no date of the calendar, or is a number that "
    "is no time between 1980 and 2100",
    NO_TIME: "the log has a time column, but this row's time is empty",
    UNREADABLE_RANK: "the rank is not a whole number",
    CLICK_ALONE: "a UBI click event whose query_id belongs to no query (numbered after all queries)",
    NOT_A_SEARCH: "an activity of a Google export that is no search",
}
TEXTS: Final = ("user", "query", "url", "category")
_EMPTY: Final = {"user": NO_USER, "query": NO_QUERY, "time": NO_TIME}

#: Bad rows by reason: sorted 0-based data rows.
BadRows = dict[str, IntArray]
TimeParser = Callable[[pl.Series], pl.Series]


def add_bad_rows(bad: BadRows, reason: str, rows: Iterable[int] | IntArray) -> None:
    """Add bad rows of one reason; they stay sorted."""
    numbers = rows if isinstance(rows, np.ndarray) else np.asarray([*rows], dtype=np.int64)
    if numbers.size:
        bad[reason] = np.sort(np.concatenate([bad.get(reason, numbers[:0]), numbers]))


def bad_rows(reasons: Sequence[object], first_row: int) -> BadRows:
    """Return the rows whose entry is a reason (a text), numbered from `first_row`."""
    found: dict[str, list[int]] = {}
    for row, reason in enumerate(reasons, first_row):
        if isinstance(reason, str):
            found.setdefault(reason, []).append(row)
    return {reason: np.asarray(rows, dtype=np.int64) for reason, rows in found.items()}


def validate(table: RawTable, options: ReadOptions, parse_time: TimeParser = times.parse) -> RawTable:
    """Return the table with typed columns; its bad rows are moved to `bad`."""
    frame = _with_texts(table.frame)
    wrong = pl.Series([False]).new_from_index(0, frame.height)
    typed: list[pl.Series] = []
    for reason, mask in _faults(frame, table, options, parse_time, typed):
        if mask.any():
            fresh = mask.fill_null(False) & ~wrong
            add_bad_rows(table.bad, reason, frame["row"].filter(fresh).to_numpy())
            wrong = wrong | fresh
    frame = frame.with_columns(typed)
    if wrong.any():
        frame = frame.filter(~wrong)
    if options.strict:
        raise_on_bad_row(table)
    return replace(table, frame=frame.select("row", *ordered(frame.columns)))


def ordered(names: Sequence[str]) -> list[str]:
    """Return canonical columns in their order, then the others; without `row`."""
    return [n for n in CANONICAL if n in names] + [n for n in names if n not in (*CANONICAL, "row")]


def raise_on_bad_row(table: RawTable) -> None:
    """Raise DataError for the earliest bad row, if there is one."""
    if table.bad:
        row, reason = min((int(rows[0]), reason) for reason, rows in table.bad.items())
        raise DataError(
            f"data row {row} (counted from 0): {reason}; {REASONS[reason]}",
            hint="without --strict, bad rows are counted and left out",
        )


def _with_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """Cast text columns to texts, and replace empty texts by null."""
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
    frame: pl.DataFrame, table: RawTable, options: ReadOptions, parse_time: TimeParser, typed: list[pl.Series]
) -> Iterator[tuple[str, pl.Series]]:
    """Yield reasons and the rows they hold for, in the order in which they count."""
    texts = [s for s in frame.get_columns() if s.dtype == pl.String]
    for column in (s for s in frame.get_columns() if s.dtype == pl.Binary and s.name in TEXTS):
        text = _decoded(column)
        texts.append(text)
        yield NOT_UTF8, text.is_null() & column.is_not_null()
        typed.append(text.set((text == "").fill_null(False), None))
    suspects = _suspects(texts, table)
    for column in texts:
        if suspects.get(f"nul {column.name}"):
            yield NUL_BYTE, column.str.contains("\0", literal=True)
    for column in texts:
        if column.name == "query" and suspects.get(f"size {column.name}", 0) > QUERY_LIMIT:
            yield QUERY_TOO_LONG, column.str.len_bytes() > QUERY_LIMIT
    for column in texts:
        if suspects.get(f"size {column.name}", 0) > FIELD_LIMIT:
            yield FIELD_TOO_LONG, column.str.len_bytes() > FIELD_LIMIT
    yield from _empty_cells(frame, ("user", "query"), options)
    if "time" in frame.columns:
        column = frame["time"]
        is_native = column.dtype in (pl.Datetime, pl.Date)
        typed.append(times.native(column) if is_native else parse_time(column.cast(pl.String)))
        yield UNREADABLE_TIME, typed[-1].is_null() & column.is_not_null()
    yield from _empty_cells(frame, ("time",), options)
    if "rank" in frame.columns:
        typed.append(_as_ranks(frame["rank"]))
        yield UNREADABLE_RANK, typed[-1].is_null() & frame["rank"].is_not_null()


def _decoded(column: pl.Series) -> pl.Series:
    """Return bytes as texts; null for those that are not UTF-8, at which the cast of polars stops."""
    try:
        return column.cast(pl.String)
    except pl.exceptions.ComputeError:
        return pl.Series(column.name, [_text_of(value) for value in column], pl.String)


def _text_of(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _suspects(texts: list[pl.Series], table: RawTable) -> dict[str, int]:
    """Return which columns hold a NUL and how long their longest text is, in one parallel pass."""
    looks = []
    for column in texts:
        if table.may_hold_nul:
            nul = pl.col(column.name).str.contains("\0", literal=True)
            looks.append(nul.any().alias(f"nul {column.name}"))
        if table.may_be_long:
            looks.append(pl.col(column.name).str.len_bytes().max().fill_null(0).alias(f"size {column.name}"))
    return pl.DataFrame(texts).select(looks).row(0, named=True) if looks else {}


def _empty_cells(
    frame: pl.DataFrame, names: Sequence[str], options: ReadOptions
) -> Iterator[tuple[str, pl.Series]]:
    for name in names:
        if name in options.required and name in frame.columns:
            empty = frame[name].is_null()
            if frame.schema[name] == pl.Binary:
                empty = empty | (frame[name].bin.size() == 0)
            yield _EMPTY[name], empty


def _as_ranks(column: pl.Series) -> pl.Series:
    """Return whole numbers; `3.0` is one, since tables with gaps are often written so."""
    if column.dtype == pl.String:
        digits = column.str.strip_suffix(".0") if column.str.contains(".", literal=True).any() else column
        return digits.cast(pl.Int64, strict=False)
    if column.dtype.is_float():
        whole = column.cast(pl.Int64, strict=False)
        return whole.set((whole.cast(column.dtype) != column).fill_null(True), None)
    return column.cast(pl.Int64, strict=False)
