"""The same HTTP stack with no protection at all: bodies are written to a file and synced, nothing else.

python -m benchmarks.service_plain FOLDER
"""

from __future__ import annotations

import asyncio
import os
import queue
import socket
import sys
import threading
from concurrent.futures import Future
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Request

from querycloak.service.web import bodies, schemas


class Writer:
    """Writes what has come, syncs once, and answers all."""

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


def make(folder: Path) -> FastAPI:
    app, writer = FastAPI(docs_url=None, redoc_url=None), Writer(folder / "plain")

    @app.post("/v1/records", status_code=202)
    async def take(request: Request) -> schemas.Accepted:
        body = await bodies.read_body(request, 16 << 20, 30)
        await asyncio.wrap_future(writer.write(body))
        return schemas.Accepted(accepted=body.count(b"\n"), skipped={}, skipped_total=0)

    return app


def main(folder: str) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    config = uvicorn.Config(make(Path(folder)), log_config=None, access_log=False, lifespan="off")
    uvicorn.Server(config).run([listening])


if __name__ == "__main__":
    main(sys.argv[1])
