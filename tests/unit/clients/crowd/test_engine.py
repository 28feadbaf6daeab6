"""The engine is asked once, within limits of time and size; whatever it does, a search ends."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket

import httpx
import pytest
from click.testing import CliRunner
from starlette.applications import Starlette
from starlette.routing import Route

from querycloak.cli import main
from querycloak.clients.crowd import demo_engine
from querycloak.clients.crowd.connection import Backoff
from querycloak.clients.crowd.endpoint import HttpServer, endpoint
from querycloak.clients.crowd.engine import EngineUnavailable, HttpEngine
from querycloak.clients.crowd.messages import Page, Rejected


async def submit(template, text, limit=1000, within=5.0):
    """Submit one query; return None if the engine is unavailable."""
    engine = HttpEngine(template, within, limit, "tester")
    try:
        return await engine.search(text)
    except EngineUnavailable:
        return None
    finally:
        await engine.close()


def ask(reply: bytes | None, text="jazz & oboe", limit=1000, within=5.0):
    """Ask an engine that answers with these bytes, or not at all; give the answer and what it heard."""
    heard = []

    async def story():
        async def meet(reader, writer):
            heard.append(await reader.readuntil(b"\r\n\r\n"))
            if reply is not None:
                writer.write(reply)
                await writer.drain()
                writer.close()
            else:
                await asyncio.sleep(1)
                writer.close()

        server = await asyncio.start_server(meet, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        found = await submit(f"http://127.0.0.1:{port}/find?q={{query}}&n=1", text, limit, within)
        server.close()
        if reply is None:
            await asyncio.sleep(1.1)
        return found

    return asyncio.run(story()), heard


def http(body: bytes, *headers: str, status="200 OK"):
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode() + body


def test_the_query_is_quoted_and_nothing_else_is_told():
    found, [heard] = ask(http(b"hi", "Content-Type: text/html; charset=utf-8", "Content-Length: 2"))
    assert found == Page("text/html", b"hi")
    lines = heard.decode().split("\r\n")
    assert lines[0] == "GET /find?q=jazz%20%26%20oboe&n=1 HTTP/1.1"
    names = {line.partition(":")[0] for line in lines[1:] if line}
    assert names == {"Host", "User-Agent", "Accept", "Accept-Encoding", "Connection"}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (http(b"until the end"), Page("text/plain", b"until the end")),
        (
            http(b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", "Transfer-Encoding: chunked"),
            Page("text/plain", b"abcde"),
        ),
        (
            http(b"{}", "Content-Type: application/json", "Content-Length: 2"),
            Page("application/json", b"{}"),
        ),
        (http(b"x", "Content-Type: image/png", "Content-Length: 1"), Page("text/plain", b"x")),
        (http(b"moved", "Location: http://elsewhere/", status="302 Found"), Rejected()),
        (http(b"no", status="403 Forbidden"), Rejected()),
        (http(b"long", status="414 URI Too Long"), Rejected()),
        (http(b"slow down", status="429 Too Many Requests"), Rejected()),
        (http(b"no", status="500 Oops"), Rejected()),
        (http(b"x" * 1001), Rejected()),
        (http(b"x" * 1001, "Content-Length: 1001"), Rejected()),
        (http(b"", "Content-Length: -1"), None),
        (http(b"", "Content-Length: much"), None),
        (http(b"short", "Content-Length: 10"), None),
        (http(b"ffffff\r\n", "Transfer-Encoding: chunked"), None),
        (http(b"", status="what"), None),
        (http(b"-5\r\n", "Transfer-Encoding: chunked"), None),
        (http(b"zz\r\n", "Transfer-Encoding: chunked"), None),
        (b"nonsense", None),
        (b"\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000, None),
        (b"", None),
    ],
)
def test_answers_are_read_or_refused(reply, expected):
    assert ask(reply)[0] == expected


def test_a_packed_answer_is_limited_by_its_unpacked_size():
    packed = gzip.compress(b"x" * 100_000)
    assert len(packed) < 1000
    headers = ("Content-Encoding: gzip", f"Content-Length: {len(packed)}")
    assert ask(http(packed, *headers))[0] == Rejected()
    assert ask(http(packed, *headers), limit=100_000)[0] == Page("text/plain", b"x" * 100_000)


def test_an_engine_gets_no_cookie_and_no_proxy_is_used(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    heard = []

    async def story():
        async def meet(reader, writer):
            heard.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(http(b"hi", "Set-Cookie: planted=1", "Content-Length: 2"))
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(meet, "127.0.0.1", 0)
        engine = HttpEngine(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/?q={{query}}", 5, 99, "x")
        found = [await engine.search("oboe") for _ in range(2)]
        await engine.close()
        server.close()
        return found

    assert asyncio.run(story()) == [Page("text/plain", b"hi")] * 2
    assert len(heard) == 2
    assert b"planted" not in heard[1]


def test_an_engine_that_is_slow_or_not_there_is_no_answer():
    assert ask(None, within=0.2)[0] is None
    for scheme in ("http", "https"):
        assert asyncio.run(submit(f"{scheme}://127.0.0.1:1/?q={{query}}", "oboe", within=2.0)) is None


def test_the_search_server_answers_alike_for_the_same_query():
    async def story():
        server = HttpServer("127.0.0.1", 0, "a test")
        await server.start(Starlette(routes=[Route("/search", demo_engine.answer)]))
        found = []
        for end in ("search?q={query}", "search?q={query}&format=json", "other?q={query}"):
            address = f"http://127.0.0.1:{server.port}/{end}"
            found.append([await submit(address, "a <b> & c", limit=10_000) for _ in range(2)])
        await server.close()
        return found

    page, as_json, other = asyncio.run(story())
    assert page[0] == page[1] == Page("text/html", demo_engine.page("a <b> & c"))
    assert b"a &lt;b&gt; &amp; c" in page[0].body
    assert json.loads(as_json[0].body) == {
        "query": "a <b> & c",
        "results": demo_engine.results("a <b> & c"),
    }
    assert other == [Rejected(), Rejected()]


@pytest.mark.parametrize("wrong", [ZeroDivisionError, KeyError, RecursionError])
def test_a_failing_application_answers_500_without_the_reason(wrong):
    async def story():
        async def search(text):
            raise wrong("planted")

        server = HttpServer("127.0.0.1", 0, "a test")
        await server.start(endpoint(search, dict, server.port))
        async with httpx.AsyncClient(trust_env=False) as client:
            found = await client.get(f"http://127.0.0.1:{server.port}/search?q=oboe")
        await server.close()
        return found

    found = asyncio.run(story())
    assert found.status_code == 500
    assert "planted" not in found.text
    assert found.headers["cache-control"] == "no-store"


def test_a_search_server_on_a_port_that_is_taken_is_told():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = CliRunner().invoke(main, ["crowd", "search-server", "--port", str(taken.getsockname()[1])])
    assert done.exit_code == 2
    assert "cannot listen there" in done.stderr


def test_waits_grow_are_bounded_and_begin_anew():
    backoff = Backoff(1.0, 60.0, lambda: 1.0)
    waits = []
    for _ in range(10):
        backoff.failed(100.0)
        waits.append(backoff.until - 100.0)
    assert waits[:4] == [1.0, 2.0, 4.0, 8.0]
    assert waits[-1] == 60.0
    backoff.succeeded(100.0)
    backoff.failed(100.0)
    assert backoff.until == 101.0
