"""One file of frames: reads, checks, distinguishes a torn write from damage, appends with one sync."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from querycloak.errors import DataError
from querycloak.files import sync_folder, write_all
from querycloak.service.wal.cipher import SALT_BYTES, Cipher, FileCipher
from querycloak.service.wal.frames import FRAME_BYTES, HEADER_BYTES, NO_KEY, Coder, Head, Header, Kind

_BUFFER: Final = 1 << 20
#: Added to the name of a file that is not complete; such files are of no use after a crash.
UNFINISHED: Final = ".new"
_RESTORE: Final = "nothing was skipped or changed; restore the folder from a copy"


def damaged(path: Path, at: int, what: str, hint: str = _RESTORE) -> DataError:
    """Return the error for damage at a byte of a file; it never shows the content."""
    return DataError(f"{path}, byte {at}: {what}", hint=hint)


@dataclass(frozen=True)
class Frame:
    """One whole frame and where it lies."""

    at: int
    kind: int
    number: int
    start: int
    payload: bytes

    @property
    def end(self) -> int:
        """The byte after it."""
        return self.at + FRAME_BYTES + len(self.payload)


class _Unreadable(Exception):
    """No whole frame is here: a torn write or damage."""

    def __init__(self, at: int) -> None:
        self.at = at


@dataclass(eq=False)
class SegmentReader:
    """A file of frames: where it begins and ends, and how much of it is known to be durable."""

    path: Path
    header: Header
    sealer: FileCipher | None
    coder: Coder = field(init=False)
    last: int = field(init=False)
    #: The byte after the last whole frame.
    end: int = field(init=False, default=HEADER_BYTES)
    #: All before this byte is known to be durable.
    durable: int = field(init=False, default=HEADER_BYTES)
    #: The last whole frame is a mark: all frames are durable.
    sealed: bool = field(init=False, default=False)
    #: A later file is known to exist.
    continued: bool = field(init=False, default=False)
    #: Bytes after `end` that a write left which was never acknowledged.
    torn: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.coder = Coder(self.header.salt)
        self.last = self.first - 1

    @classmethod
    def load(cls, path: Path, magic: bytes, cipher: Cipher | None) -> SegmentReader:
        """Read a file's header, and refuse one that is damaged or needs another key."""
        with _reading(path) as file:
            header = Header.unpack(file.read(HEADER_BYTES), magic)
        if header is None:
            raise damaged(path, 0, "the header is damaged")
        return cls(path, header, _sealer(path, header, cipher))

    @property
    def empty(self) -> bool:
        """Whether it holds no entry."""
        return self.last < self.first

    @property
    def first(self) -> int:
        """The number that the file's first frame has, or will have."""
        return self.header.first

    def check(self) -> None:
        """Read every frame; find the end, and what is torn there. Anything else that is wrong is an error."""
        try:
            for frame in self._walk():
                self.last, self.end, self.durable = frame.number, frame.end, frame.start
                self.sealed, self.continued = frame.kind != Kind.ENTRY, frame.kind == Kind.CONTINUED
        except _Unreadable as stop:
            with _reading(self.path, stop.at) as file:
                tail = file.read()
            if self.coder.was_durable(tail, stop.at):
                raise damaged(self.path, stop.at, "a frame that was whole once is damaged") from None
            self.torn = len(tail)

    def entries(self) -> Iterator[tuple[int, bytes]]:
        """Yield the numbers and payloads of a checked file; each is checked again."""
        try:
            for frame in self._walk(self.end):
                if frame.kind == Kind.ENTRY:
                    yield frame.number, self._opened(frame)
        except _Unreadable as stop:
            raise damaged(self.path, stop.at, "a frame was damaged since the file was opened") from None

    def _walk(self, end: int | None = None) -> Iterator[Frame]:
        """Go from frame to frame, up to a place or to the end of the file."""
        before = Frame(HEADER_BYTES - FRAME_BYTES, Kind.SEALED, self.first - 1, HEADER_BYTES, b"")
        with _reading(self.path, HEADER_BYTES) as file:
            while end is None or before.end < end:
                data = file.read(FRAME_BYTES)
                if not data and end is None:
                    return
                before = self._next(file, self.coder.head(data), before)
                yield before

    def _next(self, file: BinaryIO, head: Head | None, before: Frame) -> Frame:
        payload = file.read(head.length) if head else b""
        if head is None or not self.coder.fits(head, payload):
            raise _Unreadable(before.end)
        frame = Frame(before.end, head.kind, head.number, head.start, payload)
        if not _follows(frame, before):
            raise damaged(self.path, frame.at, f"frame {frame.number} does not follow frame {before.number}")
        return frame

    def _opened(self, frame: Frame) -> bytes:
        if self.sealer is None:
            return frame.payload
        try:
            return self.sealer.open(frame.number, frame.payload, self.header.magic)
        except DataError as error:
            raise damaged(self.path, frame.at, error.message, error.hint) from None


def _follows(frame: Frame, before: Frame) -> bool:
    """Whether a whole frame is one that the writer appends after another."""
    number = before.number + (frame.kind == Kind.ENTRY)
    whole = frame.kind == Kind.ENTRY or (frame.kind in (Kind.SEALED, Kind.CONTINUED) and not frame.payload)
    in_order = frame.number == number and frame.start in (before.start, frame.at)
    return whole and in_order and before.kind != Kind.CONTINUED


def _sealer(path: Path, header: Header, cipher: Cipher | None) -> FileCipher | None:
    if header.key_check == NO_KEY:
        if cipher is not None:
            raise damaged(path, 0, "a key is given, but this file is plain", "start with an empty folder")
        return None
    if cipher is None:
        raise damaged(path, 0, "the file is encrypted, and no key is given", "give the key it was made with")
    sealer = cipher.for_file(header.salt)
    if sealer.key_check != header.key_check:
        raise damaged(path, 0, "the file is encrypted with another key", "give the key it was made with")
    return sealer


@contextmanager
def _reading(path: Path, at: int = 0) -> Iterator[BinaryIO]:
    """Open a file at a place; what the system cannot read is damage too."""
    try:
        with path.open("rb", buffering=_BUFFER) as file:
            file.seek(at)
            yield file
    except OSError as error:
        raise damaged(path, at, f"cannot be read: {error.strerror}") from None


class SegmentWriter:
    """Appends to one file; a failure leaves `segment.end` unchanged."""

    def __init__(self, segment: SegmentReader, descriptor: int) -> None:
        self.segment = segment
        self._descriptor = descriptor

    @classmethod
    def create(cls, path: Path, magic: bytes, first: int, cipher: Cipher | None) -> SegmentWriter:
        """Begin a file under an unfinished name."""
        salt = secrets.token_bytes(SALT_BYTES)
        sealer = cipher.for_file(salt) if cipher else None
        header = Header(magic, first, salt, sealer.key_check) if sealer else Header(magic, first, salt)
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
        descriptor = os.open(_unfinished(path), flags, 0o600)
        writer = cls(SegmentReader(path, header, sealer), descriptor)
        try:
            write_all(descriptor, header.pack(), 0)
        except OSError:
            writer.discard()
            raise
        return writer

    @classmethod
    def reopen(cls, segment: SegmentReader) -> SegmentWriter:
        """Take up a file that was checked, to mend it or to close it off."""
        return cls(segment, os.open(segment.path, os.O_RDWR))

    def publish(self) -> None:
        """Make the content durable, then the final name."""
        path = self.segment.path
        try:
            os.fsync(self._descriptor)
            _unfinished(path).replace(path)
            sync_folder(path.parent)
        except OSError:
            self.discard()
            raise

    def discard(self) -> None:
        """Remove an unfinished file."""
        self.close()
        with contextlib.suppress(OSError):
            _unfinished(self.segment.path).unlink()

    def append(self, payloads: Sequence[bytes], sync: bool = True) -> None:
        """Write frames in one go and make them durable with one sync."""
        segment = self.segment
        parts: list[bytes] = []
        for number, payload in enumerate(payloads, start=segment.last + 1):
            stored = segment.sealer.seal(number, payload, segment.header.magic) if segment.sealer else payload
            parts += (segment.coder.pack(Kind.ENTRY, number, segment.durable, stored), stored)
        data = b"".join(parts)
        write_all(self._descriptor, data, segment.end)
        if sync:
            os.fdatasync(self._descriptor)
        segment.end += len(data)
        segment.last += len(payloads)
        segment.durable = segment.end if sync else segment.durable

    def mark(self, kind: Kind) -> None:
        """Write down that all frames are durable; call it only when they are. The mark itself is not, yet."""
        segment = self.segment
        data = segment.coder.pack(kind, segment.last, segment.durable)
        write_all(self._descriptor, data, segment.end)
        segment.end += len(data)

    def seal(self) -> None:
        """Mark the last write as durable, without a sync: if the mark is lost, only a diagnosis is lost.

        A mark that does not fit is left out. What it leaves behind is shorter than the next frame.
        """
        with contextlib.suppress(OSError):
            self.mark(Kind.SEALED)

    def cut(self) -> None:
        """Take away what lies after the last whole write, for good."""
        os.ftruncate(self._descriptor, self.segment.end)
        self.sync()

    def mend(self) -> None:
        """Make a file that a crash left behind durable as it was read.

        What no mark vouches for may lie in the system's memory only; after a failed sync the system even
        takes it for written. Writing the same bytes once more makes the sync mean something.
        """
        segment = self.segment
        os.ftruncate(self._descriptor, segment.end)
        doubtful = os.pread(self._descriptor, segment.end - segment.durable, segment.durable)
        write_all(self._descriptor, doubtful, segment.durable)
        self.sync()
        segment.torn, segment.durable = 0, segment.end

    def sync(self) -> None:
        """Make all of the file durable, its length too."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _unfinished(path: Path) -> Path:
    return path.with_name(path.name + UNFINISHED)
