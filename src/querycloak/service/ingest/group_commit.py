"""Group commit: one thread appends waiting requests to the log with a single fsync, then answers them."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import polars as pl

from querycloak.errors import Busy, JournalBroken, JournalFull, QueryCloakError, Refused
from querycloak.service import entries
from querycloak.service.entries import Entry, Kind
from querycloak.service.ingest.idempotency import KEY_BYTES, IdempotencyKeys, other_body
from querycloak.service.ingest.parse import ParsedBody, to_columns
from querycloak.service.ingest.pseudonyms import Pseudonyms
from querycloak.service.task import Task
from querycloak.service.wal.wal import WriteAheadLog

T = TypeVar("T")
#: Records that are committed with one fsync, at most.
GROUP_RECORDS: Final = 50_000
#: Bytes of entries that are written together, at most, if they are of several requests.
GROUP_BYTES: Final = 32 << 20
#: Kinds of request that the worker answers when it has applied them.
ANSWERED_BY_WORKER: Final = ("erasure", "epoch", "setting")
_ENDING: Final = "the service is shutting down"
_CLOSE: Final = object()
Answer = dict[str, Any]


@dataclass
class PendingRequest:
    """A request to be committed, and the future that receives its answer."""

    kind: Kind
    body: ParsedBody | None = None
    frame: pl.DataFrame | None = None  # clicks, which are typed already
    facts: Mapping[str, Any] = field(default_factory=dict)
    key: bytes = b""
    answer: Future[Answer] = field(default_factory=Future)

    def __len__(self) -> int:
        """Return the number of records or clicks."""
        records = self.body.records if self.body is not None else self.frame
        return len(records) if records is not None else 0


@dataclass
class _NewEntry:
    """An entry to be appended, and its requests with their answers."""

    entry: Entry
    answers: list[tuple[PendingRequest, Answer]]


class GroupCommitter:
    """The thread that writes the write-ahead log; the order of its entries is the order of the stream."""

    def __init__(
        self,
        wal: WriteAheadLog,
        pseudonyms: Pseudonyms,
        keys: IdempotencyKeys,
        enqueue: Callable[[int, Entry, Future[Any] | None], None],
        *,
        at: int,
        clock: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self._wal, self._pseudonyms, self._keys, self._enqueue = wal, pseudonyms, keys, enqueue
        self._at, self._clock = at, clock
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="querycloak-commit", daemon=True)
        self._stopped = self._closed = False
        self.trouble = ""  # why the last append failed; empty after a success

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, request: PendingRequest) -> Future[Answer]:
        """Queue a request; its answer is set when it is on disk."""
        if self._stopped:
            raise Busy(_ENDING)
        self._queue.put(request)
        return request.answer

    def call(self, work: Callable[[], T]) -> Future[T]:
        """Run work in this thread between two groups, or at once after the thread has ended."""
        task = Task(work)
        if self._thread.is_alive():
            self._queue.put(task)
        else:
            task.run()
        return task.result

    def pseudonym(self, user: str) -> str:
        """Return a user's pseudonym of this epoch; for use inside `call`."""
        return self._pseudonyms.of([user])[0]

    def stop(self) -> None:
        """Accept no more requests; return when all queued ones are answered."""
        self._stopped = True
        self.call(lambda: None).result()

    def close(self) -> None:
        """End the thread, after `stop`; later calls run at once."""
        self._queue.put(_CLOSE)
        self._thread.join()
        while not self._queue.empty():
            item = self._queue.get()
            if isinstance(item, Task):
                item.run()
            elif isinstance(item, PendingRequest):
                item.answer.set_exception(Busy(_ENDING))

    def _run(self) -> None:
        while not self._closed:
            self._commit(self._gather())

    def _gather(self) -> list[PendingRequest]:
        """Wait for a request, then take all that are queued behind it, up to one group."""
        group: list[PendingRequest] = []
        size = 0
        item = self._queue.get()
        while True:
            if item is _CLOSE:
                self._closed = True
                return group
            if isinstance(item, Task):
                self._commit(group)
                item.run()
                return []
            group.append(item)
            size += len(item)
            if size >= GROUP_RECORDS or item.kind != "records":
                return group
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return group

    def _commit(self, group: list[PendingRequest]) -> None:
        """Commit a group of requests; skip those whose client has disconnected."""
        self._commit_running([one for one in group if one.answer.set_running_or_notify_cancel()])

    def _commit_running(self, group: list[PendingRequest]) -> None:
        try:
            self._append(self._without_retries(group))
        except QueryCloakError as error:
            _fail(group, error)
        except Exception as error:  # the thread must survive, and one bad request must not fail the others
            if len(group) == 1:
                _fail(group, error)
                return
            for request in group:
                self._commit_running([request] if not request.answer.done() else [])

    def _without_retries(self, group: list[PendingRequest]) -> list[PendingRequest]:
        """Answer retries from the stored keys; a retry within the group gets the first one's answer."""
        first: dict[bytes, PendingRequest] = {}
        new: list[PendingRequest] = []
        for request in group:
            key = request.key[:KEY_BYTES]
            if key in first:
                _answer_like(first[key], request)
                continue
            try:
                known = self._keys.find(request.key, self._now()) if key else None
            except Refused as error:
                request.answer.set_exception(error)
                continue
            if known is not None:
                request.answer.set_result(known | {"repeated": True})
                continue
            new.append(request)
            if key:
                first[key] = request
        return new

    def _append(self, group: list[PendingRequest]) -> None:
        now = self._now()
        records = [request for request in group if request.kind == "records"]
        new = self._records_entry(records, now)
        new += [self._other_entry(request, now) for request in group if request.kind != "records"]
        if not new:
            return
        payloads = [entries.encode(one.entry) for one in new]
        if len(group) > 1 and sum(map(len, payloads)) > GROUP_BYTES:
            self._commit_running(group[: len(group) // 2])
            self._commit_running(group[len(group) // 2 :])
            return
        try:
            last = self._wal.append(payloads)
        except (JournalFull, JournalBroken) as error:
            self.trouble = error.message
            raise
        self.trouble = ""
        for number, one in enumerate(new, start=last - len(new) + 1):
            self._keys.add(one.entry.keys)
            if one.entry.kind == "epoch":
                self._pseudonyms.start_epoch(self._pseudonyms.epoch + 1)
            if one.entry.kind == "erasure":
                self._pseudonyms.clear_cache()
            if one.entry.kind in ANSWERED_BY_WORKER:
                self._enqueue(number, one.entry, one.answers[0][0].answer)
            else:
                self._enqueue(number, one.entry, None)
                _answer(one.answers)

    def _now(self) -> int:
        """Return the time in microseconds; it never goes back, even if the clock is set back."""
        self._at = max(self._at, self._clock())
        return self._at

    def _records_entry(self, group: list[PendingRequest], now: int) -> list[_NewEntry]:
        if not group:
            return []
        typed = to_columns([request.body for request in group if request.body is not None], now)
        frame = typed.frame.with_columns(user=self._hashed(typed.frame["user"]))
        answers = [
            (request, {"accepted": accepted, "skipped": skipped})
            for request, accepted, skipped in zip(group, typed.accepted, typed.skipped, strict=True)
        ]
        keys = tuple(key for one, answer in answers for key in self._keys.stored(one.key, answer, now))
        if not frame.height and not keys and not any(request.facts for request in group):
            _answer(answers)
            return []
        read = {name: place for request in group for name, place in request.facts.get("read", {}).items()}
        return [_NewEntry(Entry("records", now, frame, keys, {"read": read} if read else {}), answers)]

    def _other_entry(self, request: PendingRequest, now: int) -> _NewEntry:
        frame, facts, answer = request.frame, dict(request.facts), dict[str, Any]()
        if request.body is not None:  # UBI searches, which are held for their clicks
            typed = to_columns([request.body], now)
            ids = pl.Series([request.body.join_ids[place] for place in typed.row.tolist()], dtype=pl.String)
            hashed = typed.frame.with_columns(user=self._hashed(typed.frame["user"]), query_id=ids)
            frame = hashed.drop("rows_since_head")
            answer = {"accepted": typed.accepted[0], "skipped": typed.skipped[0]}
        elif frame is not None:  # clicks
            answer = {"accepted": frame.height, "skipped": {}}
        elif "user" in facts:
            user = facts["user"]
            facts |= {"user": self.pseudonym(user), "before": self._pseudonyms.before(user)}
        keys = self._keys.stored(request.key, answer, now)
        return _NewEntry(Entry(request.kind, now, frame, keys, facts), [(request, answer)])

    def _hashed(self, users: pl.Series) -> pl.Series:
        return pl.Series(self._pseudonyms.of(users), dtype=pl.String)


def _answer(answers: list[tuple[PendingRequest, Answer]]) -> None:
    for request, answer in answers:
        request.answer.set_result(answer)


def _fail(group: list[PendingRequest], error: Exception) -> None:
    for request in group:
        if not request.answer.done():
            request.answer.set_exception(error)


def _answer_like(first: PendingRequest, later: PendingRequest) -> None:
    """Answer a request as an equal one that came just before it in the same group."""
    if first.key != later.key:
        later.answer.set_exception(other_body())
        return

    def copy(done: Future[Answer]) -> None:
        error = done.exception()
        if error is not None:
            later.answer.set_exception(error)
        else:
            later.answer.set_result(done.result() | {"repeated": True})

    first.answer.add_done_callback(copy)
