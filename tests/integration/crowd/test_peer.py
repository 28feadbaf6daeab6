"""A real peer from outside: its endpoint, what it keeps over a restart, and what it never writes down."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import ssl
import stat
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import pytest
from click.testing import CliRunner
from starlette.responses import PlainTextResponse

from querycloak.cli import main
from querycloak.clients.crowd import messages
from querycloak.clients.crowd.demo_engine import page
from querycloak.clients.crowd.messages import Accepted, Hello, Query
from querycloak.clients.crowd.tls import context, read_certificate
from tests.support.crowd import LocalCrowd, friendships

pytestmark = pytest.mark.sign

TRIANGLE = [(0, 1), (0, 2), (1, 2)]
PROTOCOL = {"accept_within": 5.0, "answer_within": 10.0, "engine_within": 5.0}
SECRET = "planted zwieback cure"


@pytest.fixture(scope="module")
def crowd(loop, tmp_path_factory):
    made = LocalCrowd(tmp_path_factory.mktemp("crowd"), TRIANGLE, PROTOCOL)
    loop.run_until_complete(made.__aenter__())
    yield made
    loop.run_until_complete(made.__aexit__(None, None, None))


def get(loop, crowd, member, target, **how):
    return loop.run_until_complete(crowd.get(member, target, **how))


def raw(loop, crowd, member, request: bytes) -> bytes:
    async def ask():
        reader, writer = await asyncio.open_connection("127.0.0.1", crowd.http_port(member))
        writer.write(request)
        answer = await reader.read(-1)
        writer.close()
        return answer

    return loop.run_until_complete(ask())


def test_a_search_gives_the_engines_answer(loop, crowd):
    for member in range(3):
        text = f"café & 100% {member}"
        assert loop.run_until_complete(crowd.search(member, text)) == (200, page(text))


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/", 404),
        ("/search", 400),
        ("/search?q=", 400),
        ("/search?q=a&q=b", 400),
        ("/search?q=a%00b", 400),
        ("/search?q=%ff", 400),
        ("/search?q=" + "x" * 3000, 400),
        ("/search?q=" + "x" * 30_000, 400),
    ],
)
def test_what_is_not_a_search_is_refused(loop, crowd, target, status):
    assert get(loop, crowd, 0, target)[0] == status


def test_only_this_machine_by_its_own_name_may_ask(loop, crowd):
    port = crowd.http_port(0)
    assert get(loop, crowd, 0, "/health", host=f"localhost:{port}")[0] == 200
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}"):
        assert get(loop, crowd, 0, "/health", host=host)[0] == 421


def test_web_pages_cannot_search(loop, crowd):
    head = f"GET /search?q=forced HTTP/1.1\r\nHost: 127.0.0.1:{crowd.http_port(0)}\r\n"
    for site, status in (("cross-site", b"403"), ("same-site", b"403"), ("none", b"200")):
        answer = raw(loop, crowd, 0, f"{head}Sec-Fetch-Site: {site}\r\n\r\n".encode())
        assert answer.split(b" ")[1] == status
    head = answer.partition(b"\r\n\r\n")[0].decode()
    assert "content-security-policy: sandbox; default-src 'none'" in head.lower()
    assert "no-store" in head
    assert "access-control" not in head.lower()


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("Origin: https://evil.example", b"403"),
        ("Origin: null", b"403"),
        ("Origin: http://127.0.0.1:1", b"403"),
        ("Origin: http://OWN", b"200"),
        ("Referer: https://evil.example/x", b"403"),
        ("Referer: http://OWN.evil.example/", b"403"),
        ("Referer: http://OWN@evil.example/", b"403"),
        ("Referer: http://OWN/search?q=before", b"200"),
        ("Sec-Fetch-Dest: iframe", b"403"),
        ("Sec-Fetch-Dest: image", b"403"),
        ("Sec-Fetch-Dest: document", b"200"),
        ("Sec-Purpose: prefetch;prerender", b"403"),
        ("Purpose: prefetch", b"403"),
        ("X-Moz: prefetch", b"403"),
    ],
)
def test_requests_that_the_user_did_not_start_are_refused(loop, crowd, header, status):
    before, own = len(crowd.submitted), f"127.0.0.1:{crowd.http_port(0)}"
    head = f"GET /search?q=forced HTTP/1.1\r\nHost: {own}\r\n{header.replace('OWN', own)}\r\n\r\n"
    assert raw(loop, crowd, 0, head.encode()).split(b" ")[1] == status
    assert (len(crowd.submitted) > before) == (status == b"200")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST /search?q=a HTTP/1.1\r\nHost: OWN\r\n\r\n", b"405"),
        (b"POST /search?q=a HTTP/1.1\r\nHost: x\r\n\r\n", b"421"),
        (b"GET /health HTTP/1.1\r\n\r\n", b"400"),
        (b"GET http://x/health HTTP/1.1\r\nHost: x\r\n\r\n", b"421"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
    ],
)
def test_bad_requests_are_refused(loop, crowd, request_, status):
    request_ = request_.replace(b"OWN", f"127.0.0.1:{crowd.http_port(0)}".encode())
    assert raw(loop, crowd, 0, request_).split(b" ")[1] == status


def test_a_peer_loads_nothing_heavy(crowd):
    maps = Path(f"/proc/{crowd.process(1)}/maps").read_text()
    assert not [name for name in ("numba", "llvmlite", "polars", "numpy", "cryptography") if name in maps]


def test_trust_and_counts_go_on_after_a_restart(loop, crowd):
    async def story():
        for number in range(40):
            assert (await crowd.search(0, f"query {number % 7}"))[0] == 200
        counts = Counter((await crowd.health(0))["counts"])
        file = crowd.folder / "0" / "state" / "member.json"
        assert crowd.stop(0) == 0
        kept = json.loads(file.read_text())
        kept["friends"] = {f: part | {"trust": 0.42, "friends": 2} for f, part in kept["friends"].items()}
        file.write_text(json.dumps(kept))
        for _ in range(2):
            crowd.start(0)
            await crowd.ready(0)
            assert Counter((await crowd.health(0))["counts"]) == counts
            assert crowd.stop(0) == 0
            assert json.loads(file.read_text()) == kept
        crowd.start(0)
        await crowd.ready(0)
        await crowd.wait_connected()
        assert (await crowd.search(0, "after the restart"))[0] == 200

    loop.run_until_complete(story())


def test_two_peers_cannot_share_a_state_folder(crowd):
    config = str(crowd.folder / "1" / "crowd.toml")
    done = CliRunner().invoke(main, ["crowd", "peer", config])
    assert done.exit_code == 2
    assert "another peer uses this state folder" in done.stderr


def spellings(text: str) -> list[bytes]:
    return [form.encode() for form in (text, quote(text), text.replace(" ", "+"), text.split(" ")[1])]


def test_no_query_and_no_name_is_written_down(loop, crowd):
    async def story():
        for number in range(30):
            assert (await crowd.search(number % 3, f"{SECRET} {number}"))[0] == 200
        await asyncio.sleep(2.5)  # until the state is written
        for member in range(3):
            assert crowd.stop(member) == 0

    loop.run_until_complete(story())
    written = [path for path in crowd.folder.rglob("*") if path.is_file() and path.name != "crowd.toml"]
    assert {path.name for path in written} >= {"0.log", "member.json", "key.pem"}
    for path in written:
        content = path.read_bytes()
        assert not [form for form in spellings(SECRET) if form in content], path.name
        assert b"friend-" not in content, path.name
        if path.parent.name == "state" or path.name == "key.pem":
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name
    for member in range(3):
        lines = [json.loads(line) for line in crowd.log(member).splitlines()]
        assert lines[-1]["event"] == "stopped"
        assert {name: value for name, value in lines[1].items() if name not in ("at", "about")} == {
            "level": "warning",
            "event": "warning",
            "few_friends": 2,
        }


def test_a_search_that_nobody_can_answer_is_told_as_failed(tmp_path):
    async def story():
        async with LocalCrowd(tmp_path, [(0, 1)], PROTOCOL) as crowd:
            await crowd.close_engine()
            for number in range(5):
                status, body = await crowd.search(0, f"{SECRET} {number}")
                assert status == 502
                assert b"failed" in body
                assert SECRET.encode() not in body
            counts = (await crowd.health(0))["counts"]
            assert counts["searches_failed"] == counts["searches_started"] == 5
            os.kill(crowd.process(0), signal.SIGINT)
            assert await asyncio.to_thread(crowd._processes[0].wait, 20) == 0

    asyncio.run(story())


def test_a_search_ends_when_the_peer_stops(tmp_path):
    """A search that waits for an answer when the peer stops gets one, or the status of a failure."""

    async def story():
        async with LocalCrowd(tmp_path, TRIANGLE, PROTOCOL) as crowd:
            searches = [asyncio.create_task(crowd.search(0, f"query {n}")) for n in range(100)]
            async with asyncio.timeout(20):
                while len(crowd.submitted) < 5:
                    await asyncio.sleep(0.005)
            os.kill(crowd.process(0), signal.SIGTERM)
            ended = await asyncio.gather(*searches, return_exceptions=True)
            assert await asyncio.to_thread(crowd._processes[0].wait, 20) == 0
        # answered, failed, or not accepted any more; nothing else
        for found in ended:
            assert isinstance(found, ConnectionError) or found[0] in (200, 502)
        assert any(not isinstance(found, Exception) for found in ended)

    asyncio.run(story())


async def take_and_wait(crowd, member):
    """Play a friend of member 0 who takes all queries and answers none, until member 0 hangs up."""
    whose = read_certificate(crowd.folder / "0" / "certificate.pem", "0")
    files = (crowd.folder / str(member) / name for name in ("certificate.pem", "key.pem"))
    secured = context(ssl.PROTOCOL_TLS_CLIENT, *files, [whose])
    reader, writer = await asyncio.open_connection("127.0.0.1", crowd.ports[0], ssl=secured, limit=1 << 20)
    writer.write(messages.encode(Hello(1, 5)))

    async def play():
        try:
            while line := await reader.readline():
                message = messages.decode(line)
                if isinstance(message, Query):
                    writer.write(messages.encode(Accepted(message.hop)))
        finally:
            writer.transport.abort()

    return asyncio.create_task(play())


def test_a_peer_that_stops_submits_nothing(tmp_path):
    """Queries that friends hold when a peer stops must not be submitted because they disconnect."""
    patient = PROTOCOL | {"answer_within": 60.0, "least_cut": 0.0, "most_cut": 0.0}

    async def story():
        async with LocalCrowd(
            tmp_path, [(0, 1), (0, 2), (0, 3)], patient, simulated_by_test=(1, 2, 3)
        ) as crowd:
            friends = [await take_and_wait(crowd, member) for member in (1, 2, 3)]
            await crowd.wait_connected()
            searches = [asyncio.create_task(crowd.search(0, f"{SECRET} {n}")) for n in range(20)]
            async with asyncio.timeout(20):
                while (await crowd.health(0))["under_way"] + len(crowd.submitted) < 20:
                    await asyncio.sleep(0.05)
            await asyncio.sleep(0.5)
            waiting, before = (await crowd.health(0))["under_way"], len(crowd.submitted)
            assert waiting > 5
            assert await asyncio.to_thread(crowd.stop, 0) == 0
            told = Counter(status for status, _ in await asyncio.gather(*searches))
            await asyncio.sleep(0.5)
            assert len(crowd.submitted) == before
            assert (told[200], told[502], told.total()) == (before, waiting, before + waiting)
            last = json.loads(crowd.log(0).splitlines()[-1])
            assert last["counts"].get("queries_submitted", 0) == before
            stored = json.loads((crowd.folder / "0" / "state" / "member.json").read_text())
            assert stored["counts"].get("queries_submitted", 0) == before
            await asyncio.gather(*friends, return_exceptions=True)  # she has hung up

    asyncio.run(story())


def test_a_query_that_the_engine_rejects_reaches_it_once(tmp_path):
    class Picky(LocalCrowd):
        async def _answer(self, request):
            await super()._answer(request)
            return PlainTextResponse("no", 403)

    async def story():
        async with Picky(tmp_path, friendships(6, 3), PROTOCOL) as crowd:
            await crowd.wait_connected()
            texts = [f"{SECRET} {n}" for n in range(30)]
            for number, text in enumerate(texts):
                status, body = await crowd.search(number % 6, text)
                assert status == 502
                assert b"the engine rejected it" in body
            assert Counter(text for _, text in crowd.submitted) == dict.fromkeys(texts, 1)

    asyncio.run(story())
