"""The engine is asked once, within limits of time and size; whatever it does, a search ends."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest
from click.testing import CliRunner

from querycloak.cli import main
from querycloak.clients.crowd import search_server
from querycloak.clients.crowd.doings import Answer, Rejected
from querycloak.clients.crowd.engine import Engine
from querycloak.clients.crowd.link import Patience
from querycloak.clients.crowd.web import port_of, serve


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
        template = f"http://127.0.0.1:{port_of(server)}/find?q={{query}}&n=1"
        found = await Engine(template, within, limit, "tester").submit(text)
        server.close()
        if reply is None:
            await asyncio.sleep(1.1)
        return found

    return asyncio.run(story()), heard


def http(body: bytes, *headers: str, status="200 OK"):
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode() + body


def test_the_query_is_quoted_and_nothing_else_is_told():
    found, [heard] = ask(http(b"hi", "Content-Type: text/html; charset=utf-8", "Content-Length: 2"))
    assert found == Answer("text/html", b"hi")
    lines = heard.decode().split("\r\n")
    assert lines[0] == "GET /find?q=jazz%20%26%20oboe&n=1 HTTP/1.1"
    names = {line.partition(":")[0] for line in lines[1:] if line}
    assert names == {"Host", "User-Agent", "Accept", "Accept-Encoding", "Connection"}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (http(b"until the end"), Answer("text/plain", b"until the end")),
        (
            http(b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", "Transfer-Encoding: chunked"),
            Answer("text/plain", b"abcde"),
        ),
        (
            http(b"{}", "Content-Type: application/json", "Content-Length: 2"),
            Answer("application/json", b"{}"),
        ),
        (http(b"x", "Content-Type: image/png", "Content-Length: 1"), Answer("text/plain", b"x")),
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
        (http(b"ffffff\r\n", "Transfer-Encoding: chunked"), Rejected()),
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


def test_an_engine_that_is_slow_or_not_there_is_no_answer():
    assert ask(None, within=0.2)[0] is None
    assert asyncio.run(Engine("http://127.0.0.1:1/?q={query}", 2.0, 1000, "tester").submit("oboe")) is None
    assert asyncio.run(Engine("https://127.0.0.1:1/?q={query}", 2.0, 1000, "tester").submit("oboe")) is None


def test_the_search_server_answers_alike_for_the_same_query():
    async def story():
        server = await serve(search_server.answer, "127.0.0.1", 0)
        found = []
        for end in ("search?q={query}", "search?q={query}&format=json", "other?q={query}"):
            engine = Engine(f"http://127.0.0.1:{port_of(server)}/{end}", 5.0, 10_000, "tester")
            found.append([await engine.submit("a <b> & c") for _ in range(2)])
        server.close()
        return found

    page, as_json, other = asyncio.run(story())
    assert page[0] == page[1] == Answer("text/html", search_server.page("a <b> & c"))
    assert b"a &lt;b&gt; &amp; c" in page[0].body
    assert json.loads(as_json[0].body) == {
        "query": "a <b> & c",
        "results": search_server.results("a <b> & c"),
    }
    assert other == [Rejected(), Rejected()]


@pytest.mark.parametrize("wrong", [ZeroDivisionError, KeyError, RecursionError])
def test_whoever_asks_is_told_if_a_server_goes_wrong(wrong):
    async def story():
        async def handler(request):
            raise wrong("planted")

        server = await serve(handler, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        said = await reader.read(-1)
        writer.close()
        server.close()
        return said

    said = asyncio.run(story())
    assert said.startswith(b"HTTP/1.1 500 ")
    assert b"planted" not in said


def test_a_search_server_on_a_port_that_is_taken_is_told():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = CliRunner().invoke(main, ["crowd", "search-server", "--port", str(taken.getsockname()[1])])
    assert done.exit_code == 2
    assert "cannot listen there" in done.stderr


def test_waits_grow_are_bounded_and_begin_anew():
    patience = Patience(1.0, 60.0, lambda: 1.0)
    waits = []
    for _ in range(10):
        patience.failed(100.0)
        waits.append(patience.until - 100.0)
    assert waits[:4] == [1.0, 2.0, 4.0, 8.0]
    assert waits[-1] == 60.0
    patience.worked(100.0)
    patience.failed(100.0)
    assert patience.until == 101.0
