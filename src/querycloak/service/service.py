"""The service as a whole: recovers, takes records in, hands out what leaves, and stops without losing any."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, TypeVar

import polars as pl

from querycloak.engines.local import warm_up
from querycloak.errors import Busy, NotFound, QueryCloakError, Unavailable, UsageError
from querycloak.keys import Secret, derive
from querycloak.service import entries, kafka_client
from querycloak.service.classifying import Classifying
from querycloak.service.door import Door, Request, RetryKeys
from querycloak.service.entries import Entry
from querycloak.service.intake import Parsed
from querycloak.service.monitor.watch import Watch
from querycloak.service.pseudonyms import Pseudonyms
from querycloak.service.settings import ServiceSettings, Setup
from querycloak.service.sinks.database import Database
from querycloak.service.sinks.file_sink import FileSink
from querycloak.service.sinks.kafka_sink import KafkaSink
from querycloak.service.sinks.profiles import ProfileCounter, open_store
from querycloak.service.sinks.released_log import ReleasedLog
from querycloak.service.sinks.sink import Sink, check_sinks
from querycloak.service.sources.file_lines import FileTailSource
from querycloak.service.sources.kafka import KafkaSource
from querycloak.service.sources.source import Source
from querycloak.service.stream import Output, Stream
from querycloak.service.wal.cipher import Cipher
from querycloak.service.wal.snapshots import Snapshots, StreamSnapshots
from querycloak.service.wal.wal import WriteAheadLog
from querycloak.service.worker import Worker

#: How often the clock is looked at for what is due.
_BEAT: Final = 0.25
#: How often the stream is told that time passes, while something waits for that.
_TICK: Final = 1.0
#: How long to wait before looking whether waiting makes sense.
_PATIENCE: Final = 0.5
T = TypeVar("T")
#: Entries that are applied together while the journal is read again.
_AGAIN: Final = 64


_log = logging.getLogger("querycloak.service")


class Service:
    """Journal, door, worker and outlets of one source, over one folder."""

    reproducible = False
    over: QueryCloakError | None = None  # why the process must end; a failure alone is told to who asks

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.settings: ServiceSettings = setup.settings
        self.folder = folder = self.settings.folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._listeners: list[Callable[[], None]] = []
        self._seen: list[Callable[[Output], None]] = []
        cipher = Cipher.from_file(Path(self.settings.state_key)) if self.settings.state_key else None
        self.journal = WriteAheadLog(folder / "journal", cipher)
        self._snapshots = Snapshots(folder / "snapshots", cipher)
        self.watch = Watch(self)
        self._stop = threading.Event()
        self._last_snapshot = self._last_tick = time.monotonic()
        self.started = self.saved_at = time.time()
        self.ready = False

    def open(self) -> None:
        """Find out where the service stood when it stopped or died, and come to exactly that point again."""
        self.journal.open()
        self._database = Database(self.folder / "service.sqlite")
        self.released = ReleasedLog(self._database, self.settings.keep_bytes, self.settings.keep_seconds)
        secret = self._secret()
        warm_up(self.setup.stages)
        self._keys = RetryKeys(secret, self.settings.retry_seconds)
        self.join_key = derive(secret, "query ids")
        classify = Classifying(taxonomy=self.settings.taxonomy or None) if self.settings.classify else None
        stream = Stream(self.setup.stages, secret, classify, self.settings.click_seconds * 1_000_000)
        self._stream_snapshots = StreamSnapshots(self._snapshots, self.setup, secret)
        position, keys = self._stream_snapshots.restore(stream, self.journal.last_number)
        self._keys.learn(keys)
        self._saved, self._restored_lines = position, stream.released
        self.watch.look_on(stream)
        self.tally = ProfileCounter(open_store(self.settings.profiles, database=self._database))
        sinks = self._sinks()
        self.worker = Worker(stream, sinks, self.tally, position=position, saw=self._saw)
        self._replay(position)
        check_sinks(stream.released, sinks)
        self.door = Door(
            self.journal,
            Pseudonyms(secret, stream.epoch),
            self._keys,
            self.worker.hand_on,
            epoch=stream.epoch,
            at=stream.at,
        )
        self._source = self._make_source()

    def _secret(self) -> bytes:
        seed, file = self.setup.seed, self.settings.secret_file
        if seed is not None and file:
            raise UsageError("a seed and `secret_file` exclude each other", hint="give one of them")
        self.reproducible = seed is not None
        if seed is not None:
            secret = Secret.from_seed(seed)
        else:
            secret = Secret.from_file(Path(file)) if file else Secret.load_or_create(self.folder / "secret")
        return derive(secret.value, "service")

    def listen(self, told: Callable[[], None]) -> None:
        """Be told, from the thread that applies records, whenever some were released."""
        self._listeners.append(told)

    def see(self, told: Callable[[Output], None]) -> None:
        """Be shown, in the thread that applies records, all that leaves."""
        self._seen.append(told)

    def _saw(self, output: Output) -> None:
        for told in self._seen:
            told(output)
        for listener in self._listeners:
            listener()

    def _sinks(self) -> list[Sink]:
        """Open the sinks: always the released log, and the one of the settings."""
        kind, _, place = self.settings.sink.partition(":")
        if kind == "http-pull":
            return [self.released]
        if kind == "file":
            sink = FileSink(Path(place), self.settings.rotate_bytes, after=self._sink_begins())
            sink.open()
            return [self.released, sink]
        if kind == "kafka":
            topic = KafkaSink(kafka_client.parse(self.settings.sink), self.folder, after=self._sink_begins())
            topic.open()
            return [self.released, topic]
        raise UsageError(
            "there is no such sink", hint="`http-pull`, `file:PATH` or `kafka://HOST:PORT/TOPIC`"
        )

    def _sink_begins(self) -> int:
        """A sink that is added later begins with what is released from then on."""
        return self._restored_lines

    def _make_source(self) -> Source | None:
        """Return what reads the source; None for HTTP."""
        kind, _, place = self.settings.source.partition(":")
        if kind == "http":
            return None
        if kind == "file-tail":
            return FileTailSource(Path(place))
        if kind == "kafka":
            return KafkaSource(kafka_client.parse(self.settings.source))
        raise UsageError(
            "there is no such source", hint="`http`, `file-tail:PATH` or `kafka://HOST:PORT/TOPIC`"
        )

    def _submit_read(self, parsed: Parsed, read: Mapping[str, int]) -> Future[dict[str, Any]]:
        self._check_backlog(len(parsed.records))
        return self.door.submit(Request("records", parsed, facts={"read": dict(read)}))

    def _replay(self, position: int) -> None:
        """Apply what was made durable after the snapshot; outlets skip what they have."""
        for group in _in_groups(self.journal.read_after(position)):
            steps = [(number, entries.decode(data)) for number, data in group]
            for _, entry in steps:
                self._keys.learn(entry.keys)
            self.worker.apply_again(steps)

    def start(self) -> None:
        """Begin to take records."""
        self.worker.start()
        self.door.start()
        self.watch.start()
        self._beat = threading.Thread(target=self._watch_clock, name="querycloak-beat", daemon=True)
        self._beat.start()
        if self._source is not None:
            self._source.start(self._submit_read, self.worker.stream.read)
        self.ready = True

    def hasten(self) -> None:
        """Begin to end: nobody waits any longer for what may take long."""
        self.ready = False
        self._stop.set()

    def stop(self) -> None:
        """Take nothing more, apply what came, write a snapshot: the next start has nothing to do again."""
        self.hasten()
        self._beat.join()
        if self._source is not None:
            self._source.stop()
        self.door.shut()
        self.watch.stop()
        if self.worker.failure is None:
            self._last_checkpoint()
        self.worker.stop()
        self.door.close()
        self.close()

    def _last_checkpoint(self) -> None:
        """Take a snapshot, unless an outlet is down: then the journal keeps what that lacks."""
        saved = self.worker.ask(self._checkpoint)
        while True:
            try:
                saved.result(timeout=_PATIENCE)
            except TimeoutError:
                if self.worker.trouble:
                    self.worker.hasten()
                continue
            except QueryCloakError as error:
                _log.warning("no snapshot at the end", extra={"code": error.code})
            return

    def close(self) -> None:
        """Let go of all files."""
        self.tally.store.close()
        self.worker.close()
        self._database.close()
        self.journal.close()

    # In

    def submit(self, parsed: Parsed, key: bytes = b"") -> Future[dict[str, Any]]:
        """Make records durable; the answer comes when they are."""
        self._check_backlog(len(parsed.records))
        return self.door.submit(Request("records", parsed, key=key))

    def _check_backlog(self, more: int) -> None:
        if self.worker.failure is not None:
            raise Unavailable(self.failure())
        if self.worker.queued + more > self.settings.backlog:
            raise Busy(
                "more records wait to be applied than the backlog allows", hint="try again in a few seconds"
            )

    def retry_key(self, key: str, body: bytes) -> bytes:
        """Give what an Idempotency-Key is known by."""
        return self._keys.digest(key, body)

    def submit_searches(self, parsed: Parsed, key: bytes = b"") -> Future[dict[str, Any]]:
        """Make searches durable that wait for their clicks."""
        self._check_backlog(len(parsed.records))
        return self.door.submit(Request("queries", parsed, key=key))

    def submit_clicks(self, clicks: pl.DataFrame, key: bytes = b"") -> Future[dict[str, Any]]:
        """Make clicks durable that belong to searches sent before or after them."""
        self._check_backlog(clicks.height)
        return self.door.submit(Request("events", frame=clicks, key=key))

    # Out

    def status(self) -> dict[str, Any]:
        """Count what came and what became of it; at rest, accepted = released + held + dropped."""
        counts, queued = self.worker.moment()
        return {
            "accepted": counts.accepted + queued,
            "released": counts.released,
            "held": counts.held,
            "dropped": counts.dropped,
            "queued": queued,
            "epoch": counts.epoch,
        }

    def profile(self, label: str) -> dict[str, int]:
        """Give a label's counts by category, as of the last write."""
        found = self.tally.store.counts_of(label)
        if found is None:
            raise NotFound("nothing was released under this label")
        return found

    def failure(self) -> str:
        """Say why the service cannot go on, if so."""
        error = self.worker.failure
        return "" if error is None else f"applying records failed ({type(error).__name__}); see the log"

    def trouble(self) -> str:
        """Say why records are not taken or handed out right now, if so."""
        if not self.ready:
            return "the service is starting or stopping"
        reading = self._source.health() if self._source is not None else ""
        return self.failure() or self.door.trouble or self.worker.trouble or reading

    # People's rights

    def erase(self, user: str) -> dict[str, int]:
        """Forget a person; say how many of her records waited, and how many had left before."""
        done = self._waited(self.door.submit(Request("erasure", facts={"user": user})))
        self._waited(self.door.call(self.journal.start_new_segment))
        self._waited(self._waited(self.worker.ask(self._checkpoint)))
        return dict(done)

    def _waited(self, future: Future[T]) -> T:
        """Wait for something that an outlet may hold up; give up when it does, or when the service ends."""
        while True:
            try:
                return future.result(timeout=_PATIENCE)
            except TimeoutError:
                if self.worker.trouble or self._stop.is_set():
                    raise Unavailable(
                        "this is on disk and will be carried out, but not now", hint="ask again later"
                    ) from None

    def export(self, user: str) -> dict[str, Any]:
        """Give what is held of a person, and how many records of hers have left."""
        name = self._waited(self.door.call(lambda: self.door.pseudonym(user)))
        held, left = self._waited(self.worker.ask(lambda: self.worker.stream.person(name)))
        return {"held": held.to_dicts(), "released": left}

    def rotate(self) -> dict[str, int]:
        """Start a new epoch: let go or drop what waits, new pseudonyms for everybody."""
        done = self._waited(self.door.submit(Request("epoch")))
        self._waited(self.door.call(self.journal.start_new_segment))
        self._waited(self._waited(self.worker.ask(self._checkpoint)))
        return done | {"epoch": self.worker.counts.epoch}

    # What is due now and then

    def _watch_clock(self) -> None:
        while not self._stop.wait(_BEAT):
            try:
                self.beat()
            except QueryCloakError as error:
                _log.warning("what was due could not be done", extra={"code": error.code})

    def beat(self) -> None:
        """Take a snapshot or drop what has waited too long, if it is time."""
        now, hold = time.monotonic(), self.settings.hold_seconds
        if now - self._last_snapshot >= self.settings.snapshot_seconds:
            self._snapshot_or_tidy()
            self._last_snapshot = now
        if self.tally.due():
            self.worker.ask(self.worker.flush).add_done_callback(_report)
        waits = self.worker.stream.joiner.busy or (hold and self.worker.counts.held)
        if waits and now - self._last_tick >= _TICK:
            self.door.submit(Request("tick", facts={"retention": hold * 1_000_000}))
            self._last_tick = now

    def _snapshot_or_tidy(self) -> None:
        """Take a snapshot if anything came; else only let go of released lines that are too old."""
        if self.worker.counts.position > self._saved:
            self.door.call(self.journal.start_new_segment)
            self.worker.ask(self._checkpoint).add_done_callback(_report)
        else:
            self.worker.ask(lambda: self.released.forget(time.time())).add_done_callback(_report)

    def _checkpoint(self) -> Future[None]:
        """Make outlets durable, save a snapshot, let the journal forget. In the worker's thread.

        The journal begins a new file before: so all that this snapshot holds lies in files that can go.
        """
        self.worker.sync()
        position = self.worker.counts.position
        keys = self.door.call(self._keys.items).result()  # the door's thread alone may touch them
        self._stream_snapshots.save(position, self.worker.stream, keys)
        self._saved, self.saved_at = position, time.time()
        self.released.forget(time.time())
        return self.door.call(lambda: self.journal.truncate(position))


def _report(done: Future[Any]) -> None:
    """Write down that something failed which nobody waits for; it is tried again when it is due."""
    error = None if done.cancelled() else done.exception()
    if error is not None:
        _log.warning("what was due could not be done", extra={"fault": type(error).__name__})


def _in_groups(frames: Iterator[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    group: list[tuple[int, bytes]] = []
    for frame in frames:
        group.append(frame)
        if len(group) == _AGAIN:
            yield group
            group = []
    if group:
        yield group


__all__ = ["Entry", "Service"]
