"""Stands before all routes: turns away what no honest client sends, before anything is looked up or read.

Without tokens, whoever can reach the service may do all. A web page that the operator opens can reach it
too: by a name that was made to point to this machine, or by simply posting to it. So then only this machine's
own names are answered to, and no page from elsewhere may change anything.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from querycloak.errors import Forbidden, Malformed, Misdirected, NotFound, ParameterError, QueryCloakError
from querycloak.service.web import faults
from querycloak.service.web.guard import Guard

#: The longest `Idempotency-Key`, in bytes.
KEY_BYTES: Final = 255
_HERE: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Gate:
    """Passes requests on, or answers them itself."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app, self._guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, unless something is wrong with it."""
        try:
            if scope["type"] == "http":
                self._check(scope)
        except QueryCloakError as error:
            await faults.told(error)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if b"%" in scope.get("raw_path", b""):  # no address here needs an escape; tricks do
            raise NotFound("there is nothing at this address")
        if len(headers.get("idempotency-key", "")) > KEY_BYTES:
            raise ParameterError(f"the Idempotency-Key has more than {KEY_BYTES} bytes")
        if not self._guard.tokens.required:
            _check_host(headers)
            if scope["method"] not in _READING:
                _check_origin(headers)


def _check_host(headers: Headers) -> None:
    hosts = headers.getlist("host")
    if len(hosts) != 1:
        raise Malformed("a request names one host")
    if _name(hosts[0]) not in _HERE:
        raise Misdirected("without tokens the service answers to 127.0.0.1, localhost and [::1] only")


def _check_origin(headers: Headers) -> None:
    """Refuse what a browser sends for a page from elsewhere; other clients send neither header."""
    origin = headers.get("origin")
    elsewhere = origin is not None and urlsplit(origin).netloc != headers["host"]
    if elsewhere or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Forbidden("a page from elsewhere may not ask for this")


def _name(host: str) -> str:
    """Give the name in `NAME:PORT`; nothing if it makes no sense."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def install(app: FastAPI, guard: Guard) -> None:
    """Put the gate before the routes of an application."""
    app.add_middleware(Gate, guard=guard)
