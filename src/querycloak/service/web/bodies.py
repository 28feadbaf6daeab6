"""Request bodies within limits of size, time and rate: gzip, content types, small JSON objects."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from math import ceil
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from querycloak.errors import Busy, DataError, Malformed, TooLarge, TooSlow, UnsupportedMediaType
from querycloak.rate_limit import TokenBucket

#: The largest body that names a user or a label.
SMALL: Final = 64 << 10
#: Larger bodies are parsed in another thread, so that the event loop is not blocked.
LARGE: Final = 16 << 10
#: Bytes of bodies of records in memory at one time, over all connections.
TOTAL_BYTES: Final = 256 << 20
_GZIP: Final = 16 + zlib.MAX_WBITS
#: Gzip members of one body; each costs time even if it is empty.
_MEMBERS: Final = 1000
_LINE_TYPES: Final = ("application/x-ndjson", "application/ndjson", "application/jsonl", "text/plain", "")
Model = TypeVar("Model", bound=BaseModel)
T = TypeVar("T")


class BodyBudget:
    """Bytes that all bodies in progress may take together; a request that finds none left gets 429."""

    def __init__(self, total: int = TOTAL_BYTES) -> None:
        self._total, self.taken = total, 0

    def take(self, size: int, largest: int) -> None:
        """Take bytes for a part of a body; one body of the largest size always fits."""
        if self.taken + size > max(self._total, largest):
            raise Busy("the bodies in progress are too large together", hint="try again in a second")
        self.taken += size

    @asynccontextmanager
    async def body(self, request: Request, most: int, seconds: float) -> AsyncIterator[bytes]:
        """Read a body; its bytes are returned to the budget when its request is answered."""
        taken = 0

        def take(size: int) -> None:
            nonlocal taken
            self.take(size, most)
            taken += size

        try:
            yield await read_body(request, most, seconds, take)
        finally:
            self.taken -= taken


class RateLimiter:
    """One token bucket per token holder; the rate is in records per second, 0 for no limit."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._buckets: dict[str, TokenBucket] = {}

    def set_rate(self, rate: float) -> None:
        """Change the rate; all buckets start full."""
        if rate != self._rate:
            self._rate, self._buckets = rate, {}

    def take(self, name: str, records: int) -> None:
        """Take records out of a holder's bucket. Raise Busy with the time to wait if it has too few."""
        if not self._rate:
            return
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = TokenBucket(self._rate, burst=self._rate)
        wait = bucket.take(self._clock(), records)
        if wait:
            raise Busy("this token sends more records than its rate allows", retry_after=ceil(wait))


async def off_loop(body: bytes, work: Callable[[], T]) -> T:
    """Run work on a small body at once, and on a large one in another thread."""
    return await asyncio.to_thread(work) if len(body) > LARGE else work()


async def read_body(
    request: Request, most: int, seconds: float, take: Callable[[int], None] = lambda size: None
) -> bytes:
    """Read a body; stop as soon as it is too large or too slow, or `take` refuses a part."""
    stated = request.headers.get("content-length", "")
    if stated.isdecimal() and int(stated) > most:
        raise _too_large(most)
    try:
        async with asyncio.timeout(seconds):
            return await _whole(request.stream(), request.headers.get("content-encoding", ""), most, take)
    except TimeoutError:
        raise TooSlow("the body took too long to arrive", hint="send several smaller ones") from None
    except ClientDisconnect:  # nobody receives this response
        raise Malformed("the connection ended before the body did") from None


async def _whole(
    chunks: AsyncIterator[bytes], encoding: str, most: int, take: Callable[[int], None]
) -> bytes:
    if encoding not in ("", "identity", "gzip"):
        raise UnsupportedMediaType("this content encoding is not supported", hint="send gzip, or none")
    reader = GzipReader(most) if encoding == "gzip" else None
    parts: list[bytes] = []
    size = received = 0
    async for chunk in chunks:
        received += len(chunk)
        part = chunk if reader is None else reader.feed(chunk)
        size += len(part)
        if max(size, received) > most:
            raise _too_large(most)
        take(len(part))
        parts.append(part)
    if reader is not None:
        reader.end()
    return b"".join(parts)


def is_lines(request: Request) -> bool:
    """Whether the body is JSON lines by its content type; without one, it is."""
    kind = request.headers.get("content-type", "application/x-ndjson").partition(";")[0].strip().lower()
    if kind in _LINE_TYPES:
        return True
    if kind == "application/json":
        return False
    raise UnsupportedMediaType(
        "this content type is not supported", hint="send application/x-ndjson or application/json"
    )


async def read_json(request: Request, model: type[Model], seconds: float) -> Model:
    """Read a small JSON object of a declared shape; an error does not repeat the body."""
    body = await read_body(request, SMALL, seconds)
    try:
        return model.model_validate_json(body)
    except ValidationError:
        fields = ", ".join(f"`{name}`" for name in model.model_fields)
        raise DataError(f"the body is not a JSON object with {fields} and nothing else") from None


def _too_large(most: int) -> TooLarge:
    return TooLarge(f"the body has more than {most:,} bytes", hint="send several smaller ones")


class GzipReader:
    """Decompresses one body of any number of gzip members, and never holds more than the limit."""

    def __init__(self, most: int) -> None:
        self._most, self._size, self._members = most, 0, 0
        self._member = zlib.decompressobj(_GZIP)
        self._begun = False

    def feed(self, chunk: bytes) -> bytes:
        """Return the decompressed chunk. Raise TooLarge before a bomb is expanded."""
        parts = []
        while chunk:
            if self._member.eof:
                self._members += 1
                if self._members >= _MEMBERS:
                    raise TooLarge("the body has too many gzip members", hint="compress it as one")
                self._member = zlib.decompressobj(_GZIP)
            self._begun = True
            try:
                parts.append(self._member.decompress(chunk, self._most - self._size + 1))
            except zlib.error:
                raise DataError("the body is not gzip, but its content encoding is") from None
            self._size += len(parts[-1])
            if self._size > self._most or self._member.unconsumed_tail:
                raise _too_large(self._most)
            chunk = self._member.unused_data
        return b"".join(parts)

    def end(self) -> None:
        """Raise DataError if the body is incomplete; a part of it would be taken for the whole."""
        if self._begun and not self._member.eof:
            raise DataError("the compressed body ends too early")
