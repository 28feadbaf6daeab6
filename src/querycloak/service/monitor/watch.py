"""The watch over a service: two threads of its own, so that neither records nor requests wait for it."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from querycloak.engines.pipeline import Stage
from querycloak.service.monitor import buffers, linkage
from querycloak.service.monitor.auditing import Auditor
from querycloak.service.monitor.buffers import Held, Pacing
from querycloak.service.monitor.certificates import Certificates
from querycloak.service.monitor.lines import Digest
from querycloak.service.monitor.periods import Facts
from querycloak.service.monitor.samples import Samples
from querycloak.service.monitor.slices import Slices, stages_of
from querycloak.service.monitor.window import Window
from querycloak.service.onlooker import Onlooker
from querycloak.service.stream import Output, Stream

if TYPE_CHECKING:
    from querycloak.service.service import Service

#: Seconds between samples, between attacks (as long as none had anything to work on: fewer), and between
#: looks at what is due.
SAMPLE: Final = 1.0
ATTACK: Final = 60.0
FIRST_ATTACK: Final = 10.0
LOOK: Final = 0.5
#: After work, the audit rests for so many times as long: a third of a processor is all that it takes.
REST: Final = 2.0
#: How long the worker may take to come to a question before it is asked again later.
PATIENCE: Final = 20.0
_log = logging.getLogger("querycloak.service")


class Watch(Onlooker):
    """Samples counts, has what is held counted, audits, certifies and attacks what leaves."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.samples, self.window, self.slices = Samples(), Window(), Slices()
        self._onlookers: tuple[Onlooker, ...] = (self.window, self.slices)
        self.held = Held()
        self.linkage: dict[str, Any] | None = None
        self._pacing, self._stop, self._busy = Pacing(), threading.Event(), threading.Lock()
        self._counting: Future[Any] | None = None
        self._attacked, self._attacked_at = 0.0, -1
        self._threads: list[threading.Thread] = []

    def look_on(self, stream: Stream) -> None:
        """Begin where a stream stands when it was restored; before anything else is applied to it."""
        self.certificates = Certificates(self.service.folder)
        self._period = self.certificates.next_period(time.time(), stages_of(stream.pipeline))
        self._auditor = Auditor(self.service.released)
        self._digest = Digest(self.service.released, self._period.first)
        self.slices.begin(stream)
        stream.onlooker = self

    def came(self, stream: Stream, rows: pl.DataFrame) -> None:
        """Pass on that records came."""
        for onlooker in self._onlookers:
            onlooker.came(stream, rows)

    def left(self, output: Output) -> None:
        """Pass on that records left."""
        for onlooker in self._onlookers:
            onlooker.left(output)

    def erased(self, stream: Stream, name: str) -> None:
        """Pass on that somebody was forgotten."""
        for onlooker in self._onlookers:
            onlooker.erased(stream, name)

    def turned(self, stream: Stream) -> None:
        """Pass on that an epoch ended."""
        for onlooker in self._onlookers:
            onlooker.turned(stream)

    def changed(self, stream: Stream) -> None:
        """Pass on that a setting was changed."""
        for onlooker in self._onlookers:
            onlooker.changed(stream)

    def start(self) -> None:
        """Begin to watch."""
        for work, name in ((self._sample_on, "querycloak-watch"), (self._audit_on, "querycloak-audit")):
            thread = threading.Thread(target=work, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """End, once nothing more comes in; what was released until now gets its certificate."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if not self.service.failure() and not self.service.worker.trouble:
            self._carefully(self.certify)

    def _carefully(self, work: Any) -> None:
        """Go on when watching fails: the service must not fail with it."""
        try:
            work()
        except Exception as error:
            _log.error("the watch failed", extra={"fault": type(error).__name__})

    # One sample a second, and what is held

    def _sample_on(self) -> None:
        while not self._stop.wait(SAMPLE):
            self._carefully(self.sample)

    def sample(self) -> None:
        """Note the counts; have what is held counted, if it is time."""
        self.samples.add(time.time(), self.service.status())
        waiting = self._counting is not None and not self._counting.done()
        if not waiting and self._pacing.due(time.monotonic()):
            stream = self.service.worker.stream
            self._counting = self.service.worker.ask(lambda: buffers.count(stream, time.time()))
            self._counting.add_done_callback(self._counted)

    def _counted(self, done: Future[Any]) -> None:
        if done.exception() is None:
            self.held, seconds = done.result()
            self._pacing.took(time.monotonic(), seconds)

    # Audits, certificates and attacks

    def _audit_on(self) -> None:
        with contextlib.suppress(OSError, AttributeError):  # a lower place in the queue for the processor
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        pause = LOOK
        while not self._stop.wait(pause):
            start = time.monotonic()
            self._carefully(self.look)
            pause = max(LOOK, REST * (time.monotonic() - start))

    def look(self) -> None:
        """Do what is due."""
        with self._busy:
            self._audit_ready()
        if time.time() - self._period.begun >= self.service.settings.certificate_seconds:
            self.certify()
        if time.monotonic() - self._attacked >= (FIRST_ATTACK if self.linkage is None else ATTACK):
            self.attack()

    def _audit_ready(self) -> None:
        """Audit what is queued; a certificate states one set of settings, so other ones begin a period."""
        ready, log = self.slices.ready, self.service.released
        while ready and ready[0].last <= log.last:  # the worker may still be about to write its lines
            part = ready.popleft()
            if part.stages != self._period.stages:
                self._digest.advance(part.first - 1)
                self._finish(part.stages)
            try:
                self._period.add(self._auditor.audit(part))
            except Exception as error:  # the certificate will say that these lines were not audited
                self.slices.lost = True
                _log.error("an audit failed", extra={"fault": type(error).__name__})
            self._digest.advance(part.last)

    def certify(self) -> None:
        """End the period now, and write its certificate if anything was released in it."""
        worker = self.service.worker
        worker.ask(lambda: self.slices.cut(worker.stream)).result(PATIENCE)
        with self._busy:
            self._audit_ready()
            self._finish(self._period.stages)

    def _finish(self, stages: list[Stage]) -> None:
        """Certify the lines that were looked at, and begin a period with these settings."""
        period, digest, now = self._period, self._digest, time.time()
        if digest.last >= digest.first:
            facts = Facts(digest.first, digest.last, period.begun, now, digest.hex())
            self.certificates.write(period, facts, reproducible=self.service.reproducible)
        self._period = self.certificates.next_period(now, stages)
        self._period.begun = now
        digest.begin(self._period.first)

    def attack(self) -> None:
        """Attack what was released last, if anything new was."""
        self._attacked = time.monotonic()
        service = self.service
        if service.released.last == self._attacked_at:
            return
        self._attacked_at = service.released.last
        stages = stages_of(service.worker.stream.pipeline)
        self.linkage = linkage.estimate(service.released, self.window, stages, time.time())
