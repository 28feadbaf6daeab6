"""The released log: numbered lines in files, appended by one thread, read by any number of others."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from pathlib import Path

from querycloak.errors import DataError, Gone
from querycloak.service.sinks.disk import writing
from querycloak.service.sinks.lines import fresh
from querycloak.service.sinks.segment import Segment
from querycloak.service.wal.disk import private_folder

#: A read ends after about so many bytes, however many lines were asked for: readers' memory is bounded.
READ_BYTES = 8 << 20
#: A file is complete after this part of the time that lines are kept: so much longer may its first one stay.
AGE_SHARE = 1 / 8


class ReleasedLog:
    """All that was released and is still kept, in order; line n has the offset n.

    Readers see whole lines only. Old lines leave by `forget`, a file at a time; who asks for one gets `Gone`.
    """

    def __init__(
        self,
        folder: Path,
        segment_bytes: int = 32 << 20,
        keep_bytes: int = 4 << 30,
        keep_seconds: float = 7 * 86400,
    ) -> None:
        self.folder = folder
        self._segment_bytes = segment_bytes
        self._keep_bytes = keep_bytes
        self._keep_seconds = keep_seconds
        # Replaced, never changed: a reader keeps the list that it began with.
        self._segments: tuple[Segment, ...] = ()
        self._unsynced = False

    def open(self) -> None:
        """Find what is there, and cut off a last line that was being written when the power went."""
        with writing(self.folder):
            private_folder(self.folder)
            segments = tuple(Segment(path) for path in sorted(self.folder.glob("*.ndjson")))
            _check_sequence(segments)
            for segment in segments:
                segment.check()
            for one, following in pairwise(segments):
                following.begun = one.written
            self._segments = segments

    @property
    def first(self) -> int:
        """Give the number of the first line that can be read."""
        return self._segments[0].first if self._segments else 1

    @property
    def last(self) -> int:
        """Give the number of the last line; 0: nothing was released yet."""
        return self._segments[-1].last if self._segments else 0

    def append(self, first: int, lines: bytes, count: int) -> None:
        """Add lines `first` and following; those that are here already are left out, a gap is refused.

        After `DiskFull` nothing was added, and the same lines can be given again.
        """
        lines, count = fresh(first, lines, count, self.last, self.folder)
        if not count:
            return
        with writing(self.folder):
            self._newest().append(lines, count)
        self._unsynced = True

    def _newest(self) -> Segment:
        newest = self._segments[-1] if self._segments else None
        if newest and not newest.sealed and newest.size >= self._segment_bytes:
            self._seal(newest)
        if newest is None or newest.sealed:
            newest = Segment.create(self.folder, self.last + 1)
            self._segments = (*self._segments, newest)
        return newest

    def _seal(self, segment: Segment) -> None:
        segment.seal()
        self._unsynced = False

    def sync(self) -> None:
        """Force all lines to disk."""
        if self._unsynced:
            self._segments[-1].sync()
            self._unsynced = False

    def read(self, after: int, limit: int) -> bytes:
        """Give up to `limit` lines after one, about 8 MiB at most; nothing if there is none yet."""
        segments = self._segments
        low, pieces, room = after + 1, [], READ_BYTES
        high = min(after + limit, segments[-1].last if segments else 0)
        if low < self.first:
            raise self._gone()
        while low <= high and room > 0:
            segment = segments[bisect_right(segments, low, key=lambda one: one.first) - 1]
            data, reached = self._read(segment, low, min(high, segment.last), room)
            pieces.append(data)
            low, room = reached + 1, room - len(data)
        return b"".join(pieces)

    def _read(self, segment: Segment, low: int, high: int, room: int) -> tuple[bytes, int]:
        try:
            return segment.read(low, high, room)
        except FileNotFoundError:
            if low < self.first:  # forgotten since this read began
                raise self._gone() from None
            raise DataError(f"`{segment.path}` is missing") from None

    def _gone(self) -> Gone:
        before = self.first - 1
        return Gone(
            f"released lines up to {before:,} are no longer kept", hint=f"read on with `after={before}`"
        )

    def forget(self, now: float) -> None:
        """Remove the oldest files while all take too much room, or they are too old; the newest stays.

        Where little is released, a file would be the newest for ever: after a time another takes its place.
        So call it where `append` is called.
        """
        self._renew(now)
        total = self.size()
        while len(self._segments) > 1:
            oldest = self._segments[0]
            if total <= self._keep_bytes and now - oldest.written <= self._keep_seconds:
                return
            total -= oldest.size
            self._segments = self._segments[1:]  # first, so that no new reader comes
            oldest.path.unlink(missing_ok=True)

    def _renew(self, now: float) -> None:
        newest = self._segments[-1] if self._segments else None
        if newest is None or not newest.size or now - newest.begun <= AGE_SHARE * self._keep_seconds:
            return
        with writing(self.folder):
            if not newest.sealed:
                self._seal(newest)
            self._newest()

    def keep(self, keep_bytes: int, keep_seconds: float) -> None:
        """Keep more or less from now on; `forget` goes by it."""
        self._keep_bytes, self._keep_seconds = keep_bytes, keep_seconds

    def size(self) -> int:
        """Count the bytes on disk."""
        return sum(segment.size for segment in self._segments)

    def close(self) -> None:
        """Sync, and let the files go."""
        self.sync()
        self._segments = ()


def _check_sequence(segments: tuple[Segment, ...]) -> None:
    """See that every file follows the one before; only the newest may be incomplete."""
    for one, following in pairwise(segments):
        if not one.sealed:
            raise DataError(f"`{one.path}` was never completed, but `{following.path.name}` follows it")
        if following.first != one.last + 1:
            missing = one.path.with_name(f"{one.last + 1:020d}-….ndjson")
            raise DataError(f"`{missing}` is missing, or `{one.path.name}` does not belong here")
