"""Reading and writing AOL, Excite, CSV and TSV: whole blocks at once, odd lines with care."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from querycloak.errors import DataError
from querycloak.formats import careful, reasons, times
from querycloak.formats import lines as line_judge
from querycloak.formats.clean import TimeParser
from querycloak.formats.columns import Plan, plan
from querycloak.formats.layout import AOL, EXCITE, UNQUOTED, Layout, default_layout
from querycloak.formats.lines import Lines
from querycloak.formats.streams import Block, LineBlocks, Source, shown
from querycloak.formats.table import Faults, Options, Table, as_rows, note


@dataclass(frozen=True)
class Shape:
    """What a row must look like."""

    delimiter: str
    width: int
    quoting: bool


class DelimitedReader:
    """Gives the tables of a file whose records are lines with separated fields."""

    def __init__(self, source: Source, format: str, options: Options) -> None:  # noqa: A002
        self._blocks = LineBlocks(source.chunks())
        self._quoting = format not in UNQUOTED
        self.parse_time: TimeParser = times.parse_excite if format == "excite" else times.parse
        self.layout = self._look(source, format)
        self._plan = self._choose(options, shown(source.path))
        self.dropped = self._plan.dropped
        names = {name: self.layout.columns[place] for name, place in self._plan.sources.items()}
        kept = tuple(name for name in names if name in options.keep and names[name] == name)
        mapping = {name: column for name, column in names.items() if name not in kept}
        self.layout = replace(self.layout, mapping=mapping, kept=kept)
        self.shape = Shape(self.layout.delimiter, len(self.layout.columns), self._quoting)

    def _look(self, source: Source, format: str) -> Layout:  # noqa: A002
        base = replace(default_layout(format), compression=source.compression)
        if format == "excite":
            first = source.head.partition(b"\n")[0]
            return replace(base, newline="\r\n" if first.endswith(b"\r") else "\n")
        line = self._blocks.first_line()
        text = _header_text(line, shown(source.path))
        delimiter = _delimiter(text, format)
        columns = _split_header(text, delimiter, self._quoting)
        newline = "\r\n" if line.endswith(b"\r") else "\n"
        return replace(base, columns=columns, delimiter=delimiter, newline=newline)

    def _choose(self, options: Options, where: str) -> Plan:
        names = list(self.layout.columns)
        known = {"aol": AOL, "excite": EXCITE}.get(self.layout.format, {})
        mapping = {canonical: name for canonical, name in known.items() if name in names}
        return plan(names, replace(options, mapping={**mapping, **options.mapping}), where)

    def tables(self) -> Iterator[Table]:
        """Give the file's rows in stretches."""
        first = 0
        for block in self._blocks:
            table = self._table(block, first)
            first = table.end
            yield table

    def _table(self, block: Block, first: int) -> Table:
        if block.overlong:
            return Table(self.careful_frame([], []), first, 1, {reasons.FIELD_TOO_LONG: as_rows([first])})
        shape = self.shape
        lines = line_judge.split(block.data, shape.delimiter, shape.quoting, shape.width)
        reading = _Reading(self, lines, first)
        tail = reading.read_odd_lines(block.final)
        if tail:
            self._blocks.push_back(tail)
        return reading.table()

    def fast_frame(self, data: bytes, rows: pl.Series) -> pl.DataFrame:
        """Let polars split lines that are known to be as they should be."""
        if not data:
            return self.careful_frame([], [])
        places = sorted(self._plan.sources.values())
        frame = pl.read_csv(
            data,
            has_header=False,
            separator=self.layout.delimiter,
            quote_char='"' if self._quoting and b'"' in data else None,
            schema={f"column_{place}": pl.String for place in range(self.shape.width)},
            columns=places,
            raise_if_empty=False,
        )
        names = [pl.col(f"column_{place}").alias(name) for name, place in self._plan.sources.items()]
        return frame.select(rows.alias("row"), *names)

    def careful_frame(self, rows: list[int], records: list[list[bytes]]) -> pl.DataFrame:
        """Build a frame from records that were read with care."""
        columns: dict[str, pl.Series] = {"row": pl.Series(rows, dtype=pl.Int64)}
        for name, place in self._plan.sources.items():
            texts = [fields[place].decode() or None for fields in records]
            columns[name] = pl.Series(texts, dtype=pl.String)
        return pl.DataFrame(columns)


class _Reading:
    """The judgement of one block: which lines begin a row, which are good, which were read with care."""

    def __init__(self, reader: DelimitedReader, lines: Lines, first: int) -> None:
        self._reader, self._lines, self._first = reader, lines, first
        self._begins = np.ones(lines.ends.size, dtype=np.bool_)
        self._records: dict[int, careful.Record] = {}

    def read_odd_lines(self, final: bool) -> bytes:
        """Read the records at odd lines; give back the bytes of one that goes on after the block."""
        starts, data, shape = self._lines.starts, self._lines.data, self._reader.shape
        delimiter, done = shape.delimiter.encode(), 0
        for line in np.flatnonzero(self._lines.odd).tolist():
            if line < done:
                continue
            start = int(starts[line])
            try:
                record = careful.read_record(data, start, delimiter, shape.width, final)
            except careful.NeedMore:
                self._cut(line)
                return data[start:]
            done = int(np.searchsorted(starts, record.end))
            self._begins[line + 1 : done] = False
            self._records[line] = record
        return b""

    def _cut(self, line: int) -> None:
        """Leave this line and all after it for the next block."""
        lines = self._lines
        size = int(lines.starts[line])
        lines.ends, lines.fields, lines.odd = lines.ends[:line], lines.fields[:line], lines.odd[:line]
        lines.data, lines.array = lines.data[:size], lines.array[:size]
        self._begins = self._begins[:line]

    def table(self) -> Table:
        """Put good rows into a frame and bad ones beside it."""
        lines = self._lines
        rows = np.cumsum(self._begins) - 1 + self._first
        simple = self._begins & ~lines.odd
        simple[list(self._records)] = False
        bad: Faults = {}
        for reason, wrong in [*line_judge.faults(lines, self._reader.shape.quoting), *self._miscounted()]:
            wrong = wrong[simple[wrong]]  # noqa: PLW2901 - only lines not judged yet
            note(bad, reason, rows[wrong])
            simple[wrong] = False
        frame = self._reader.fast_frame(lines.only(simple), pl.Series(rows[simple]))
        return Table(
            self._with_careful(frame, rows.tolist() if self._records else [], bad),
            self._first,
            int(self._begins.sum()),
            bad,
            may_hold_nul=False,
            may_be_long=lines.longest > reasons.QUERY_LIMIT or bool(self._records),
        )

    def _miscounted(self) -> list[tuple[str, np.ndarray]]:
        width, fields = self._reader.shape.width, self._lines.fields
        if (fields == width).all():
            return []
        return [
            (reasons.TOO_FEW, np.flatnonzero(fields < width)),
            (reasons.TOO_MANY, np.flatnonzero(fields > width)),
        ]

    def _with_careful(self, frame: pl.DataFrame, rows: list[int], bad: Faults) -> pl.DataFrame:
        good = {rows[line]: record.fields for line, record in self._records.items() if not record.reason}
        for reason in {record.reason for record in self._records.values()} - {""}:
            wrong = [rows[line] for line, record in self._records.items() if record.reason == reason]
            note(bad, reason, as_rows(wrong))
        if not good:
            return frame
        return frame.vstack(self._reader.careful_frame(list(good), list(good.values()))).sort("row")


def _header_text(line: bytes, where: str) -> str:
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{where} is UTF-16, not UTF-8", hint="convert it, for example with iconv")
    if not line.strip():
        raise DataError(f"{where} is empty: it has not even a header")
    try:
        return line.removesuffix(b"\r").decode()
    except UnicodeDecodeError:
        raise DataError(f"{where}: the header is not UTF-8", hint="convert the file to UTF-8") from None


def _delimiter(header: str, format: str) -> str:  # noqa: A002
    """Tabs for the tab-separated formats; for CSV, whatever its header uses most."""
    if format != "csv":
        return "\t"
    return max(",;\t|", key=header.count)


def _split_header(header: str, delimiter: str, quoting: bool) -> tuple[str, ...]:
    if not quoting:
        return tuple(header.split(delimiter))
    return tuple(next(csv.reader(io.StringIO(header), delimiter=delimiter)))
