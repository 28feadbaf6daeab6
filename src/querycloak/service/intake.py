"""From a request's body to records: JSON lines or JSON, each record good as a whole or counted as bad."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import polars as pl

from querycloak.errors import DataError
from querycloak.formats import times
from querycloak.formats.jsonl import as_text, checked, read_objects, refuse
from querycloak.formats.reading import RawTable, ReadOptions
from querycloak.formats.source import Block
from querycloak.formats.validation import BadRows, bad_rows, validate
from querycloak.kernels.order import heads
from querycloak.log import IntArray
from querycloak.service import quick
from querycloak.service.entries import SCHEMA

_NEVER = np.iinfo(np.int64).max
Value = str | int | float | None


class Record(msgspec.Struct, gc=False):
    """A record as a client sends it; fields of other names are not read."""

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
class Parsed:
    """The records of one request, and which rows of it were already bad, by reason."""

    records: Sequence[Record]
    rows: Sequence[int] | range
    size: int
    bad: BadRows = field(default_factory=dict)
    ids: Sequence[str] = ()  # of UBI searches: by which their clicks know them
    parts: IntArray | None = None  # which message each record came in, where one request holds several
    stamps: IntArray | None = None  # when each record came, where that is known better than by our clock


def parse(body: bytes, *, lines: bool) -> Parsed:
    """Read JSON lines, or one JSON object or array."""
    try:
        found = _LINES.decode_lines(body) if lines else _WHOLE.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _sorted_out(objects(body, lines=lines))
    records = found if isinstance(found, list) else [found]
    return Parsed(records, range(len(records)), len(records))


def objects(body: bytes, *, lines: bool) -> list[dict[str, Any] | str]:
    """Read objects one by one: a bad one is a reason, and costs no other."""
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


def _sorted_out(found: Sequence[dict[str, Any] | str]) -> Parsed:
    good = [(row, item) for row, item in enumerate(found) if isinstance(item, dict)]
    records = [Record(*(as_text(item.get(name)) for name in FIELDS)) for _, item in good]
    return Parsed(records, [row for row, _ in good], len(found), bad_rows(found, 0))


@dataclass(frozen=True)
class Cleaned:
    """Good records of several requests as columns, and what was wrong with the others, by request."""

    frame: pl.DataFrame
    row: IntArray
    accepted: list[int]
    skipped: list[dict[str, list[int]]]


_OPTIONS = ReadOptions(required=("user", "query"))
#: Rows that an answer names for each reason, at most; the others are only counted.
NAMED = 100


def shortened(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Make an answer fit to be remembered: too many bad rows are counted, and only the first named."""
    skipped: dict[str, list[int]] = answer["skipped"]
    if all(len(rows) <= NAMED for rows in skipped.values()):
        return dict(answer)
    named = {reason: rows[:NAMED] for reason, rows in skipped.items()}
    return {**answer, "skipped": named, "skipped_total": sum(map(len, skipped.values()))}


def cleaned(requests: Sequence[Parsed], now: int) -> Cleaned:
    """Type the records of several requests at once; `now` stands in for times that are missing."""
    records = [record for request in requests for record in request.records]
    plain = quick.frame(records, _parts(requests), _stamps(requests, now)) if records else None
    if plain is None:
        return carefully(records, requests, now)
    skipped = [{reason: rows.tolist() for reason, rows in one.bad.items()} for one in requests]
    return Cleaned(plain, np.arange(len(records)), [len(one.records) for one in requests], skipped)


def carefully(records: Sequence[Record], requests: Sequence[Parsed], now: int) -> Cleaned:
    """Type records of any kind, and say what is wrong with those that are bad."""
    sizes = np.array([len(request.records) for request in requests], np.int64)
    ends = np.cumsum(sizes)
    columns = {name: _texts([getattr(record, name) for record in records]) for name in FIELDS}
    table = RawTable(pl.DataFrame({"row": np.arange(len(records)), **columns}), 0, len(records))
    good = validate(table, _OPTIONS)
    row = good.frame["row"].to_numpy()
    request = np.searchsorted(ends, row, side="right")
    frame = good.frame.drop("row").with_columns(back=_back(good.frame, _parts(requests)[row]))
    stamps = np.broadcast_to(_stamps(requests, now), len(records))[row]
    stamped = frame.with_columns(pl.col("time").fill_null(pl.Series(stamps).cast(times.TIME)))
    accepted = np.bincount(request, minlength=len(requests)).tolist()
    skipped = [
        _skipped(one, good.bad, int(end), int(size))
        for one, end, size in zip(requests, ends, sizes, strict=True)
    ]
    typed = stamped.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())
    return Cleaned(typed, row, accepted, skipped)


def _parts(requests: Sequence[Parsed]) -> IntArray:
    """Number the messages of all records: a request without parts is one message."""
    found, free = [], 0
    for one in requests:
        own = np.zeros(len(one.records), np.int64) if one.parts is None else one.parts
        found.append(own + free)
        free += int(own.max(initial=0)) + 1
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _stamps(requests: Sequence[Parsed], now: int) -> IntArray:
    """Say when each record came: by our clock, or by what its request knows better."""
    if all(one.stamps is None for one in requests):
        return np.array(now, np.int64)
    known = [np.full(len(one.records), now) if one.stamps is None else one.stamps for one in requests]
    return np.concatenate(known)


def _texts(values: list[Value]) -> pl.Series:
    try:
        return pl.Series(values, dtype=pl.String, strict=True)
    except (TypeError, OverflowError):  # some are numbers
        return pl.Series([as_text(value) for value in values], dtype=pl.String)


def _skipped(request: Parsed, bad: BadRows, end: int, size: int) -> dict[str, list[int]]:
    """Say which rows of a request were bad, by reason, counted as its sender counts."""
    found = {reason: rows.tolist() for reason, rows in request.bad.items()}
    for reason, rows in bad.items():
        mine = rows[(rows >= end - size) & (rows < end)] - (end - size)
        if mine.size:
            found[reason] = sorted(
                [*found.get(reason, []), *(request.rows[place] for place in mine.tolist())]
            )
    return found


def _back(frame: pl.DataFrame, part: IntArray) -> pl.Series:
    """Say how many rows before each row its search began: same message, user, query and time."""
    when = frame["time"].to_physical().fill_null(_NEVER).to_numpy()
    who = frame.select(pl.col("user").hash(1) ^ pl.col("query").hash(2)).to_series().to_numpy().view(np.int64)
    row = np.arange(frame.height)
    order = np.argsort(when, kind="stable")
    return pl.Series(row - heads(when, who ^ (part * 0x9E3779B97F4A7C1), row, order, _NEVER), dtype=pl.Int32)
