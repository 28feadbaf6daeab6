"""Where anybody may knock: lets in who proves to be a friend, and keeps few strangers waiting."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from typing import Any, Final, cast

#: Handshakes that may be under way; one more, and the oldest ends. A friend needs less time than a stranger
#: who only keeps a place taken, and what is left of the system's open files is for friends.
MOST_STRANGERS: Final = 64

Met = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]
Begin = Callable[[Coroutine[Any, Any, None]], None]


class Entrance:
    """Accepts connections, and hands on those whose handshake succeeds in time."""

    def __init__(self, secured: ssl.SSLContext, within: float, limit: int, met: Met, begin: Begin) -> None:
        self._secured, self._within, self._limit = secured, within, limit
        self._met, self._begin = met, begin
        self._strangers: dict[asyncio.Transport, None] = {}

    async def open(self, host: str, port: int) -> asyncio.Server:
        """Listen for friends."""
        return await asyncio.get_running_loop().create_server(lambda: _Knock(self._knocked), host, port)

    def _knocked(self, transport: asyncio.Transport) -> None:
        if len(self._strangers) >= MOST_STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.abort()
        self._strangers[transport] = None
        self._begin(self._shake_hands(transport))

    async def _shake_hands(self, transport: asyncio.Transport) -> None:
        loop = asyncio.get_running_loop()
        protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader(self._limit), self._met)
        try:
            secured = await loop.start_tls(
                transport, protocol, self._secured, server_side=True, ssl_handshake_timeout=self._within
            )
        except OSError:  # no friend, or too slow
            transport.abort()
            return
        finally:
            self._strangers.pop(transport, None)
        if secured is not None:
            protocol.connection_made(secured)


class _Knock(asyncio.Protocol):
    """A connection of which nothing is read before the handshake begins."""

    def __init__(self, knocked: Callable[[asyncio.Transport], None]) -> None:
        self._knocked = knocked

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake."""
        made = cast(asyncio.Transport, transport)
        made.pause_reading()
        self._knocked(made)
