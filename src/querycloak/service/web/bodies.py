"""Reads a request's body within limits of size and time, unpacked if it came packed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from querycloak.errors import Busy, DataError, Malformed, TooSlow, UnsupportedMediaType
from querycloak.service.service import Service
from querycloak.service.web.packed import Unpacking, too_large
from querycloak.service.web.tokens import Holder

#: The largest body that names a person or a label.
SMALL: Final = 64 << 10
#: Bodies above this are parsed in another thread, so that others need not wait.
LARGE: Final = 16 << 10
#: Bytes of records that are held for requests under way, over all connections.
ROOM: Final = 256 << 20
Asked = TypeVar("Asked", bound=BaseModel)
T = TypeVar("T")


class Room:
    """What bodies under way may take up together; who finds none left is sent away, nobody waits."""

    def __init__(self, most: int = ROOM) -> None:
        self._most, self._taken = most, 0

    def take(self, size: int, largest: int) -> None:
        """Take room for a part of a body; one body of the largest size always finds room."""
        if self._taken + size > max(self._most, largest):
            raise Busy("the bodies under way are too large together", hint="try again in a second")
        self._taken += size

    def give_back(self, size: int) -> None:
        """Let go of what a body took."""
        self._taken -= size


@asynccontextmanager
async def records_of(request: Request) -> AsyncIterator[bytes]:
    """Read a body of records; it takes up room until its request is answered."""
    service: Service = request.app.state.service
    room: Room = request.app.state.room
    most, taken = service.settings.body_bytes, 0

    def take(size: int) -> None:
        nonlocal taken
        room.take(size, most)
        taken += size

    try:
        yield await read(request, most, service.settings.body_seconds, take)
    finally:
        room.give_back(taken)


async def off_loop(body: bytes, work: Callable[[], T]) -> T:
    """Parse a small body at once and a large one in another thread."""
    return await asyncio.to_thread(work) if len(body) > LARGE else work()


def retry_key(request: Request, holder: Holder, body: bytes) -> bytes:
    """Give what a request's Idempotency-Key is known by: each sender has keys of her own, for each route."""
    service: Service = request.app.state.service
    key = request.headers.get("idempotency-key", "")
    return service.retry_key(f"{request.url.path}\n{holder.name}\n{key}", body) if key else b""


async def read(
    request: Request, most: int, seconds: float, take: Callable[[int], None] = lambda size: None
) -> bytes:
    """Read the whole body; stop as soon as it is too large or too slow, or `take` has no room for a part."""
    stated = request.headers.get("content-length", "")
    if stated.isdecimal() and int(stated) > most:
        raise too_large(most)
    try:
        async with asyncio.timeout(seconds):
            return await _whole(request.stream(), request.headers.get("content-encoding", ""), most, take)
    except TimeoutError:
        raise TooSlow("the body took too long to arrive", hint="send several smaller ones") from None
    except ClientDisconnect:  # nobody hears this answer
        raise Malformed("the connection ended before the body did") from None


async def _whole(
    chunks: AsyncIterator[bytes], encoding: str, most: int, take: Callable[[int], None]
) -> bytes:
    if encoding not in ("", "identity", "gzip"):
        raise UnsupportedMediaType("this content encoding is not read", hint="send gzip, or none")
    unpacking = Unpacking(most) if encoding == "gzip" else None
    parts: list[bytes] = []
    size = came = 0
    async for chunk in chunks:
        came += len(chunk)
        part = chunk if unpacking is None else unpacking.feed(chunk)
        size += len(part)
        if max(size, came) > most:
            raise too_large(most)
        take(len(part))
        parts.append(part)
    if unpacking is not None:
        unpacking.end()
    return b"".join(parts)


def is_lines(request: Request) -> bool:
    """Say whether the body is JSON lines, by its declared type; without one, it is."""
    kind = request.headers.get("content-type", "application/x-ndjson").partition(";")[0].strip().lower()
    if kind in ("application/x-ndjson", "application/ndjson", "application/jsonl", "text/plain", ""):
        return True
    if kind == "application/json":
        return False
    raise UnsupportedMediaType(
        "this content type is not read", hint="send application/x-ndjson or application/json"
    )


async def asked(request: Request, kind: type[Asked], seconds: float) -> Asked:
    """Read a small JSON object of a declared shape; what was sent instead is not repeated."""
    body = await read(request, SMALL, seconds)
    try:
        return kind.model_validate_json(body)
    except ValidationError:
        fields = ", ".join(f"`{name}`" for name in kind.model_fields)
        raise DataError(f"the body is not a JSON object with {fields} and nothing else") from None
