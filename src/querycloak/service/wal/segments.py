"""One file of frames as it lies on the disk: reading, checking, and telling a torn write from damage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from querycloak.errors import DataError
from querycloak.service.wal.cipher import Cipher, Sealer
from querycloak.service.wal.frames import FRAME_BYTES, HEADER_BYTES, NO_KEY, Coder, Head, Header, Kind

_BUFFER: Final = 1 << 20
_RESTORE: Final = "nothing was skipped or changed; restore the folder from a copy"


def damaged(path: Path, at: int, what: str, hint: str = _RESTORE) -> DataError:
    """Say where a file is damaged, never what is in it."""
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
class Segment:
    """A file of frames: where it begins and ends, and how much of it is known to be durable."""

    path: Path
    header: Header
    sealer: Sealer | None
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
    def load(cls, path: Path, magic: bytes, cipher: Cipher | None) -> Segment:
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
                self._note(frame)
        except _Unreadable as stop:
            with _reading(self.path, stop.at) as file:
                tail = file.read()
            if self.coder.was_durable(tail, stop.at):
                raise damaged(self.path, stop.at, "a frame that was whole once is damaged") from None
            self.torn = len(tail)

    def refuse_torn(self) -> None:
        """Stop if the end is torn, where no crash can have torn it."""
        if self.torn:
            raise damaged(
                self.path, self.end, "a frame is damaged, and a later file shows that it was whole once"
            )

    def entries(self) -> Iterator[tuple[int, bytes]]:
        """Give the numbers and payloads of a checked file, each checked once more."""
        try:
            for frame in self._walk(self.end):
                if frame.kind == Kind.ENTRY:
                    yield frame.number, self._opened(frame)
        except _Unreadable as stop:
            raise damaged(self.path, stop.at, "a frame was damaged since the file was opened") from None

    def _note(self, frame: Frame) -> None:
        self.last, self.end, self.durable = frame.number, frame.end, frame.start
        self.sealed, self.continued = frame.kind != Kind.ENTRY, frame.kind == Kind.CONTINUED

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
    """Say whether a whole frame is one that the writer puts after another."""
    number = before.number + (frame.kind == Kind.ENTRY)
    whole = frame.kind == Kind.ENTRY or (frame.kind in (Kind.SEALED, Kind.CONTINUED) and not frame.payload)
    in_order = frame.number == number and frame.start in (before.start, frame.at)
    return whole and in_order and before.kind != Kind.CONTINUED


def _sealer(path: Path, header: Header, cipher: Cipher | None) -> Sealer | None:
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
