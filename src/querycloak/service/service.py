"""The service as a whole: recovery, start and stop, ingestion, state, and the rights of users."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

from querycloak.engines.local import warm_up
from querycloak.errors import Busy, NotFound, QueryCloakError, Unavailable, UsageError
from querycloak.keys import Secret, derive
from querycloak.service import entries, kafka_client, state
from querycloak.service.ingest.group_commit import GroupCommitter, PendingRequest
from querycloak.service.ingest.idempotency import IdempotencyKeys
from querycloak.service.ingest.pseudonyms import Pseudonyms
from querycloak.service.monitor.monitor import Monitor
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
from querycloak.service.state import Health, ServiceState
from querycloak.service.stream.classify import QueryClassifier
from querycloak.service.stream.stream import Stream, StreamObserver
from querycloak.service.stream.worker import Worker
from querycloak.service.wal.cipher import Cipher
from querycloak.service.wal.snapshots import Snapshots, StreamSnapshots
from querycloak.service.wal.wal import WriteAheadLog

#: Seconds between checks for periodic work, and between checks for records that are due.
_PERIOD: Final = 0.25
_DUE_PERIOD: Final = 1.0
#: Seconds to wait for a result before checking whether it can come.
_PATIENCE: Final = 0.5
#: Entries that are applied together in a replay.
_REPLAYED: Final = 64
T = TypeVar("T")
_log = logging.getLogger("querycloak.service")


class Service:
    """Write-ahead log, committer, worker and sinks of one source, in one state folder."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.settings: ServiceSettings = setup.settings
        self.folder: Path = self.settings.folder
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        cipher = Cipher.from_file(Path(self.settings.state_key)) if self.settings.state_key else None
        self.wal = WriteAheadLog(self.folder / "journal", cipher)
        self._snapshots = Snapshots(self.folder / "snapshots", cipher)
        #: Notified by the stream and the worker, in the worker's thread.
        self.observers: list[StreamObserver] = []
        self._ending = threading.Event()
        self._running = False
        self._last_snapshot = self._last_due_check = time.monotonic()
        self._started = self._saved_at = time.time()

    def open(self) -> None:
        """Recover the exact state in which the service stopped or crashed."""
        self.wal.open()
        self._database = Database(self.folder / "service.sqlite")
        self.released = ReleasedLog(self._database, self.settings.keep_bytes, self.settings.keep_seconds)
        secret = self._secret()
        warm_up(self.setup.stages)
        self._key_database = Database(self._database.path)  # its reads do not wait for readers of lines
        self.keys = IdempotencyKeys(self._key_database, secret, self.settings.retry_seconds)
        self.join_key = derive(secret, "query ids")
        taxonomy = self.settings.taxonomy or None
        classifier = QueryClassifier(taxonomy=taxonomy) if self.settings.classify else None
        click_wait = self.settings.click_seconds * 1_000_000
        stream = Stream(self.setup.stages, secret, classifier, click_wait, self.observers)
        self._stream_snapshots = StreamSnapshots(self._snapshots, self.setup, secret)
        position = self._stream_snapshots.restore(stream, self.wal.last_number)
        self._saved, self._restored_lines = position, stream.released
        self.monitor = Monitor(
            self.folder, self.released, self.state, certificate_seconds=self.settings.certificate_seconds
        )
        self.monitor.observe(stream)
        self._profiles = ProfileCounter(open_store(self.settings.profiles, database=self._database))
        sinks = self._sinks()
        self.worker = Worker(stream, sinks, self._profiles, position=position)
        self._replay(position)
        check_sinks(stream.released, sinks)
        pseudonyms = Pseudonyms(secret, stream.epoch)
        self._committer = GroupCommitter(self.wal, pseudonyms, self.keys, self.worker.enqueue, at=stream.at)
        self._source = self._make_source()

    def _secret(self) -> bytes:
        seed, file = self.setup.seed, self.settings.secret_file
        if seed is not None and file:
            raise UsageError("a seed and `secret_file` exclude each other", hint="use one of them")
        if seed is not None:
            secret = Secret.from_seed(seed)
        else:
            secret = Secret.from_file(Path(file)) if file else Secret.load_or_create(self.folder / "secret")
        return derive(secret.value, "service")

    def _sinks(self) -> list[Sink]:
        """Open the sinks: always the released log, and a file or topic beside it.

        A sink that is added later begins with the lines that are released from then on.
        """
        kind, _, place = self.settings.sink.partition(":")
        if kind == "http-pull":
            return [self.released]
        sink: FileSink | KafkaSink
        if kind == "file":
            sink = FileSink(Path(place), self.settings.rotate_bytes, after=self._restored_lines)
        elif kind == "kafka":
            sink = KafkaSink(kafka_client.parse(self.settings.sink), self.folder, after=self._restored_lines)
        else:
            raise UsageError("unknown sink", hint="`http-pull`, `file:PATH` or `kafka://HOST:PORT/TOPIC`")
        sink.open()
        return [self.released, sink]

    def _make_source(self) -> Source | None:
        kind, _, place = self.settings.source.partition(":")
        if kind == "http":
            return None
        if kind == "file-tail":
            return FileTailSource(Path(place))
        if kind == "kafka":
            return KafkaSource(kafka_client.parse(self.settings.source))
        raise UsageError("unknown source", hint="`http`, `file-tail:PATH` or `kafka://HOST:PORT/TOPIC`")

    def _replay(self, position: int) -> None:
        """Apply the entries after the snapshot; sinks skip lines that they have."""
        frames = self.wal.read_after(position)
        while group := list(islice(frames, _REPLAYED)):
            steps = [(number, entries.decode(data)) for number, data in group]
            for _, entry in steps:
                self.keys.add(entry.keys)
            self.worker.replay(steps)

    # Start and stop

    def start(self) -> None:
        """Start all threads."""
        self.worker.start()
        self._committer.start()
        self.monitor.start(self.worker)
        self._timer = threading.Thread(target=self._run_timer, name="querycloak-timer", daemon=True)
        self._timer.start()
        if self._source is not None:
            self._source.start(self.submit, self.worker.stream.read)
        self._running = True

    def begin_stop(self) -> None:
        """Refuse new work; requests stop waiting for results that can take long."""
        self._running = False
        self._ending.set()

    def stop(self) -> None:
        """Apply everything that was accepted, write a snapshot, and close all files."""
        self.begin_stop()
        self._timer.join()
        if self._source is not None:
            self._source.stop()
        self._committer.stop()
        self.monitor.stop()
        if self.worker.failure is None:
            self._final_checkpoint()
        self.worker.stop()
        self._committer.close()
        self.close()

    def _final_checkpoint(self) -> None:
        """Write a snapshot, unless a sink is down: then the write-ahead log keeps what it misses."""
        saved = self.worker.run_on_worker(self._checkpoint)
        while True:
            try:
                saved.result(timeout=_PATIENCE)
            except TimeoutError:
                if self.worker.trouble:
                    self.worker.stop_retrying()
                continue
            except QueryCloakError as error:
                _log.warning("no snapshot at the end", extra={"code": error.code})
            return

    def close(self) -> None:
        """Close all files and connections."""
        self._profiles.store.close()
        self.worker.close()
        self._key_database.close()
        self._database.close()
        self.wal.close()

    def submit(self, request: PendingRequest) -> Future[dict[str, Any]]:
        """Commit records, UBI searches or clicks; the answer is set when they are on disk."""
        if self.worker.failure is not None:
            raise Unavailable("the service has failed; its log has the reason")
        if self.worker.counts_now()[1] + len(request) > self.settings.backlog:
            raise Busy("the backlog of records to be applied is full", hint="try again in a few seconds")
        return self._committer.submit(request)

    def state(self) -> ServiceState:
        """Return the state of this moment."""
        counts, queued = self.worker.counts_now()
        return ServiceState(
            counts=counts,
            queued=queued,
            health=self._health(),
            methods=tuple(self.worker.stream.stages_in_force()),
            source=self.settings.source.partition(":")[0],  # an address can hold a password
            sink=self.settings.sink.partition(":")[0],
            running=self._running,
            reproducible=self.setup.seed is not None,
            started=self._started,
            wal_bytes=self.wal.size(),
            snapshot_age=max(0.0, time.time() - self._saved_at),
        )

    def _health(self) -> Health:
        failure = self.worker.failure
        reasons = {
            state.FAILED: failure.message if failure is not None else "",
            state.NOT_RUNNING: "" if self._running else "the service is starting or stopping",
            state.WAL: self._committer.trouble,
            state.SINK: self.worker.trouble,
            state.SOURCE: self._source.health() if self._source is not None else "",
        }
        return Health({code: text for code, text in reasons.items() if text})

    def profile(self, label: str) -> dict[str, int]:
        """Return a label's counts by category, as of the last write."""
        found = self._profiles.store.counts_of(label)
        if found is None:
            raise NotFound("nothing was released under this label")
        return found

    # Rights of users, and epochs

    def erase(self, user: str) -> dict[str, int]:
        """Erase a user; return the number of held and of released records."""
        result = self._result(self._committer.submit(PendingRequest("erasure", facts={"user": user})))
        self.checkpoint()
        return dict(result)

    def export(self, user: str) -> dict[str, Any]:
        """Return the held records of a user, and the number of released ones."""
        name = self._result(self._committer.call(lambda: self._committer.pseudonym(user)))
        held, released = self._result(self.worker.run_on_worker(lambda: self.worker.stream.records_of(name)))
        return {"held": held.to_dicts(), "released": released}

    def rotate(self) -> dict[str, int]:
        """Start a new epoch: release or drop held records; all users get new pseudonyms."""
        result = self._result(self._committer.submit(PendingRequest("epoch")))
        self.checkpoint()
        return result | {"epoch": self.worker.counts_now()[0].epoch}

    def checkpoint(self) -> None:
        """Write a snapshot and delete all segments of the write-ahead log before it."""
        self._result(self._committer.call(self.wal.start_new_segment))
        self._result(self._result(self.worker.run_on_worker(self._checkpoint)))

    def _result(self, future: Future[T]) -> T:
        """Return a result that a sink can delay. Raise Unavailable if it does, or if the service stops."""
        while True:
            try:
                return future.result(timeout=_PATIENCE)
            except TimeoutError:
                if self.worker.trouble or self._ending.is_set():
                    raise Unavailable(
                        "the request is stored and will be carried out later", hint="repeat it later"
                    ) from None

    # Periodic work

    def _run_timer(self) -> None:
        while not self._ending.wait(_PERIOD) and self.worker.failure is None:
            try:
                self.run_periodic()
            except QueryCloakError as error:
                _log.warning("periodic work failed", extra={"code": error.code})

    def run_periodic(self) -> None:
        """Start what is due: a snapshot, a write of profiles, a tick for records whose time is over."""
        now = time.monotonic()
        if now - self._last_snapshot >= self.settings.snapshot_seconds:
            self._last_snapshot = now
            if self.worker.counts_now()[0].position > self._saved:
                self._committer.call(self.wal.start_new_segment)
                self._in_background(self._checkpoint)
            else:  # no entry was applied since the last snapshot
                self._in_background(partial(self.released.forget, time.time()))
        if self._profiles.due():
            self._in_background(self.worker.flush_profiles)
        if now - self._last_due_check >= _DUE_PERIOD:
            self._last_due_check = now
            self._in_background(self._tick_if_due)

    def _tick_if_due(self) -> None:
        """Commit a tick if it would release or drop a record. Runs in the worker's thread."""
        retention = self.settings.hold_seconds * 1_000_000
        if self.worker.stream.is_due(time.time_ns() // 1000, retention):
            self._committer.submit(PendingRequest("tick", facts={"retention": retention}))

    def _in_background(self, work: Callable[[], Any]) -> None:
        """Run work in the worker's thread; log a failure, since it is tried again when it is next due."""

        def log_failure(done: Future[Any]) -> None:
            error = None if done.cancelled() else done.exception()
            if error is not None:
                _log.warning("periodic work failed", extra={"fault": type(error).__name__})

        self.worker.run_on_worker(work).add_done_callback(log_failure)

    def _checkpoint(self) -> Future[None]:
        """Sync keys and sinks, write a snapshot, truncate the write-ahead log. Runs in the worker's thread.

        The log starts a new segment before, so that all segments with entries of the snapshot can be deleted.
        """
        self._committer.call(lambda: self.keys.flush(time.time_ns() // 1000)).result()
        self.worker.sync()
        position = self.worker.counts_now()[0].position
        self._stream_snapshots.save(position, self.worker.stream)
        self._saved, self._saved_at = position, time.time()
        self.released.forget(time.time())
        return self._committer.call(lambda: self.wal.truncate(position))
