"""Request bodies: limits of size, time and rate, gzip, content types."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from starlette.requests import Request

from querycloak.errors import Busy, DataError, Malformed, TooLarge, TooSlow, UnsupportedMediaType
from querycloak.service.web import bodies
from querycloak.service.web.bodies import GzipReader, RateLimiter


def request(*chunks: bytes, pause: float = 0, leave: bool = False, **headers: str) -> Request:
    """A request whose body comes in pieces."""
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]

    async def messages() -> AsyncIterator[dict[str, Any]]:
        for chunk in chunks:
            await asyncio.sleep(pause)
            yield {"type": "http.request", "body": chunk, "more_body": True}
        yield {"type": "http.disconnect"} if leave else {"type": "http.request", "body": b""}

    coming = messages()
    return Request({"type": "http", "headers": named}, lambda: anext(coming))


def read(one: Request, most: int = 1000, seconds: float = 10) -> bytes:
    return asyncio.run(bodies.read_body(one, most, seconds))


def test_a_body_is_read_up_to_the_limit() -> None:
    assert read(request(b"a" * 600, b"b" * 400)) == b"a" * 600 + b"b" * 400
    with pytest.raises(TooLarge):
        read(request(b"a" * 600, b"b" * 401))


def test_a_body_that_says_it_is_too_large_is_not_read() -> None:
    with pytest.raises(TooLarge):
        read(request(pause=60, content_length="1001"))


def test_a_slow_body_and_a_lost_one() -> None:
    with pytest.raises(TooSlow):
        read(request(b"a", pause=60), seconds=0.05)
    with pytest.raises(Malformed):
        read(request(b"a", leave=True))


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_gzip_of_several_members_is_read_as_a_whole(size: int) -> None:
    packed = b"".join(gzip.compress(part) for part in (b"one\n", b"", b"two\n" * 100))
    pieces = [packed[start : start + size] for start in range(0, len(packed), size)]
    assert read(request(*pieces, content_encoding="gzip")) == b"one\n" + b"two\n" * 100


@pytest.mark.parametrize("size", [1, 13, 10_000])
def test_a_bomb_is_stopped_within_the_limit(size: int) -> None:
    bomb = gzip.compress(b"\0" * 10_000_000)
    reader, out = GzipReader(1000), list[bytes]()
    pieces = (bomb[start : start + size] for start in range(0, len(bomb), size))
    with pytest.raises(TooLarge):
        out.extend(reader.feed(piece) for piece in pieces)
    assert len(b"".join(out)) <= 1000


def test_exactly_the_limit_comes_through() -> None:
    assert len(read(request(gzip.compress(b"\0" * 1000), content_encoding="gzip"))) == 1000
    with pytest.raises(TooLarge):
        read(request(gzip.compress(b"\0" * 1001), content_encoding="gzip"))


@pytest.mark.parametrize("cut", [1, 5, 11, -1, -9])
def test_gzip_that_ends_too_early_is_refused(cut: int) -> None:
    with pytest.raises(DataError):
        read(request(gzip.compress(b"a body of some length")[:cut], content_encoding="gzip"))


def test_garbage_behind_gzip_is_refused() -> None:
    with pytest.raises(DataError):
        read(request(gzip.compress(b"a"), b"garbage", content_encoding="gzip"))


def test_members_without_content_end_somewhere() -> None:
    with pytest.raises(TooLarge):
        read(request(gzip.compress(b"") * 1001, content_encoding="gzip"), most=1 << 20)


def test_types_and_encodings() -> None:
    assert bodies.is_lines(request())
    assert bodies.is_lines(request(content_type="Application/X-NDJSON; charset=utf-8"))
    assert not bodies.is_lines(request(content_type="application/json"))
    with pytest.raises(UnsupportedMediaType):
        bodies.is_lines(request(content_type="text/html"))
    with pytest.raises(UnsupportedMediaType):
        read(request(content_encoding="deflate"))


def test_a_second_worth_may_come_at_once_and_then_the_rate_holds() -> None:
    now = 0.0
    limiter = RateLimiter(10, clock=lambda: now)
    limiter.take("a", 10)
    with pytest.raises(Busy) as caught:
        limiter.take("a", 5)
    assert caught.value.retry_after == 1
    limiter.take("b", 10)  # each token has its own
    now = 0.5
    limiter.take("a", 5)
    with pytest.raises(Busy):
        limiter.take("a", 1)


def test_over_a_long_time_nobody_sends_more_than_the_rate() -> None:
    now, sent = 0.0, 0
    limiter = RateLimiter(10, clock=lambda: now)
    while now < 100:
        for size in (3, 25):
            with suppress(Busy):
                limiter.take("a", size)
                sent += size
        now += 0.25
    assert 900 <= sent <= 10 * 100 + 10 + 25


def test_without_a_rate_everything_passes() -> None:
    RateLimiter(0).take("a", 10**9)


def test_a_new_rate_applies_at_once() -> None:
    limiter = RateLimiter(10, clock=lambda: 0.0)
    limiter.take("a", 10)
    limiter.set_rate(20)
    limiter.take("a", 20)
    with pytest.raises(Busy):
        limiter.take("a", 1)
