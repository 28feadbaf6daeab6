"""`querycloak.client` against real services: what is sent, given, refused, and sent again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from querycloak import errors
from querycloak.client import Client
from querycloak.service.web.auth import add_token
from tests.support import logs
from tests.support.ports import free_ports
from tests.support.service_process import LiveService

FLAGS = ("--seed", "1", "-s", "k=3", "-o", "classify=no")


def made_up(users: int = 30) -> list[dict[str, Any]]:
    frame = logs.made_up(users=users, seed=2).frame.sort("time", maintain_order=True)
    return frame.select("user", "query", "time", "rank", "url").to_dicts()


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    with LiveService(tmp_path_factory.mktemp("client") / "state", *FLAGS) as one:
        yield one


@pytest.fixture
def client(live: LiveService) -> Iterator[Client]:
    with Client(live.address, patience=5) as one:
        yield one


@pytest.fixture
def ask() -> Iterator[Callable[..., Client]]:
    """Make clients that are closed in the end."""
    with ExitStack() as opened:
        yield lambda *arguments, **named: opened.enter_context(Client(*arguments, **named))


def test_records_go_in_and_come_out(live: LiveService, client: Client) -> None:
    records = made_up()
    sent = client.send(records, batch=100)
    assert (sent.accepted, sent.skipped) == (len(records), {})
    counts = live.settled()
    assert client.status() == counts
    found = list(client.released(limit=7))
    assert [one["offset"] for one in found] == list(range(1, counts["released"] + 1))
    assert {one["query"] for one in found} <= {one["query"] for one in records}
    assert next(client.released(after=5))["offset"] == 6
    assert sum(_profile(client, found[0]["user"]).values()) >= 1


def _profile(client: Client, label: str) -> dict[str, int]:
    """Profiles are written a moment after lines."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with suppress(errors.NotFound):
            return client.profile(label)
        time.sleep(0.1)
    raise AssertionError("there is no profile")


def test_bad_records_are_named_by_their_place(client: Client) -> None:
    good = {"user": "u", "query": "q", "time": datetime(2020, 1, 1, tzinfo=UTC)}
    sent = client.send([good, {"user": "u"}, good, {"query": "q"}, good], batch=2)
    assert (sent.accepted, sent.skipped) == (3, {"no query": [1], "no user": [3]})
    assert sent.skipped_total == 2


def test_the_same_key_is_taken_once(live: LiveService, client: Client) -> None:
    records = [{"user": "v", "query": f"{n}"} for n in range(25)]
    before = live.settled()["accepted"]
    assert client.send(records, "night 1", batch=10) == client.send(records, "night 1", batch=10)
    assert live.settled()["accepted"] == before + 25


def test_a_person_is_exported_and_erased(client: Client) -> None:
    client.send([{"user": "w", "query": "a planted thing"}])
    known = client.export("w")
    held = [row["query"] for row in known["held"]]
    assert held + ["a planted thing"] * known["released"] == ["a planted thing"]
    assert client.erase("w") == {"held": len(held), "released": known["released"], "dropped": len(held)}
    assert client.export("w")["held"] == []


def test_waiting_ends_when_nothing_comes(client: Client) -> None:
    last = client.status()["released"]
    start = time.monotonic()
    assert list(client.released(last, wait=0.5)) == []
    assert 0.4 < time.monotonic() - start < 10


def test_a_reader_that_waits_gets_what_comes(live: LiveService, client: Client) -> None:
    last = live.settled()["released"]
    found: list[dict[str, Any]] = []

    def read() -> None:
        with Client(live.address) as reader:
            found.append(next(reader.released(last, wait=None)))

    reading = threading.Thread(target=read)
    reading.start()
    time.sleep(0.2)
    client.send(made_up(60))
    reading.join(60)
    assert found[0]["offset"] == last + 1


def test_refusals_are_the_errors_that_the_service_names(live: LiveService, client: Client) -> None:
    with pytest.raises(errors.NotFound):
        client.profile("nobody")
    client.send([{"user": "x", "query": "1"}], "a key")
    with pytest.raises(errors.Refused, match="another body"):
        client.send([{"user": "x", "query": "2"}], "a key")
    with pytest.raises(errors.DataError):
        client.erase("")
    with pytest.raises(errors.UsageError):
        Client("ftp://127.0.0.1")


def test_roles_hold(tmp_path: Path, ask: Callable[..., Client]) -> None:
    tokens = {role: add_token(tmp_path / "tokens", role, role) for role in ("ingest", "read", "research")}
    with LiveService(
        tmp_path / "state", *FLAGS, "-o", f"tokens={tmp_path / 'tokens'}", "-o", "rate=5"
    ) as live:
        ingest = ask(live.address, tokens["ingest"], patience=0)
        assert ingest.send([{"user": "a", "query": "b"}]).accepted == 1
        with pytest.raises(errors.Forbidden):
            next(ingest.released())
        with pytest.raises(errors.Forbidden):
            ingest.erase("a")
        with pytest.raises(errors.Forbidden):
            ask(live.address, tokens["research"], patience=0).send([{"user": "a", "query": "b"}])
        assert list(ask(live.address, tokens["read"]).released()) == []
        for wrong in (None, "", "qc_wrong", tokens["ingest"][:-1], tokens["ingest"] + "x"):
            with pytest.raises(errors.UnknownToken):
                ask(live.address, wrong, patience=0).status()
        for name in ("token", "access_token", "authorization"):  # an address is logged by others
            assert live.client.get("/v1/status", params={name: tokens["ingest"]}).status_code == 401
        assert live.client.get("/openapi.json").status_code == 200
        _too_fast(live, tokens["ingest"], ask)
        for token in tokens.values():
            assert token not in live.log()
            assert token not in (tmp_path / "tokens").read_text()


def _too_fast(live: LiveService, token: str, ask: Callable[..., Client]) -> None:
    """Five records a second; the client waits as long as it is told to."""
    line = b'{"user": "a", "query": "b"}\n'
    headers = {"authorization": f"Bearer {token}", "content-type": "application/x-ndjson"}
    answers = [live.client.post("/v1/records", content=line * 5, headers=headers) for _ in range(3)]
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["retry-after"]) >= 1
    start = time.monotonic()
    assert ask(live.address, token).send([{"user": "a", "query": "b"}] * 10, batch=5).accepted == 10
    assert time.monotonic() - start > 1


def test_a_service_that_restarts_loses_and_doubles_nothing(
    tmp_path: Path, ask: Callable[..., Client]
) -> None:
    (port,) = free_ports(1)
    records = made_up(40)
    live = LiveService(tmp_path / "state", *FLAGS, "--port", str(port))
    with live:
        sending = threading.Thread(target=lambda: ask(live.address, patience=120).send(records, batch=20))
        sending.start()
        while live.status()["accepted"] < len(records) // 4:
            time.sleep(0.01)
        live.kill()
        live.start()
        sending.join(120)
        assert live.settled()["accepted"] == len(records)


# A service that misbehaves


class _Moody(BaseHTTPRequestHandler):
    """Gives the answers of a list, one after the other."""

    answers: list[tuple[int, dict[str, str], bytes]]
    keys: list[str]
    waits: list[float]

    def do_GET(self) -> None:
        self.waits.append(float(parse_qs(urlsplit(self.path).query)["wait"][0]))
        time.sleep(0.1)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.keys.append(self.headers["idempotency-key"])
        status, headers, body = self.answers.pop(0)
        if not status:  # leave without a word
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def moody() -> Iterator[tuple[type[_Moody], str]]:
    kind = type("Moody", (_Moody,), {"answers": [], "keys": [], "waits": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield kind, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


GOOD = b'{"accepted": 1, "skipped": {}, "skipped_total": 0}'


def test_what_is_lost_or_put_off_is_sent_again_with_the_same_key(moody: tuple[type[_Moody], str]) -> None:
    kind, address = moody
    busy = b'{"error": {"code": "busy", "message": "later"}}'
    kind.answers[:] = [(0, {}, b""), (429, {"Retry-After": "1"}, busy), (503, {}, b"<html>"), (202, {}, GOOD)]
    start = time.monotonic()
    with Client(address) as client:
        assert client.send([{"user": "a", "query": "b"}]).accepted == 1
    assert time.monotonic() - start > 1.2
    assert len(kind.keys) == 4
    assert len(set(kind.keys)) == 1


def test_no_poll_waits_as_long_as_the_time_out(moody: tuple[type[_Moody], str]) -> None:
    kind, address = moody
    with Client(address, timeout=2) as client:
        assert list(client.released(wait=1.5)) == []
    assert 0 < max(kind.waits) <= 1


def test_patience_ends(moody: tuple[type[_Moody], str]) -> None:
    kind, address = moody
    kind.answers[:] = [(429, {"Retry-After": "30"}, b'{"error": {"code": "busy", "message": "later"}}')]
    with Client(address, patience=1) as client, pytest.raises(errors.Busy, match="later"):
        client.send([{"user": "a", "query": "b"}])
    with Client("http://127.0.0.1:9", patience=0.3) as client, pytest.raises(errors.Unavailable):
        client.status()


def test_an_answer_that_is_none_is_an_error(moody: tuple[type[_Moody], str]) -> None:
    kind, address = moody
    kind.answers[:] = [
        (500, {}, b"<html>"),
        (418, {}, b'{"error": {"code": "new", "message": "unheard of"}}'),
    ]
    with Client(address, patience=0) as client:
        with pytest.raises(errors.Unavailable):
            client.erase("a")
        with pytest.raises(errors.QueryCloakError, match="unheard of"):
            client.erase("a")
