"""One partition of a topic with a stream of its own; lanes share nothing, so they can move alone."""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from querycloak.errors import DataError
from querycloak.service.entries import Entry
from querycloak.service.intake import cleaned
from querycloak.service.kafka import messages
from querycloak.service.pseudonyms import Pseudonyms
from querycloak.service.stream import TOGETHER, Output, Stream
from querycloak.service.tally import Tally
from querycloak.service.worker import Counts

if TYPE_CHECKING:
    from confluent_kafka import Message

#: Answers that a lane remembers, so that nothing that was asked of it once is carried out again.
REMEMBERED: Final = 1000


@dataclass(frozen=True)
class Mark:
    """How far a lane has come: the next input offset, lines released, and requests carried out.

    `kept` is the place of its snapshot in a store that has places, and `by` the service that had it then.
    """

    offset: int
    released: int = 0
    requests: int = 0
    kept: int = field(default=-1, compare=False)
    by: str = field(default="", compare=False)

    def metadata(self) -> str:
        """Give what stands beside the offset in Kafka, in the same transaction."""
        found: dict[str, Any] = {"released": self.released, "requests": self.requests}
        return json.dumps(found | ({"kept": self.kept, "by": self.by} if self.by else {}))

    @classmethod
    def read(cls, offset: int, metadata: str | None) -> Mark:
        """Read an offset that this program committed; refuse one that somebody else did."""
        try:
            found = json.loads(metadata or "")
            kept, by = int(found.get("kept", -1)), str(found.get("by", ""))
            return cls(offset, int(found["released"]), int(found["requests"]), kept, by)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DataError(
                "the group's offsets were committed by another program",
                hint="use a group of its own: `?group=NAME` in the address of the source",
            ) from None


class Lane:
    """Applies messages and requests in order; keeps what leaves until it is committed.

    `committed` is what Kafka knows. A lane that begins behind it goes the same way again, and what leaves
    then is there already: only what comes after is handed out.
    """

    def __init__(
        self, partition: int, stream: Stream, pseudonyms: Pseudonyms, tally: Tally, committed: Mark
    ) -> None:
        self.partition, self.stream, self.pseudonyms, self.tally = partition, stream, pseudonyms, tally
        self.committed = committed
        self.position, self.requests = 0, 0
        self.skipped: Counter[str] = Counter()
        self.lines: list[bytes] = []
        #: What became of requests that were put to all lanes, by the request's name.
        self.answers: dict[str, dict[str, int]] = {}
        #: Where its snapshot is, and which service has it; see `Mark`.
        self.kept, self.owner = committed.kept, committed.by
        self.saved_at, self.saved = time.monotonic(), Mark(-1)
        #: As of the last commit, for whoever asks.
        self.counts = Counts()
        self._outputs: list[Output] = []
        self._due: deque[tuple[int, Entry]] = deque()

    @property
    def mark(self) -> Mark:
        """How far it has come."""
        return Mark(self.position, self.stream.released, self.requests, self.kept, self.owner)

    @property
    def behind(self) -> bool:
        """Whether it still goes a way that it went before."""
        return self.position < self.committed.offset or self.requests < self.committed.requests

    @property
    def moved(self) -> bool:
        """Whether there is something to commit."""
        return not self.behind and self.mark != self.committed

    @property
    def at_rest(self) -> bool:
        """Whether it is where Kafka knows it to be."""
        return not self.behind and not self.moved

    def _counted(self) -> Counts:
        s = self.stream
        return Counts(self.position, s.accepted, s.released, s.held, s.lost, s.epoch)

    def restore(self, parts: Mapping[str, Any], requests: Iterable[tuple[int, Entry]]) -> None:
        """Begin at a snapshot, with the requests that were noted after it."""
        self.stream.restore(parts)
        own = parts["lane"]
        self.position, self.requests = int(own["offset"]), int(own["requests"])
        self.skipped, self.answers = Counter(own["skipped"]), dict(own.get("answers", {}))
        self.saved, self.counts = self.mark, self._counted()
        self._due.extend(requests)
        self.pseudonyms.turn(self.stream.epoch)
        self._catch_up()

    def snapshot(self) -> dict[str, Any]:
        """Give everything by name; only when all that left is committed."""
        assert not self.moved
        own: dict[str, Any] = {
            "offset": self.position,
            "released": self.stream.released,
            "requests": self.requests,
        }
        own |= {"skipped": dict(self.skipped), "answers": dict(self.answers)}
        return self.stream.snapshot() | {"lane": own}

    def take(self, some: Sequence[Message]) -> None:
        """Apply messages; those that it had before are left out."""
        offsets = np.array([message.offset() for message in some], np.int64)
        start = int(np.searchsorted(offsets, self.position))
        while start < len(some):
            stop = self._next_stop()
            end = len(some) if stop is None else int(np.searchsorted(offsets, stop))
            if end > start:
                self._apply(some[start:end], int(offsets[end - 1]) + 1)
            else:  # no message lies before the stop
                self.position = stop or 0
            self._catch_up()
            start = end

    def _next_stop(self) -> int | None:
        """Give the offset before which something else is to be done: a request, or a check."""
        stops = [int(entry.facts["input"]) for _, entry in list(self._due)[:1]]
        if self.position < self.committed.offset:
            stops.append(self.committed.offset)
        return min(stops, default=None)

    def _apply(self, some: Sequence[Message], position: int) -> None:
        stamps = messages.stamps_of(some)
        parsed = messages.read(some, stamps)
        found = cleaned([parsed], 0)
        self.skipped.update({reason: len(rows) for reason, rows in found.skipped[0].items()})
        # If a sender's clock was set back, time stands still until it has caught up.
        at = np.maximum(np.maximum.accumulate(stamps), self.stream.at)
        assert parsed.parts is not None
        frame = found.frame.with_columns(
            user=pl.Series(self.pseudonyms.of(found.frame["user"]), dtype=pl.String),
            _at=pl.Series(at[parsed.parts[found.row]]),
        )
        for start in range(0, frame.height, TOGETHER):
            self._note(self.stream.push(frame[start : start + TOGETHER]))
        self.stream.at, self.position = int(at[-1]), position

    def _catch_up(self) -> None:
        """Carry out requests whose time it is, and see that the way is the same as before."""
        self._check()
        while self._due and int(self._due[0][1].facts["input"]) <= self.position:
            self.carry_out(*self._due.popleft())
            self._check()

    def _check(self) -> None:
        known = self.committed
        if (self.position, self.requests) == (known.offset, known.requests) and self.mark != known:
            raise DataError(
                f"partition {self.partition}: {self.stream.released:,} lines were released up to offset"
                f" {known.offset:,}, but {known.released:,} are committed",
                hint="was the topic changed, or the state restored in part? start anew with another group",
            )

    def carry_out(self, number: int, entry: Entry) -> dict[str, int]:
        """Carry out a request that was noted; say what became of it."""
        lost = self.stream.lost
        self._note(self.stream.apply([entry]))
        self.requests = number
        if entry.kind == "epoch":
            self.pseudonyms.turn(self.stream.epoch)
        if entry.kind == "erasure":
            self.pseudonyms.forget()
        if self.stream.refusal is not None:
            raise self.stream.refusal
        told = self.stream.told | {"dropped": self.stream.lost - lost}
        if "asked" in entry.facts:
            self.answer(str(entry.facts["asked"]), told)
        return told

    def answer(self, asked: str, told: dict[str, int]) -> None:
        """Remember what became of a request that was put to all lanes; old answers go."""
        self.answers[asked] = told
        while len(self.answers) > REMEMBERED:
            del self.answers[next(iter(self.answers))]

    def _note(self, output: Output) -> None:
        """Keep what leaves, without the lines that are committed already."""
        if not len(output):
            return
        self._outputs.append(output)
        known = max(0, self.committed.released - output.first + 1)
        if known < len(output):
            self.lines += output.lines().split(b"\n")[known:-1]

    def settle(self) -> list[Output]:
        """Note that all is committed; give what left."""
        if not self.behind:
            self.committed = self.mark
        self.counts = self._counted()
        done, self._outputs, self.lines = self._outputs, [], []
        for output in done:
            self.tally.add(output.frame)
        return done
