"""CSV and TSV: parser, encoder, detection; also the base of formats with fixed columns and no quoting."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import polars as pl

from querycloak.errors import DataError
from querycloak.formats import csv_lines, validation
from querycloak.formats.columns import canonical_name, map_columns
from querycloak.formats.csv_lines import Flags, LineTable, Record
from querycloak.formats.layout import Layout
from querycloak.formats.output import Encoder, OutputFile, TextEncoder
from querycloak.formats.reading import RawTable, ReadOptions
from querycloak.formats.registry import FormatTraits, LineFormat, Match
from querycloak.formats.source import Block
from querycloak.formats.validation import BadRows, add_bad_rows

_DELIMITERS: Final = ",;\t|"


class Delimited(LineFormat):
    """Lines of separated fields."""

    def parser(self, first_line: bytes, options: ReadOptions) -> DelimitedParser:
        """Return a parser; `first_line` is the header if the format has one."""
        base = self.default_layout(())
        columns, delimiter = base.columns, base.delimiter
        if self.traits.header:
            text = _header_text(first_line, options.where)
            delimiter = self.delimiter_of(text)
            quoted = csv.reader(io.StringIO(text), delimiter=delimiter) if self.traits.quoting else None
            columns = tuple(next(quoted) if quoted else text.split(delimiter))
        newline = "\r\n" if first_line.endswith(b"\r") else "\n"
        own = {name: column for name, column in self.names.items() if column in columns}
        chosen = replace(options, mapping={**own, **options.mapping})
        layout = replace(base, columns=columns, delimiter=delimiter, newline=newline)
        return DelimitedParser(layout, self.traits.quoting, chosen)

    def delimiter_of(self, header: str) -> str:
        """Return the delimiter that a header uses."""
        return self.delimiter

    def encoder(self, layout: Layout, output: OutputFile) -> Encoder:
        """Return an encoder that writes records to `output`."""
        quoting = self.traits.quoting
        return TextEncoder(
            output,
            lambda frame, first_row: _encode(frame, layout, quoting, first_row),
            _encode_header(layout, quoting),
        )


class Tsv(Delimited):
    """Tab-separated values with a header and quoting as in CSV."""

    name = "tsv"
    traits = FormatTraits(
        extensions=(".tsv", ".tab", ".txt", ".log"), by_line=True, quoting=True, header=True
    )
    delimiter = "\t"

    def detect(self, head: bytes, file_name: str) -> Match:
        """Return how well a file fits: by the tabs of its first line."""
        first = _first_line(head)
        if first is None or file_name.lower().endswith(".csv"):
            return Match.NO
        if not first:
            return super().detect(head, file_name)
        if "\t" not in first:
            return Match.NO
        return Match.CERTAIN if _names_a_query(first, "\t") else Match.POSSIBLE


class Csv(Delimited):
    """Comma-separated values (RFC 4180); `;`, tab and `|` are recognised as delimiters too."""

    name = "csv"
    traits = FormatTraits(extensions=(".csv", ".txt", ".log"), by_line=True, quoting=True, header=True)
    delimiter = ","

    def detect(self, head: bytes, file_name: str) -> Match:
        """Return how well a file fits: by its header and its name."""
        first, named = _first_line(head), file_name.lower().endswith(".csv")
        if first is None:
            return Match.NO
        if not first or ("\t" in first and not named):
            return Match.POSSIBLE if named else Match.NO
        return Match.CERTAIN if _names_a_query(first, self.delimiter_of(first)) else Match.POSSIBLE

    def delimiter_of(self, header: str) -> str:
        """Return the delimiter that a header uses most."""
        return max(_DELIMITERS, key=header.count)


def _first_line(head: bytes) -> str | None:
    """Return the first line; None if the file is JSON or not a text."""
    if head.lstrip()[:1] == b"{" or head.startswith(b"PAR1"):
        return None
    return head.partition(b"\n")[0].strip().decode(errors="replace")


def _names_a_query(header: str, delimiter: str) -> bool:
    return any(canonical_name(name.strip(' "\r')) == "query" for name in header.split(delimiter))


class DelimitedParser:
    """Parses blocks: regular lines by polars, irregular ones one by one."""

    def __init__(self, layout: Layout, quoting: bool, options: ReadOptions) -> None:
        found = map_columns(list(layout.columns), options)
        self._sources, self.dropped = found.sources, found.dropped
        names = {name: layout.columns[place] for name, place in found.sources.items()}
        kept = tuple(name for name in names if name in options.keep and names[name] == name)
        mapping = {name: column for name, column in names.items() if name not in kept}
        self.layout = replace(layout, mapping=mapping, kept=kept)
        self._quoting, self._width = quoting, len(layout.columns)

    def parse(self, block: Block, first_row: int = 0) -> RawTable:
        """Return the rows of a block, numbered from `first_row`."""
        bad: BadRows = {}
        if block.overlong:
            add_bad_rows(bad, validation.FIELD_TOO_LONG, [first_row])
            return RawTable(self._frame_of_records({}), first_row, 1, bad)
        lines = csv_lines.split(block.data, self.layout.delimiter, self._quoting, self._width)
        begins, records, unparsed = self._parse_irregular(lines, block.final)
        rows = np.cumsum(begins) - 1 + first_row
        simple = begins & ~lines.irregular
        for reason, wrong in csv_lines.faults(lines, self._quoting, self._width):
            wrong = wrong[simple[wrong]]  # noqa: PLW2901 - only lines without a reason yet
            add_bad_rows(bad, reason, rows[wrong])
            simple[wrong] = False
        frame = self._frame_of_lines(lines.only(simple), pl.Series(rows[simple]))
        if records:
            found = dict(zip(rows[list(records)].tolist(), records.values(), strict=True))
            for reason in {record.reason for record in found.values()} - {""}:
                add_bad_rows(bad, reason, [row for row, record in found.items() if record.reason == reason])
            good = {row: record.fields for row, record in found.items() if not record.reason}
            frame = frame.vstack(self._frame_of_records(good)).sort("row")
        return RawTable(
            frame,
            first_row,
            int(begins.sum()),
            bad,
            may_hold_nul=False,
            may_be_long=lines.longest > validation.QUERY_LIMIT or bool(records),
            unparsed=unparsed,
        )

    def _parse_irregular(self, lines: LineTable, final: bool) -> tuple[Flags, dict[int, Record], bytes]:
        """Parse the records at irregular lines.

        Return which lines begin a row, the records by line, and the bytes of a record that continues after
        the block; these are removed from the lines.
        """
        starts, data, delimiter = lines.starts, lines.data, self.layout.delimiter.encode()
        begins, records, done = np.ones(starts.size, dtype=np.bool_), dict[int, Record](), 0
        for line in np.flatnonzero(lines.irregular).tolist():
            if line < done:
                continue
            start = int(starts[line])
            try:
                records[line] = csv_lines.parse_record(data, start, delimiter, self._width, final)
            except csv_lines.NeedMore:
                lines.truncate(line)
                return begins[:line], records, data[start:]
            done = int(np.searchsorted(starts, records[line].end))
            begins[line + 1 : done] = False
        return begins, records, b""

    def _frame_of_lines(self, data: bytes, rows: pl.Series) -> pl.DataFrame:
        """Return a frame of lines that are known to be regular."""
        if not data:
            return self._frame_of_records({})
        frame = pl.read_csv(
            data,
            has_header=False,
            separator=self.layout.delimiter,
            quote_char='"' if self._quoting and b'"' in data else None,
            schema={f"column_{place}": pl.String for place in range(self._width)},
            columns=sorted(self._sources.values()),
            raise_if_empty=False,
        )
        names = [pl.col(f"column_{place}").alias(name) for name, place in self._sources.items()]
        return frame.select(rows.alias("row"), *names)

    def _frame_of_records(self, records: Mapping[int, list[bytes]]) -> pl.DataFrame:
        """Return a frame of records that were parsed one by one, by their rows."""
        columns: dict[str, pl.Series] = {"row": pl.Series([*records], dtype=pl.Int64)}
        for name, place in self._sources.items():
            texts = [fields[place].decode() or None for fields in records.values()]
            columns[name] = pl.Series(texts, dtype=pl.String)
        return pl.DataFrame(columns)


def _header_text(line: bytes, where: str) -> str:
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{where} is UTF-16, not UTF-8", hint="convert it, for example with iconv")
    if not line.strip():
        raise DataError(f"{where} is empty: it has not even a header")
    try:
        return line.removesuffix(b"\r").decode()
    except UnicodeDecodeError:
        raise DataError(f"{where}: the header is not UTF-8", hint="convert the file to UTF-8") from None


def _encode_header(layout: Layout, quoting: bool) -> bytes:
    if not layout.header:
        return b""
    if not quoting:
        return (layout.delimiter.join(layout.columns) + layout.newline).encode()
    text = io.StringIO()
    csv.writer(text, delimiter=layout.delimiter, lineterminator=layout.newline).writerow(layout.columns)
    return text.getvalue().encode()


def _encode(frame: pl.DataFrame, layout: Layout, quoting: bool, first_row: int) -> bytes:
    table = layout.arrange(frame, first_row)
    for column, kind in zip(layout.columns, table.dtypes, strict=True):
        if kind.is_nested() or kind == pl.Object:
            raise DataError(
                f"the column `{column}` has nested values, which the format {layout.format} cannot hold",
                hint="choose jsonl or parquet for the output",
            )
    data = table.write_csv(
        include_header=False,
        separator=layout.delimiter,
        line_terminator=layout.newline,
        quote_style="necessary" if quoting else "never",
    ).encode()
    if not quoting:
        # if no value contains a tab or a line end, their numbers are known
        returns = table.height if layout.newline == "\r\n" else 0
        expected = {b"\n": table.height, b"\r": returns, b"\t": table.height * (table.width - 1)}
        if any(data.count(sign) != count for sign, count in expected.items()):
            raise _unwritable(table, layout, first_row)
    return data


def _unwritable(table: pl.DataFrame, layout: Layout, first_row: int) -> DataError:
    for place, column in enumerate(layout.columns):
        texts = table.to_series(place).cast(pl.String)
        wrong = texts.str.contains("[\t\r\n]").fill_null(False)
        if wrong.any():
            return DataError(
                f"output row {first_row + int(wrong.arg_true()[0])}: the column `{column}` holds a tab or a "
                f"line end, which the format {layout.format} cannot hold",
                hint="choose another format for the output, for example csv",
            )
    return DataError(f"the rows cannot be written as {layout.format}")
