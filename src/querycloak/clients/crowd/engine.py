"""Submits a query to the search engine: one GET, with limits on time and size, and nothing kept."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Final
from urllib.parse import quote, urlsplit

from querycloak.clients.crowd.doings import Answer, Found, Rejected
from querycloak.clients.crowd.wire import TYPES

#: The longest head of an engine's answer, and the longest line of its chunks.
_HEAD_LIMIT: Final = 64 * 1024


class NoAnswer(Exception):
    """The engine has answered, but not with what can be handed on: it would do so again."""


class Engine:
    """A search engine behind an address with `{query}` in it."""

    def __init__(self, template: str, within: float, limit: int, agent: str) -> None:
        self._before, _, self._after = template.partition("{query}")
        parts = urlsplit(template)
        self._secure = ssl.create_default_context() if parts.scheme == "https" else None
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._secure else 80)
        self._within, self._limit = within, limit
        self._headers = (
            f"Host: {parts.netloc}\r\nUser-Agent: {agent}\r\nAccept: */*\r\n"
            "Accept-Encoding: identity\r\nConnection: close\r\n\r\n"
        )

    async def submit(self, text: str) -> Found:
        """Send one query; nothing comes back if the engine could not be asked, or broke off."""
        try:
            async with asyncio.timeout(self._within):
                return await self._get(text)
        except NoAnswer:
            return Rejected()
        except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return None

    async def _get(self, text: str) -> Answer:
        address = urlsplit(self._before + quote(text, safe="") + self._after)
        target = (address.path or "/") + (f"?{address.query}" if address.query else "")
        reader, writer = await asyncio.open_connection(
            self._host, self._port, ssl=self._secure, limit=_HEAD_LIMIT
        )
        try:
            writer.write(f"GET {target} HTTP/1.1\r\n{self._headers}".encode("ascii"))
            headers = _headers(await reader.readuntil(b"\r\n\r\n"))
            return Answer(_type(headers), await self._body(reader, headers))
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _body(self, reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding", "identity").lower() == "chunked":
            return await self._chunks(reader)
        if "content-length" in headers:
            return await reader.readexactly(self._fitting(int(headers["content-length"])))
        body = bytearray()
        while piece := await reader.read(_HEAD_LIMIT):
            self._fitting(len(body) + len(piece))
            body += piece
        return bytes(body)

    async def _chunks(self, reader: asyncio.StreamReader) -> bytes:
        body = bytearray()
        while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
            self._fitting(len(body) + max(size, 0))
            body += (await reader.readexactly(size + 2))[:-2]
        return bytes(body)

    def _fitting(self, size: int) -> int:
        if size < 0:
            raise ValueError
        if size > self._limit:
            raise NoAnswer
        return size


def _headers(head: bytes) -> dict[str, str]:
    """Read the head of an answer; any other status than a plain success is the engine's no to this query."""
    first, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/"):
        raise ValueError
    if int(rest[:3]) != 200:
        raise NoAnswer
    named = (line.partition(":") for line in lines if line)
    return {name.strip().lower(): value.strip() for name, _, value in named}


def _type(headers: dict[str, str]) -> str:
    """Give the media type, or plain text for one that is not passed on."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind if kind in TYPES else "text/plain"
