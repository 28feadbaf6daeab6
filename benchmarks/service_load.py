"""Sends prepared requests over kept connections, as fast as they are answered or at a stated pace."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class Sent:
    """What came of a run: answers by status, and how long each took."""

    seconds: float = 0.0
    statuses: dict[int, int] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)

    def quantile(self, share: float) -> float:
        """Give the wait that this share of answers did not exceed."""
        ordered = sorted(self.waits)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def request(path: str, body: bytes) -> bytes:
    """Write a request as bytes."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Connection:
    """One kept connection."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._socket = socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 80))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")

    def ask(self, request: bytes) -> int:
        """Send a request and read its answer; give the status."""
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
        """Hang up."""
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
            status = connection.ask(requests[place])
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
