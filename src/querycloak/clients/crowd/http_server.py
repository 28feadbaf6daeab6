"""HTTP server on a port of this machine: an ASGI application, run by uvicorn in the running event loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import parse_qs

import uvicorn
from starlette.requests import Request

from querycloak.errors import UsageError

#: The longest head of a request, in bytes.
HEAD_LIMIT: Final = 16 * 1024


class _Server(uvicorn.Server):
    """uvicorn without its handling of signals: the process that uses it has its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals as they are."""
        yield


class HttpServer:
    """Serves an application until `close`; requests above `most` at a time get status 503."""

    def __init__(self, host: str, port: int, what: str) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family)
        except OSError as error:
            raise UsageError(f"{what} cannot listen there: {error.strerror}") from None
        self.port = int(self._socket.getsockname()[1])
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self, application: Any, most: int | None = 256) -> None:
        """Accept requests; a request that waits does not delay `close` for long."""
        self._server = _Server(
            uvicorn.Config(
                application,
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=most,
                h11_max_incomplete_event_size=HEAD_LIMIT,
                timeout_graceful_shutdown=1,
            )
        )
        self._task = asyncio.create_task(self._server.serve([self._socket]))
        while not self._server.started and not self._task.done():
            await asyncio.sleep(0.005)

    async def close(self) -> None:
        """Stop accepting requests, and wait for those that are being answered."""
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await self._task
        self._socket.close()


def parameter(request: Request, name: str) -> str:
    """Return a parameter of the query string that occurs exactly once, in valid UTF-8; else nothing."""
    text = request.scope["query_string"].decode("latin-1")
    try:
        values = parse_qs(text, errors="strict", max_num_fields=16).get(name, [])
    except ValueError:
        return ""
    return values[0] if len(values) == 1 else ""
