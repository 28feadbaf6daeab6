"""Request bodies to typed columns: JSON lines or JSON; a bad record is counted and costs no other.

Most requests hold plain records, which are typed together (`_fast_path`); any other record sends the group
through the readers of files (`_slow_path`), which yield the same result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np
import polars as pl

from querycloak.errors import DataError
from querycloak.formats import times, validation
from querycloak.formats.jsonl import as_text, checked, read_objects, refuse
from querycloak.formats.reading import RawTable, ReadOptions
from querycloak.formats.source import Block
from querycloak.formats.validation import BadRows, bad_rows, validate
from querycloak.log import IntArray
from querycloak.service.entries import SCHEMA

#: Skipped rows that an answer lists for each reason, at most; the others are counted.
LISTED: Final = 100
_OPTIONS: Final = ReadOptions(required=("user", "query"))
#: Forms of time of the fast path, by length: a pattern of lines, and the characters before the zone.
_TIMES: Final = {
    19 + digits + len(zone): (
        re.compile(
            r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]"
            + (rf"\.[0-9]{{{digits - 1}}}" if digits else "")
            + rf"{re.escape(zone)}\n)*"
        ),
        19 + digits,
    )
    for digits in (0, 4, 7)
    for zone in ("Z", "+00:00")
}
_ABSENT: Final = type(None)
#: Start of the year 1 in microseconds: Python has no earlier time.
_YEAR_ONE: Final = -62_135_596_800_000_000
Value = str | int | float | None


class Record(msgspec.Struct, gc=False):
    """A record as a client sends it; other fields are ignored."""

    user: Value = None
    query: Value = None
    time: Value = None
    rank: Value = None
    url: Value = None
    category: Value = None


_LINES = msgspec.json.Decoder(Record)
_WHOLE = msgspec.json.Decoder(Record | list[Record])
FIELDS = Record.__struct_fields__


@dataclass(frozen=True)
class ParsedBody:
    """Records of one request, and its malformed rows by reason."""

    records: Sequence[Record]
    rows: Sequence[int] | range
    size: int
    bad: BadRows = field(default_factory=dict)
    join_ids: Sequence[str] = ()  # of UBI searches: hashes of their `query_id`
    message_index: IntArray | None = None  # message of each record, if the request holds several messages
    arrival_times: IntArray | None = None  # arrival of each record in microseconds, if the source states it


def parse(body: bytes, *, lines: bool) -> ParsedBody:
    """Parse JSON lines, or one JSON object or array."""
    return parse_plain(body, lines=lines) or _parse_one_by_one(objects(body, lines=lines))


def parse_plain(body: bytes, *, lines: bool) -> ParsedBody | None:
    """Parse a body without malformed records in one call, which is much faster; None for any other."""
    try:
        found = _LINES.decode_lines(body) if lines else _WHOLE.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    records = found if isinstance(found, list) else [found]
    return ParsedBody(records, range(len(records)), len(records))


def objects(body: bytes, *, lines: bool) -> list[dict[str, Any] | str]:
    """Return each object, or the reason why it is bad."""
    if lines:
        kept = b"".join(line + b"\n" for line in body.split(b"\n") if line.strip())
        return read_objects(Block(kept))[0]
    try:
        value = json.loads(body.decode("utf-8-sig"), parse_constant=refuse)
        escaped = b"\\ud" in body.lower()
        return [checked(item, escaped) for item in (value if isinstance(value, list) else [value])]
    except (ValueError, RecursionError):
        raise DataError(
            "the body is not JSON", hint="send one object, an array of them, or JSON lines"
        ) from None


def _parse_one_by_one(found: Sequence[dict[str, Any] | str]) -> ParsedBody:
    good = [(row, item) for row, item in enumerate(found) if isinstance(item, dict)]
    records = [Record(*(as_text(item.get(name)) for name in FIELDS)) for _, item in good]
    return ParsedBody(records, [row for row, _ in good], len(found), bad_rows(found, 0))


@dataclass(frozen=True)
class TypedRecords:
    """Good records of several requests as columns, and the skipped rows of each request by reason."""

    frame: pl.DataFrame
    row: IntArray
    accepted: list[int]
    skipped: list[dict[str, list[int]]]


def shortened(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer with the first skipped rows of each reason; if some are left out, with a count."""
    skipped: dict[str, list[int]] = answer["skipped"]
    if all(len(rows) <= LISTED for rows in skipped.values()):
        return dict(answer)
    listed = {reason: rows[:LISTED] for reason, rows in skipped.items()}
    return {**answer, "skipped": listed, "skipped_total": sum(map(len, skipped.values()))}


def to_columns(requests: Sequence[ParsedBody], now: int) -> TypedRecords:
    """Return the records of several requests as typed columns; `now` replaces missing times."""
    records = [record for request in requests for record in request.records]
    messages, arrivals = _messages(requests), _arrivals(requests, now)
    plain = _fast_path(records, messages, arrivals) if records else None
    if plain is None:
        return _slow_path(records, requests, messages, arrivals)
    skipped = [{reason: rows.tolist() for reason, rows in one.bad.items()} for one in requests]
    return TypedRecords(plain, np.arange(len(records)), [len(one.records) for one in requests], skipped)


def _messages(requests: Sequence[ParsedBody]) -> IntArray:
    """Return the number of each record's message; a request is one message unless it states otherwise."""
    found, free = [np.empty(0, np.int64)], 0
    for one in requests:
        own = np.zeros(len(one.records), np.int64) if one.message_index is None else one.message_index
        found.append(own + free)
        free += int(own.max(initial=0)) + 1
    return np.concatenate(found)


def _arrivals(requests: Sequence[ParsedBody], now: int) -> IntArray:
    found = [np.empty(0, np.int64)]
    for one in requests:
        found.append(np.full(len(one.records), now) if one.arrival_times is None else one.arrival_times)
    return np.concatenate(found)


def _slow_path(
    records: Sequence[Record], requests: Sequence[ParsedBody], messages: IntArray, arrivals: IntArray
) -> TypedRecords:
    """Return records of any kind as typed columns, with the reasons of skipped ones."""
    columns = {name: _texts([getattr(record, name) for record in records]) for name in FIELDS}
    table = RawTable(pl.DataFrame({"row": np.arange(len(records)), **columns}), 0, len(records))
    good = validate(table, _OPTIONS)
    frame, row = good.frame, good.frame["row"].to_numpy()
    when = frame["time"].to_physical().to_list()
    searches = zip(
        messages[row].tolist(), frame["user"].to_list(), frame["query"].to_list(), when, strict=True
    )
    typed = frame.with_columns(
        pl.col("time").fill_null(pl.Series(arrivals[row]).cast(times.TIME)),
        rows_since_head=pl.Series(_distances(list(searches))),
    ).select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())
    starts = np.cumsum([0, *(len(request.records) for request in requests)])
    accepted = np.diff(np.searchsorted(row, starts)).tolist()
    skipped = [_skipped(one, good.bad, int(start)) for one, start in zip(requests, starts, strict=False)]
    return TypedRecords(typed, row, accepted, skipped)


def _texts(values: list[Value]) -> pl.Series:
    try:
        return pl.Series(values, dtype=pl.String, strict=True)
    except (TypeError, OverflowError):  # some are numbers
        return pl.Series([as_text(value) for value in values], dtype=pl.String)


def _skipped(request: ParsedBody, bad: BadRows, start: int) -> dict[str, list[int]]:
    found = {reason: rows.tolist() for reason, rows in request.bad.items()}
    for reason, rows in bad.items():
        mine = rows[(rows >= start) & (rows < start + len(request.records))] - start
        if mine.size:
            found[reason] = sorted(found.get(reason, []) + [request.rows[place] for place in mine.tolist()])
    return found


def _fast_path(records: Sequence[Any], messages: IntArray, arrivals: IntArray) -> pl.DataFrame | None:
    """Return plain records as typed columns; None if any of them is not plain.

    Plain: user and query are non-empty texts without NUL and not very long; times are missing or of one of
    the forms of `_TIMES`; ranks are integers. The slow path yields the same.
    """
    users, queries, given, ranks, *others = (list(map(attrgetter(name), records)) for name in FIELDS)
    needed = _plain_texts(users) and _plain_texts(queries) and "" not in users and "" not in queries
    if not needed or None in users or None in queries or not all(map(_plain_texts, others)):
        return None
    when = _parsed_times(given, arrivals)
    if when is None or not set(map(type, ranks)) <= {int, _ABSENT}:
        return None
    urls, categories = ([text or None for text in texts] if "" in texts else texts for texts in others)
    distance = _distances(list(zip(messages.tolist(), users, queries, given, strict=True)))
    try:
        columns = zip(SCHEMA.items(), (users, queries, when, ranks, urls, categories, distance), strict=True)
        return pl.DataFrame([pl.Series(name, values, kind) for (name, kind), values in columns])
    except (OverflowError, TypeError):  # a rank of more than 64 bits
        return None


def _plain_texts(values: list[Any]) -> bool:
    """Whether all values are missing, or texts without NUL and not very long."""
    if not set(map(type, values)) <= {str, _ABSENT}:
        return False
    texts = list(filter(None, values))
    return max(map(len, texts), default=0) * 4 <= validation.QUERY_LIMIT and "\0" not in "".join(texts)


def _parsed_times(texts: list[Any], arrivals: IntArray) -> pl.Series | None:
    """Return times, with the arrival where one is missing; None if some have no form of `_TIMES`."""
    given = [text for text in texts if text is not None]
    if not given:
        return pl.Series(arrivals).cast(times.TIME)
    if set(map(type, given)) != {str}:
        return None
    length = len(given[0])
    pattern, digits = _TIMES.get(length, _TIMES[20])
    joined = "\n".join(given) + "\n"
    if len(joined) != (length + 1) * len(given) or not pattern.fullmatch(joined):
        return None
    try:
        without_zones = np.ndarray(len(given), f"S{digits}", joined.encode(), strides=(length + 1,))
        read = without_zones.astype("M8[us]").view(np.int64)
    except ValueError:  # such as 30 February
        return None
    if read.min() < _YEAR_ONE:
        return None
    if len(given) < len(texts):
        given_only, read = read, arrivals.copy()
        read[[text is not None for text in texts]] = given_only
    return pl.Series(read).cast(times.TIME)


def _distances(whose: list[tuple[int, str, str, Any]]) -> list[int]:
    """Return the distance to the first row with the same message, user, query and time."""
    if len(set(whose)) == len(whose):
        return [0] * len(whose)
    first: dict[Any, int] = {}
    return [0 if key[3] is None else place - first.setdefault(key, place) for place, key in enumerate(whose)]
