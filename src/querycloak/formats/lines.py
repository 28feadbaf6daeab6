"""Judge all lines of a block at once: where they end, how many fields they have, which are odd."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from querycloak.formats import reasons
from querycloak.log import IntArray

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
_NEWLINE, _RETURN, _QUOTE = 10, 13, 34


@dataclass
class Lines:
    """The physical lines of a block. `odd`: only a careful look can tell what the line is."""

    data: bytes
    array: Bytes
    ends: IntArray
    fields: IntArray
    odd: Flags

    @property
    def starts(self) -> IntArray:
        """Where each line begins."""
        return np.concatenate([[0], self.ends[:-1] + 1])

    @property
    def longest(self) -> int:
        """The bytes of the longest line."""
        return int(np.diff(self.ends, prepend=-1).max(initial=0))

    def holding(self, positions: IntArray) -> IntArray:
        """Give the lines that hold these bytes, each once."""
        return np.unique(np.searchsorted(self.ends, positions))

    def only(self, chosen: Flags) -> bytes:
        """Give the bytes of the chosen lines, carriage returns at their ends removed."""
        if chosen.all() and b"\r" not in self.data:
            return self.data
        keep = np.repeat(chosen, np.diff(self.ends, prepend=-1))
        keep[self.returns_at_ends()] = False
        return self.array[keep].tobytes()

    def returns_at_ends(self) -> IntArray:
        """Where a carriage return stands right before a newline."""
        before = self.ends[self.ends > 0] - 1
        found: IntArray = before[self.array[before] == _RETURN]
        return found


def split(data: bytes, delimiter: str, quoting: bool, columns: int) -> Lines:
    """Find the lines of a block and count their fields; `data` ends with a newline."""
    array = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(array == _NEWLINE)
    delimiters = np.flatnonzero(array == ord(delimiter))
    odd = np.zeros(ends.size, dtype=np.bool_)
    lines = Lines(data, array, ends, odd.astype(np.int64), odd)
    if quoting:
        if b'"' in data:
            delimiters = _look_at_quotes(lines, delimiters, ord(delimiter))
        odd[_with_stray_returns(lines)] = True
    lines.fields = _count_fields(delimiters, ends, columns)
    return lines


def _count_fields(delimiters: IntArray, ends: IntArray, columns: int) -> IntArray:
    """Count fields by line; the usual case, all lines alike, needs no search."""
    each = columns - 1
    if each and delimiters.size == each * ends.size:
        by_line = delimiters.reshape(-1, each)
        if (by_line[:, -1] < ends).all() and (by_line[1:, 0] > ends[:-1]).all():
            return np.full(ends.size, columns, dtype=np.int64)
    found = np.bincount(np.searchsorted(ends, delimiters), minlength=ends.size)
    return found.astype(np.int64) + 1


def _look_at_quotes(lines: Lines, delimiters: IntArray, delimiter: int) -> IntArray:
    """Mark lines whose quotes are not all in their place; give the delimiters outside quotes.

    Within a line, quotes open and close in turn. An opening one must follow a delimiter, the line's
    start or a closing one (`""` is both); a closing one must precede a delimiter, the line's end or
    an opening one. A line where that holds, and that closes what it opens, is as RFC 4180 has it.
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
    lines.odd[line[~placed]] = True
    lines.odd[np.diff(before_line, append=quotes.size) % 2 == 1] = True
    inside = np.searchsorted(quotes, delimiters) - before_line[np.searchsorted(ends, delimiters)]
    outside: IntArray = delimiters[inside % 2 == 0]
    return outside


def _with_stray_returns(lines: Lines) -> IntArray:
    if b"\r" not in lines.data:
        return np.empty(0, dtype=np.int64)
    returns = np.flatnonzero(lines.array == _RETURN)
    return lines.holding(np.setdiff1d(returns, lines.returns_at_ends(), assume_unique=True))


def faults(lines: Lines, quoting: bool) -> list[tuple[str, IntArray]]:
    """Find the bad lines by reason, in the order in which reasons count."""
    found = [(reasons.NOT_UTF8, _not_utf8(lines))]
    if b"\0" in lines.data:
        found.append((reasons.NUL_BYTE, lines.holding(np.flatnonzero(lines.array == 0))))
    if not quoting:
        found.append((reasons.STRAY_RETURN, _with_stray_returns(lines)))
    return found


def _not_utf8(lines: Lines) -> IntArray:
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
