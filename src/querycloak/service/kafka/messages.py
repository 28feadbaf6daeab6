"""From messages to records: each value is one JSON record, an array of them, or JSON lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from querycloak.formats.validation import NOT_JSON
from querycloak.log import IntArray
from querycloak.service.ingest.parse import ParsedBody, Record, parse

if TYPE_CHECKING:
    from confluent_kafka import Message

_LINES = msgspec.json.Decoder(Record)
_WHOLE = msgspec.json.Decoder(Record | list[Record])


def stamps_of(messages: Sequence[Message]) -> IntArray:
    """Give when each message came, in microseconds: written down in Kafka, so the same at every reading."""
    milliseconds = np.array([message.timestamp()[1] for message in messages], np.int64)
    return np.maximum(milliseconds, 0) * 1000


def read(messages: Sequence[Message], stamps: IntArray) -> ParsedBody:
    """Read the records of messages that came one after another; what is bad costs no other."""
    values = [message.value() or b"" for message in messages]
    parsed = _one_each(values) or _one_by_one(values)
    assert parsed.message_index is not None
    return replace(parsed, arrival_times=stamps[parsed.message_index])


def _one_each(values: list[bytes]) -> ParsedBody | None:
    """Read values that are one line each in one go, which is much faster; None if they are something else."""
    body = b"\n".join(values)
    if body.count(b"\n") != len(values) - 1:
        return None
    try:
        records = _LINES.decode_lines(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if len(records) != len(values):
        return None
    return ParsedBody(records, range(len(records)), len(records), message_index=np.arange(len(records)))


def _one_by_one(values: list[bytes]) -> ParsedBody:
    records: list[Record] = []
    parts: list[int] = []
    bad: dict[str, list[int]] = {}
    size = 0
    for part, value in enumerate(values):
        found = _parsed(value)
        for reason, rows in found.bad.items():
            bad.setdefault(reason, []).extend((rows + size).tolist())
        records += found.records
        parts += [part] * len(found.records)
        size += found.size
    faults = {reason: np.asarray(rows, np.int64) for reason, rows in bad.items()}
    return ParsedBody(records, range(len(records)), size, faults, message_index=np.array(parts, np.int64))


def _parsed(value: bytes) -> ParsedBody:
    """Read one message: a value as a whole if it is one, else line by line; an empty one is a fault too."""
    if not value.strip():
        return ParsedBody([], [], 1, {NOT_JSON: np.array([0])})
    try:
        found = _WHOLE.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return parse(value, lines=True)
    records = found if isinstance(found, list) else [found]
    return ParsedBody(records, range(len(records)), len(records))
