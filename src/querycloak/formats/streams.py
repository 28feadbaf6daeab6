"""Bytes of a file or of standard input, decompressed on the way, in blocks that end with a line."""

from __future__ import annotations

import io
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from querycloak.errors import DataError, UsageError

#: Called with the bytes read so far and the bytes in all (0: unknown).
Progress = Callable[[int, int], None]

BLOCK: Final = 16 << 20
#: A line longer than this is never held in memory.
LONGEST_LINE: Final = 64 << 20
MAGIC: Final = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst"}
_PLAIN_READ: Final = BLOCK
_HEAD: Final = 64 << 10
#: A packed byte may hold thousands, so packed files are read in small bites.
_PACKED_READ: Final = 16 << 10


def shown(path: str | Path | bytes) -> str:
    """Return the name of an input for a message."""
    if isinstance(path, bytes):
        return "the file in memory"
    return "standard input" if path == "-" else f"`{Path(path).name}`"


def open_bytes(path: str | Path | bytes) -> IO[bytes]:
    """Open a log for reading: a file, standard input, or the bytes of a file."""
    if isinstance(path, bytes):
        return io.BytesIO(path)
    if str(path) == "-":
        return sys.stdin.buffer
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise UsageError(f"there is no file {shown(path)}", hint="check the path") from None
    except IsADirectoryError:
        hint = "a folder is read only if it holds `ubi_queries.ndjson`"
        raise UsageError(f"{shown(path)} is a folder, not a log", hint=hint) from None
    except OSError as error:
        raise UsageError(f"{shown(path)} cannot be opened: {error.strerror}") from None


class Source:
    """An input that can be looked into before it is read; knows its compression."""

    def __init__(self, path: str | Path | bytes, progress: Progress | None = None) -> None:
        self.path = path
        self._file = open_bytes(path)
        self._progress = progress
        self._total = _size(path)
        self._seen = 0
        try:
            start = self._read(8)
            self.compression = next((name for magic, name in MAGIC.items() if start.startswith(magic)), "")
            self._chunks = self._unpacked(start)
            self.head = _gather(self._chunks, _HEAD)
        except DataError:
            self.close()
            raise

    def chunks(self) -> Iterator[bytes]:
        """Give the unpacked bytes, byte order mark removed, in blocks of about `BLOCK` bytes."""
        waiting, size = [self.head.removeprefix(b"\xef\xbb\xbf")], len(self.head)
        for chunk in self._chunks:
            waiting.append(chunk)
            size += len(chunk)
            if size >= BLOCK:
                yield b"".join(waiting)
                waiting, size = [], 0
        yield b"".join(waiting)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not sys.stdin.buffer:
            self._file.close()

    def _read(self, size: int) -> bytes:
        try:
            piece = self._file.read(size)
        except OSError as error:
            raise DataError(f"{shown(self.path)} cannot be read: {error.strerror}") from None
        self._seen += len(piece)
        if self._progress is not None:
            self._progress(self._seen, self._total)
        return piece

    def _unpacked(self, start: bytes) -> Iterator[bytes]:
        if not self.compression:
            yield start
            while piece := self._read(_PLAIN_READ):
                yield piece
            return
        try:
            yield from _unpack(start, lambda: self._read(_PACKED_READ), self.compression)
        except _Damaged as error:
            raise DataError(
                f"{shown(self.path)} is {error} ({self.compression})",
                hint="fetch the file again; nothing of it was passed on",
            ) from None


def _size(path: str | Path | bytes) -> int:
    if isinstance(path, bytes):
        return len(path)
    return 0 if str(path) == "-" else Path(path).stat().st_size


class _Damaged(Exception):
    """The packed bytes end too early, or are not what they claim to be."""


def _unpack(piece: bytes, more: Callable[[], bytes], compression: str) -> Iterator[bytes]:
    """Unpack one packed part after the other; files may be several, put together."""
    part = _unpacker(compression)
    while True:
        if not piece:
            piece = more()
        if not piece:
            if part.eof:
                return
            raise _Damaged("truncated")
        if part.eof:
            part = _unpacker(compression)
        try:
            plain = part.decompress(piece)
        except Exception:  # zlib.error or ZstdError: both say only that the bytes are damaged
            raise _Damaged("damaged") from None
        piece = part.unused_data if part.eof else b""
        yield plain


def _unpacker(compression: str) -> Any:
    if compression == "gz":
        return zlib.decompressobj(wbits=31)
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj()


def _gather(chunks: Iterator[bytes], least: int) -> bytes:
    parts, size = [], 0
    for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size >= least:
            break
    return b"".join(parts)


@dataclass(frozen=True)
class Block:
    """Whole lines, the last with its newline. `overlong`: stands for one line too long to hold."""

    data: bytes
    final: bool = False
    overlong: bool = False


class LineBlocks:
    """Cuts a stream of bytes at line ends; what a parser could not finish comes back in the next block."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._pending = b""
        self._skipping = False

    def push_back(self, tail: bytes) -> None:
        """Put back lines that need what follows them to make sense."""
        self._pending = tail + self._pending

    def first_line(self) -> bytes:
        """Take the first line off, without its line end."""
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
            elif len(self._pending) + len(chunk) > LONGEST_LINE:
                self._pending, self._skipping = b"", True
                yield Block(b"", overlong=True)
            else:
                self._pending += chunk
        if self._pending:
            data, self._pending = self._pending, b""
            yield Block(data if data.endswith(b"\n") else data + b"\n", final=True)

    def _split(self, chunk: bytes) -> Block:
        data = self._pending + chunk if self._pending else chunk
        cut = data.rfind(b"\n") + 1
        self._pending = data[cut:]
        return Block(data[:cut])
