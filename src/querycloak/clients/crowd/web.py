"""The little of HTTP/1.1 that the crowd serves: GET, one request a connection, strict limits."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, urlsplit

#: The longest head of a request, in bytes, and how long it may take to come, in seconds.
HEAD_LIMIT: Final = 16 * 1024
HEAD_WITHIN: Final = 10.0
#: For every answer: it is not kept, not guessed at, and says nothing to the next site.
_ALWAYS: Final = (
    "Connection: close",
    "Cache-Control: no-store",
    "X-Content-Type-Options: nosniff",
    "Referrer-Policy: no-referrer",
    # an answer comes from others: nothing in it may run, load anything, or talk to this server
    "Content-Security-Policy: sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:",
    "Cross-Origin-Resource-Policy: same-origin",
)


@dataclass(frozen=True)
class Request:
    """What a client asks for: a path, its parameters, and headers by their names in lower case."""

    path: str
    parameters: dict[str, list[str]]
    headers: dict[str, str]

    def one(self, name: str) -> str:
        """Give a parameter that is there exactly once; else nothing."""
        values = self.parameters.get(name, [])
        return values[0] if len(values) == 1 else ""


@dataclass(frozen=True)
class Response:
    """What a client gets."""

    status: HTTPStatus
    type: str
    body: bytes

    def head_and_body(self) -> bytes:
        """Write it as it goes over the line."""
        kind = self.type if self.type.startswith("application/json") else f"{self.type}; charset=utf-8"
        first = f"HTTP/1.1 {self.status.value} {self.status.phrase}"
        lines = (first, f"Content-Type: {kind}", f"Content-Length: {len(self.body)}", *_ALWAYS)
        return "\r\n".join([*lines, "", ""]).encode("ascii") + self.body


Handler = Callable[[Request], Awaitable[Response]]


class BadRequest(Exception):
    """A request that is refused before anybody looks at what it wants."""

    def __init__(self, status: HTTPStatus) -> None:
        self.status = status
        super().__init__(status.phrase)


def plain(status: HTTPStatus, text: str = "") -> Response:
    """Make a short answer in words."""
    return Response(status, "text/plain", f"{text or status.phrase}\n".encode())


def parse(head: bytes) -> Request:
    """Read the head of a request."""
    try:
        first, *lines = head.decode("ascii").split("\r\n")
        method, target, version = first.split(" ")
        headers = [line.partition(":") for line in lines if line]
        parts = urlsplit(target)
        parameters = parse_qs(parts.query, errors="strict", max_num_fields=16) if parts.query else {}
    except ValueError:
        raise BadRequest(HTTPStatus.BAD_REQUEST) from None
    if method != "GET":
        raise BadRequest(HTTPStatus.METHOD_NOT_ALLOWED)
    names = [name.lower() for name, _, _ in headers]
    if not version.startswith("HTTP/1.") or not target.startswith("/") or names.count("host") != 1:
        raise BadRequest(HTTPStatus.BAD_REQUEST)
    return Request(parts.path, parameters, {name.lower(): value.strip() for name, _, value in headers})


async def _answer(reader: asyncio.StreamReader, handler: Handler) -> Response:
    try:
        async with asyncio.timeout(HEAD_WITHIN):
            head = await reader.readuntil(b"\r\n\r\n")
        return await handler(parse(head))
    except BadRequest as bad:
        return plain(bad.status)
    except asyncio.LimitOverrunError:
        return plain(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
    except TimeoutError:
        return plain(HTTPStatus.REQUEST_TIMEOUT)
    except (OSError, asyncio.IncompleteReadError):
        raise  # the client is gone
    except Exception:  # whoever waits is told; what went wrong may hold data, and is not
        return plain(HTTPStatus.INTERNAL_SERVER_ERROR)


async def serve(handler: Handler, host: str, port: int, most: int = 256) -> asyncio.Server:
    """Answer requests, at most so many at a time; more are told to come back later."""
    busy = 0

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal busy
        busy += 1
        try:
            if busy > most:
                response = plain(HTTPStatus.SERVICE_UNAVAILABLE)
            else:
                response = await _answer(reader, handler)
            writer.write(response.head_and_body())
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client is gone, and nobody is left to tell
        finally:
            busy -= 1
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    return await asyncio.start_server(meet, host, port, limit=HEAD_LIMIT)


def port_of(server: asyncio.Server) -> int:
    """Say on which port a server listens."""
    return int(server.sockets[0].getsockname()[1])
