"""Monitors a service in two threads of its own, so that neither records nor requests wait for it."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak._version import __version__
from querycloak.engines.pipeline import Stage
from querycloak.service.monitor import linkage
from querycloak.service.monitor.certificates import Certificates, LineDigest
from querycloak.service.monitor.stream_audit import SliceCollector, StreamAuditor
from querycloak.service.sinks.released_log import ReleasedLog
from querycloak.service.state import ServiceState
from querycloak.service.stream.stream import Stream
from querycloak.service.stream.worker import Worker

#: Seconds between samples, and the number of samples that are kept.
SAMPLE_SECONDS: Final = 1.0
SAMPLES: Final = 600
#: Seconds between attacks (fewer until the first had enough rows), and between checks for what is due.
ATTACK_SECONDS: Final = 60.0
FIRST_ATTACK_SECONDS: Final = 10.0
CHECK_SECONDS: Final = 0.5
#: After work the audit rests so many times as long, so it takes at most a third of a core.
REST: Final = 2.0
#: Seconds to wait for the worker.
PATIENCE: Final = 20.0
#: Least seconds between two counts of held records; counting takes at most one part in so many of the time.
COUNT_SECONDS: Final = 3.0
COUNT_SHARE: Final = 100
#: Level-1 categories that are listed, and parts of each; the rest is summed up.
LISTED: Final = 100
OTHERS: Final = "(others)"
NONE: Final = "(none)"
#: Time, and the counts of accepted, released, held and queued records.
Sample = tuple[float, int, int, int, int]
_log = logging.getLogger("querycloak.service")


class Monitor:
    """Samples counts, counts held records, audits, certifies and attacks released lines."""

    def __init__(
        self,
        folder: Path,
        released: ReleasedLog,
        state: Callable[[], ServiceState],
        *,
        certificate_seconds: float,
    ) -> None:
        self._released, self._state, self._certificate_seconds = released, state, certificate_seconds
        self.certificates = Certificates(folder)
        self.samples: deque[Sample] = deque(maxlen=SAMPLES)  # oldest first
        self.window = linkage.TruthWindow()
        self.buffers = BufferStats()
        self.linkage: dict[str, Any] | None = None
        self._next_count = 0.0
        self._counting: Future[Any] | None = None
        self._stop, self.audit_lock = threading.Event(), threading.Lock()
        self._attacked, self._attacked_line = 0.0, -1
        self._threads: list[threading.Thread] = []

    def observe(self, stream: Stream) -> None:
        """Observe a restored stream, before anything else is applied to it."""
        self._period = self.certificates.next_period(time.time(), stream.stages_in_force())
        self._auditor = StreamAuditor(self._released)
        self._digest = LineDigest(self._released, self._period.first)
        self.slices = SliceCollector(stream)
        stream.observers += [self.window, self.slices]

    def start(self, worker: Worker) -> None:
        """Start the threads."""
        self._worker = worker
        for work, name in ((self._run_samples, "querycloak-monitor"), (self._run_audits, "querycloak-audit")):
            thread = threading.Thread(target=work, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """End, after the last record was accepted; all lines released until now get a certificate."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._worker.failure is None and not self._worker.trouble:
            self._guarded(self.certify)

    def _guarded(self, work: Callable[[], None]) -> None:
        """Run work; log a failure, which must not stop the service."""
        try:
            work()
        except Exception as error:
            _log.error("monitoring failed", extra={"fault": type(error).__name__})

    def _run_samples(self) -> None:
        while not self._stop.wait(SAMPLE_SECONDS):
            self._guarded(self.sample)

    def sample(self) -> None:
        """Add a sample of the counts; start a count of held records if it is due."""
        status = self._state().status()
        counts = (status["accepted"], status["released"], status["held"], status["queued"])
        self.samples.append((round(time.time(), 3), *counts))
        in_progress = self._counting is not None and not self._counting.done()
        if not in_progress and time.monotonic() >= self._next_count:
            self.count_held()

    def count_held(self) -> Future[Any]:
        """Have the worker count held records; return the future of the count."""
        stream = self._worker.stream
        self._counting = self._worker.run_on_worker(lambda: count_held(stream, time.time()))
        self._counting.add_done_callback(self._set_buffers)
        return self._counting

    def _set_buffers(self, done: Future[Any]) -> None:
        if done.exception() is None:
            self.buffers, seconds = done.result()
            self._next_count = time.monotonic() + max(COUNT_SECONDS, COUNT_SHARE * seconds)

    # Audits, certificates and attacks

    def _run_audits(self) -> None:
        with contextlib.suppress(OSError, AttributeError):  # a lower priority than records and requests
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        pause = CHECK_SECONDS
        while not self._stop.wait(pause):
            start = time.monotonic()
            self._guarded(self.run_due)
            pause = max(CHECK_SECONDS, REST * (time.monotonic() - start))

    def run_due(self) -> None:
        """Audit queued slices; certify and attack if it is time."""
        with self.audit_lock:
            self._audit_queued()
        if time.time() - self._period.begun >= self._certificate_seconds:
            self.certify()
        wait = FIRST_ATTACK_SECONDS if self.linkage is None else ATTACK_SECONDS
        if time.monotonic() - self._attacked >= wait:
            self.attack()

    def _audit_queued(self) -> None:
        """Audit queued slices; a certificate states one set of settings, so other settings begin a period."""
        ready = self.slices.ready
        while ready and ready[0].last <= self._released.last:  # the worker may not have written its lines yet
            part = ready.popleft()
            if part.stages != self._period.stages:
                self._digest.advance(part.first - 1)
                self._finish(part.stages)
            try:
                self._period.add(self._auditor.audit(part))
            except Exception as error:  # the certificate will state that these lines were not audited
                self.slices.lost = True
                _log.error("an audit failed", extra={"fault": type(error).__name__})
            self._digest.advance(part.last)

    def certify(self) -> None:
        """End the period now; write its certificate if it released a line."""
        worker = self._worker
        worker.run_on_worker(lambda: self.slices.cut(worker.stream)).result(PATIENCE)
        with self.audit_lock:
            self._audit_queued()
            self._finish(self._period.stages)

    def _finish(self, stages: list[Stage]) -> None:
        """Certify the lines of the period, and begin a period with these settings."""
        period, digest, now = self._period, self._digest, time.time()
        if digest.last >= digest.first:
            self.certificates.write(period, digest, now, reproducible=self._state().reproducible)
        self._period = self.certificates.next_period(now, stages)
        self._period.begun = now
        digest.begin(self._period.first)

    def attack(self) -> None:
        """Attack the last released lines, if there are new ones."""
        self._attacked = time.monotonic()
        if self._released.last == self._attacked_line:
            return
        self._attacked_line = self._released.last
        stages = list(self._state().methods)
        self.linkage = linkage.estimate(self._released, self.window, stages, time.time())


@dataclass(frozen=True)
class BufferStats:
    """Held records by category and age, and dropped searches by reason."""

    by_category: list[dict[str, Any]] = field(default_factory=list)
    age: dict[str, Any] | None = None
    dropped: dict[str, int] = field(default_factory=dict)


def count_held(stream: Stream, now: float) -> tuple[BufferStats, float]:
    """Count held records, in the worker's thread; also return the seconds that it took."""
    start = time.perf_counter()
    held, dropped = stream.records.columns("category", "_at"), dict(stream.reasons())
    found = BufferStats(dropped=dropped)
    if held is not None and held.height:
        found = BufferStats(by_category(held["category"]), age(held["_at"], now), dropped)
    return found, time.perf_counter() - start


def by_category(category: pl.Series) -> list[dict[str, Any]]:
    """Return the number of held records by level 1, and within that by level 2; largest first."""
    counts = pl.DataFrame({"path": category}).group_by("path").len("held")
    steps = pl.col("path").cast(pl.String).fill_null(NONE).str.splitn("/", 3)
    top, second = steps.struct.field("field_0"), steps.struct.field("field_1")
    part = pl.concat_str(top, pl.lit("/") + second, ignore_nulls=True)
    parts = counts.group_by(top.alias("top"), part.alias("part")).agg(pl.col("held").sum())
    parts = parts.sort("held", "part", descending=[True, False])
    listed = [
        {
            "category": name,
            "held": int(rows["held"].sum()),
            "parts": _shortened(rows.select(category="part", held="held").to_dicts()),
        }
        for (name,), rows in parts.group_by("top", maintain_order=True)
    ]
    return _shortened(sorted(listed, key=lambda one: (-one["held"], one["category"])))


def _shortened(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if len(listed) <= LISTED:
        return listed
    rest = sum(item["held"] for item in listed[LISTED:])
    last = {"category": OTHERS, "held": rest} | ({"parts": []} if "parts" in listed[0] else {})
    return [*listed[:LISTED], last]


def age(at: pl.Series, now: float) -> dict[str, Any]:
    """Return the age of held records in seconds."""
    oldest, median = np.quantile(at.to_numpy(), (0.0, 0.5)).tolist()
    ages = [max(0.0, round(now - moment / 1e6, 1)) for moment in (oldest, median)]
    return {"unit": "seconds", "oldest": ages[0], "median": ages[1]}


def overview(state: ServiceState, monitor: Monitor) -> dict[str, Any]:
    """Return the content of the page, no user and no query; nothing waits for the worker."""
    buffers = monitor.buffers
    return {
        "version": __version__,
        "started": state.started,
        "now": time.time(),
        "ready": state.running,
        "trouble": state.health.text,
        "reproducible": state.reproducible,
        "source": state.source,
        "sink": state.sink,
        "methods": [_method(stage) for stage in state.methods],
        "counts": state.status(),
        "dropped": buffers.dropped,
        "samples": list(monitor.samples),
        "delay": monitor.window.delay(),
        "age": buffers.age,
        "buffers": buffers.by_category,
        "linkage": monitor.linkage,
        "certificates": monitor.certificates.newest(),
    }


def _method(stage: Stage) -> dict[str, Any]:
    promise = stage.promise()
    return {
        "name": stage.method,
        "settings": stage.settings.as_dict(),
        "promise": promise.statement,
        "does_not_protect_against": list(promise.does_not_protect_against),
    }
