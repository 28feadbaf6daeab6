"""Kills a service at random instants while records flow, and compares the release with an undisturbed one."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.support.service_process import LiveService


@dataclass(frozen=True)
class Summary:
    """What became of all records, over all kills."""

    kills: int
    records_in: int
    out: int
    held: int
    dropped: int
    lost: int
    doubled: int
    same_bytes: bool

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


def crash(
    folder: Path,
    lines: Sequence[bytes],
    *arguments: str,
    kills: int,
    seed: int,
    batch: int = 50,
    longest: float = 0.3,
    disturbed: Sequence[str] = (),
    progress: Callable[[int], None] = lambda done: None,
) -> Summary:
    """Send all lines, again and again until acknowledged, while the service is killed so many times.

    `disturbed`: further arguments of the service that is killed, such as a sink that only this one may have.
    """
    calm = LiveService(folder / "calm", *arguments)
    with calm:
        _send(calm, lines, batch)
        calm.settled()
        expected = calm.released()
    wild = LiveService(folder / "wild", *arguments, *disturbed).start()
    sender = _Sender(wild, lines, batch)
    sender.start()
    share = max(1, len(lines) // batch // max(kills, 1))
    draw = random.Random(seed)
    for done in range(kills):
        sender.allow(share)
        time.sleep(draw.random() * longest)
        wild.kill()
        wild.start()
        progress(done + 1)
    sender.finish()
    counts = wild.settled()
    found = wild.released()
    wild.stop()
    return Summary(
        kills=kills,
        records_in=len(lines),
        out=counts["released"],
        held=counts["held"],
        dropped=counts["dropped"],
        lost=max(0, len(lines) - counts["accepted"]),
        doubled=max(0, counts["accepted"] - len(lines)),
        same_bytes=found == expected,
    )


def _send(service: LiveService, lines: Sequence[bytes], batch: int) -> None:
    for start in range(0, len(lines), batch):
        answer = service.post(lines[start : start + batch], key=f"batch {start}")
        answer.raise_for_status()


class _Sender(threading.Thread):
    """Sends batch after batch, a share of all before each kill; repeats whatever was not acknowledged."""

    def __init__(self, service: LiveService, lines: Sequence[bytes], batch: int) -> None:
        super().__init__(daemon=True)
        self._service, self._lines, self._batch = service, lines, batch
        self._shares = threading.Semaphore(0)
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Send everything, as far as `allow` lets it."""
        try:
            for start in range(0, len(self._lines), self._batch):
                self._shares.acquire()
                self._insist(start)
        except BaseException as error:
            self._failure = error

    def _insist(self, start: int) -> None:
        while True:
            try:
                answer = self._service.post(self._lines[start : start + self._batch], key=f"batch {start}")
                if answer.status_code == 202:
                    return
                if answer.status_code not in (429, 503):
                    answer.raise_for_status()
            except (httpx.TransportError, RuntimeError):  # it was killed, or its client was closed
                pass
            time.sleep(0.01)

    def allow(self, batches: int) -> None:
        """Allow so many more batches to be sent."""
        self._shares.release(batches)

    def finish(self) -> None:
        """Wait until all is acknowledged."""
        self._shares.release(len(self._lines))
        self.join()
        if self._failure is not None:
            raise self._failure
