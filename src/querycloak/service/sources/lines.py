"""From whole lines of a file to records; what the lines mean is known from the file's first one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Final

import polars as pl

from querycloak.errors import DataError, QueryCloakError
from querycloak.formats import LineFormat, ReadOptions, detect
from querycloak.formats.source import BYTE_ORDER_MARK, Block
from querycloak.formats.validation import validate
from querycloak.service.ingest.parse import FIELDS, ParsedBody, Record, Value, parse, to_columns

#: Everything that can go wrong; a fault inside polars is no `Exception`.
FAULTS: Final = (Exception, pl.exceptions.PanicException)
_OPTIONS: Final = ReadOptions(required=("user", "query"))
_NO_HEADER: Final = "the first line of the file to follow does not name the columns of a log"


class Form:
    """How the lines of a file are read: JSON lines, or any other format of lines."""

    def __init__(self, first: bytes) -> None:
        self._first = first.removeprefix(BYTE_ORDER_MARK)
        self._json = self._first.lstrip()[:1] in (b"{", b"")
        self._format = None if self._json else _format(self._first)
        self._header = first + b"\n" if self._format is not None and self._format.traits.header else b""

    @property
    def begin(self) -> int:
        """Where the first record of a file stands."""
        return len(self._header)

    def read(self, lines: bytes) -> ParsedBody:
        """Read records; bad ones are counted. A file that is no log is refused, without showing any of it."""
        if self._format is None:
            return parse(lines.removeprefix(BYTE_ORDER_MARK), lines=True)
        try:
            parser = self._format.parser(self._first, _OPTIONS)
        except QueryCloakError:  # its message may show the first line, which may be a record
            raise DataError(_NO_HEADER) from None
        table = validate(parser.parse(Block(lines, final=True)), _OPTIONS, self._format.parse_time)
        return ParsedBody(_records(table.frame), table.frame["row"].to_list(), table.rows, table.bad)

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


def _format(first: bytes) -> LineFormat:
    found = detect(first + b"\n")
    if not isinstance(found, LineFormat):
        raise DataError("the file to follow is not made of lines")
    return found


def _records(frame: pl.DataFrame) -> list[Record]:
    if "time" in frame.columns:
        frame = frame.with_columns(frame["time"].dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ"))
    return [Record(**row) for row in frame.select(n for n in FIELDS if n in frame.columns).to_dicts()]


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
