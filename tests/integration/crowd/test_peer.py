"""A real peer from outside: its endpoint, what it keeps over a restart, and what it never writes down."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import ssl
import stat
from collections import Counter
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

import pytest
from click.testing import CliRunner

from querycloak.cli import main
from querycloak.clients.crowd import wire
from querycloak.clients.crowd.doings import Accept, Ask
from querycloak.clients.crowd.identity import context, read_certificate
from querycloak.clients.crowd.search_server import page
from querycloak.clients.crowd.web import plain
from tests.support.crowd import LocalCrowd, friendships

pytestmark = pytest.mark.sign

TRIANGLE = [(0, 1), (0, 2), (1, 2)]
MANNERS = {"accept_within": 5.0, "answer_within": 10.0, "engine_within": 5.0}
SECRET = "planted zwieback cure"


@pytest.fixture(scope="module")
def loop():
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture(scope="module")
def crowd(loop, tmp_path_factory):
    made = LocalCrowd(tmp_path_factory.mktemp("crowd"), TRIANGLE, MANNERS)
    loop.run_until_complete(made.__aenter__())
    yield made
    loop.run_until_complete(made.__aexit__(None, None, None))


def get(loop, crowd, member, target, **how):
    return loop.run_until_complete(crowd.get(member, target, **how))


def raw(loop, crowd, member, request: bytes) -> bytes:
    async def ask():
        reader, writer = await asyncio.open_connection("127.0.0.1", crowd.door(member))
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
        ("/search?q=" + "x" * 30_000, 431),
    ],
)
def test_what_is_not_a_search_is_refused(loop, crowd, target, status):
    assert get(loop, crowd, 0, target)[0] == status


def test_only_this_machine_by_its_own_name_may_ask(loop, crowd):
    port = crowd.door(0)
    assert get(loop, crowd, 0, "/health", host=f"localhost:{port}")[0] == 200
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}"):
        assert get(loop, crowd, 0, "/health", host=host)[0] == 421


def test_pages_of_others_cannot_search_in_her_name(loop, crowd):
    head = f"GET /search?q=forced HTTP/1.1\r\nHost: 127.0.0.1:{crowd.door(0)}\r\n"
    for site, status in (("cross-site", b"403"), ("same-site", b"403"), ("none", b"200")):
        answer = raw(loop, crowd, 0, f"{head}Sec-Fetch-Site: {site}\r\n\r\n".encode())
        assert answer.split(b" ")[1] == status
    head = answer.partition(b"\r\n\r\n")[0].decode()
    assert "Content-Security-Policy: sandbox; default-src 'none'" in head
    assert "no-store" in head
    assert "Access-Control" not in head


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
def test_what_she_has_not_asked_for_is_refused(loop, crowd, header, status):
    before, own = len(crowd.submitted), f"127.0.0.1:{crowd.door(0)}"
    head = f"GET /search?q=forced HTTP/1.1\r\nHost: {own}\r\n{header.replace('OWN', own)}\r\n\r\n"
    assert raw(loop, crowd, 0, head.encode()).split(b" ")[1] == status
    assert (len(crowd.submitted) > before) == (status == b"200")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST /search?q=a HTTP/1.1\r\nHost: x\r\n\r\n", b"405"),
        (b"GET /health HTTP/1.1\r\n\r\n", b"400"),
        (b"GET http://x/health HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
    ],
)
def test_bad_requests_are_refused(loop, crowd, request_, status):
    assert raw(loop, crowd, 0, request_).split(b" ")[1] == status


def test_a_peer_loads_nothing_heavy(crowd):
    maps = Path(f"/proc/{crowd.process(1)}/maps").read_text()
    assert not [name for name in ("numba", "llvmlite", "polars", "numpy", "cryptography") if name in maps]


def test_trust_counts_and_exposure_go_on_after_a_restart(loop, crowd):
    async def story():
        for number in range(40):
            assert (await crowd.search(0, f"query {number % 7}"))[0] == 200
        before = json.loads((await crowd.get(0, "/exposure"))[1])
        assert before["searched"] >= 40
        assert before["exposure"] is not None
        counts = Counter((await crowd.health(0))["counts"])
        file = crowd.folder / "0" / "state" / "member.json"
        assert crowd.stop(0) == 0
        kept = json.loads(file.read_text())
        kept["friends"] = {f: part | {"trust": 0.42, "friends": 2} for f, part in kept["friends"].items()}
        file.write_text(json.dumps(kept))
        for _ in range(2):
            crowd.start(0)
            await crowd.ready(0)
            assert json.loads((await crowd.get(0, "/exposure"))[1]) == before
            assert Counter((await crowd.health(0))["counts"]) == counts
            assert crowd.stop(0) == 0
            assert json.loads(file.read_text()) == kept
        crowd.start(0)
        await crowd.ready(0)
        await crowd.whole()
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
    assert {path.name for path in written} >= {"0.log", "member.json", "key", "key.pem"}
    for path in written:
        content = path.read_bytes()
        assert not [form for form in spellings(SECRET) if form in content], path.name
        assert b"friend-" not in content, path.name
        if path.parent.name == "state" or path.name == "key.pem":
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name
    for member in range(3):
        lines = [json.loads(line) for line in crowd.log(member).splitlines()]
        assert lines[-1]["event"] == "stopped"
        assert {name: value for name, value in lines[1].items() if name != "about"} == {
            "event": "warning",
            "few_friends": 2,
        }


def test_a_search_that_nobody_can_answer_is_told_as_failed(tmp_path):
    async def story():
        async with LocalCrowd(tmp_path, [(0, 1)], MANNERS) as crowd:
            crowd.close_engine()
            for number in range(5):
                status, body = await crowd.search(0, f"{SECRET} {number}")
                assert status == 502
                assert b"failed" in body
                assert SECRET.encode() not in body
            counts = (await crowd.health(0))["counts"]
            assert counts["failed"] == counts["searched"] == 5
            os.kill(crowd.process(0), signal.SIGINT)
            assert await asyncio.to_thread(crowd._processes[0].wait, 20) == 0

    asyncio.run(story())


def test_who_searches_while_she_stops_is_told(tmp_path):
    """Whoever waits for an answer when her peer stops gets one, or hears that there is none."""

    async def story():
        async with LocalCrowd(tmp_path, TRIANGLE, MANNERS) as crowd:
            searches = [asyncio.create_task(crowd.search(0, f"query {n}")) for n in range(100)]
            await asyncio.sleep(0.05)
            os.kill(crowd.process(0), signal.SIGTERM)
            ended = await asyncio.gather(*searches, return_exceptions=True)
            assert await asyncio.to_thread(crowd._processes[0].wait, 20) == 0
        # answered, told that it failed, or not let in any more; nothing else
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
    writer.write(wire.hello(5))

    async def play():
        try:
            while line := await reader.readline():
                said = wire.decode(line, 0)
                if isinstance(said, Ask):
                    writer.write(wire.encode(Accept(0, said.hop)))
        finally:
            writer.transport.abort()

    return asyncio.create_task(play())


def test_once_told_to_stop_she_submits_nothing_in_her_own_name(tmp_path):
    """What her friends have when she stops must not go out under her name because they part."""
    patient = MANNERS | {"answer_within": 60.0, "least_cut": 0.0, "most_cut": 0.0}

    async def story():
        async with LocalCrowd(tmp_path, [(0, 1), (0, 2), (0, 3)], patient, played=(1, 2, 3)) as crowd:
            friends = [await take_and_wait(crowd, member) for member in (1, 2, 3)]
            await crowd.whole()
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
            assert last.get("submitted", 0) == before
            kept = json.loads((crowd.folder / "0" / "state" / "member.json").read_text())
            assert sum(kept["exposure"]["submitted"].values()) == before
            await asyncio.gather(*friends, return_exceptions=True)  # she has hung up

    asyncio.run(story())


def test_a_query_that_the_engine_rejects_reaches_it_once(tmp_path):
    class Picky(LocalCrowd):
        async def _answer(self, request):
            self.submitted.append((int(request.one("from")), request.one("q")))
            return plain(HTTPStatus.FORBIDDEN)

    async def story():
        async with Picky(tmp_path, friendships(6, 3), MANNERS) as crowd:
            await crowd.whole()
            texts = [f"{SECRET} {n}" for n in range(30)]
            for number, text in enumerate(texts):
                status, body = await crowd.search(number % 6, text)
                assert status == 502
                assert b"the engine would not answer" in body
            assert Counter(text for _, text in crowd.submitted) == dict.fromkeys(texts, 1)

    asyncio.run(story())
