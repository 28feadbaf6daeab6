"""Bytes of a file or of standard input, decompressed, in blocks of whole lines."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from querycloak.errors import DataError, UsageError
from querycloak.files import DamagedFile, compression_of, decompress

#: Called with the bytes read so far and the bytes in all (0: unknown).
Progress = Callable[[int, int], None]

BLOCK: Final = 16 << 20
#: A line longer than this is never held in memory.
LONGEST_LINE: Final = 64 << 20
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_PLAIN_READ: Final = BLOCK
_HEAD: Final = 64 << 10
#: A compressed byte may stand for thousands, so compressed files are read in small steps.
_COMPRESSED_READ: Final = 16 << 10


def display_name(path: str | Path | bytes) -> str:
    """Return the name of an input for a message."""
    if isinstance(path, bytes):
        return "the file in memory"
    return "standard input" if path == "-" else f"`{Path(path).name}`"


def check_type(log: object) -> None:
    """Raise UsageError for what is neither a path nor the bytes of a file; its text may be its content."""
    if not isinstance(log, str | Path | bytes):
        kind = type(log)
        raise UsageError(
            f"a log is a path, a `Log` or a table of polars; got {kind.__module__}.{kind.__qualname__}",
            hint="for other tables, use `polars.from_pandas` or `polars.from_arrow`",
        )


def open_bytes(path: str | Path | bytes) -> IO[bytes]:
    """Open a log for reading: a file, standard input, or the bytes of a file."""
    if isinstance(path, bytes):
        return io.BytesIO(path)
    if str(path) == "-":
        return sys.stdin.buffer
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise UsageError(f"there is no file {display_name(path)}", hint="check the path") from None
    except OSError as error:
        raise UsageError(f"{display_name(path)} cannot be opened: {error.strerror}") from None


class Source:
    """An input with its head and its compression; `folder` is the folder that was named instead of it."""

    def __init__(
        self, path: str | Path | bytes, progress: Progress | None = None, folder: Path | None = None
    ) -> None:
        self.path, self.folder = path, folder
        self._file = open_bytes(path)
        self._progress = progress
        self._total = _size(path)
        self._seen = 0
        try:
            start = self._read(8)
            self.compression = compression_of(start)
            self._chunks = self._decompressed(start)
            head = b""
            while len(head) < _HEAD and (chunk := next(self._chunks, None)) is not None:
                head += chunk
            self.head = head.removeprefix(BYTE_ORDER_MARK)
        except DataError:
            self.close()
            raise

    def chunks(self) -> Iterator[bytes]:
        """Yield the decompressed bytes, byte order mark removed, in blocks of about `BLOCK` bytes."""
        waiting, size = [self.head], len(self.head)
        for chunk in self._chunks:
            waiting.append(chunk)
            size += len(chunk)
            if size >= BLOCK:
                yield b"".join(waiting)
                waiting, size = [], 0
        yield b"".join(waiting)

    def close(self) -> None:
        """Close the file."""
        if self._file is not sys.stdin.buffer:
            self._file.close()

    def _read(self, size: int) -> bytes:
        try:
            piece = self._file.read(size)
        except OSError as error:
            raise DataError(f"{display_name(self.path)} cannot be read: {error.strerror}") from None
        self._seen += len(piece)
        if self._progress is not None:
            self._progress(self._seen, self._total)
        return piece

    def _decompressed(self, start: bytes) -> Iterator[bytes]:
        if not self.compression:
            yield start
            while piece := self._read(_PLAIN_READ):
                yield piece
            return
        try:
            yield from decompress(start, lambda: self._read(_COMPRESSED_READ), self.compression)
        except DamagedFile as error:
            raise DataError(
                f"{display_name(self.path)} is {error} ({self.compression})",
                hint="fetch the file again; nothing of it was passed on",
            ) from None


def _size(path: str | Path | bytes) -> int:
    if isinstance(path, bytes):
        return len(path)
    return 0 if str(path) == "-" else Path(path).stat().st_size


@dataclass(frozen=True)
class Block:
    """Whole lines, each with its newline. `final`: no later block continues their last record.

    `overlong`: instead of lines, one line that is too long to hold.
    """

    data: bytes
    final: bool = False
    overlong: bool = False


class LineBlocks:
    """Cuts a stream of bytes at line ends; what a parser could not finish comes again in the next block."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._pending = b""
        self._skipping = False

    def push_back(self, tail: bytes) -> None:
        """Return lines whose last record continues in the next block."""
        self._pending = tail + self._pending

    def first_line(self) -> bytes:
        """Remove and return the first line, without its newline."""
        while b"\n" not in self._pending and (chunk := next(self._chunks, None)) is not None:
            self._pending += chunk
            if len(self._pending) > LONGEST_LINE:
                break
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def __iter__(self) -> Iterator[Block]:
        if b"\n" in self._pending:
            yield self._split(b"")
        for chunk in self._chunks:
            if self._skipping:
                _, found, chunk = chunk.partition(b"\n")  # noqa: PLW2901 - the rest of the line is dropped
                self._skipping = not found
            if b"\n" in chunk:
                yield self._split(chunk)
            elif len(self._pending) - self._lines_end() + len(chunk) > LONGEST_LINE:
                complete, self._pending = self._pending[: self._lines_end()], b""
                if complete:  # pushed back; the long line ends the record that they could not finish
                    yield Block(complete, final=True)
                self._skipping = True
                yield Block(b"", overlong=True)
            else:
                self._pending += chunk
        if self._pending:
            data, self._pending = self._pending, b""
            yield Block(data if data.endswith(b"\n") else data + b"\n", final=True)

    def _lines_end(self) -> int:
        return self._pending.rfind(b"\n") + 1

    def _split(self, chunk: bytes) -> Block:
        data = self._pending + chunk if self._pending else chunk
        cut = data.rfind(b"\n") + 1
        self._pending = data[cut:]
        return Block(data[:cut])
