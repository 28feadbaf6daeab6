"""One record of a quoted file, byte by byte: for the few lines that the fast reader cannot judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from querycloak.formats import reasons

#: A quoted field that has not ended after so many bytes never will.
REACH: Final = 16 << 20
_QUOTE: Final = 0x22


@dataclass(frozen=True)
class Record:
    """The fields of a record, or why there are none, and where the next record begins."""

    fields: list[bytes]
    end: int
    reason: str = ""


class NeedMore(Exception):
    """The record is not complete within the bytes at hand."""


def read_record(data: bytes, start: int, delimiter: bytes, count: int, final: bool) -> Record:
    """Read the record at `start`; a broken one costs its first line only, not what follows.

    A record that spans lines and has the wrong number of fields most likely lost a closing quote.
    """
    first_line_end = data.index(b"\n", start) + 1
    found = _fields(data, start, delimiter, final)
    if found is None:
        return Record([], first_line_end, reasons.UNCLOSED_QUOTE)
    fields, end = found
    if len(fields) == count:
        return Record(fields, end, _fault(data[start:end], fields))
    if end > first_line_end:
        return Record([], first_line_end, reasons.UNCLOSED_QUOTE)
    return Record([], end, reasons.TOO_FEW if len(fields) < count else reasons.TOO_MANY)


def _fault(record: bytes, fields: list[bytes]) -> str:
    try:
        record.decode()
    except UnicodeDecodeError:
        return reasons.NOT_UTF8
    if b"\0" in record:
        return reasons.NUL_BYTE
    return reasons.FIELD_TOO_LONG if max(map(len, fields)) > REACH else ""


def _fields(data: bytes, start: int, delimiter: bytes, final: bool) -> tuple[list[bytes], int] | None:
    """Split one record; None if a quoted field does not end as it should."""
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
    """Read a quoted field: its text, and where its delimiter or line end stands."""
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
