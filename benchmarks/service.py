"""The live service beside the same HTTP stack that only writes bodies to a file.

Both run on loopback, in processes of their own, and get the same requests over as many connections, in turns.
`taken` counts records until the last acknowledgement, `through` until all were processed and all that can be
released was. Small requests cost mostly HTTP, large ones mostly what is done with each record:
so the ratio depends on their size, and several are tried. The paced run sends 10,000 records a second and
looks at how long acknowledgements take.
"""

from __future__ import annotations

import asyncio
import os
import queue
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from tests.support.load import Sent, record_lines, requests_of, send, soak
from tests.support.service_process import LiveService

from benchmarks.common import command_of, cpu_seconds
from querycloak.service.web import bodies, schemas

#: Records in a request, and connections.
SHAPES = ((10, 32), (100, 16), (1000, 16))
TURNS = 3
MOST_REQUESTS = 4000
PACE = 10_000


class Writer:
    """Writes all waiting bodies, syncs once, and answers."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._queue: queue.SimpleQueue[tuple[bytes, Future[None]]] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def write(self, body: bytes) -> Future[None]:
        """Write a body; done when it is durable."""
        done: Future[None] = Future()
        self._queue.put((body, done))
        return done

    def _run(self) -> None:
        while True:
            group = [self._queue.get()]
            while not self._queue.empty():
                group.append(self._queue.get())
            os.write(self._file, b"".join(body for body, _ in group))
            os.fdatasync(self._file)
            for _, done in group:
                done.set_result(None)


def plain_app(folder: Path) -> FastAPI:
    """Return the same HTTP stack without protection: bodies are written to a file and synced."""
    app, writer = FastAPI(docs_url=None, redoc_url=None), Writer(folder / "plain")

    @app.post("/v1/records", status_code=202)
    async def take(request: Request) -> schemas.Accepted:
        body = await bodies.read_body(request, 16 << 20, 30)
        await asyncio.wrap_future(writer.write(body))
        return schemas.Accepted(accepted=body.count(b"\n"), skipped={}, skipped_total=0)

    return app


def serve_plain(folder: str) -> None:
    """Run it, and print its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    config = uvicorn.Config(plain_app(Path(folder)), log_config=None, access_log=False, lifespan="off")
    uvicorn.Server(config).run([listening])


@contextmanager
def plain_service(folder: Path) -> Iterator[tuple[str, int]]:
    """Run the stack that only writes; return its address and process number."""
    with subprocess.Popen(command_of(serve_plain, str(folder)), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process.pid
        process.kill()


def checked(sent: Sent) -> Sent:
    """Return it if all requests were accepted."""
    if set(sent.statuses) != {202}:
        raise SystemExit(f"not all was taken: {sent.statuses}")
    return sent


def race(folder: Path, records: list[bytes], size: int, connections: int, *options: str) -> dict[str, float]:
    """Send the same requests to both, in turns; return records a second, and ours to theirs."""
    packed, many = requests_of(records, size), len(records)
    found: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        found.setdefault(name, []).append(value)

    for _ in range(TURNS):
        own = Path(tempfile.mkdtemp(dir=folder))
        with plain_service(own) as (address, process):
            send(address, packed[:20], 4)
            used = cpu_seconds(process)
            note("plain records/s", many / checked(send(address, packed, connections)).seconds)
            note("plain CPU us/record", 1e6 * (cpu_seconds(process) - used) / many)
        with LiveService(own / "ours", "--seed", "1", *options) as service:
            send(service.address, packed[:20], 4)
            service.settled()
            used, begun = cpu_seconds(service.process), time.perf_counter()
            note("taken records/s", many / checked(send(service.address, packed, connections)).seconds)
            service.settled()
            note("through records/s", many / (time.perf_counter() - begun))
            note("CPU us/record", 1e6 * (cpu_seconds(service.process) - used) / many)
    middle = {name: median(values) for name, values in found.items()}
    for name in ("taken", "through"):
        middle[f"{name} / plain"] = middle[f"{name} records/s"] / middle["plain records/s"]
    return middle


def paced(folder: Path, records: list[bytes], size: int = 100) -> dict[str, float]:
    """Send at a steady pace; return how long acknowledgements take."""
    packed = requests_of(records[: 20 * PACE], size)
    with LiveService(folder / "paced", "--seed", "1") as service:
        send(service.address, packed[:20], 4)
        sent = checked(send(service.address, packed[20:], 16, pace=PACE / size))
    return {f"p{round(100 * q)} ms": 1000 * sent.quantile(q) for q in (0.5, 0.99, 1.0)}


def measure(scale: float) -> dict[str, Any]:
    """Send requests of several sizes, then at a steady pace."""
    users = int(8000 * scale)
    given, bare = record_lines(users, categories=True), record_lines(users, categories=False)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size, connections in SHAPES:
            some = given[: size * MOST_REQUESTS]
            found[f"{size} in a request, with categories"] = race(folder, some, size, connections)
        found["1000 in a request, classified here"] = race(folder, bare, 1000, 16, "-o", "backlog=100000000")
        found["10,000 a second, 100 in a request"] = paced(folder, bare)
    return found


def soak_half_an_hour(scale: float) -> dict[str, Any]:
    """Run the service for half an hour at 5,000 records a second."""
    return soak(30 * scale, 5000)
