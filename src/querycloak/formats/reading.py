"""`read` a whole log, or its `pieces`: the same rows, the same numbers, the same bad rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import polars as pl

from querycloak.errors import DataError, UsageError
from querycloak.formats import registry, times
from querycloak.formats.columns import check_options
from querycloak.formats.layout import Layout
from querycloak.formats.registry import Format, Reader
from querycloak.formats.source import Progress, Source, check_type, display_name
from querycloak.formats.validation import BadRows, ordered, validate
from querycloak.log import Log, Skipped

_TYPES: Final[dict[str, Any]] = {"row": pl.Int64, "time": times.TIME, "rank": pl.Int64}
#: A log to be read: a file, standard input (`-`), the bytes of a file, or a table.
Input = str | Path | bytes | pl.DataFrame | pl.LazyFrame


@dataclass(frozen=True)
class ReadOptions:
    """How a log is read. `where` is the name of the input in messages.

    `least_usable` is the smallest share of usable rows; 0: at least one row, None: none is needed.
    """

    format: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    keep: Sequence[str] = ()
    strict: bool = False
    required: Sequence[str] = ("user", "query", "time")
    events: str | Path | None = None
    single_person: bool = False
    where: str = "the log"
    least_usable: float | None = 0

    @classmethod
    def of(
        cls,
        layout: Layout | None = None,
        mapping: Mapping[str, str] | None = None,
        keep: Sequence[str] = (),
        format: str | None = None,  # noqa: A002 - the option's name
        **more: Any,
    ) -> ReadOptions:
        """Return options; those that are not given follow a known layout."""
        if layout is not None:
            mapping = {**layout.mapping, **(mapping or {})}
            keep = tuple(dict.fromkeys([*layout.kept, *keep]))
            format = format or layout.format  # noqa: A001
        return cls(format, mapping or {}, keep, **more)

    def as_dict(self) -> dict[str, Any]:
        """Return the options as keyword arguments of `read` and `pieces`."""
        return {name: value for name, value in vars(self).items() if name not in ("where", "least_usable")}

    def check_usable(self, log: object, rows: int, skipped: Skipped) -> None:
        """Raise DataError for a log with too few usable rows."""
        usable, least = rows - skipped.total, self.least_usable
        if least is None or (usable and usable >= least * rows):
            return
        name = display_name(log) if isinstance(log, str | Path) else self.where
        reasons = "; ".join(f"{reason} ({count:,})" for reason, count in skipped.counts.most_common(3))
        hint = "check `--format` and `--map`" if rows else "check the path"
        raise DataError(
            f"{name}: {skipped.total:,} of {rows:,} rows are bad; {reasons}" if rows else f"{name}: no rows",
            hint=hint + ("; `--allow-bad` accepts the log" if least else ""),
        )


@dataclass
class RawTable:
    """Data rows `first` up to, not including, `first + rows`, as a format reads them.

    `frame` has `row` and the wanted columns under their canonical names, values as the file has them.
    `unparsed` are the last lines of a block, which need the next one. The two flags spare checks.
    """

    frame: pl.DataFrame
    first: int
    rows: int
    bad: BadRows = field(default_factory=dict)
    may_hold_nul: bool = True
    may_be_long: bool = True
    unparsed: bytes = b""

    @property
    def end(self) -> int:
        """The number of the next data row."""
        return self.first + self.rows


def read(
    path: Input,
    *,
    format: str | None = None,  # noqa: A002 - the option's name
    mapping: Mapping[str, str] | None = None,
    keep: Sequence[str] = (),
    strict: bool = False,
    required: Sequence[str] = ("user", "query", "time"),
    layout: Layout | None = None,
    events: str | Path | None = None,
    progress: Progress | None = None,
    single_person: bool = False,
) -> Log:
    """Read a log: every good row, typed and named as in `Log`; bad rows are counted, not passed on.

    `mapping` leads from canonical names to the file's columns. Cells of `required` columns must not be
    empty. `layout` is what is known of the file already. `events` names the UBI events that belong
    to a file of UBI queries. `progress` is called with the bytes read so far and in all. With
    `single_person`, formats of one person's history are detected too.
    """
    options = ReadOptions.of(
        layout, mapping, keep, format,
        strict=strict, required=required, events=events, single_person=single_person,
    )  # fmt: skip
    with _open(path, options, progress) as opened:
        return opened.log(list(opened.tables()))


def pieces(
    path: Input, *, rows: int = 1_000_000, progress: Progress | None = None, **options: Any
) -> Iterator[Log]:
    """Read a log in pieces of so many data rows, bad ones included; memory stays bounded.

    The options are those of `read`. There is always at least one piece, so that an empty log has a layout.
    """
    if rows < 1:
        raise UsageError(f"a piece must have at least 1 row; got {rows}")
    with _open(path, ReadOptions.of(**options), progress) as opened:
        empty = True
        for group in _regroup(opened.tables(), rows):
            empty = False
            yield opened.log(group)
        if empty:
            yield opened.log([])


@contextmanager
def _open(path: Input, options: ReadOptions, progress: Progress | None) -> Iterator[_Opened]:
    """Find the format of an input and open it."""
    check_options(options)
    if isinstance(path, pl.DataFrame | pl.LazyFrame):
        from querycloak.formats.parquet import FrameReader

        options = replace(options, where="the table")
        yield _Opened(registry.get("parquet"), FrameReader(path.lazy(), options), options)
        return
    check_type(path)
    known, folder = registry.get(options.format) if options.format else None, None
    if isinstance(path, str | Path) and str(path) != "-" and Path(path).is_dir():
        folder = Path(path)
        known = known or registry.folder_format()
        path = known.find_file(folder)
    source = Source(path, progress, folder)
    try:
        if known is None:
            known = _detect(source, options) if options.events is None else registry.folder_format()
        if options.events is not None and not known.traits.folder:
            raise UsageError(f"`events` goes with the format ubi, not with {known.name}")
        options = replace(options, where=display_name(source.path))
        yield _Opened(known, known.reader(source, options), options, source.compression)
    finally:
        source.close()


def _detect(source: Source, options: ReadOptions) -> Format:
    name = "" if isinstance(source.path, bytes) else Path(source.path).name
    found = registry.detect(source.head, name, single_person=options.single_person)
    if found is None:
        what = "has no known format" if source.head.strip() else "is empty"
        raise DataError(f"{display_name(source.path)} {what}", hint="name its format with --format")
    return found


class _Opened:
    """An opened log: its rows, validated, and the layout with the style of its times."""

    def __init__(self, own: Format, reader: Reader, options: ReadOptions, compression: str = "") -> None:
        self._format, self._reader, self._compression = own, reader, compression
        self._options = options
        self._style = ""

    @property
    def layout(self) -> Layout:
        found = self._reader.layout
        return replace(found, compression=self._compression, time_style=self._style or found.time_style)

    def tables(self) -> Iterator[RawTable]:
        for raw in self._reader.tables():
            if not self._style and "time" in raw.frame.columns:
                self._style = self._first_style(raw.frame["time"])
            yield validate(raw, self._options, self._format.parse_time)

    def _first_style(self, column: pl.Series) -> str:
        """Return the style of the first readable time of a column."""
        if column.dtype in (pl.Datetime, pl.Date):
            return times.NATIVE
        texts = column.drop_nulls().head(1000).cast(pl.String)
        good = texts.filter(self._format.parse_time(texts).is_not_null())
        return self._format.time_style(good[0]) if len(good) else ""

    def log(self, tables: list[RawTable]) -> Log:
        """Join tables into one log."""
        frames = [table.frame for table in tables if table.frame.height]
        frame = pl.concat(frames, how="diagonal_relaxed") if frames else self._empty()
        skipped = Skipped()
        for table in tables:
            for reason, rows in table.bad.items():
                skipped.add(reason, rows)
        return Log(
            frame=frame.select("row", *ordered(frame.columns)),
            layout=self.layout,
            skipped=skipped,
            rows_read=sum(table.rows for table in tables),
            dropped_columns=self._reader.dropped,
        )

    def _empty(self) -> pl.DataFrame:
        """Return the frame of a log without rows."""
        from querycloak.formats.parquet import type_named

        layout = self.layout
        kept = {name: type_named(layout.types.get(name, "String")) for name in layout.kept}
        names = ["row", *ordered([*layout.mapping, *layout.kept])]
        return pl.DataFrame(schema={name: _TYPES.get(name, kept.get(name, pl.String)) for name in names})


def _regroup(tables: Iterator[RawTable], rows: int) -> Iterator[list[RawTable]]:
    """Cut tables so that each group has `rows` data rows."""
    group: list[RawTable] = []
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


def _cut(table: RawTable, size: int) -> tuple[RawTable, RawTable]:
    """Split a table after so many data rows."""
    at = table.first + size
    split = int(table.frame["row"].search_sorted(at))
    left = {reason: rows[rows < at] for reason, rows in table.bad.items()}
    right = {reason: rows[rows >= at] for reason, rows in table.bad.items()}
    return (
        RawTable(table.frame[:split], table.first, size, left),
        RawTable(table.frame[split:], at, table.rows - size, right),
    )
