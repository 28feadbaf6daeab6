"""The way in: requests are gathered, made durable together with one fsync, and only then answered."""

from __future__ import annotations

import hashlib
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec
import polars as pl

from querycloak.errors import Busy, JournalBroken, JournalFull, QueryCloakError, Refused
from querycloak.keys import derive
from querycloak.service import entries
from querycloak.service.entries import Entry, Kind
from querycloak.service.intake import Parsed, cleaned, shortened
from querycloak.service.pseudonyms import Pseudonyms
from querycloak.service.tasks import Task
from querycloak.service.wal.wal import WriteAheadLog

T = TypeVar("T")
#: Records that are made durable with one fsync, at most.
GROUP: Final = 50_000
#: Bytes of entries that are written together, at most, if they are of several requests.
GROUP_BYTES: Final = 32 << 20
#: Retry keys that are remembered, at most.
MOST_KEYS: Final = 100_000
OTHER_BODY: Final = "this Idempotency-Key was used for another body"
#: Kinds of request whose answer says what became of them; the worker gives it.
ANSWERED_LATER: Final = ("erasure", "epoch", "setting")
_ENDING: Final = "the service is shutting down"
_SHUT: Final = object()


@dataclass
class Request:
    """Something to be made durable, and who waits for it."""

    kind: Kind
    parsed: Parsed | None = None
    frame: pl.DataFrame | None = None  # of clicks, which need no cleaning
    facts: Mapping[str, Any] = field(default_factory=dict)
    key: bytes = b""
    answer: Future[dict[str, Any]] = field(default_factory=Future)

    def __len__(self) -> int:
        return len(self.parsed.records) if self.parsed is not None else 1


#: An entry, and the requests in it with their answers.
Step = tuple[Entry, list[tuple[Request, dict[str, Any]]]]


class RetryKeys:
    """Remembers the answers to requests that carried a key, so that a retry changes nothing."""

    def __init__(self, secret: bytes, keep_seconds: int) -> None:
        self._hash_key, self._keep = derive(secret, "retry keys"), keep_seconds * 1_000_000
        self._answers: dict[bytes, tuple[int, bytes]] = {}

    def digest(self, key: str, body: bytes) -> bytes:
        """Hash a key together with a hash of the body: a key that comes with another body is not a retry."""
        own = hashlib.blake2b(key.encode(), key=self._hash_key, digest_size=16).digest()
        return own + hashlib.blake2b(body, key=self._hash_key, digest_size=8).digest()

    def find(self, digest: bytes) -> dict[str, Any] | None:
        """Give the earlier answer to a retry; refuse a key that was used for something else."""
        known = self._answers.get(digest[:16])
        if known is None:
            return None
        answer: dict[str, Any] = msgspec.json.decode(known[1][8:])
        if known[1][:8] != digest[16:]:
            raise Refused(OTHER_BODY, hint="use a fresh key for each body")
        return answer

    def learn(self, keys: Sequence[tuple[bytes, int, bytes]]) -> None:
        """Remember answers, those that were given before a restart too."""
        for digest, at, answer in keys:
            self._answers[digest[:16]] = (at, digest[16:] + answer)

    def tidy(self, now: int) -> None:
        """Forget answers that are older than the stated time, or too many: the oldest stand first."""
        while self._answers:
            digest, (at, _) = next(iter(self._answers.items()))
            if now - at < self._keep and len(self._answers) <= MOST_KEYS:
                return
            del self._answers[digest]

    def items(self) -> list[tuple[bytes, int, bytes]]:
        """Give all that is remembered, for a snapshot."""
        return [(key + kept[:8], at, kept[8:]) for key, (at, kept) in self._answers.items()]


class Door:
    """One thread that makes requests durable, in groups, in one order that is the stream's order."""

    def __init__(
        self,
        journal: WriteAheadLog,
        pseudonyms: Pseudonyms,
        retry_keys: RetryKeys,
        hand_on: Callable[[int, Entry, Future[Any] | None], None],
        *,
        epoch: int,
        at: int,
        clock: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self._journal, self._pseudonyms, self._retry_keys, self._hand_on = (
            journal,
            pseudonyms,
            retry_keys,
            hand_on,
        )
        self._epoch, self._at, self._clock = epoch, at, clock
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="querycloak-door", daemon=True)
        self._shut = False
        self.trouble = ""  # why nothing can be made durable, if so

    def start(self) -> None:
        """Begin to take requests."""
        self._thread.start()

    def submit(self, request: Request) -> Future[dict[str, Any]]:
        """Hand a request in; its answer comes when it is on disk."""
        if self._shut:
            raise Busy(_ENDING)
        self._queue.put(request)
        return request.answer

    def call(self, work: Callable[[], T]) -> Future[T]:
        """Have something done by the door's thread, between two groups; at once when that has ended."""
        task = Task(work)
        if self._thread.is_alive():
            self._queue.put(task)
        else:
            task.carry_out()
        return task.result

    def pseudonym(self, user: str) -> str:
        """Give a person's pseudonym of this epoch; for use inside `call`."""
        return self._pseudonyms.of([user])[0]

    def shut(self) -> None:
        """Take no more requests; return when those that came are durable and answered."""
        self._shut = True
        self.call(lambda: None).result()

    def close(self) -> None:
        """End the thread, after `shut`; what is called later is done at once."""
        self._queue.put(_SHUT)
        self._thread.join()
        while not self._queue.empty():
            item = self._queue.get()
            if isinstance(item, Task):
                item.carry_out()
            elif isinstance(item, Request):
                item.answer.set_exception(Busy(_ENDING))

    def _run(self) -> None:
        while True:
            group = self._gather()
            if group:
                self._commit(group)
            if self._ended:
                return

    _ended = False

    def _gather(self) -> list[Request]:
        """Wait for a request, then take along whatever else has come."""
        group: list[Request] = []
        size = 0
        item = self._queue.get()
        while True:
            if item is _SHUT:
                self._ended = True
                return group
            if isinstance(item, Task):
                self._commit(group)
                item.carry_out()
                return []
            group.append(item)
            size += len(item)
            if size >= GROUP or item.kind != "records":
                return group
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return group

    def _now(self) -> int:
        """Read the clock; if it was set back, time stands still until it has caught up."""
        self._at = max(self._at, self._clock())
        return self._at

    def _commit(self, group: list[Request]) -> None:
        """Make a group durable. Whoever has hung up meanwhile gets no answer, and nothing is kept for her."""
        self._carry_out([one for one in group if one.answer.set_running_or_notify_cancel()])

    def _carry_out(self, group: list[Request]) -> None:
        try:
            self._make_durable(self._without_retries(group))
        except QueryCloakError as error:
            self._fail(group, error)
        except Exception as error:  # the thread must live on, and one bad request must not fail the others
            if len(group) == 1:
                self._fail(group, error)
                return
            for request in group:
                self._carry_out([request] if not request.answer.done() else [])

    def _fail(self, group: list[Request], error: Exception) -> None:
        for request in group:
            if not request.answer.done():
                request.answer.set_exception(error)

    def _without_retries(self, group: list[Request]) -> list[Request]:
        """Answer retries from memory; two of the same kind in one group are one."""
        fresh: dict[bytes, Request] = {}
        left: list[Request] = []
        for request in group:
            if not request.key:
                left.append(request)
                continue
            try:
                known = self._retry_keys.find(request.key)
            except Refused as error:
                request.answer.set_exception(error)
                continue
            if known is not None:
                request.answer.set_result(known | {"repeated": True})
            elif request.key[:16] in fresh:
                _follow(fresh[request.key[:16]], request)
            else:
                fresh[request.key[:16]] = request
                left.append(request)
        return left

    def _make_durable(self, group: list[Request]) -> None:
        if not group:
            return
        now = self._now()
        records = [request for request in group if request.kind == "records"]
        others = [request for request in group if request.kind != "records"]
        steps: list[Step] = [*self._records(records, now), *(self._other(one, now) for one in others)]
        if not steps:
            return
        payloads = [entries.encode(entry) for entry, _ in steps]
        if len(group) > 1 and sum(map(len, payloads)) > GROUP_BYTES:
            self._carry_out(group[: len(group) // 2])
            self._carry_out(group[len(group) // 2 :])
            return
        last = self._appended(payloads)
        self._retry_keys.tidy(now)
        for number, (entry, answers) in enumerate(steps, start=last - len(steps) + 1):
            self._retry_keys.learn(entry.keys)
            self._turn(entry)
            if entry.kind in ANSWERED_LATER:
                self._hand_on(number, entry, answers[0][0].answer)
                continue
            self._hand_on(number, entry, None)
            self._answer_at_once(answers)

    def _appended(self, payloads: list[bytes]) -> int:
        """Write to the journal, and remember whether that can be done."""
        try:
            last = self._journal.append(payloads)
        except (JournalFull, JournalBroken) as error:
            self.trouble = error.message
            raise
        self.trouble = ""
        return last

    def _records(self, group: list[Request], now: int) -> list[Step]:
        if not group:
            return []
        found = cleaned([request.parsed for request in group if request.parsed is not None], now)
        frame = found.frame.with_columns(
            user=pl.Series(self._pseudonyms.of(found.frame["user"]), dtype=pl.String)
        )
        answers = [
            (request, {"accepted": accepted, "skipped": skipped})
            for request, accepted, skipped in zip(group, found.accepted, found.skipped, strict=True)
        ]
        keys = tuple(key for one, answer in answers for key in self._keyed(one, answer, now))
        if not frame.height and not keys and not any(request.facts for request in group):
            self._answer_at_once(answers)
            return []
        read = {name: place for request in group for name, place in request.facts.get("read", {}).items()}
        return [(Entry("records", now, frame, keys, {"read": read} if read else {}), answers)]

    def _answer_at_once(self, answers: list[tuple[Request, dict[str, Any]]]) -> None:
        for request, answer in answers:
            request.answer.set_result(answer)

    def _other(self, request: Request, now: int) -> Step:
        if request.kind == "queries" and request.parsed is not None:
            return self._queries(request, request.parsed, now)
        if request.kind == "events" and request.frame is not None:
            answer = {"accepted": request.frame.height, "skipped": {}}
            return Entry("events", now, request.frame, self._keyed(request, answer, now)), [(request, answer)]
        facts = dict(request.facts)
        if "user" in facts:
            user = facts["user"]
            facts |= {"user": self._pseudonyms.of([user])[0], "before": self._pseudonyms.before(user)}
        return Entry(request.kind, now, facts=facts), [(request, {})]

    def _queries(self, request: Request, parsed: Parsed, now: int) -> Step:
        """Make an entry of searches that wait for their clicks."""
        found = cleaned([parsed], now)
        users = pl.Series(self._pseudonyms.of(found.frame["user"]), dtype=pl.String)
        ids = pl.Series([parsed.ids[place] for place in found.row.tolist()], dtype=pl.String)
        frame = found.frame.drop("back").with_columns(user=users, query_id=ids)
        answer = {"accepted": found.accepted[0], "skipped": found.skipped[0]}
        return Entry("queries", now, frame, self._keyed(request, answer, now)), [(request, answer)]

    def _keyed(
        self, request: Request, answer: dict[str, Any], now: int
    ) -> tuple[tuple[bytes, int, bytes], ...]:
        return ((request.key, now, msgspec.json.encode(shortened(answer))),) if request.key else ()

    def _turn(self, entry: Entry) -> None:
        """Carry out what a durable entry means for the door itself."""
        if entry.kind == "epoch":
            self._epoch += 1
            self._pseudonyms.turn(self._epoch)
        if entry.kind == "erasure":
            self._pseudonyms.forget()


def _follow(first: Request, later: Request) -> None:
    """Give a request the answer of an equal one that came just before it."""
    if first.key != later.key:
        later.answer.set_exception(Refused(OTHER_BODY, hint="use a fresh key for each body"))
        return

    def copy(done: Future[dict[str, Any]]) -> None:
        error = done.exception()
        if error is not None:
            later.answer.set_exception(error)
        else:
            later.answer.set_result(done.result() | {"repeated": True})

    first.answer.add_done_callback(copy)
