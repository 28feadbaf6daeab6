"""One connection, held to limits: what trickles, swells or never ends is closed, for the sake of others."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from querycloak.errors import HeadTooLarge, Malformed, QueryCloakError, TooSlow, Unavailable
from querycloak.service.web import faults

#: The longest address, and the most that all headers may hold together.
ADDRESS_BYTES: Final = 8 << 10
HEAD_BYTES: Final = 32 << 10
HEADERS: Final = 64
#: Bytes that may come without being part of a body: a head, a trailer, a line that does not end.
_SILENT_BYTES: Final = HEAD_BYTES + ADDRESS_BYTES
#: How long the rest of a request may come after its answer, so that the answer is not lost on the way.
_LINGER: Final = 5.0


@dataclass
class Limits:
    """What a connection is held to; changes apply to what comes after them."""

    head_seconds: float = 10.0
    connections: int = 1000


class Line(HttpToolsProtocol):
    """A connection with a clock: uvicorn bounds the pause between requests, this bounds all the rest."""

    limits = Limits()

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._timer: asyncio.TimerHandle | None = None
        self._refusal: QueryCloakError = Malformed("this is not an HTTP request")
        self._within_message = False
        self._silent = self._head = 0
        self._unsent = math.inf

    # The clock

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock; turn the connection away when there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._refuse(Unavailable("too many connections are open", hint="try again later"))
        else:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_clock()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._set_clock(self.limits.head_seconds)

    def _set_clock(self, seconds: float) -> None:
        self._stop_clock()
        self._timer = self.loop.call_later(seconds, self._time_is_over)

    def _stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _time_is_over(self) -> None:
        """Close, but never on an answer that is being made: a second request may wait behind it."""
        self._timer = None
        if self._answering():
            self._await_head()
        elif self._within_message:  # it has its answer
            self.transport.abort()
        else:
            self._refuse(TooSlow("the request took too long to arrive"))

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection; cut one whose client does not take its answer."""
        unsent = self.transport.get_write_buffer_size()
        if unsent and unsent < self._unsent:  # slow, but it moves
            self._unsent = unsent
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
        elif unsent:
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    # What comes in

    def data_received(self, data: bytes) -> None:
        """Read on, unless more comes than a head can be."""
        if self.transport.is_closing():
            return
        if self._timer is None and not self._within_message:
            self._await_head()
        self._silent += len(data)
        super().data_received(data)
        if self._silent > _SILENT_BYTES and not self.transport.is_closing():
            self._refuse(_too_much())

    def on_message_begin(self) -> None:
        """A request begins."""
        self._head = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Take a piece of the address."""
        super().on_url(url)
        if len(self.url) > ADDRESS_BYTES:
            self._stop_reading(HeadTooLarge(f"the address has more than {ADDRESS_BYTES:,} bytes"))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, or a line behind a body, which counts as one."""
        self._head += len(name) + len(value)
        if self._head > HEAD_BYTES or len(self.headers) >= HEADERS:
            self._stop_reading(_too_much())
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is here in time."""
        self._stop_clock()
        self._within_message, self._silent = True, 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body; how large and how slow it may be is the routes' business."""
        self._silent = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is here as a whole."""
        self._stop_clock()
        self._within_message, self._silent = False, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """An answer was given; what is left of its request may come for a little while."""
        self._unsent = math.inf
        super().on_response_complete()
        if self._within_message and not self.pipeline and not self.transport.is_closing():
            self._set_clock(_LINGER)

    # Refusals

    def _stop_reading(self, refusal: QueryCloakError) -> None:
        """Leave the parser: what is raised in it ends in `send_400_response`."""
        self._refusal = refusal
        raise refusal

    def send_400_response(self, msg: str) -> None:
        """Say what is wrong with a request that is none, or too large a one."""
        self._refuse(self._refusal)

    def _own_answer(self) -> bool:
        """Take the answer out of the routes' hands, if it is the one to what is refused, and not begun."""
        free = self._within_message and not self.pipeline and not self.cycle.response_started
        self.cycle.disconnected |= free
        return free

    def _refuse(self, error: QueryCloakError) -> None:
        self._stop_clock()
        if not self._answering() or self._own_answer():  # else its bytes would get into another answer
            response = faults.told(error)
            head = [STATUS_LINE[response.status_code]]
            head += [name + b": " + value + b"\r\n" for name, value in response.raw_headers]
            self.transport.write(b"".join([*head, b"connection: close\r\n\r\n", bytes(response.body)]))
        self.transport.close()


def _too_much() -> HeadTooLarge:
    return HeadTooLarge(f"there are more than {HEADERS} headers, or they hold more than {HEAD_BYTES:,} bytes")


def limited(limits: Limits) -> type[Line]:
    """Make the class of connections with these limits."""
    return type("Line", (Line,), {"limits": limits})
