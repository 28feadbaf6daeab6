"""The one thread that applies durable entries and hands out what leaves; nothing else touches the stream."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from querycloak.errors import Unavailable
from querycloak.service.entries import Entry
from querycloak.service.sinks.profiles import ProfileCounter
from querycloak.service.sinks.sink import Sink
from querycloak.service.stream import Output, Stream
from querycloak.service.tasks import Task

T = TypeVar("T")
_log = logging.getLogger("querycloak.service")
#: Entries that are applied together, at most.
_MANY: Final = 256
#: How long an entry may wait for others, in seconds.
_PAUSE: Final = 0.02
_STOP: Final = object()


@dataclass(frozen=True)
class Counts:
    """How far the stream has come, as of the last entry applied."""

    position: int = 0
    accepted: int = 0
    released: int = 0
    held: int = 0
    dropped: int = 0
    epoch: int = 0
    handled: int = 0


class Worker:
    """Applies entries in order; retries outlets that are down; tells others what has changed."""

    def __init__(
        self,
        stream: Stream,
        outlets: Sequence[Sink],
        profiles: ProfileCounter,
        *,
        position: int,
        saw: Callable[[Output], None] = lambda output: None,
        pause: float = 0.5,
    ) -> None:
        self.stream, self._outlets, self._profiles = stream, outlets, profiles
        self._saw, self._pause = saw, pause
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="querycloak-worker", daemon=True)
        self._position = position
        self._handed = self._handled = 0  # records that came here, and those that are applied
        self.trouble = ""  # why outlets do not take lines, if so
        self.failure: BaseException | None = None
        self._stopping = threading.Event()
        self._under_way: list[tuple[int, Entry, Any]] = []
        self.counts = self._counted()

    def _counted(self) -> Counts:
        s = self.stream
        return Counts(self._position, s.came, s.released, s.held, s.lost, s.epoch, self._handled)

    @property
    def queued(self) -> int:
        """Count the records that are durable and not applied yet."""
        return self.moment()[1]

    def moment(self) -> tuple[Counts, int]:
        """Give the counts, and how many records are queued, of one moment."""
        counts = self.counts
        return counts, self._handed - counts.handled

    def start(self) -> None:
        """Begin to apply entries."""
        self._thread.start()

    def hand_on(self, number: int, entry: Entry, result: Future[Any] | None = None) -> None:
        """Take an entry that is durable now."""
        self._handed += len(entry)
        self._queue.put((number, entry, result))

    def ask(self, work: Callable[[], T]) -> Future[T]:
        """Have something done between two entries, where the stream is at rest."""
        task = Task(work)
        self._queue.put(task)
        return task.result

    def stop(self) -> None:
        """Apply what is queued, then end."""
        self._queue.put(_STOP)
        self._thread.join()

    def hasten(self) -> None:
        """Wait no longer for outlets that are down; what they lack comes again after a restart."""
        self._stopping.set()

    def _run(self) -> None:
        try:
            while self._round():
                pass
        except BaseException as error:
            self.failure = error
            _log.critical("applying records failed", extra={"fault": type(error).__name__})
            self._refuse_the_rest(error)

    def _refuse_the_rest(self, error: BaseException) -> None:
        for _, _, waiting in self._under_way:
            if waiting is not None and not waiting.done():
                waiting.set_exception(error)
        while True:
            item = self._queue.get()
            if item is _STOP:
                return
            waiting = item.result if isinstance(item, Task) else item[2]
            if waiting is not None:
                waiting.set_exception(error)

    def _round(self) -> bool:
        """Apply the entries that are there, up to the first thing that is none."""
        self._under_way, other = self._gather()
        if self._under_way:
            self._apply(self._under_way)
        if isinstance(other, Task):
            other.carry_out()
        return other is not _STOP

    def _gather(self) -> tuple[list[tuple[int, Entry, Any]], Any]:
        """Wait for an entry, and a little longer for more: many cost hardly more than one."""
        steps: list[tuple[int, Entry, Any]] = []
        until = 0.0
        while len(steps) < _MANY:
            try:
                item = self._queue.get(timeout=max(0.0, until - time.monotonic()) if steps else None)
            except queue.Empty:
                break
            until = until or time.monotonic() + _PAUSE
            if not isinstance(item, tuple):
                return steps, item
            steps.append(item)
            if item[2] is not None:  # its result is what applying it alone gives
                break
        return steps, None

    def apply_again(self, steps: Sequence[tuple[int, Entry]]) -> None:
        """Apply entries that were durable before a restart; nobody waits for their answers any more."""
        self._apply([(number, entry, None) for number, entry in steps], new=False)

    def _apply(self, steps: list[tuple[int, Entry, Any]], *, new: bool = True) -> None:
        alone = steps[-1][2] is not None
        before = [entry for _, entry, _ in steps[: len(steps) - alone]]
        if before:
            self._hand_out(self.stream.apply(before))
        if alone:
            self._answered(steps[-1])
        self._forget_profiles()
        self._position = steps[-1][0]
        self._handled += sum(len(entry) for _, entry, _ in steps) if new else 0
        self.counts = self._counted()

    def _answered(self, step: tuple[int, Entry, Future[Any]]) -> None:
        _, entry, result = step
        lost = self.stream.lost
        self._hand_out(self.stream.apply([entry]))
        if self.stream.refusal is not None:
            result.set_exception(self.stream.refusal)
        else:
            result.set_result(self.stream.told | {"dropped": self.stream.lost - lost})

    def _forget_profiles(self) -> None:
        """Forget the profiles of those who were erased, also when that is replayed after a crash."""
        while self.stream.unwanted:
            self._insist(lambda: self._profiles.delete(self.stream.unwanted[-1]))
            self.stream.unwanted.pop()

    def _hand_out(self, output: Output) -> None:
        if not len(output):
            return
        lines = output.lines()
        for outlet in self._outlets:
            self._insist(lambda o=outlet: o.append(output.first, lines, len(output)))  # type: ignore[misc]
        self._profiles.add(output.frame)
        self.flush()
        self._saw(output)

    def _insist(self, work: Callable[[], None]) -> None:
        """Try until an outlet takes it: meanwhile records queue up, and the door refuses more."""
        while True:
            try:
                work()
            except Unavailable as error:
                self.trouble = error.message
                if self._stopping.wait(self._pause):
                    raise
                continue
            self.trouble = ""
            return

    def flush(self) -> None:
        """Write the profiles that were gathered; for use inside `ask`."""
        if self._profiles.due():
            self._insist(self._profiles.flush)

    def sync(self) -> None:
        """Make durable what every outlet has; for use inside `ask`."""
        for outlet in self._outlets:
            self._insist(outlet.sync)
        self._insist(self._profiles.sync)

    def close(self) -> None:
        """Let go of what outlets have open; after the end."""
        for outlet in self._outlets:
            outlet.close()
