"""Raw bytes at a real service: whatever comes is refused in time, nothing is lost, no log repeats it."""

from __future__ import annotations

import gzip
import json
import os
import socket
import time
import zlib
from collections.abc import Iterator

import pytest

from tests.support.service_process import LiveService

#: In everything that is sent; in nothing that is logged.
PLANTED = "zqplantedzq"
LIMIT = 1 << 16
HEAD_SECONDS, BODY_SECONDS, CONNECTIONS = 1.5, 1.5, 30
GOOD = [b'{"user": "somebody", "query": "rain"}\n', b'{"user": "another", "query": "snow"}\n']


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    options = {
        "classify": "no",
        "head_seconds": HEAD_SECONDS,
        "body_seconds": BODY_SECONDS,
        "connections": CONNECTIONS,
        "body_bytes": LIMIT,
    }
    flags = [text for name, value in options.items() for text in ("-o", f"{name}={value}")]
    with LiveService(tmp_path_factory.mktemp("hostile") / "state", *flags) as one:
        assert one.post(GOOD).json()["accepted"] == 2
        yield one
        assert one.stop() == 0
        assert '"event": "stopped"' in one.log()
        assert PLANTED not in one.log()
        assert "unforeseen" not in one.log()


@pytest.fixture(autouse=True)
def unharmed(live: LiveService) -> Iterator[None]:
    """After every attack the service is well, and counts what it counted before."""
    before = live.settled()
    yield
    assert live.client.get("/readyz").status_code == 200
    assert live.settled() == before


def connect(live: LiveService) -> socket.socket:
    host, _, port = live.address.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=30)


def answers(connection: socket.socket) -> bytes:
    """Read until the other side closes."""
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:  # closed while we were still talking
        pass
    return b"".join(parts)


def say(live: LiveService, data: bytes) -> bytes:
    with connect(live) as connection:
        connection.sendall(data)
        return answers(connection)


def cut_off(connection: socket.socket, data: bytes, pause: float = 0) -> float:
    """Send on and on; give the seconds until the other side has closed."""
    start = time.monotonic()
    while (seconds := time.monotonic() - start) < 60:
        try:
            connection.sendall(data)
        except OSError:
            break
        time.sleep(pause)
    return seconds


def request(line: str, *headers: str, body: bytes = b"") -> bytes:
    head = [line, "host: 127.0.0.1", f"x-planted: {PLANTED}", "connection: close", *headers]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


def status(answer: bytes) -> int:
    assert answer.startswith(b"HTTP/1.1 "), answer[:80]
    assert PLANTED.encode() not in answer
    return int(answer[9:12])


def code(answer: bytes) -> str:
    return str(json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"])


# What is not HTTP, or too much of it


@pytest.mark.parametrize(
    "data",
    [
        f"{PLANTED}\r\n\r\n".encode(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + PLANTED.encode() + b"\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\nhost: localhost\r\n\r\n",
        request("GET /v1/status HTTP/1.1", "bad header: x"),
        request("GET /v1/status HTTP/1.1", "x: a\x00b"),
        request("POST /v1/records HTTP/1.1", "content-length: 5", "content-length: 6", body=b"abcdef"),
        request("POST /v1/records HTTP/1.1", "content-length: -5"),
        request("POST /v1/records HTTP/1.1", "content-length: 9" + "9" * 40),
        request(
            "POST /v1/records HTTP/1.1", "content-length: 5", "transfer-encoding: chunked", body=b"0\r\n\r\n"
        ),
        request("POST /v1/records HTTP/1.1", "transfer-encoding: chunked", body=b"zz\r\n"),
        request("GET /\xff\xfe HTTP/1.1"),
        request("CONNECT elsewhere.example:443 HTTP/1.1"),
    ],
    ids=lambda data: repr(bytes(data[:30])),
)
def test_what_is_not_http_is_refused(live: LiveService, data: bytes) -> None:
    assert status(say(live, data)) in (400, 404)


@pytest.mark.parametrize(
    "data",
    [
        request(f"GET /{PLANTED}{'a' * 10_000} HTTP/1.1"),
        f"GET /{PLANTED}{'a' * 300_000}".encode(),
        request("GET / HTTP/1.1", f"x: {'a' * 40_000}"),
        b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 300_000,
        request("GET / HTTP/1.1", *["x: y"] * 100),
    ],
    ids=["address", "endless address", "header", "endless header", "many headers"],
)
def test_too_large_a_head_is_refused(live: LiveService, data: bytes) -> None:
    answer = say(live, data)
    if answer:  # it may be lost when the connection is closed while more comes
        assert status(answer) == 431
        assert code(answer) == "head-too-large"


def test_a_trailer_without_end_is_cut(live: LiveService) -> None:
    head = request("POST /v1/records HTTP/1.1", "transfer-encoding: chunked", body=b"3\r\nabc\r\n0\r\nx: ")
    with connect(live) as connection:
        connection.sendall(head)
        assert cut_off(connection, b"a" * 10_000) < BODY_SECONDS


# What comes slowly


def test_a_head_that_trickles_is_cut(live: LiveService) -> None:
    with connect(live) as connection:
        connection.sendall(b"GET /v1/status HTTP/1.1\r\nx: ")
        assert HEAD_SECONDS * 0.9 < cut_off(connection, b"a", pause=0.05) < HEAD_SECONDS + 8


@pytest.mark.parametrize(
    "data", [b"", b"GET /v1/sta", b"\r\n"], ids=["nothing", "a beginning", "an empty line"]
)
def test_a_connection_that_says_nothing_more_is_closed(live: LiveService, data: bytes) -> None:
    start = time.monotonic()
    answer = say(live, data)
    assert HEAD_SECONDS * 0.9 < time.monotonic() - start < HEAD_SECONDS + 8
    assert (status(answer), code(answer)) == (408, "too-slow")


def test_empty_lines_do_not_keep_a_connection_open(live: LiveService) -> None:
    with connect(live) as connection:
        connection.sendall(request("GET /healthz HTTP/1.1").replace(b"connection: close\r\n", b""))
        connection.recv(1 << 16)
        assert cut_off(connection, b"\r\n", pause=0.05) < HEAD_SECONDS + 8


def test_a_body_that_trickles_is_refused(live: LiveService) -> None:
    head = request("POST /v1/records HTTP/1.1", "content-length: 1000", body=b'{"user": "' + PLANTED.encode())
    start = time.monotonic()
    with connect(live) as connection:
        connection.sendall(head)
        answer = connection.recv(1 << 16)
    assert BODY_SECONDS * 0.9 < time.monotonic() - start < BODY_SECONDS + 8
    assert status(answer) == 408


def test_the_rest_of_a_refused_body_may_not_trickle_for_ever(live: LiveService) -> None:
    head = request("POST /nowhere HTTP/1.1", "content-length: 100000").replace(b"connection: close\r\n", b"")
    with connect(live) as connection:
        connection.sendall(head)
        assert status(connection.recv(1 << 16)) == 404
        assert cut_off(connection, b"a", pause=0.1) < 15


def test_a_client_that_leaves_in_the_middle_costs_nothing(live: LiveService) -> None:
    with connect(live) as connection:
        line = b'{"user": "a", "query": "' + PLANTED.encode() + b'"}\n'
        connection.sendall(request("POST /v1/records HTTP/1.1", "content-length: 5000", body=line))


def test_too_many_connections_are_turned_away_and_the_others_served(live: LiveService) -> None:
    held = [connect(live) for _ in range(CONNECTIONS + 5)]
    try:
        refused = [answers(one) for one in held[-3:]]
        assert {status(answer) for answer in refused} == {503}
        assert all(b"retry-after: 1" in answer for answer in refused)
        held[0].sendall(request("GET /healthz HTTP/1.1"))
        assert status(answers(held[0])) == 200
    finally:
        for one in held:
            one.close()
    time.sleep(0.2)


# Bodies


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"[" * 100_000, 413),
        (b"[" * 60_000, 422),
        (b'{"user":' * 8_000, 422),
        (b"[" + b"[]," * 100 + b"1]", 202),  # counted, row by row
        (b"\xff\xfe\x00", 422),
        (b"", 422),
        (b"9" * 50_000, 422),
        (b'{"user": "\\ud800", "query": "zqplantedzq"}', 202),
        (b'{"user": "u", "query": "zqplantedzq", "time": "0000-01-01T00:00:00Z"}', 202),
        (b'{"user": "u", "query": "zqplantedzq", "rank": 1' + b"0" * 400 + b"}", 202),
    ],
    ids=[
        "too deep and large",
        "deep",
        "deep objects",
        "lists",
        "no text",
        "nothing",
        "a number",
        "half a character",
        "the year 0",
        "a huge rank",
    ],
)
def test_json_that_is_none_is_refused_or_counted(live: LiveService, body: bytes, expected: int) -> None:
    answer = live.client.post("/v1/records", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == expected
    if expected == 202:
        assert answer.json()["accepted"] == 0
    lines = live.client.post("/v1/records", content=body, headers={"content-type": "application/x-ndjson"})
    assert lines.status_code == (413 if expected == 413 else 202)
    assert expected == 413 or lines.json()["accepted"] == 0


@pytest.mark.parametrize("path", ["/v1/erasures", "/v1/exports", "/v1/profiles"])
@pytest.mark.parametrize(
    "body", [b"[" * 50_000, b'{"user": {}}', b'{"zqplantedzq": "zqplantedzq"}', b"\xff", b"{}", b"a" * 70_000]
)
def test_a_question_that_makes_no_sense_is_refused(live: LiveService, path: str, body: bytes) -> None:
    answer = live.client.post(path, content=body)
    assert answer.status_code in (413, 422)
    assert PLANTED not in answer.text


@pytest.mark.parametrize("path", ["/v1/records", "/v1/ubi/queries"])
def test_many_bad_lines_in_few_bytes_are_counted_in_time(live: LiveService, path: str) -> None:
    """They took five seconds, in which nobody else was answered."""
    body = gzip.compress(b"x\n" * (LIMIT // 2))
    start = time.monotonic()
    answer = live.client.post(path, content=body, headers=PACKED)
    assert answer.json()["skipped_total"] == LIMIT // 2
    assert len(answer.content) < 2000
    assert time.monotonic() - start < 4


PACKED = {"content-encoding": "gzip"}


def test_a_bomb_is_not_let_out(live: LiveService) -> None:
    bomb = gzip.compress(b"\n" * (1 << 28), 9)[:LIMIT]
    answer = live.client.post("/v1/records", content=bomb, headers=PACKED)
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (gzip.compress(b"".join(GOOD))[:-9], 422),
        (gzip.compress(b"".join(GOOD)) + PLANTED.encode(), 422),
        (zlib.compress(b"".join(GOOD)), 422),
        (gzip.compress(b"") * 2000, 413),
        (gzip.compress(os.urandom(LIMIT + 1)), 413),
    ],
    ids=["cut", "garbage behind", "zlib", "many parts", "large"],
)
def test_gzip_that_is_none_is_refused(live: LiveService, body: bytes, expected: int) -> None:
    answer = live.client.post("/v1/records", content=body, headers=PACKED)
    assert answer.status_code == expected
    assert PLANTED not in answer.text


def test_a_chunked_body_without_end_is_cut(live: LiveService) -> None:
    with connect(live) as connection:
        connection.sendall(request("POST /v1/records HTTP/1.1", "transfer-encoding: chunked"))
        try:
            for _ in range(10_000):
                connection.sendall(b"400\r\n" + b"\n" * 1024 + b"\r\n")
        except OSError:
            return
    pytest.fail("ten megabytes were taken")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"content-type": "application/xml"}, 415),
        ({"content-encoding": "br"}, 415),
        ({"content-encoding": "gzip, gzip"}, 415),
        ({"idempotency-key": PLANTED * 24}, 422),
    ],
    ids=["type", "encoding", "packed twice", "long key"],
)
def test_headers_that_make_no_sense_are_refused(
    live: LiveService, headers: dict[str, str], expected: int
) -> None:
    answer = live.client.post("/v1/records", content=GOOD[0], headers=headers)
    assert answer.status_code == expected
    assert PLANTED not in answer.text


# Addresses and methods


@pytest.mark.parametrize(
    "path",
    [
        "//v1/status",
        "/v1//status",
        "/v1/status/",
        "/v1/../v1/status",
        "/./v1/status",
        "/v1%2fstatus",
        "/%76%31/status",
        "/v1/status%00",
        "/static/..%2f..%2fanswers.py",
        "/static/../answers.py",
        "/static/%2e%2e/answers.py",
        "/..%5c..%5cetc",
        "/zqplantedzq",
    ],
)
def test_path_tricks_lead_nowhere(live: LiveService, path: str) -> None:
    answer = say(live, request(f"GET {path} HTTP/1.1"))
    assert (status(answer), code(answer)) == (404, "not-there")


@pytest.mark.parametrize(
    "line", ["DELETE /v1/records", "GET /v1/records", "TRACE /v1/status", "PATCH /v1/erasures", "PUT /"]
)
def test_other_methods_are_refused(live: LiveService, line: str) -> None:
    answer = say(live, request(f"{line} HTTP/1.1"))
    assert (status(answer), code(answer)) == (405, "wrong-method")
    assert b"\r\nallow: " in answer


# Pages from elsewhere, while there are no tokens


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "127.0.0.2", "[::1", "a@b:c"])
def test_a_name_that_was_made_to_point_here_is_refused(live: LiveService, host: str) -> None:
    answer = say(live, f"GET /v1/status HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
    assert (status(answer), code(answer)) == (421, "misdirected")


def test_a_request_names_one_host(live: LiveService) -> None:
    assert status(say(live, b"GET /v1/status HTTP/1.1\r\nconnection: close\r\n\r\n")) == 400
    assert status(say(live, request("GET /v1/status HTTP/1.1", "host: localhost"))) == 400


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:8484", "[::1]:8484"])
def test_this_machines_own_names_are_answered_to(live: LiveService, host: str) -> None:
    answer = say(live, f"GET /v1/status HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
    assert status(answer) == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:3000"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
    ids=str,
)
def test_a_page_from_elsewhere_changes_nothing(live: LiveService, headers: dict[str, str]) -> None:
    for path in ("/v1/records", "/v1/erasures", "/v1/epochs"):
        answer = live.client.post(path, content=b"".join(GOOD), headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")


def test_a_second_request_behind_a_first_gets_its_own_answer(live: LiveService) -> None:
    first = request("GET /v1/released?wait=2 HTTP/1.1").replace(b"connection: close\r\n", b"")
    answer = say(live, first + request("GET /v1/nothing HTTP/1.1"))
    assert answer.count(b"HTTP/1.1 200 ") == answer.count(b"HTTP/1.1 404 ") == 1


def test_a_parameter_that_is_not_known_is_refused(live: LiveService) -> None:
    answer = live.client.get("/v1/released", params={"afer": "1", PLANTED: PLANTED})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "parameter")
    assert PLANTED not in answer.text


def test_the_services_own_page_may_ask(live: LiveService) -> None:
    own = {"origin": live.address, "sec-fetch-site": "same-origin"}
    assert live.client.post("/v1/profiles", json={"label": PLANTED}, headers=own).status_code == 404
