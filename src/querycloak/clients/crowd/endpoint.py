"""HTTP on this machine: the user's endpoint, `/search` and `/health`, with guards against web pages.

`HttpServer` runs an ASGI application with uvicorn in the running event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterator
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from querycloak.clients import is_query
from querycloak.clients.crowd.messages import EngineResult, Page
from querycloak.errors import Refused, UsageError

#: The longest head of a request, in bytes.
HEAD_LIMIT: Final = 16 * 1024
#: Headers by which browsers mark a page that they fetch before the user requested it.
_PURPOSES: Final = ("sec-purpose", "purpose", "x-purpose", "x-moz")
#: Headers of every response: it is not stored, not sniffed, and reveals nothing to the next site.
_HEADERS: Final = {
    "Connection": "close",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # an answer comes from others: nothing in it may run, load anything, or reach this server
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def endpoint(
    search: Callable[[str], Awaitable[EngineResult]], health: Callable[[], dict[str, Any]], port: int
) -> ASGIApp:
    """Return the application of a peer; `port` is the one on which it will be served."""

    async def answer_search(request: Request) -> Response:
        text = parameter(request, "q").strip()
        if not is_query(text):
            return PlainTextResponse("no query: use /search?q=…\n", HTTPStatus.BAD_REQUEST)
        result = await search(text)
        if isinstance(result, Page):
            return Response(result.body, media_type=result.type)
        reason = "no friend and no engine answered" if result is None else "the engine rejected it"
        return PlainTextResponse(f"the search has failed: {reason}\n", HTTPStatus.BAD_GATEWAY)

    async def answer_health(request: Request) -> Response:
        return JSONResponse(health())

    routes = [Route("/search", answer_search), Route("/health", answer_health)]
    return BrowserGuard(Starlette(routes=routes), port)


class BrowserGuard:
    """Refuses requests that the local user did not start, and sets the headers of every response."""

    def __init__(self, application: ASGIApp, port: int) -> None:
        self._application = application
        self._hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self._choose(Headers(scope=scope))(scope, receive, send_guarded)

    def _choose(self, headers: Headers) -> ASGIApp:
        # a site could resolve its own name to this machine, and then read the answers
        if headers.get("host", "").lower() not in self._hosts:
            return _status(HTTPStatus.MISDIRECTED_REQUEST)
        return self._application if _is_intended(headers) else _status(HTTPStatus.FORBIDDEN)


def _is_intended(headers: Headers) -> bool:
    """Whether the user started the request, and not a web page or a prefetching browser."""
    own = f"http://{headers['host'].lower()}"
    return (
        headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        and headers.get("sec-fetch-dest", "empty") in ("document", "empty")
        and headers.get("origin", own).lower() == own
        and f"{headers.get('referer', own).lower()}/".startswith(f"{own}/")
        and not any("prefetch" in headers.get(name, "").lower() for name in _PURPOSES)
    )


def _status(status: HTTPStatus) -> Response:
    return PlainTextResponse(f"{status.phrase}\n", status)


def check_loopback(host: str) -> None:
    """Raise Refused for an address that other machines can reach: the endpoint has no authentication."""
    try:
        inside = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        inside = False
    if not inside:
        raise Refused("the search endpoint listens on this machine only", hint="use 127.0.0.1:PORT")


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
