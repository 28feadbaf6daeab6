"""A followed file as a source: whole lines of a log format become records."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import accumulate, takewhile
from pathlib import Path
from typing import Final

import polars as pl

from querycloak.errors import DataError, QueryCloakError
from querycloak.formats import LineFormat, ReadOptions, detect
from querycloak.formats.source import BYTE_ORDER_MARK, Block
from querycloak.formats.validation import validate
from querycloak.service.ingest.parse import FIELDS, ParsedBody, Record, parse
from querycloak.service.sources.file_tail import GRACE, LONGEST, PIECE, Chunk, FilePosition, FileTail
from querycloak.service.sources.source import PAUSE, Source, Submit

_OPTIONS: Final = ReadOptions(required=("user", "query"))
_NO_HEADER: Final = "the first line of the file to follow does not name the columns of a log"


class LineReader:
    """Reads the lines of a file: JSON lines, or any other format of lines."""

    def __init__(self, first: bytes) -> None:
        self._first = first.removeprefix(BYTE_ORDER_MARK)
        self._json = self._first.lstrip()[:1] in (b"{", b"")
        self._format = None if self._json else _format(self._first)
        #: Position of the first record of a file.
        self.begin = len(first) + 1 if self._format is not None and self._format.traits.header else 0

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
        """Return where each row begins; an empty line of JSON lines is no row."""
        every = lines.split(b"\n")[:-1]
        starts = accumulate((len(line) + 1 for line in every), initial=0)
        return [start for start, line in zip(starts, every, strict=False) if not self._json or line.strip()]


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
    """Return the rows before the last search, since more of that can follow, and where it begins.

    A search without a time is one row. Where rows are not lines (quoted line ends), all are given.
    """
    records = parsed.records
    if not records or records[-1].time in (None, "") or len(begins) != parsed.size:
        return parsed, size
    searches = ((record.user, record.query, record.time) for record in reversed(records))
    first = len(records) - 1 - sum(1 for _ in takewhile(next(searches).__eq__, searches))
    row = parsed.rows[first]
    bad = {reason: rows[rows < row] for reason, rows in parsed.bad.items()}
    kept = {reason: rows for reason, rows in bad.items() if rows.size}
    return ParsedBody(records[:first], parsed.rows[:first], row, kept), begins[row]


class FileTailSource(Source):
    """Follows a file of JSON lines, of Excite, or of TSV or CSV with a header.

    The rows of a search stay together: the last ones so far wait for the next line, or until nothing was
    written for a while.
    """

    def __init__(self, path: Path, grace: float = GRACE) -> None:
        """`grace`: seconds without a new line after which the last search of the file is complete."""
        super().__init__("querycloak-tail")
        self._path, self._grace = path, grace
        self._tail: FileTail
        self._format: tuple[tuple[int, int, int], LineReader] | None = None
        self._size = PIECE
        self._end, self._end_seen = (0, 0), 0.0

    def start(self, submit: Submit, read: Mapping[str, int]) -> None:
        """Start to read from the stored position."""
        self._tail = FileTail(self._path, read, self._grace)
        super().start(submit, read)

    def stop(self) -> None:
        """Stop reading, and close the file."""
        super().stop()
        self._tail.close()

    def _run(self) -> None:
        """Read; try again after a failure, since the file can be repaired or replaced."""
        while not self._stopping.is_set():
            moved = False
            try:
                moved = self._step()
                self._trouble = ""
            except QueryCloakError as error:
                self._report(error.message)
            # A panic of polars is no `Exception`. The text of an error can hold data, its type cannot.
            except (Exception, pl.exceptions.PanicException) as error:
                self._report(f"the file to follow could not be read ({type(error).__name__})")
            if not moved:
                self._stopping.wait(PAUSE)

    def _step(self) -> bool:
        """Submit the next lines. Return whether to look for more at once."""
        chunk = self._tail.chunk(self._size)
        if chunk is None:
            return False
        try:
            form = self._format_of(chunk.place)
            begin = form.begin if chunk.place.offset == 0 else 0
            lines = chunk.data[begin:]
            whole = form.read(lines)
            parsed, size = before_last_search(whole, form.begins(lines), len(lines))
            if size or not lines:
                return self._submit_lines(parsed, chunk.place.later(begin + size))
            return self._one_search(whole, chunk)
        except QueryCloakError:
            self._tail.give_up()
            raise

    def _format_of(self, place: FilePosition) -> LineReader:
        file = (place.inode, place.head, place.head_bytes)
        if self._format is None or self._format[0] != file:
            self._format = file, LineReader(self._tail.header())
        return self._format[1]

    def _one_search(self, parsed: ParsedBody, chunk: Chunk) -> bool:
        """Wait for the end of a search, unless it is very long or nothing more comes."""
        if chunk.more and self._size < LONGEST:
            self._size *= 2
            return True
        return (chunk.more or self._quiet(chunk.end)) and self._submit_lines(parsed, chunk.end)

    def _quiet(self, end: FilePosition) -> bool:
        """Whether the file has ended here for `grace` seconds."""
        now = time.monotonic()
        if (end.inode, end.offset) != self._end:
            self._end, self._end_seen = (end.inode, end.offset), now
        return now - self._end_seen >= self._grace

    def _submit_lines(self, parsed: ParsedBody, place: FilePosition) -> bool:
        if not self._until_durable(parsed, place.as_read()):
            return False
        self._tail.place = place
        self._size = PIECE
        return True
