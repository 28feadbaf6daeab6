"""The small parts before the routes: bodies, rates, tokens, certificates."""

from __future__ import annotations

import asyncio
import gzip
import hmac
import json
import math
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.service
pytest.importorskip("fastapi")

from starlette.requests import Request  # noqa: E402

from querycloak import json_log  # noqa: E402
from querycloak.errors import Busy, DataError, Malformed, TooLarge, TooSlow, UnsupportedMediaType, UsageError  # noqa: E402
from querycloak.service import logs  # noqa: E402
from querycloak.service.settings import ServiceSettings  # noqa: E402
from querycloak.service.web import bodies, tls, tokens  # noqa: E402
from querycloak.service.web.line import Line  # noqa: E402
from querycloak.service.web.pace import Pace  # noqa: E402
from querycloak.service.web.packed import Unpacking  # noqa: E402


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
    return asyncio.run(bodies.read(one, most, seconds))


# Bodies


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
    unpacking, out = Unpacking(1000), list[bytes]()
    pieces = (bomb[start : start + size] for start in range(0, len(bomb), size))
    with pytest.raises(TooLarge):
        out.extend(unpacking.feed(piece) for piece in pieces)
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


# Connections


class _Clogged:
    """A transport whose other side takes so much of an answer between two looks."""

    def __init__(self, unsent: int, taken: int) -> None:
        self.unsent, self.taken, self.ended = unsent, taken, ""

    def get_write_buffer_size(self) -> int:
        self.unsent = max(0, self.unsent - self.taken)
        return self.unsent

    def is_closing(self) -> bool:
        return bool(self.ended)

    def abort(self) -> None:
        self.ended = "cut"

    def close(self) -> None:
        self.ended = "closed"


class _Clock:
    """A loop that knows one timer, which has always run out."""

    looks = 0

    def call_later(self, seconds: float, again: Any) -> None:
        self.looks += 1
        again()


@pytest.mark.parametrize(
    ("unsent", "taken", "looks", "ended"),
    [(0, 0, 0, "closed"), (1000, 100, 9, "closed"), (1000, 0, 1, "cut")],
    ids=["idle", "slow", "stuck"],
)
def test_an_answer_that_nobody_takes_is_cut(unsent: int, taken: int, looks: int, ended: str) -> None:
    connection = object.__new__(Line)
    connection.transport, connection.loop = _Clogged(unsent, taken), _Clock()  # type: ignore[assignment]
    connection.timeout_keep_alive, connection._unsent = 15, math.inf
    connection.timeout_keep_alive_handler()
    assert (connection.loop.looks, connection.transport.ended) == (looks, ended)  # type: ignore[attr-defined]


# Rates


def test_a_second_worth_may_come_at_once_and_then_the_rate_holds() -> None:
    now = 0.0
    pace = Pace(10, clock=lambda: now)
    pace.take("a", 10)
    with pytest.raises(Busy) as caught:
        pace.take("a", 5)
    assert caught.value.retry_after == 1
    pace.take("b", 10)  # each token has its own
    now = 0.5
    pace.take("a", 5)
    with pytest.raises(Busy):
        pace.take("a", 1)


def test_over_a_long_time_nobody_sends_more_than_the_rate() -> None:
    now, sent = 0.0, 0
    pace = Pace(10, clock=lambda: now)
    while now < 100:
        for size in (3, 25):
            with suppress(Busy):
                pace.take("a", size)
                sent += size
        now += 0.25
    assert 900 <= sent <= 10 * 100 + 10 + 25


def test_without_a_rate_everything_passes() -> None:
    Pace(0).take("a", 10**9)


# Tokens


def test_a_token_is_kept_as_a_hash_and_compared_in_constant_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tokens"
    made = [tokens.add_token(path, name, "read") for name in "abc"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert not any(token in path.read_text() for token in made)
    compared = []
    real = hmac.compare_digest
    monkeypatch.setattr(
        tokens.hmac, "compare_digest", lambda one, other: compared.append(one) or real(one, other)
    )
    known = tokens.Tokens(path)
    holder = known.holder(made[0])
    assert holder is not None
    assert (holder.name, len(compared)) == ("a", 3)  # all of them, wherever it is found
    assert known.holder("wrong") is None


def test_a_token_that_is_gone_from_the_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    token = tokens.add_token(path, "a", "read")
    known = tokens.Tokens(path)
    path.write_text("")
    assert known.holder(token) is not None
    known.reload()
    assert known.holder(token) is None
    assert known.required  # an empty file lets nobody in, not everybody


@pytest.mark.parametrize(
    "line", ["{}", "nonsense", '{"name": "a", "role": "king", "hash": "%s"}' % ("0" * 64)]
)
def test_a_file_of_tokens_that_makes_no_sense_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "tokens"
    path.touch(0o600)
    path.write_text(line)
    with pytest.raises(UsageError, match="line 1"):
        tokens.Tokens(path)
    path.chmod(0o644)
    with pytest.raises(UsageError, match="others can read"):
        tokens.Tokens(path)


# Certificates


def test_tls_needs_both_files_and_good_ones(tmp_path: Path) -> None:
    assert tls.context(ServiceSettings()) is None
    with pytest.raises(UsageError, match="both"):
        tls.context(ServiceSettings(tls_certificate="a"))
    with pytest.raises(UsageError, match="No such file"):
        tls.context(ServiceSettings(tls_certificate=str(tmp_path / "a"), tls_key=str(tmp_path / "b")))
    (tmp_path / "a").write_text("no certificate")
    with pytest.raises(UsageError, match="cannot be used"):
        tls.context(ServiceSettings(tls_certificate=str(tmp_path / "a"), tls_key=str(tmp_path / "a")))


def test_a_log_line_holds_allowed_fields_only() -> None:
    import logging

    record = logging.makeLogRecord({"msg": "started", "position": 3, "user": "planted", "query": "planted"})
    try:
        raise ValueError("planted")
    except ValueError as error:
        record.exc_info = (type(error), error, error.__traceback__)
    line = json.loads(json_log.JsonLines(logs.ALLOWED).format(record))
    assert (line["position"], line["fault"]) == (3, "ValueError")
    assert "planted" not in json.dumps(line)
