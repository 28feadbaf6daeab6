"""The thread that applies durable entries and delivers released lines; no other thread uses the stream."""

from __future__ import annotations

import logging
import queue
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from querycloak.errors import QueryCloakError, ServiceFailed, Unavailable
from querycloak.service.entries import Entry
from querycloak.service.sinks.profiles import ProfileCounter
from querycloak.service.sinks.sink import Sink
from querycloak.service.state import Counts
from querycloak.service.stream.stream import Output, Stream
from querycloak.service.task import Task

T = TypeVar("T")
_log = logging.getLogger("querycloak.service")
#: Entries that are applied together, at most.
_BATCH: Final = 256
#: How long an entry may wait for others, in seconds.
_LINGER: Final = 0.02
_STOP: Final = object()


class _Step(NamedTuple):
    """An entry with its number, and the future of a request that waits for its result."""

    number: int
    entry: Entry
    result: Future[Any] | None = None


class Worker:
    """Applies entries in order and retries sinks that are down."""

    def __init__(
        self,
        stream: Stream,
        sinks: Sequence[Sink],
        profiles: ProfileCounter,
        *,
        position: int,
        retry_seconds: float = 0.5,
    ) -> None:
        self.stream, self._sinks, self._profiles = stream, sinks, profiles
        self._retry_seconds = retry_seconds
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="querycloak-worker", daemon=True)
        self._position = position
        self._enqueued = self._applied = 0  # records since the start
        self.trouble = ""  # why a sink takes no lines; empty if all do
        self.failure: QueryCloakError | None = None  # why the worker has ended
        self._give_up = threading.Event()
        self._current: list[_Step] = []
        self._counts = self._count()

    def _count(self) -> Counts:
        s = self.stream
        return Counts(
            position=self._position,
            accepted=s.accepted + s.clicks.held,  # these are not numbered yet
            released=s.released,
            held=s.held,
            dropped=s.dropped_total,
            epoch=s.epoch,
            applied=self._applied,
        )

    def counts_now(self) -> tuple[Counts, int]:
        """Return the counts, and the number of queued records at the same moment."""
        counts = self._counts
        return counts, self._enqueued - counts.applied

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def enqueue(self, number: int, entry: Entry, result: Future[Any] | None = None) -> None:
        """Add an entry that is on disk."""
        self._enqueued += len(entry)
        self._queue.put(_Step(number, entry, result))

    def run_on_worker(self, work: Callable[[], T]) -> Future[T]:
        """Run work in this thread between two entries."""
        task = Task(work)
        self._queue.put(task)
        return task.result

    def stop(self) -> None:
        """Apply what is queued, then end the thread."""
        self._queue.put(_STOP)
        self._thread.join()

    def stop_retrying(self) -> None:
        """Stop retrying sinks that are down; replay after the next start delivers what they miss."""
        self._give_up.set()

    def _run(self) -> None:
        other = None
        try:
            while other is not _STOP:
                self._current, other = self._gather()
                if self._current:
                    self._apply(self._current)
                if isinstance(other, Task):
                    other.run()
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """Log the failure, and refuse everything that is queued until the service stops.

        Of an error that is not our own, only type and place are shown.
        """
        if isinstance(error, QueryCloakError):
            self.failure = error
        else:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(frame.filename).name}, line {frame.lineno}"
            self.failure = ServiceFailed(
                f"applying records failed: {type(error).__name__} in {place}",
                hint="this is a fault in querycloak",
            )
        _log.critical(
            "applying records failed",
            extra={"fault": type(error).__name__, "code": self.failure.code, "trouble": self.failure.message},
        )
        for step in self._current:
            _refuse(step.result, self.failure)
        while (item := self._queue.get()) is not _STOP:
            _refuse(item.result, self.failure)

    def _gather(self) -> tuple[list[_Step], Any]:
        """Wait for an entry, and a short time for more: many cost hardly more than one."""
        steps: list[_Step] = []
        until = 0.0
        while len(steps) < _BATCH:
            try:
                item = self._queue.get(timeout=max(0.0, until - time.monotonic()) if steps else None)
            except queue.Empty:
                break
            until = until or time.monotonic() + _LINGER
            if not isinstance(item, _Step):
                return steps, item
            steps.append(item)
            if item.result is not None:  # its result is that of applying it alone
                break
        return steps, None

    def replay(self, steps: Sequence[tuple[int, Entry]]) -> None:
        """Apply entries that were on disk before a restart; no request waits for them."""
        self._apply([_Step(number, entry) for number, entry in steps], new=False)

    def _apply(self, steps: list[_Step], *, new: bool = True) -> None:
        last, labels = steps[-1], self.stream.profiles_to_delete
        before = [step.entry for step in steps[: len(steps) - (last.result is not None)]]
        if before:
            self._deliver(self.stream.apply(before))
        if last.result is not None:
            dropped = self.stream.dropped_total
            self._deliver(self.stream.apply([last.entry]))
            if self.stream.refusal is not None:
                last.result.set_exception(self.stream.refusal)
            else:
                more = self.stream.dropped_total - dropped
                last.result.set_result(self.stream.last_result | {"dropped": more})
        while labels:  # of erased users, also when an erasure is replayed after a crash
            self._retry(lambda: self._profiles.delete(labels[-1]))
            labels.pop()
        self._position = last.number
        self._applied += sum(len(step.entry) for step in steps) if new else 0
        self._counts = self._count()

    def _deliver(self, output: Output) -> None:
        if not len(output):
            return
        lines = output.lines()
        for sink in self._sinks:
            self._retry(lambda s=sink: s.append(output.first, lines, len(output)))  # type: ignore[misc]
        self._profiles.add(output.frame)
        self.flush_profiles()
        for observer in self.stream.observers:
            observer.on_delivery(output)

    def _retry(self, work: Callable[[], None]) -> None:
        """Retry until a sink is available; meanwhile records queue up, and a full backlog refuses more."""
        while True:
            try:
                work()
            except Unavailable as error:
                self.trouble = error.message
                if self._give_up.wait(self._retry_seconds):
                    raise
                continue
            self.trouble = ""
            return

    def flush_profiles(self) -> None:
        """Write the profile counts if they are due; for use inside `run_on_worker`."""
        if self._profiles.due():
            self._retry(self._profiles.flush)

    def sync(self) -> None:
        """Make the lines of every sink and the profiles durable; for use inside `run_on_worker`."""
        for sink in self._sinks:
            self._retry(sink.sync)
        self._retry(self._profiles.sync)

    def close(self) -> None:
        """Close the sinks, after `stop`."""
        for sink in self._sinks:
            sink.close()


def _refuse(waiting: Future[Any] | None, error: QueryCloakError) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_exception(error)
