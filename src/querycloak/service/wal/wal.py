"""The write-ahead log of the service: what `append` has returned for is on the disk, and stays there.

Each change of the folder is made so that a crash at any instant leaves a state which `open` understands:

- A file gets its name when its header is durable, and its first frame when its name is.
- When a file is full, the next one is made first; then the full one is closed off by a mark that says so.
- After a cut (torn write, full disk) and after a restart, writing goes on in another file: the cut-off bytes
  may still lie on the disk, and with a cipher their numbers must never be sealed with the same key again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from querycloak.errors import (
    DataError,
    JournalBroken,
    JournalFull,
    QueryCloakError,
    Refused,
    UsageError,
    is_full,
)
from querycloak.files import FolderLock, private_folder, sync_folder
from querycloak.service.wal.cipher import Cipher
from querycloak.service.wal.frames import LARGEST_PAYLOAD, Kind
from querycloak.service.wal.segment import UNFINISHED, SegmentReader, SegmentWriter, damaged

_MAGIC: Final = b"QCLOAKJ\n"
_SUFFIX: Final = ".journal"
#: Hint for a snapshot and a write-ahead log that do not fit each other.
TOGETHER: Final = "snapshot and write-ahead log belong together: restore both from the same copy"


class WriteAheadLog:
    """Numbered frames in a folder of files; one writer, one thread."""

    def __init__(self, folder: Path, cipher: Cipher | None = None, segment_bytes: int = 64 << 20) -> None:
        self.folder = folder
        #: The number of the last durable frame; 0 at first.
        self.last_number = 0
        self._cipher = cipher
        self._segment_bytes = segment_bytes
        self._segments: list[SegmentReader] = []
        self._tail: SegmentWriter | None = None
        self._may_go_on = False
        self._broken = False
        self._lock: FolderLock | None = None

    def open(self) -> None:
        """Check all that is there, cut off a torn last write, and stop at any other damage."""
        if self._lock is not None:
            raise UsageError("the write-ahead log is open already")
        try:
            private_folder(self.folder)
            self._lock = FolderLock(self.folder / "lock")
            self._load()
        except BlockingIOError:
            raise Refused(
                f"another process has the write-ahead log in {self.folder} open",
                hint="stop it, or use another folder",
            ) from None
        except OSError as error:
            self.close()
            raise write_failure(error, self.folder) from None
        except QueryCloakError:
            self.close()
            raise

    def append(self, payloads: Sequence[bytes]) -> int:
        """Append payloads and return the number of the last; when this returns, all of them are durable.

        Raises `JournalFull` when there is no room: then none of them is kept, and a later call may work.
        Raises `JournalBroken` when the disk fails: then they may or may not be kept, and the log takes
        nothing more until it is opened again. After a failed sync the system may have dropped what it could
        not write and call it clean, so the next sync would succeed and mean nothing.
        """
        self._refuse_if_stopped()
        for place, payload in enumerate(payloads):
            if len(payload) > LARGEST_PAYLOAD:
                most = LARGEST_PAYLOAD >> 20
                raise UsageError(
                    f"payload {place} has {len(payload)} bytes; a frame holds {most} MiB at most"
                )
        if payloads:
            with self._errors():
                writer = self._tail
                if writer is None or not self._may_go_on or writer.segment.end >= self._segment_bytes:
                    writer = self._start()
                writer.append(payloads)
            self.last_number = writer.segment.last
            writer.seal()
        return self.last_number

    def read_after(self, number: int) -> Iterator[tuple[int, bytes]]:
        """Yield the frames after a number. Raise DataError if some are missing."""
        first = self._segments[0].first if self._segments else 1
        if not first - 1 <= number <= self.last_number:
            raise DataError(
                f"{self.folder}: frames after {number} are needed, it has {first} to {self.last_number}",
                hint=TOGETHER,
            )
        later = [segment for segment in self._segments if segment.last > number]
        return (entry for segment in later for entry in segment.entries() if entry[0] > number)

    def truncate(self, upto: int) -> None:
        """Remove the files whose frames are all at or before a number; other frames stay."""
        self._refuse_if_stopped()
        if upto > self.last_number:
            raise UsageError(f"frame {upto} cannot be removed: the last one is {self.last_number}")
        with self._errors():
            self._remove(upto)  # first, since it makes room
            if self._segments and self._segments[-1].last <= upto and not self._segments[-1].empty:
                self._start()
                self._remove(upto)

    def start_new_segment(self) -> None:
        """Write the next frames into a new file, so that `truncate` can remove all that is there now.

        `truncate` removes whole files. While entries are appended, the newest file holds old and new
        ones, and would stay until it is full.
        """
        if self._tail is not None and not self._tail.segment.empty:
            self._may_go_on = False

    def size(self) -> int:
        """Count the bytes on disk."""
        return sum(segment.end for segment in self._segments)

    def close(self) -> None:
        """Close the files and release the lock; the last mark becomes durable too."""
        if self._tail is not None:
            with contextlib.suppress(OSError):  # a mark only: all frames are durable
                self._tail.sync()
            self._tail.close()
        if self._lock is not None:
            self._lock.release()
        self._tail, self._lock, self._may_go_on, self._broken = None, None, False, False

    def _load(self) -> None:
        for left in self.folder.glob(f"*{_SUFFIX}{UNFINISHED}"):
            left.unlink()
        paths = sorted(self.folder.glob(f"*{_SUFFIX}"))
        self._segments = [self._found(path) for path in paths]
        self._check_chain()
        self.last_number = self._segments[-1].last if self._segments else 0
        for segment in self._latest():
            _mend(segment)
        if self._segments:
            self._tail = SegmentWriter.reopen(self._segments[-1])

    def _latest(self) -> list[SegmentReader]:
        """Return the files that a crash can have torn: the last, and the one before an empty one."""
        return self._segments[-2:] if self._segments and self._segments[-1].empty else self._segments[-1:]

    def _found(self, path: Path) -> SegmentReader:
        segment = SegmentReader.load(path, _MAGIC, self._cipher)
        if path.name != _name(segment.first):
            raise damaged(path, 0, f"the file begins with frame {segment.first}; its name says otherwise")
        segment.check()
        return segment

    def _check_chain(self) -> None:
        """Stop where files do not follow each other, or one is torn that a crash cannot have torn."""
        for segment, following in pairwise(self._segments):
            if segment.torn and segment not in self._latest():
                what = "a frame is damaged, and a later file shows that it was whole once"
                raise damaged(segment.path, segment.end, what)
            if following.first != segment.last + 1:
                what = f"the file ends with frame {segment.last}, the next one begins with {following.first}"
                raise damaged(segment.path, segment.end, what)
        if self._segments and self._segments[-1].continued:
            last = self._segments[-1]
            raise damaged(last.path, last.end, "the file that follows is missing")

    def _start(self) -> SegmentWriter:
        """Go on in a new file; one that holds no entry is replaced, since it would have the same name."""
        path = self.folder / _name(self.last_number + 1)
        writer = SegmentWriter.create(path, _MAGIC, self.last_number + 1, self._cipher)
        writer.publish()
        if self._tail is not None:
            try:
                if self._tail.segment.empty:
                    self._segments.pop()
                else:
                    _close_off(self._tail)
                self._tail.close()
            except OSError:
                writer.close()
                raise
        self._segments.append(writer.segment)
        self._tail, self._may_go_on = writer, True
        return writer

    def _remove(self, upto: int) -> None:
        """Remove from the front, so that a crash leaves no gap; the newest file always stays."""
        old = [segment for segment in self._segments[:-1] if segment.last <= upto]
        for segment in old:
            segment.path.unlink()
            self._segments.remove(segment)
        if old:
            sync_folder(self.folder)

    def _refuse_if_stopped(self) -> None:
        if self._lock is None:
            raise UsageError("the write-ahead log is not open")
        if self._broken:
            raise JournalBroken(
                f"write-ahead log: write failed in {self.folder}; no more records are accepted",
                hint="check the disk, then restart the service",
            )

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """After a failed write: go back to what was durable if only room is lacking, else stop."""
        try:
            yield
        except OSError as error:
            self._may_go_on = False
            failure = write_failure(error, self.folder)
            try:
                if isinstance(failure, JournalFull) and self._tail is not None:
                    self._tail.cut()
            except OSError as worse:
                failure = write_failure(worse, self.folder)
            self._broken = not isinstance(failure, JournalFull)
            raise failure from None


def _name(first: int) -> str:
    return f"{first:020d}{_SUFFIX}"


def _mend(segment: SegmentReader) -> None:
    """Make durable what a crash left; the mark that says so is durable too, or is not there."""
    with contextlib.closing(SegmentWriter.reopen(segment)) as writer:
        writer.mend()
        if not segment.sealed and not segment.empty:
            writer.seal()
        writer.cut()


def _close_off(writer: SegmentWriter) -> None:
    """Mark a file as followed by another, for good; on a full disk it goes without the mark."""
    end = writer.segment.end
    try:
        writer.mark(Kind.CONTINUED)
        writer.sync()
    except OSError as error:
        if not is_full(error):
            raise
        writer.segment.end = end
        writer.cut()


def write_failure(error: OSError, path: Path) -> JournalFull | JournalBroken:
    """Return our error for a failed write: `JournalFull` if only space is missing."""
    if isinstance(error, JournalFull | JournalBroken):
        return error
    if is_full(error):
        hint = "make room and try again; nothing that was acknowledged is lost"
        return JournalFull(f"no room in {path}: {error.strerror}", hint=hint)
    hint = "check the disk and the folder's owner, then start the service again"
    return JournalBroken(f"{path} cannot be written: {error.strerror}", hint=hint)
