"""Runs the live service for a while at a steady pace; its memory and delay should stay flat.

python -m benchmarks.service_soak [MINUTES] [RECORDS A SECOND]

The same people keep searching, so what the service must remember of them does not grow. Memory is the
process's own, once a second. The slope is of the second half: the first fills caches and buffers.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from tests.support.service_process import LiveService

from benchmarks.service import lines
from benchmarks.service_load import request, send

SIZE = 100


def resident(process: int) -> int:
    """Give the bytes of memory that a process holds."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


class Watch(threading.Thread):
    """Samples memory, and how many records are queued, once a second."""

    def __init__(self, service: LiveService) -> None:
        super().__init__(daemon=True)
        self._service, self._ended = service, threading.Event()
        self.samples: list[tuple[float, int, int]] = []

    def run(self) -> None:
        """Sample until told to stop."""
        while not self._ended.wait(1.0):
            queued = self._service.status()["queued"]
            self.samples.append((time.monotonic(), resident(self._service.process), queued))

    def finish(self) -> np.ndarray[Any, Any]:
        """Stop, and give the samples."""
        self._ended.set()
        self.join()
        return np.array(self.samples, float)


def soak(minutes: float, pace: int) -> dict[str, Any]:
    records = lines(4000, categories=False)
    needed = int(minutes * 60 * pace)
    packed = [
        request("/v1/records", b"".join(records[n % len(records) : n % len(records) + SIZE]))
        for n in range(0, min(needed, len(records)), SIZE)
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        LiveService(
            Path(folder) / "state", "--seed", "1", "-o", "snapshot_seconds=20", "-o", f"keep_bytes={64 << 20}"
        ) as service,
    ):
        watch = Watch(service)
        watch.start()
        waits: list[list[float]] = []
        left = needed // SIZE
        while left > 0:
            sent = send(service.address, packed[: min(left, len(packed))], 8, pace=pace / SIZE)
            waits.append(sent.waits)
            left -= len(sent.waits)
        counts = service.settled()
        samples = watch.finish()
    half = samples[len(samples) // 2 :]
    slope = np.polyfit(half[:, 0] - half[0, 0], half[:, 1], 1)[0] * 60 if len(half) > 2 else float("nan")
    ordered = [sorted(some) for some in waits]
    return {
        "minutes": minutes,
        "records": counts["accepted"],
        "memory MB at first, half and end": [round(samples[n, 1] / 1e6) for n in (0, len(samples) // 2, -1)],
        "memory MB a minute, second half": round(slope / 1e6, 2),
        "p99 ms, first and last round": [
            round(1000 * s[int(0.99 * (len(s) - 1))], 1) for s in (ordered[0], ordered[-1])
        ],
        "most queued": int(samples[:, 2].max()),
        "adds up": counts["accepted"] == counts["released"] + counts["held"] + counts["dropped"],
    }


if __name__ == "__main__":
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    pace = int(sys.argv[2]) if len(sys.argv) > 2 else 5000
    print(json.dumps(soak(minutes, pace), indent=2))
