"""The local user's HTTP endpoint: `/search` and `/health` on loopback, with guards against web pages."""

from __future__ import annotations

import ipaddress
from http import HTTPStatus
from typing import Any, Final, Protocol

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from querycloak.clients.crowd.http_server import parameter
from querycloak.clients.crowd.messages import EngineResult, Rejected
from querycloak.clients.query import is_query
from querycloak.errors import Refused

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


class Searcher(Protocol):
    """The peer behind the endpoint."""

    async def search(self, text: str) -> EngineResult:
        """Send a query through the crowd."""

    def health(self) -> dict[str, Any]:
        """Return the status of the peer in numbers."""


def endpoint(searcher: Searcher, port: int) -> ASGIApp:
    """Return the application; `port` is the one on which it will be served."""

    async def search(request: Request) -> Response:
        text = parameter(request, "q").strip()
        if not is_query(text):
            return PlainTextResponse("no query: use /search?q=…\n", HTTPStatus.BAD_REQUEST)
        result = await searcher.search(text)
        if result is None:
            failure = "the search has failed: no friend and no engine answered\n"
            return PlainTextResponse(failure, HTTPStatus.BAD_GATEWAY)
        if isinstance(result, Rejected):
            failure = "the search has failed: the engine rejected it\n"
            return PlainTextResponse(failure, HTTPStatus.BAD_GATEWAY)
        return Response(result.body, media_type=result.type)

    async def health(request: Request) -> Response:
        return JSONResponse(searcher.health())

    routes = [Route("/search", search), Route("/health", health)]
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
