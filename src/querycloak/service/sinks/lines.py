"""Lines that carry their number: `{"offset":17,…}`; line n follows line n-1, whatever file it is in."""

from __future__ import annotations

import os
import re
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

import numpy as np

from querycloak.errors import DataError

#: A position is kept for every so many lines: finding a line means reading at most so many too much.
STRIDE = 256
_NUMBER = re.compile(rb'^\{"offset": ?(\d+)[,}]', re.MULTILINE)
_PIECE = 1 << 20
_LONGEST = 64 << 20


def number_of(line: bytes) -> int:
    """Give the number of a line; 0 if it has none, since the first line is 1."""
    found = _NUMBER.match(line)
    return int(found[1]) if found else 0


def fresh(first: int, lines: bytes, count: int, last: int, path: Path) -> tuple[bytes, int]:
    """Leave out the lines up to `last`, which are there already; give the others and how many they are."""
    if count <= 0 or first + count - 1 <= last:
        return b"", 0
    if first > last + 1:
        raise DataError(
            f"`{path}` ends with line {last:,}, and line {first:,} is the next to be written",
            hint="it was removed or is another's: put it back, or start with a new state folder",
        )
    _check_batch(first, lines, count)
    rest = lines[start_of(lines, last + 1 - first) :]
    return rest, first + count - 1 - last


def _check_batch(first: int, lines: bytes, count: int) -> None:
    end = number_of(lines[lines.rfind(b"\n", 0, -1) + 1 :])
    whole = lines.endswith(b"\n") and lines.count(b"\n") == count
    if not whole or number_of(lines) != first or end != first + count - 1:
        raise DataError(f"the lines from {first:,} are not {count:,} whole lines with their numbers")


def start_of(lines: bytes, place: int) -> int:
    """Find where the line begins that has so many lines before it."""
    position = 0
    for _ in range(place):
        position = lines.find(b"\n", position) + 1
    return position


def marks(lines: bytes, before: int, position: int) -> list[int]:
    """Give the position of each line whose place in the file is a multiple of the stride.

    `before` lines come first in the file, and `lines` begins at `position`.
    """
    ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == ord("\n"))
    starts = np.concatenate(([0], ends[:-1] + 1)) if ends.size else ends
    return (starts[-before % STRIDE :: STRIDE] + position).tolist()  # type: ignore[no-any-return]


@dataclass
class Scan:
    """What is in a file of numbered lines."""

    first: int
    count: int = 0
    size: int = 0  # of the whole lines
    torn: bytes = b""  # what comes after them
    checksum: int = 0
    marks: array[int] = field(default_factory=lambda: array("q"))

    @property
    def last(self) -> int:
        """Give the number of the last whole line."""
        return self.first + self.count - 1

    def take(self, lines: bytes, count: int) -> None:
        """Note that these whole lines come next."""
        self.marks.extend(marks(lines, self.count, self.size))
        self.checksum = zlib.crc32(lines, self.checksum)
        self.count += count
        self.size += len(lines)


def scan(descriptor: int, path: Path, first: int = 0) -> Scan:
    """Read a whole file and check that its lines are numbered on from `first` (0: from any number)."""
    found = Scan(first or number_of(os.pread(descriptor, 64, 0)))
    for piece in _pieces(descriptor, found):
        count = piece.count(b"\n")
        expected = range(found.last + 1, found.last + 1 + count)
        numbers = [int(number) for number in _NUMBER.findall(piece)]
        if numbers != list(expected):
            same = takewhile(lambda pair: pair[0] == pair[1], zip(expected, numbers, strict=False))
            wrong = found.last + 1 + sum(1 for _ in same)
            raise DataError(
                f"`{path}` was changed or is damaged: it holds another line where line {wrong:,} should be"
            )
        found.take(piece, count)
    return found


def _pieces(descriptor: int, found: Scan) -> Iterator[bytes]:
    """Give a file's whole lines, a million bytes or so at a time; leave the rest in `found.torn`."""
    position = 0
    while data := os.pread(descriptor, _PIECE, position):
        position += len(data)
        data = found.torn + data
        whole = data.rfind(b"\n") + 1
        found.torn = data[whole:]
        if len(found.torn) > _LONGEST:
            raise DataError("it holds more than 64 MiB without an end of line: these are no released lines")
        if whole:
            yield data[:whole]


def last_number(descriptor: int) -> int:
    """Give the number of a file's last line from the file's end alone; 0 if that is not a whole line."""
    size, reach = os.fstat(descriptor).st_size, 1 << 12
    while True:
        end = os.pread(descriptor, reach, max(size - reach, 0))
        start = end.rfind(b"\n", 0, -1) + 1
        if start or reach >= size:
            return number_of(end[start:]) if end.endswith(b"\n") else 0
        reach *= 8
