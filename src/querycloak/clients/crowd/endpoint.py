"""The searcher's own door to the crowd: an HTTP server on her machine, for her browser's search shortcut."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import math
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final, Protocol

from querycloak.clients.crowd.doings import Found, Rejected
from querycloak.clients.crowd.web import Request, Response, plain, port_of, serve
from querycloak.clients.crowd.wire import is_query
from querycloak.errors import Refused

#: Headers in which browsers say that they fetch a page before anybody has asked for it.
_PURPOSES: Final = ("sec-purpose", "purpose", "x-purpose", "x-moz")


class Searcher(Protocol):
    """What the door leads to."""

    async def search(self, text: str) -> Found:
        """Send a query through the crowd."""

    def health(self) -> dict[str, Any]:
        """Say how it goes, in numbers."""

    async def exposure(self) -> dict[str, Any]:
        """Say how much of her interests she has shown."""


class Endpoint:
    """Answers `/search?q=…`, `/health` and `/exposure`, to programs on this machine only."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher
        self._names: frozenset[str] = frozenset()
        self._paths: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "/search": self._search,
            "/health": self._health,
            "/exposure": self._exposure,
        }

    async def open(self, host: str, port: int) -> asyncio.Server:
        """Listen on an address of this machine that nobody else can reach."""
        check_loopback(host)
        server = await serve(self._answer, host, port)
        where = port_of(server)
        self._names = frozenset(f"{name}:{where}" for name in ("127.0.0.1", "localhost", "[::1]"))
        return server

    async def _answer(self, request: Request) -> Response:
        # a site of somebody else could give its own name this machine's address, and then read what we say
        if request.headers["host"].lower() not in self._names:
            return plain(HTTPStatus.MISDIRECTED_REQUEST)
        if not self._is_meant(request.headers):
            return plain(HTTPStatus.FORBIDDEN)
        handler = self._paths.get(request.path)
        return await handler(request) if handler else plain(HTTPStatus.NOT_FOUND)

    def _is_meant(self, headers: dict[str, str]) -> bool:
        """Say whether she asks herself: a page of somebody else must not search in her name, nor a guess."""
        own = f"http://{headers['host'].lower()}"
        return (
            headers.get("sec-fetch-site", "none") in ("none", "same-origin")
            and headers.get("sec-fetch-dest", "empty") in ("document", "empty")
            and headers.get("origin", own).lower() == own
            and f"{headers.get('referer', own).lower()}/".startswith(f"{own}/")
            and not any("prefetch" in headers.get(name, "").lower() for name in _PURPOSES)
        )

    async def _search(self, request: Request) -> Response:
        text = request.one("q").strip()
        if not is_query(text):
            return plain(HTTPStatus.BAD_REQUEST, "give one query, as /search?q=…")
        answer = await self._searcher.search(text)
        if answer is None:
            return plain(HTTPStatus.BAD_GATEWAY, "the search has failed: no friend and no engine answered")
        if isinstance(answer, Rejected):
            return plain(HTTPStatus.BAD_GATEWAY, "the search has failed: the engine would not answer it")
        return Response(HTTPStatus.OK, answer.type, answer.body)

    async def _health(self, request: Request) -> Response:
        return _json(self._searcher.health())

    async def _exposure(self, request: Request) -> Response:
        return _json(await self._searcher.exposure())


def check_loopback(host: str) -> None:
    """Refuse an address that others could reach: whoever reaches the endpoint searches in her name."""
    try:
        inside = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        inside = False
    if not inside:
        raise Refused("the search endpoint listens on this machine only", hint="use 127.0.0.1:PORT")


def _json(values: dict[str, Any]) -> Response:
    said = {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in values.items()
    }
    return Response(HTTPStatus.OK, "application/json", (json.dumps(said) + "\n").encode())
