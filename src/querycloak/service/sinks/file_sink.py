"""A file that a log shipper follows (`tail -F`, Filebeat, Fluent Bit), with rotation by size."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from querycloak.errors import DataError, DiskFull, is_full
from querycloak.files import sync_folder, write_all
from querycloak.service.sinks.sink import Sink, new_lines, number_of

_LONGEST: Final = 64 << 20


class FileSink(Sink):
    """Released lines in `NAME`; full files become `NAME.1`, `NAME.2`, … up to `keep` of them.

    The files themselves hold the number of the last line, so a crash at any time loses and doubles none. A
    line that was cut short by a crash or a full disk is completed in place: the file does not shrink, since a
    shipper would then send all of it again.
    """

    def __init__(self, path: Path, rotate_bytes: int = 64 << 20, keep: int = 5, after: int = 0) -> None:
        """`after`: the line before the first one, for a sink that is added to an existing stream."""
        self.path = path
        self.last = after
        self._rotate_bytes = rotate_bytes
        self._keep = max(keep, 1)
        self._descriptor = -1
        self._size = 0  # of the whole lines
        self._torn = b""  # the beginning of the next line, which is in the file already

    def open(self) -> None:
        """Find the last line that was written."""
        with _errors(self.path):
            self._descriptor = _open(self.path, new=not self.path.exists())
            found = _scan(self.path)
            before = self._last_rotated(found.lines > 0)
            if found.lines and before not in {None, found.first - 1}:
                raise self._changed(f"it does not go on where `{self._rotated(1).name}` ends")
        self._size, self._torn = found.size, found.torn
        if found.lines:
            self.last = found.first + found.lines - 1
        elif before is not None:
            self.last = before

    def _last_rotated(self, has_lines: bool) -> int | None:
        """Return the number of the last line of `NAME.1`; None if there is and need be none."""
        try:
            file = self._rotated(1).open("rb")
        except FileNotFoundError:
            if has_lines or not self._numbers():  # in the middle of a rotation only NAME.1 is missing
                return None
            raise self._changed(f"it has no line, and `{self._rotated(1).name}` is missing") from None
        with file:
            if last := _last_number(file.fileno()):
                return last
        raise self._changed(f"`{self._rotated(1).name}` does not end with a released line")

    def append(self, first: int, lines: bytes, count: int) -> None:
        """Add lines `first` and following. Skip those already there, refuse a gap.

        After `DiskFull`, call again with the same lines.
        """
        lines, count = new_lines(first, lines, count, self.last, self.path)
        if not count:
            return
        with _errors(self.path):
            self._prepare(lines)
            try:
                write_all(self._descriptor, lines, self._size)
            except OSError:
                self._update(lines[: os.fstat(self._descriptor).st_size - self._size])
                raise
        self._update(lines)

    def _update(self, written: bytes) -> None:
        whole = written.rfind(b"\n") + 1
        self.last += written.count(b"\n")
        self._size += whole
        self._torn = written[whole:]

    def _prepare(self, lines: bytes) -> None:
        if self._descriptor >= 0:
            self._check_untouched()
        if self._torn and not lines.startswith(self._torn):
            self._cut(lines)
        if self._size and not self._torn and self._size + len(lines) > self._rotate_bytes:
            self._rotate()
        if self._descriptor < 0:
            self._descriptor = _open(self.path, new=True)

    def _check_untouched(self) -> None:
        """Raise DataError if another program wrote, cut, moved or replaced the file."""
        mine = os.fstat(self._descriptor)
        try:
            there = os.stat(self.path)
        except FileNotFoundError:
            raise self._changed("it was moved or removed") from None
        if there.st_ino != mine.st_ino or there.st_dev != mine.st_dev:
            raise self._changed("it was replaced")
        if mine.st_size != self._size + len(self._torn):
            raise self._changed(f"it is {mine.st_size:,} bytes long, not {self._size + len(self._torn):,}")

    def _cut(self, lines: bytes) -> None:
        """Remove the beginning of a line that is now another one, or zeros that a power failure left."""
        head, torn = lines[: lines.find(b",")], self._torn.rstrip(b"\0")
        if not (torn.startswith(head) or head.startswith(torn)):
            raise self._changed("it ends with something that is no released line")
        os.ftruncate(self._descriptor, self._size)
        self._torn = b""

    def _changed(self, how: str) -> DataError:
        return DataError(
            f"`{self.path}` was changed by someone else: {how}",
            hint="other programs may only read it, and must not rotate it",
        )

    def _rotate(self) -> None:
        """Move all files one number up, the last one first: after a crash the next call continues there."""
        _force(self._descriptor, self.path)
        for number in range(self._free_number() - 1, 0, -1):
            self._rotated(number).rename(self._rotated(number + 1))
        self.path.rename(self._rotated(1))
        os.close(self._descriptor)
        self._descriptor, self._size = -1, 0

    def _free_number(self) -> int:
        """Return the first number that no file has; delete files beyond `keep`."""
        numbers = self._numbers()
        free = next(number for number in range(1, len(numbers) + 2) if number not in numbers)
        if free <= self._keep:
            return free
        for number in sorted(numbers, reverse=True):
            if number >= self._keep:
                self._rotated(number).unlink()
        return self._keep

    def _numbers(self) -> set[int]:
        begin = f"{self.path.name}."
        ends = [
            one.name.removeprefix(begin) for one in self.path.parent.iterdir() if one.name.startswith(begin)
        ]
        return {int(end) for end in ends if end.isascii() and end.isdecimal() and end[0] != "0"}

    def _rotated(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")

    def sync(self) -> None:
        """Return when all lines are durable."""
        if self._descriptor >= 0:
            _force(self._descriptor, self.path)

    def close(self) -> None:
        """Sync and close the file."""
        self.sync()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class _Scan(NamedTuple):
    """The content of a file of numbered lines."""

    first: int
    lines: int
    size: int  # of the whole lines
    torn: bytes  # the bytes after them


def _scan(path: Path) -> _Scan:
    """Read a whole file, and check that its lines are numbered one after another."""
    first = count = size = 0
    with path.open("rb") as file:
        while (line := file.readline(_LONGEST)).endswith(b"\n"):
            number = number_of(line)
            first = first or number
            if not number or number != first + count:
                raise DataError(
                    f"`{path}` was changed or is damaged: it holds another line where line {first + count:,} "
                    "should be"
                )
            count, size = count + 1, size + len(line)
    if len(line) == _LONGEST:
        raise DataError("it holds more than 64 MiB without an end of line: these are no released lines")
    return _Scan(first, count, size, line)


def _last_number(descriptor: int) -> int:
    """Return the number of a file's last line from the file's end; 0 if that is not a whole line."""
    size, reach = os.fstat(descriptor).st_size, 1 << 12
    while True:
        end = os.pread(descriptor, reach, max(size - reach, 0))
        start = end.rfind(b"\n", 0, -1) + 1
        if start or reach >= size:
            return number_of(end[start:]) if end.endswith(b"\n") else 0
        reach *= 8


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    """Translate the system's errors: no space, which can come back, or anything else, which does not pass."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise DiskFull(
                f"no room to write `{path}`: {error.strerror}", hint="make room; it goes on by itself"
            ) from None
        raise DataError(f"`{path}` cannot be written: {error.strerror}") from None


def _open(path: Path, *, new: bool = False) -> int:
    """Open a file to read and write, mode 0600; a new one must not exist yet."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if new else 0), 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        if new:
            sync_folder(path.parent)
    except OSError:
        os.close(descriptor)
        if new:
            path.unlink()
        raise
    return descriptor


def _force(descriptor: int, path: Path) -> None:
    """Sync a file. A failure is final: a second sync can succeed without writing what was lost."""
    try:
        os.fdatasync(descriptor)
    except OSError as error:
        raise DataError(
            f"`{path}` could not be forced to disk: {error.strerror}",
            hint="start again when the disk works: what is missing will be written again",
        ) from None
