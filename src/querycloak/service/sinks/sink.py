"""What all sinks share: numbered lines (`{"offset":17,…}`), each written once, without a gap."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from querycloak.errors import DataError, Refused

_NUMBER = re.compile(rb'\{"offset": ?(\d+)[,}]')


class Sink(ABC):
    """A place for released lines that stores the number of its last line."""

    last: int

    @abstractmethod
    def append(self, first: int, lines: bytes, count: int) -> None:
        """Add lines `first` and following. Skip those already there, refuse a gap."""

    def sync(self) -> None:  # noqa: B027 - nothing is left to do where `append` returns durable lines
        """Return when all lines are durable."""

    def close(self) -> None:  # noqa: B027 - a sink need not own what it writes to
        """Close files and connections."""


def check_sinks(released: int, sinks: Sequence[Sink]) -> None:
    """Raise Refused if a sink has lines that the write-ahead log does not lead to.

    For use after replay: then `released` is the number of the last line of the stream.
    """
    for sink in sinks:
        if sink.last > released:
            raise Refused(
                f"{type(sink).__name__} ends with line {sink.last:,}, the write-ahead log with {released:,}",
                hint="restore the state folder and the sink from one backup, or start with new ones",
            )


def new_lines(first: int, lines: bytes, count: int, last: int, name: str | Path) -> tuple[bytes, int]:
    """Return the lines after number `last`, and how many they are. Raise DataError if some are missing."""
    if count <= 0 or first + count - 1 <= last:
        return b"", 0
    if first > last + 1:
        raise DataError(
            f"`{name}` ends with line {last:,}, and line {first:,} is the next to be written",
            hint="it was removed or belongs to another service: restore it, or start with a new state folder",
        )
    end = number_of(lines[lines.rfind(b"\n", 0, -1) + 1 :])
    whole = lines.endswith(b"\n") and line_count(lines) == count
    if not whole or number_of(lines) != first or end != first + count - 1:
        raise DataError(f"the lines from {first:,} are not {count:,} whole lines with their numbers")
    return lines[start_of(lines, last + 1 - first) :], first + count - 1 - last


def line_count(data: bytes) -> int:
    """Return the number of line ends; with short lines this is several times as fast as `bytes.count`."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")))


def number_of(line: bytes) -> int:
    """Return the number of a line; 0 if it has none, since the first line is 1."""
    found = _NUMBER.match(line)
    return int(found[1]) if found else 0


def start_of(lines: bytes, place: int) -> int:
    """Return where the line begins that has `place` lines before it."""
    position = 0
    for _ in range(place):
        position = lines.find(b"\n", position) + 1
    return position
