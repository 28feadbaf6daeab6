"""Limits of one connection: time and size of the request head, number of connections, stalled readers.

uvicorn bounds the pause between requests only; with httptools it bounds neither time nor size of a head.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from querycloak.errors import HeadTooLarge, Malformed, QueryCloakError, TooSlow, Unavailable
from querycloak.service.web import errors

#: Largest request target, and the size of all headers together.
ADDRESS_BYTES: Final = 8 << 10
HEAD_BYTES: Final = 32 << 10
HEADERS: Final = 64
#: Bytes that may arrive outside a body: a head, a trailer, a line without an end.
_HEAD_AND_TARGET: Final = HEAD_BYTES + ADDRESS_BYTES
#: How long the rest of a request may arrive after its response, so that the response is not lost.
_LINGER: Final = 5.0


@dataclass
class ConnectionLimits:
    """Limits that can be reloaded; a change applies to later events."""

    head_seconds: float = 10.0
    connections: int = 1000


class LimitedConnection(HttpToolsProtocol):
    """A connection with a timer and size limits."""

    limits = ConnectionLimits()

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._timer: asyncio.TimerHandle | None = None
        self._refusal: QueryCloakError = Malformed("this is not an HTTP request")
        self._within_message = False
        self._outside_body = self._head = 0
        self._unsent = math.inf

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer; refuse the connection if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._refuse(Unavailable("too many connections are open", hint="try again later"))
        else:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._start_timer(self.limits.head_seconds)

    def _start_timer(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, self._timed_out)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _responding(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _timed_out(self) -> None:
        """Close the connection, but not during a response: a second request may be queued behind it."""
        self._timer = None
        if self._responding():
            self._await_head()
        elif self._within_message:  # its response has been sent
            self.transport.abort()
        else:
            self._refuse(TooSlow("the request took too long to arrive"))

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection; abort one whose client does not read the response."""
        unsent = self.transport.get_write_buffer_size()
        if unsent and unsent < self._unsent:  # slow, but it progresses
            self._unsent = unsent
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
        elif unsent:
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    # Parser events

    def data_received(self, data: bytes) -> None:
        """Parse data; refuse more bytes outside a body than a head may have."""
        if self.transport.is_closing():
            return
        if self._timer is None and not self._within_message:
            self._await_head()
        self._outside_body += len(data)
        super().data_received(data)
        if self._outside_body > _HEAD_AND_TARGET and not self.transport.is_closing():
            self._refuse(_too_much())

    def on_message_begin(self) -> None:
        """Start a request."""
        self._head = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Add a part of the request target."""
        super().on_url(url)
        if len(self.url) > ADDRESS_BYTES:
            self._stop_reading(HeadTooLarge(f"the address has more than {ADDRESS_BYTES:,} bytes"))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; a trailer counts as one."""
        self._head += len(name) + len(value)
        if self._head > HEAD_BYTES or len(self.headers) >= HEADERS:
            self._stop_reading(_too_much())
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop the timer: the head is complete."""
        self._stop_timer()
        self._within_message, self._outside_body = True, 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Add a part of a body; routes limit its size and time."""
        self._outside_body = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._stop_timer()
        self._within_message, self._outside_body = False, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """End a response; the rest of its request may arrive for a short time."""
        self._unsent = math.inf
        super().on_response_complete()
        if self._within_message and not self.pipeline and not self.transport.is_closing():
            self._start_timer(_LINGER)

    def _stop_reading(self, refusal: QueryCloakError) -> None:
        """Leave the parser; an exception in it leads to `send_400_response`."""
        self._refusal = refusal
        raise refusal

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed or too large request."""
        self._refuse(self._refusal)

    def _take_response(self) -> bool:
        """Whether this request's response has not started; then the route may no longer send it."""
        free = self._within_message and not self.pipeline and not self.cycle.response_started
        self.cycle.disconnected |= free
        return free

    def _refuse(self, error: QueryCloakError) -> None:
        self._stop_timer()
        if (
            not self._responding() or self._take_response()
        ):  # else its bytes would be part of another response
            response = errors.to_response(error)
            head = [STATUS_LINE[response.status_code]]
            head += [name + b": " + value + b"\r\n" for name, value in response.raw_headers]
            self.transport.write(b"".join([*head, b"connection: close\r\n\r\n", bytes(response.body)]))
        self.transport.close()


def _too_much() -> HeadTooLarge:
    return HeadTooLarge(f"there are more than {HEADERS} headers, or they have more than {HEAD_BYTES:,} bytes")


def with_limits(limits: ConnectionLimits) -> type[LimitedConnection]:
    """Return the class of connections with these limits."""
    return type("LimitedConnection", (LimitedConnection,), {"limits": limits})
