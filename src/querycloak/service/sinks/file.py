"""A file that a log shipper follows (`tail -F`, Filebeat, Fluent Bit), with rotation by size."""

from __future__ import annotations

import os
from pathlib import Path

from querycloak.errors import DataError
from querycloak.service.sinks import disk
from querycloak.service.sinks.disk import writing
from querycloak.service.sinks.lines import fresh, last_number, scan
from querycloak.service.wal.disk import write_all


class FileSink:
    """Released lines in `NAME`; full files become `NAME.1`, `NAME.2`, … up to `keep` of them.

    The files themselves say which line was the last, so a crash at any instant loses and doubles none. A
    line that was cut short by a crash or a full disk is completed in place: the file does not shrink, since a
    shipper would then send all of it again.
    """

    def __init__(self, path: Path, rotate_bytes: int = 64 << 20, keep: int = 5, after: int = 0) -> None:
        """`after`: the line before the first one, for a sink that is added to a service that runs already."""
        self.path = path
        self.last = after
        self._rotate_bytes = rotate_bytes
        self._keep = max(keep, 1)
        self._descriptor = -1
        self._size = 0  # of the whole lines
        self._torn = b""  # the beginning of the next line, which is in the file already

    def open(self) -> None:
        """Find the last line that was written, whatever moment the last run ended at."""
        with writing(self.path):
            self._descriptor = disk.opened(self.path, new=not self.path.exists())
            found = scan(self._descriptor, self.path)
            before = self._last_rotated(found.count > 0)
            if found.count and before not in {None, found.first - 1}:
                raise self._changed(f"it does not go on where `{self._rotated(1).name}` ends")
        self._size, self._torn = found.size, found.torn
        self.last = found.last if found.count else self.last if before is None else before

    def _last_rotated(self, has_lines: bool) -> int | None:
        """Give the last line of `NAME.1`; None if there is no such file, and there need not be one."""
        try:
            descriptor = os.open(self._rotated(1), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            if has_lines or not self._numbers():  # in the middle of a rotation only NAME.1 is missing
                return None
            raise self._changed(f"it has no line, and `{self._rotated(1).name}` is missing") from None
        try:
            if last := last_number(descriptor):
                return last
            raise self._changed(f"`{self._rotated(1).name}` does not end with a released line")
        finally:
            os.close(descriptor)

    def append(self, first: int, lines: bytes, count: int) -> None:
        """Add lines `first` and following; those that are here already are left out, a gap is refused.

        After `DiskFull` give the same lines again.
        """
        lines, count = fresh(first, lines, count, self.last, self.path)
        if not count:
            return
        with writing(self.path):
            self._make_ready(lines)
            try:
                write_all(self._descriptor, lines, self._size)
            except OSError:
                self._take(lines[: os.fstat(self._descriptor).st_size - self._size])
                raise
        self._take(lines)

    def _take(self, written: bytes) -> None:
        """Note what is in the file now: whole lines, and perhaps the beginning of one."""
        whole = written.rfind(b"\n") + 1
        self.last += written.count(b"\n")
        self._size += whole
        self._torn = written[whole:]

    def _make_ready(self, lines: bytes) -> None:
        if self._descriptor >= 0:
            self._check_untouched()
        if self._torn and not lines.startswith(self._torn):
            self._cut(lines)
        if self._size and not self._torn and self._size + len(lines) > self._rotate_bytes:
            self._rotate()
        if self._descriptor < 0:
            self._descriptor = disk.opened(self.path, new=True)

    def _check_untouched(self) -> None:
        """Refuse to write on when another program wrote, cut, moved or replaced the file."""
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
        """Remove the beginning of a line that will be another now, or zeros that a power failure left."""
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
        """Move all files one number up, the last one first: after a crash the next try goes on from there."""
        disk.force(self._descriptor, self.path)
        for number in range(self._free_number() - 1, 0, -1):
            self._rotated(number).rename(self._rotated(number + 1))
        self.path.rename(self._rotated(1))
        os.close(self._descriptor)
        self._descriptor, self._size = -1, 0

    def _free_number(self) -> int:
        """Find the first number that no file has; make one free if there are enough files."""
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
        """Force all lines to disk."""
        if self._descriptor >= 0:
            disk.force(self._descriptor, self.path)

    def close(self) -> None:
        """Sync, and let the file go."""
        self.sync()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
