"""`read` a whole log, or its `pieces`: the same rows, the same numbers, the same bad rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

import polars as pl

from querycloak.errors import UsageError
from querycloak.formats import times
from querycloak.formats.clean import TimeParser, clean, ordered
from querycloak.formats.columns import check_options
from querycloak.formats.delimited import DelimitedReader
from querycloak.formats.jsonl import JsonLinesReader
from querycloak.formats.layout import Layout
from querycloak.formats.parquet import FrameReader, ParquetReader, type_named
from querycloak.formats.sniff import format_of, ubi_files
from querycloak.formats.streams import Progress, Source
from querycloak.formats.table import Options, Table
from querycloak.formats.ubi import UbiReader
from querycloak.log import Log, Skipped

_TYPES: Final[dict[str, Any]] = {"row": pl.Int64, "time": times.TIME, "rank": pl.Int64}


class Reader(Protocol):
    """What every format offers: its rows in stretches, and how the file looks."""

    layout: Layout
    parse_time: TimeParser

    @property
    def dropped(self) -> tuple[str, ...]:
        """The columns that are not passed on."""

    def tables(self) -> Iterator[Table]:
        """Give the rows in stretches, values as the file has them."""


#: A log to be read: a file, standard input (`-`), the bytes of a file, or a table.
Input = str | Path | bytes | pl.DataFrame | pl.LazyFrame


def read(
    path: Input,
    *,
    format: str | None = None,  # noqa: A002 - the word of the command line
    mapping: Mapping[str, str] | None = None,
    keep: Sequence[str] = (),
    strict: bool = False,
    required: Sequence[str] = ("user", "query", "time"),
    layout: Layout | None = None,
    events: str | Path | None = None,
    progress: Progress | None = None,
) -> Log:
    """Read a log: every good row, typed and named as `Log` says; bad rows are counted, not passed on.

    `mapping` leads from canonical names to the file's columns. Cells of `required` columns must not be
    empty. `layout` says what is known of the file already. `events` names the UBI events that belong
    to a file of UBI queries. `progress` is called with the bytes read so far and in all.
    """
    options, format = _options(mapping, keep, strict, required, layout, format)  # noqa: A001
    with ExitStack() as stack:
        reader = _open(path, format, options, events, progress, stack)
        tables = list(_clean_tables(reader, options))
        return _log(tables, reader)


def pieces(
    path: Input,
    *,
    rows: int = 1_000_000,
    format: str | None = None,  # noqa: A002
    mapping: Mapping[str, str] | None = None,
    keep: Sequence[str] = (),
    strict: bool = False,
    required: Sequence[str] = ("user", "query", "time"),
    layout: Layout | None = None,
    events: str | Path | None = None,
    progress: Progress | None = None,
) -> Iterator[Log]:
    """Read a log in pieces of so many data rows, bad ones included; memory stays bounded.

    There is always at least one piece, so that an empty log has a layout too.
    """
    if rows < 1:
        raise UsageError(f"a piece must have at least 1 row; got {rows}")
    options, format = _options(mapping, keep, strict, required, layout, format)  # noqa: A001
    with ExitStack() as stack:
        reader = _open(path, format, options, events, progress, stack)
        given = False
        for group in _regroup(_clean_tables(reader, options), rows):
            given = True
            yield _log(group, reader)
        if not given:
            yield _log([], reader)


def _options(
    mapping: Mapping[str, str] | None,
    keep: Sequence[str],
    strict: bool,
    required: Sequence[str],
    layout: Layout | None,
    format: str | None,  # noqa: A002
) -> tuple[Options, str | None]:
    """Put together what was asked for; a known layout answers what was not."""
    if layout is not None:
        mapping = {**layout.mapping, **(mapping or {})}
        keep = tuple(dict.fromkeys([*layout.kept, *keep]))
        format = format or layout.format  # noqa: A001
    options = Options(mapping or {}, keep, strict, required)
    check_options(options)
    return options, format


def _open(
    path: Input,
    format: str | None,  # noqa: A002
    options: Options,
    events: str | Path | None,
    progress: Progress | None,
    stack: ExitStack,
) -> Reader:
    if isinstance(path, pl.DataFrame | pl.LazyFrame):
        return FrameReader(path.lazy(), options)
    if isinstance(path, str | Path) and str(path) != "-" and Path(path).is_dir():
        path, in_folder = ubi_files(Path(path))
        events, format = events or in_folder, format or "ubi"  # noqa: A001
    source = Source(path, progress)
    stack.callback(source.close)
    kind = "ubi" if events is not None and format is None else format_of(source, format)
    if kind == "ubi":
        clicks = Source(events) if events is not None else None
        if clicks is not None:
            stack.callback(clicks.close)
        return UbiReader(source, clicks, options)
    if events is not None:
        raise UsageError(f"`events` goes with the format ubi, not with {kind}")
    if kind == "parquet":
        return ParquetReader(source, options)
    return JsonLinesReader(source, options) if kind == "jsonl" else DelimitedReader(source, kind, options)


def _clean_tables(reader: Reader, options: Options) -> Iterator[Table]:
    styled = reader.layout.time_style == times.EXCITE
    for raw in reader.tables():
        if not styled and "time" in raw.frame.columns:
            style = _time_style(raw.frame["time"])
            styled = bool(style)
            reader.layout = replace(reader.layout, time_style=style or reader.layout.time_style)
        yield clean(raw, options, reader.parse_time)


def _time_style(column: pl.Series) -> str:
    """Describe the first readable time of a column."""
    if column.dtype in (pl.Datetime, pl.Date):
        return times.NATIVE
    texts = column.drop_nulls().head(1000).cast(pl.String)
    good = texts.filter(times.parse(texts).is_not_null())
    return times.style_of(good[0]) if len(good) else ""


def _regroup(tables: Iterator[Table], rows: int) -> Iterator[list[Table]]:
    """Cut stretches anew, so that each group has `rows` data rows."""
    group: list[Table] = []
    room = rows
    for table in tables:
        rest = table
        while rest.rows >= room:
            head, rest = _cut(rest, room)
            yield [*group, head]
            group, room = [], rows
        if rest.rows:
            group.append(rest)
            room -= rest.rows
    if group:
        yield group


def _cut(table: Table, size: int) -> tuple[Table, Table]:
    """Split a stretch after so many data rows."""
    at = table.first + size
    split = int(table.frame["row"].search_sorted(at))
    left = {reason: rows[rows < at] for reason, rows in table.bad.items()}
    right = {reason: rows[rows >= at] for reason, rows in table.bad.items()}
    return (
        Table(table.frame[:split], table.first, size, left),
        Table(table.frame[split:], at, table.rows - size, right),
    )


def _log(tables: list[Table], reader: Reader) -> Log:
    """Put stretches together as one log."""
    frames = [table.frame for table in tables if table.frame.height]
    frame = pl.concat(frames, how="diagonal_relaxed") if frames else _empty(reader.layout)
    skipped = Skipped()
    for table in tables:
        for reason, rows in table.bad.items():
            skipped.add(reason, rows)
    return Log(
        frame=frame.select("row", *ordered(frame.columns)),
        layout=reader.layout,
        skipped=skipped,
        rows_read=sum(table.rows for table in tables),
        dropped_columns=reader.dropped,
    )


def _empty(layout: Layout) -> pl.DataFrame:
    """Give the frame of a log without rows."""
    names = ["row", *ordered([*layout.mapping, *layout.kept])]
    kept = {name: type_named(layout.types.get(name, "String")) for name in layout.kept}
    return pl.DataFrame(schema={name: _TYPES.get(name, kept.get(name, pl.String)) for name in names})
