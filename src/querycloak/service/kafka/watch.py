"""The watch over lanes: counts and delays. Lines are not kept here, so they are not audited or attacked."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from querycloak.service.monitor import buffers
from querycloak.service.monitor.buffers import Held
from querycloak.service.monitor.certificates import Certificates
from querycloak.service.monitor.samples import Samples
from querycloak.service.monitor.window import Window

if TYPE_CHECKING:
    from querycloak.service.kafka.service import LaneService

#: Seconds between samples, and between counts of what is held.
SAMPLE: Final = 1.0
COUNT: Final = 10.0


class LaneWatch:
    """Samples counts, and has what is held counted; for the page and the metrics."""

    def __init__(self, service: LaneService) -> None:
        self.service = service
        self.samples, self.window, self.held = Samples(), Window(), Held()
        self.linkage: dict[str, Any] | None = None
        self.certificates = Certificates(service.folder)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="querycloak-watch", daemon=True)
        self._counted = 0.0

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(SAMPLE):
            self.samples.add(time.time(), self.service.status())
            if time.monotonic() - self._counted >= COUNT and self.service.worker.lanes:
                self._counted = time.monotonic()
                self.service.worker.ask(self.count)

    def count(self) -> None:
        """Count what is held in all lanes; where they are at rest."""
        streams = [lane.stream for lane in self.service.worker.lanes.values()]
        found = [stream.waiting.columns("category", "_at") for stream in streams]
        held = [frame for frame in found if frame is not None and frame.height]
        dropped: Counter[str] = Counter(self.service.skipped())
        for stream in streams:
            dropped.update(stream.reasons())
        self.held = Held(dropped=dict(dropped))
        if held:
            whole = pl.concat(held)
            by_category, age = buffers.by_category(whole["category"]), buffers.age(whole["_at"], time.time())
            self.held = Held(by_category, age, dict(dropped))
