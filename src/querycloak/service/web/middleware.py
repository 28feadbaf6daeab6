"""The one ASGI wrapper around all routes: checks requests, adds security headers, counts responses.

A service without tokens permits every caller everything. A web page that the operator opens can reach it,
by a host name that resolves to this machine or by a plain POST. Such a service therefore accepts only its
own host names, and no state-changing request from a page of another origin.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from querycloak.errors import Forbidden, Malformed, Misdirected, NotFound, ParameterError, QueryCloakError
from querycloak.service.web import errors
from querycloak.service.web.auth import Tokens

#: The longest `Idempotency-Key`, in bytes.
KEY_BYTES: Final = 255
#: Route label of requests that match no route: their addresses could contain anything.
NO_ROUTE: Final = "none"
_OWN_NAMES: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_SECURITY_HEADERS: Final = {
    "Content-Security-Policy": _CONTENT_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_TWO_YEARS: Final = "max-age=63072000"
#: Called with route template, method, status and seconds.
Observe = Callable[[str, str, int, float], None]


class Middleware:
    """Wraps an application, its handler of unforeseen errors included."""

    def __init__(self, app: ASGIApp, tokens: Tokens, observe: Observe) -> None:
        self._app, self._tokens, self._observe = app, tokens, observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; refuse it before any route is looked up if it fails the checks."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers.update(_SECURITY_HEADERS)
                headers.setdefault("Cache-Control", "no-store")  # a route's own stays
                if scope["scheme"] == "https":
                    headers["Strict-Transport-Security"] = _TWO_YEARS
            await send(message)

        try:
            refusal = self._refusal(scope)
            handler = self._app if refusal is None else errors.to_response(refusal)
            await handler(scope, receive, send_with_headers)
        finally:
            route = getattr(scope.get("route"), "path", NO_ROUTE)
            self._observe(route, scope["method"], status, time.perf_counter() - start)

    def _refusal(self, scope: Scope) -> QueryCloakError | None:
        headers = Headers(scope=scope)
        if b"%" in scope.get("raw_path", b""):  # no route needs an escape
            return NotFound("there is nothing at this address")
        if len(headers.get("idempotency-key", "")) > KEY_BYTES:
            return ParameterError(f"the Idempotency-Key has more than {KEY_BYTES} bytes")
        return None if self._tokens.required else _foreign(headers, scope["method"])


def _foreign(headers: Headers, method: str) -> QueryCloakError | None:
    """Return why a service without tokens refuses a request: another host, or a page of another origin."""
    hosts = headers.getlist("host")
    if len(hosts) != 1:
        return Malformed("a request names one host")
    try:
        name = urlsplit(f"//{hosts[0]}").hostname
    except ValueError:
        name = None
    if name not in _OWN_NAMES:
        return Misdirected("without tokens the service answers to 127.0.0.1, localhost and [::1] only")
    origin = headers.get("origin")
    elsewhere = origin is not None and origin.partition("://")[2] != hosts[0]
    elsewhere |= headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
    if elsewhere and method not in _SAFE_METHODS:
        return Forbidden("a page of another origin may not send this request")
    return None
