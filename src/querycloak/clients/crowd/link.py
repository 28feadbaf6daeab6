"""One TLS connection with a friend: lines in and out, each within its limit; and when to dial again."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Final

from querycloak.clients.crowd import wire
from querycloak.clients.crowd.doings import Said

#: Bytes that may wait for a friend who does not read; more, and she is taken for gone.
UNREAD_LIMIT: Final = 8 << 20
#: A connection that has lasted so many seconds was a good one.
GOOD_AFTER: Final = 60.0


class Link:
    """A connection with one friend, begun by her or by us."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, dialled: bool, begun: float
    ) -> None:
        self._reader, self._writer = reader, writer
        self.dialled, self.begun = dialled, begun
        _keep_alive(writer)

    def certificate(self) -> bytes:
        """Give the certificate with which the other side has proved who it is."""
        secured: ssl.SSLObject | None = self._writer.get_extra_info("ssl_object")
        return (secured.getpeercert(binary_form=True) if secured else None) or b""

    def send(self, line: bytes) -> None:
        """Send a line; who lets too much wait loses the connection."""
        if self._writer.transport.get_write_buffer_size() > UNREAD_LIMIT:
            self.close()
        elif not self._writer.is_closing():
            self._writer.write(line)

    async def receive(self, friend: int) -> wire.Hello | Said:
        """Wait for a line of this friend; one that is longer than any answer is not read."""
        try:
            line = await self._reader.readuntil(b"\n")
        except asyncio.LimitOverrunError:
            raise wire.Forged("too long") from None
        return wire.decode(line, friend)

    def close(self) -> None:
        """End the connection at once; what was not sent is lost."""
        self._writer.transport.abort()


def _keep_alive(writer: asyncio.StreamWriter) -> None:
    """Let the system notice when the other machine has vanished without a word."""
    bare = writer.get_extra_info("socket")
    if bare is None:
        return
    bare.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):  # not on every system
            bare.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


class Patience:
    """Says how long to wait before the next try, in seconds: twice as long each time, and never the same."""

    def __init__(self, first: float, longest: float, chance: Callable[[], float]) -> None:
        self._first, self._longest, self._chance = first, longest, chance
        self._tries, self.until = 0, 0.0

    def failed(self, now: float) -> None:
        """It has not worked: wait longer than the last time."""
        wait = min(self._longest, self._first * 2.0 ** min(self._tries, 30))
        self.until = now + wait * (0.5 + self._chance() / 2.0)
        self._tries += 1

    def worked(self, now: float) -> None:
        """It has worked: begin again with a short wait."""
        self._tries, self.until = 0, now
