"""TLS connections: a listener that admits friends, lines within limits, and the back-off between attempts."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Coroutine
from typing import Any, Final, cast

from querycloak.clients.crowd.messages import Hello, Message, ProtocolError, decode

#: Handshakes that may be in progress; one more ends the oldest. A friend needs less time than an unknown
#: client that only occupies a place, and the remaining open files of the system are for friends.
MAX_PENDING_HANDSHAKES: Final = 64
#: Bytes that may wait for a friend that does not read; above it the connection ends.
UNREAD_LIMIT: Final = 8 << 20

OnConnection = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]
Start = Callable[[Coroutine[Any, Any, None]], None]


class TlsListener:
    """TLS listener: authenticates friends and limits pending handshakes."""

    def __init__(
        self, secured: ssl.SSLContext, within: float, limit: int, on_connection: OnConnection, start: Start
    ) -> None:
        self._secured, self._within, self._limit = secured, within, limit
        self._on_connection, self._start = on_connection, start
        self._pending: dict[asyncio.Transport, None] = {}

    async def open(self, host: str, port: int) -> asyncio.Server:
        """Listen for friends."""
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: _PendingHandshake(self._connected), host, port)

    def _connected(self, transport: asyncio.Transport) -> None:
        if len(self._pending) >= MAX_PENDING_HANDSHAKES:
            oldest = next(iter(self._pending))
            del self._pending[oldest]
            oldest.abort()
        self._pending[transport] = None
        self._start(self._handshake(transport))

    async def _handshake(self, transport: asyncio.Transport) -> None:
        loop = asyncio.get_running_loop()
        protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader(self._limit), self._on_connection)
        try:
            secured = await loop.start_tls(
                transport, protocol, self._secured, server_side=True, ssl_handshake_timeout=self._within
            )
        except OSError:  # not a friend, or too slow
            transport.abort()
            return
        finally:
            self._pending.pop(transport, None)
        if secured is not None:
            protocol.connection_made(secured)


class _PendingHandshake(asyncio.Protocol):
    """A connection from which nothing is read before the handshake."""

    def __init__(self, connected: Callable[[asyncio.Transport], None]) -> None:
        self._connected = connected

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the handshake."""
        made = cast(asyncio.Transport, transport)
        made.pause_reading()
        self._connected(made)


class Connection:
    """A connection with one friend; `dialled` if this side opened it at the time `begun`."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, dialled: bool, begun: float
    ) -> None:
        self._reader, self._writer = reader, writer
        self.dialled, self.begun = dialled, begun
        _keep_alive(writer)

    def certificate(self) -> bytes:
        """Return the certificate of the other side in binary form."""
        secured: ssl.SSLObject | None = self._writer.get_extra_info("ssl_object")
        return (secured.getpeercert(binary_form=True) if secured else None) or b""

    def send(self, line: bytes) -> None:
        """Send a line; close the connection if too much is unread."""
        if self._writer.transport.get_write_buffer_size() > UNREAD_LIMIT:
            self.close()
        elif not self._writer.is_closing():
            self._writer.write(line)

    async def receive(self) -> Hello | Message:
        """Wait for a message; raise ProtocolError for a line that is longer than any answer."""
        try:
            line = await self._reader.readuntil(b"\n")
        except asyncio.LimitOverrunError:
            raise ProtocolError("longer than a line may be") from None
        return decode(line)

    def close(self) -> None:
        """Close the connection at once; unsent bytes are lost."""
        self._writer.transport.abort()


def _keep_alive(writer: asyncio.StreamWriter) -> None:
    """Make the system detect a machine that disappeared without closing the connection."""
    bare = writer.get_extra_info("socket")
    if bare is None:
        return
    bare.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):  # not on every system
            bare.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


class Backoff:
    """Waiting time before the next attempt, in seconds: doubled after each failure, with jitter."""

    def __init__(self, first: float, longest: float, draw: Callable[[], float]) -> None:
        self._first, self._longest, self._draw = first, longest, draw
        self._failures, self.until = 0, 0.0

    def failed(self, now: float) -> None:
        """Wait longer than after the last failure."""
        wait = min(self._longest, self._first * 2.0 ** min(self._failures, 30))
        self.until = now + wait * (0.5 + self._draw() / 2.0)
        self._failures += 1

    def succeeded(self, now: float) -> None:
        """Start again with a short waiting time."""
        self._failures, self.until = 0, now
