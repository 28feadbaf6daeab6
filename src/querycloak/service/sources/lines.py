"""From whole lines of a file to records; what the lines mean is known from the file's first one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Final

import polars as pl

from querycloak.errors import DataError, QueryCloakError
from querycloak.formats.clean import clean
from querycloak.formats.delimited import DelimitedReader
from querycloak.formats.sniff import format_of
from querycloak.formats.streams import Source
from querycloak.formats.table import Faults, Options, note
from querycloak.service.ingest.parse import FIELDS, ParsedBody, Record, Value, parse, to_columns

#: Everything that can go wrong; a fault inside polars is no `Exception`.
FAULTS: Final = (Exception, pl.exceptions.PanicException)
_OPTIONS: Final = Options(required=("user", "query"))
_MARK: Final = b"\xef\xbb\xbf"
_NO_HEADER: Final = "the first line of the file to follow does not name the columns of a log"


class _Held(Source):
    """Bytes in memory that are read like those of a file: nothing of them touches a disk."""

    def __init__(self, data: bytes) -> None:
        self.path, self.compression, self.head = "lines", "", data.removeprefix(_MARK)

    def chunks(self) -> Iterator[bytes]:
        yield self.head


class Form:
    """How the lines of a file are read: JSON lines, Excite, or TSV or CSV with a header."""

    def __init__(self, first: bytes) -> None:
        self._json = first.removeprefix(_MARK).lstrip()[:1] in (b"{", b"")
        self._format = "jsonl" if self._json else _format(first)
        self._header = b"" if self._format in ("jsonl", "excite") else first + b"\n"

    @property
    def begin(self) -> int:
        """Where the first record of a file stands."""
        return len(self._header)

    def read(self, lines: bytes) -> ParsedBody:
        """Read records; bad ones are counted. A file that is no log is refused, without showing any of it."""
        if self._json:
            return parse(lines.removeprefix(_MARK), lines=True)
        try:
            reader = DelimitedReader(_Held(self._header + lines), self._format, _OPTIONS)
        except QueryCloakError:  # its message may show the first line, which may be a record
            raise DataError(_NO_HEADER) from None
        return _records(reader)

    def begins(self, lines: bytes) -> list[int]:
        """Say where each row begins; empty lines are none in JSON lines."""
        every = lines.split(b"\n")[:-1]
        starts = accumulate((len(line) + 1 for line in every), initial=0)
        return [start for start, line in zip(starts, every, strict=False) if not self._json or line.strip()]

    def can_read(self, lines: bytes) -> bool:
        """Say whether lines can be read and typed, be they good or bad."""
        try:
            to_columns([self.read(lines)], 0)
        except FAULTS:
            return False
        return True


def _format(first: bytes) -> str:
    found = format_of(_Held(first + b"\n"), None)
    if found == "parquet":
        raise DataError("the file to follow is not made of lines")
    return found


def _records(reader: DelimitedReader) -> ParsedBody:
    records: list[Record] = []
    rows: list[int] = []
    bad: Faults = {}
    size = 0
    for raw in reader.tables():
        table = clean(raw, _OPTIONS, reader.parse_time)
        for reason, some in table.bad.items():
            note(bad, reason, some)
        frame = table.frame.with_columns(
            table.frame[name].dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")
            for name in ("time",)
            if name in table.frame.columns
        )
        rows += frame["row"].to_list()
        records += [
            Record(**row) for row in frame.select(pl.col(n) for n in FIELDS if n in frame.columns).to_dicts()
        ]
        size = table.end
    return ParsedBody(records, rows, size, bad)


def before_last_search(parsed: ParsedBody, begins: list[int], size: int) -> tuple[ParsedBody, int]:
    """Leave out the rows of the last search, since more of them may follow; say where they begin.

    A search without a time is one row. Where rows are not lines (quoted line ends), all are given.
    """
    records = parsed.records
    if not records or records[-1].time in (None, "") or len(begins) != parsed.size:
        return parsed, size
    first = len(records) - 1
    while first and _search(records[first - 1]) == _search(records[-1]):
        first -= 1
    row = parsed.rows[first]
    bad = {reason: rows[rows < row] for reason, rows in parsed.bad.items()}
    kept = {reason: rows for reason, rows in bad.items() if rows.size}
    return ParsedBody(records[:first], parsed.rows[:first], row, kept), begins[row]


def _search(record: Record) -> tuple[Value, Value, Value]:
    return record.user, record.query, record.time


def sieve(lines: list[bytes], can_read: Callable[[bytes], bool]) -> list[bytes]:
    """Leave out lines that no reader was prepared for, found by halving."""
    if can_read(b"".join(lines)):
        return lines
    half = len(lines) // 2
    return [line for some in (lines[:half], lines[half:]) for line in sieve(some, can_read)] if half else []
