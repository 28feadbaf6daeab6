"""Tells browsers, with every answer, to load nothing from elsewhere and to keep as little as they can."""

from __future__ import annotations

from typing import Final

from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
)
_ALWAYS: Final = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_TWO_YEARS: Final = "max-age=63072000"


class Headers:
    """Adds the headers to what an application answers; a route's own `Cache-Control` stays."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the application does, with more headers."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add(MutableHeaders(scope=message), secure=scope["scheme"] == "https")
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _add(headers: MutableHeaders, *, secure: bool) -> None:
    headers.update(_ALWAYS)
    headers.setdefault("Cache-Control", "no-store")
    if secure:
        headers["Strict-Transport-Security"] = _TWO_YEARS


def install(app: FastAPI) -> None:
    """Put the headers around everything, so that answers to unforeseen faults carry them too."""
    build = app.build_middleware_stack
    # `add_middleware` would stand inside the part that answers unforeseen faults.
    app.build_middleware_stack = lambda: Headers(build())  # type: ignore[method-assign]
