"""Lines of a block, checked all at once, and a parser of single records for the irregular ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from querycloak.formats import validation
from querycloak.log import IntArray

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
_NEWLINE, _RETURN, _QUOTE = 10, 13, 34
#: A quoted field that has not ended after so many bytes never will.
REACH: Final = 16 << 20


@dataclass
class LineTable:
    """The lines of a block. `irregular`: lines that must be parsed one by one."""

    data: bytes
    array: Bytes
    ends: IntArray
    fields: IntArray
    irregular: Flags

    @property
    def starts(self) -> IntArray:
        """Position of the first byte of each line."""
        return np.concatenate([[0], self.ends[:-1] + 1])

    @property
    def longest(self) -> int:
        """Bytes of the longest line."""
        return int(np.diff(self.ends, prepend=-1).max(initial=0))

    def holding(self, positions: IntArray) -> IntArray:
        """Return the lines that contain these positions, each once."""
        return np.unique(np.searchsorted(self.ends, positions))

    def only(self, chosen: Flags) -> bytes:
        """Return the bytes of the chosen lines, carriage returns at their ends removed."""
        if chosen.all() and b"\r" not in self.data:
            return self.data
        keep = np.repeat(chosen, np.diff(self.ends, prepend=-1))
        keep[self.returns_at_ends()] = False
        return self.array[keep].tobytes()

    def truncate(self, line: int) -> None:
        """Remove this line and all after it."""
        size = int(self.starts[line])
        self.ends, self.fields, self.irregular = self.ends[:line], self.fields[:line], self.irregular[:line]
        self.data, self.array = self.data[:size], self.array[:size]

    def returns_at_ends(self) -> IntArray:
        """Return the positions of carriage returns right before a newline."""
        before = self.ends[self.ends > 0] - 1
        found: IntArray = before[self.array[before] == _RETURN]
        return found


def split(data: bytes, delimiter: str, quoting: bool, columns: int) -> LineTable:
    """Find the lines of a block and count their fields; `data` ends with a newline."""
    array = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(array == _NEWLINE)
    delimiters = np.flatnonzero(array == ord(delimiter))
    irregular = np.zeros(ends.size, dtype=np.bool_)
    lines = LineTable(data, array, ends, irregular.astype(np.int64), irregular)
    if quoting:
        if b'"' in data:
            delimiters = _check_quotes(lines, delimiters, ord(delimiter))
        irregular[_with_stray_returns(lines)] = True
    lines.fields = _count_fields(delimiters, ends, columns)
    return lines


def _count_fields(delimiters: IntArray, ends: IntArray, columns: int) -> IntArray:
    """Count fields by line; if all lines have the same number, no search is needed."""
    each = columns - 1
    if each and delimiters.size == each * ends.size:
        by_line = delimiters.reshape(-1, each)
        if (by_line[:, -1] < ends).all() and (by_line[1:, 0] > ends[:-1]).all():
            return np.full(ends.size, columns, dtype=np.int64)
    found = np.bincount(np.searchsorted(ends, delimiters), minlength=ends.size)
    return found.astype(np.int64) + 1


def _check_quotes(lines: LineTable, delimiters: IntArray, delimiter: int) -> IntArray:
    """Mark lines with misplaced quotes as irregular; return the delimiters outside quotes.

    Within a line, quotes open and close in turn. An opening one must follow a delimiter, the line's
    start or a closing one (`""` is both); a closing one must precede a delimiter, the line's end or
    an opening one. A line where that holds, with an even number of quotes, conforms to RFC 4180.
    """
    array, ends = lines.array, lines.ends
    quotes = np.flatnonzero(array == _QUOTE)
    before_line = np.searchsorted(quotes, lines.starts)
    line = np.searchsorted(ends, quotes)
    opening = (np.arange(quotes.size) - before_line[line]) % 2 == 0
    previous = np.where(quotes > 0, array[quotes - 1], _NEWLINE)
    following = array[quotes + 1]  # a newline ends the block, so there is a next byte
    near = np.where(opening, previous, following)
    placed = (near == delimiter) | (near == _NEWLINE) | (near == _QUOTE) | (~opening & (near == _RETURN))
    lines.irregular[line[~placed]] = True
    lines.irregular[np.diff(before_line, append=quotes.size) % 2 == 1] = True
    inside = np.searchsorted(quotes, delimiters) - before_line[np.searchsorted(ends, delimiters)]
    outside: IntArray = delimiters[inside % 2 == 0]
    return outside


def _with_stray_returns(lines: LineTable) -> IntArray:
    if b"\r" not in lines.data:
        return np.empty(0, dtype=np.int64)
    returns = np.flatnonzero(lines.array == _RETURN)
    return lines.holding(np.setdiff1d(returns, lines.returns_at_ends(), assume_unique=True))


def faults(lines: LineTable, quoting: bool, columns: int) -> list[tuple[str, IntArray]]:
    """Return the bad lines by reason, in the order in which reasons count."""
    found = [(validation.NOT_UTF8, _not_utf8(lines))]
    if b"\0" in lines.data:
        found.append((validation.NUL_BYTE, lines.holding(np.flatnonzero(lines.array == 0))))
    if not quoting:
        found.append((validation.STRAY_RETURN, _with_stray_returns(lines)))
    if (lines.fields != columns).any():
        found.append((validation.TOO_FEW, np.flatnonzero(lines.fields < columns)))
        found.append((validation.TOO_MANY, np.flatnonzero(lines.fields > columns)))
    return found


def _not_utf8(lines: LineTable) -> IntArray:
    if lines.data.isascii() or _is_utf8(lines.data):
        return np.empty(0, dtype=np.int64)
    suspects = lines.holding(np.flatnonzero(lines.array >= 0x80))
    starts = lines.starts
    wrong = [n for n in suspects if not _is_utf8(lines.data[starts[n] : lines.ends[n]])]
    return np.asarray(wrong, dtype=np.int64)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@dataclass(frozen=True)
class Record:
    """The fields of a record, or the reason why there are none, and where the next record begins."""

    fields: list[bytes]
    end: int
    reason: str = ""


class NeedMore(Exception):
    """The record continues after the given bytes."""


def parse_record(data: bytes, start: int, delimiter: bytes, count: int, final: bool) -> Record:
    """Parse the record at `start`; of a broken one only the first line is lost, not what follows.

    A record that spans lines and has the wrong number of fields most likely lost a closing quote.
    """
    first_line_end = data.index(b"\n", start) + 1
    found = _fields(data, start, delimiter, final)
    if found is None:
        return Record([], first_line_end, validation.BAD_QUOTING)
    fields, end = found
    if len(fields) == count:
        return Record(fields, end, _fault(data[start:end], fields))
    if end > first_line_end:
        return Record([], first_line_end, validation.BAD_QUOTING)
    return Record([], end, validation.TOO_FEW if len(fields) < count else validation.TOO_MANY)


def _fault(record: bytes, fields: list[bytes]) -> str:
    if not _is_utf8(record):
        return validation.NOT_UTF8
    if b"\0" in record:
        return validation.NUL_BYTE
    return validation.FIELD_TOO_LONG if max(map(len, fields)) > REACH else ""


def _fields(data: bytes, start: int, delimiter: bytes, final: bool) -> tuple[list[bytes], int] | None:
    """Return the fields of one record; None if a quoted field does not end as it should."""
    fields: list[bytes] = []
    at = start
    while True:
        if data[at] == _QUOTE:
            found = _quoted(data, at, start + REACH, delimiter, final)
            if found is None:
                return None
            field, at = found
        else:
            line_end = data.index(b"\n", at)
            cut = data.find(delimiter, at, line_end)
            stop = line_end if cut < 0 else cut
            field = data[at:stop]
            if cut < 0:
                field = field.removesuffix(b"\r")
            at = stop
        fields.append(field)
        if data[at : at + 1] != delimiter:
            return fields, data.index(b"\n", at) + 1
        at += 1


def _quoted(data: bytes, at: int, reach: int, delimiter: bytes, final: bool) -> tuple[bytes, int] | None:
    """Return the text of a quoted field, and the position of its delimiter or line end."""
    parts, begin = [], at + 1
    while True:
        quote = data.find(b'"', begin, reach)
        if quote < 0:
            if not final and len(data) < reach:
                raise NeedMore
            return None
        parts.append(data[begin:quote])
        after = data[quote + 1 : quote + 3]
        if after[:1] != b'"':
            ends = after[:1] in (delimiter, b"\n") or after == b"\r\n"
            return (b'"'.join(parts), quote + 1) if ends else None
        begin = quote + 2
