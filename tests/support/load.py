"""Load on a live service: prepared requests over kept connections, and a run at a steady pace."""

from __future__ import annotations

import json
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import polars as pl

import querycloak as qc
from tests.support.service_process import LiveService

SIZE = 100  # records in a request of a soak


@dataclass
class Sent:
    """Answers by status, and how long each took."""

    seconds: float = 0.0
    statuses: dict[int, int] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)

    def quantile(self, share: float) -> float:
        """Return the wait that this share of answers did not exceed."""
        ordered = sorted(self.waits)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def request(path: str, body: bytes) -> bytes:
    """Return a request as bytes."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Connection:
    """One kept connection."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._socket = socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 80))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")

    def send(self, request: bytes) -> int:
        """Send a request and read its answer; return the status."""
        self._socket.sendall(request)
        first = self._file.readline().split()
        if len(first) < 2:
            raise SystemExit("the connection was closed before an answer came")
        status = int(first[1])
        length = 0
        while (line := self._file.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        self._file.read(length)
        return status

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self._socket.close()


def send(address: str, requests: Sequence[bytes], connections: int, pace: float = 0.0) -> Sent:
    """Send all requests over several connections; with `pace`, so many a second whatever the answers take."""
    sent, lock, places = Sent(), threading.Lock(), iter(range(len(requests)))
    begun = time.perf_counter() + 0.05

    def work() -> None:
        connection = Connection(address)
        while True:
            with lock:
                place = next(places, None)
            if place is None:
                break
            due = begun + place / pace if pace else time.perf_counter()
            time.sleep(max(0.0, due - time.perf_counter()))
            status = connection.send(requests[place])
            wait = time.perf_counter() - due  # from when it was due: a slow answer delays none that follow
            with lock:
                sent.statuses[status] = sent.statuses.get(status, 0) + 1
                sent.waits.append(wait)
        connection.close()

    _together(work, connections)
    sent.seconds = time.perf_counter() - begun
    return sent


def _together(work: Callable[[], None], many: int) -> None:
    threads = [threading.Thread(target=work) for _ in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def record_lines(users: int, *, categories: bool) -> list[bytes]:
    """Return records as a search engine sends them."""
    log = qc.generate(users=users, seed=1)
    frame = log.frame.sort("time", maintain_order=True).select("user", "query", "time", "rank", "url")
    if categories:
        frame = frame.with_columns(category=pl.lit("Sports/Soccer"))
    rows = frame.with_columns(pl.col("time").dt.strftime("%Y-%m-%dT%H:%M:%SZ")).to_dicts()
    kept = ({name: value for name, value in row.items() if value is not None} for row in rows)
    return [json.dumps(row).encode() + b"\n" for row in kept]


def requests_of(records: list[bytes], size: int) -> list[bytes]:
    """Return requests with `size` records each."""
    return [request("/v1/records", b"".join(records[n : n + size])) for n in range(0, len(records), size)]


def resident(process: int) -> int:
    """Return the bytes of memory that a process holds."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


class Watch(threading.Thread):
    """Samples memory, and how many records are queued, once a second."""

    def __init__(self, service: LiveService) -> None:
        super().__init__(daemon=True)
        self._service, self._ended = service, threading.Event()
        self.samples: list[tuple[float, int, int]] = []

    def run(self) -> None:
        """Sample until `finish` is called."""
        while not self._ended.wait(1.0):
            queued = self._service.status()["queued"]
            self.samples.append((time.monotonic(), resident(self._service.process), queued))

    def finish(self) -> np.ndarray[Any, Any]:
        """Stop, and return the samples."""
        self._ended.set()
        self.join()
        return np.array(self.samples, float)


def soak(minutes: float, pace: int) -> dict[str, Any]:
    """Run the service at a steady pace; the same users keep searching, so its memory should stay flat.

    Memory is the process's own, once a second. The slope is of the second half: the first fills caches.
    """
    records = record_lines(4000, categories=False)
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
