"""The routes for records: what they answer, whose keys are whose, and what nobody may learn from them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from querycloak.errors import DataError
from querycloak.service.ingest import parse, ubi
from querycloak.service.monitor.monitor import BufferStats
from querycloak.service.service import Service
from querycloak.service.sinks.database import Database
from querycloak.service.web import bodies
from querycloak.service.web.app import make_app
from querycloak.service.web.auth import ROLES, Tokens, add_token
from tests.unit.service.running import running

BOTH = {"user": "a", "query": "b", "client_id": "a", "user_query": "b", "query_id": "1"}
CLICK = {"action_name": "click", "query_id": "1"}
PATHS = ("/v1/records", "/v1/ubi/queries", "/v1/ubi/events")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("state"), k=3, options={"classify": "no"}) as service:
        yield service


@pytest.fixture
def client(service: Service) -> TestClient:
    app = make_app(service, Tokens(None))
    return TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)


def post(client: TestClient, path: str, body: bytes, key: str = "", **headers: str) -> dict[str, Any]:
    named = headers | ({"idempotency-key": key} if key else {})
    answer = client.post(path, content=body, headers=named)
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


# Odd bodies


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
def test_half_a_character_is_counted_or_refused(client: TestClient, path: str, kind: str) -> None:
    odd = dict.fromkeys((*BOTH, *CLICK), "x\ud800") | {"action_name": "click"}
    for body in (
        json.dumps(odd).encode(),
        json.dumps(odd, ensure_ascii=False).encode(errors="surrogatepass"),
    ):
        answer = client.post(path, content=body, headers={"content-type": kind})
        assert answer.status_code in (202, 422)
        assert answer.json().get("accepted", 0) == 0


def test_half_a_character_costs_no_other_record(client: TestClient) -> None:
    body = json.dumps([BOTH, BOTH | {"user": "\ud800"}, BOTH | {"user": "\U0001f600"}]).encode()
    found = post(client, "/v1/records", body, **{"content-type": "application/json"})
    assert (found["accepted"], found["skipped"]) == (2, {"not UTF-8": [1]})


# Answers


@pytest.mark.parametrize("path", ["/v1/records", "/v1/ubi/queries"])
def test_an_answer_counts_all_bad_rows_and_names_the_first(client: TestClient, path: str) -> None:
    body = json.dumps(BOTH).encode() + b"\n" + b"x\n" * 5000
    first = post(client, path, body, key="many bad")
    assert first["skipped_total"] == 5000
    assert first["skipped"] == {"not JSON": list(range(1, parse.LISTED + 1))}
    assert post(client, path, body, key="many bad") == first | {"repeated": True}


def test_what_is_remembered_of_an_answer_is_short(service: Service, client: TestClient) -> None:
    post(client, "/v1/records", b"x\n" * 20_000, key="long memory")
    service.checkpoint()
    database = Database(service.folder / "service.sqlite")
    ((longest,),) = database.read("SELECT max(length(answer)) FROM idempotency_keys")
    database.close()
    assert 0 < longest < 1000


# Keys


def test_a_key_belongs_to_its_route(client: TestClient) -> None:
    body = json.dumps(BOTH | CLICK).encode()
    assert all(post(client, path, body, key="one key")["accepted"] == 1 for path in PATHS)
    assert post(client, "/v1/ubi/queries", body, key="one key")["repeated"]
    refused = client.post(PATHS[0], content=body + b"\n\n", headers={"idempotency-key": "one key"})
    assert refused.status_code == 422


def test_a_key_belongs_to_who_sends_it(service: Service, tmp_path: Path) -> None:
    tokens = [add_token(tmp_path / "tokens", name, "ingest") for name in ("one", "other")]
    client = TestClient(make_app(service, Tokens(tmp_path / "tokens")))
    body = json.dumps(BOTH).encode()
    found = [post(client, PATHS[0], body, key="shared", **bearer(token)) for token in (*tokens, tokens[0])]
    assert [one["repeated"] for one in found] == [False, False, True]


# Roles


@pytest.mark.parametrize(
    ("method", "path", "roles"),
    [
        ("POST", "/v1/records", {"ingest", "admin"}),
        ("POST", "/v1/ubi/queries", {"ingest", "admin"}),
        ("POST", "/v1/ubi/events", {"ingest", "admin"}),
        ("GET", "/v1/released?limit=1", {"read", "admin"}),
        ("GET", "/v1/status", set(ROLES)),
        ("POST", "/v1/profiles", {"read", "research", "admin"}),
        ("POST", "/v1/erasures", {"admin"}),
        ("POST", "/v1/exports", {"admin"}),
    ],
)
def test_a_route_accepts_its_roles_and_no_others(
    service: Service, tmp_path: Path, method: str, path: str, roles: set[str]
) -> None:
    tokens = {role: add_token(tmp_path / "tokens", role, role) for role in ROLES}
    client = TestClient(make_app(service, Tokens(tmp_path / "tokens")))
    status = {
        role: client.request(method, path, content=b"\n", headers=bearer(token)).status_code
        for role, token in tokens.items()
    }
    assert {role for role, code in status.items() if code != 403} == roles
    assert client.request(method, path, content=b"\n").status_code == 401


# What others wait for


@pytest.mark.parametrize("path", PATHS)
def test_large_bodies_are_not_parsed_where_all_wait(
    client: TestClient, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    for module, name in ((parse, "parse"), (ubi, "queries"), (ubi, "events")):
        real = getattr(module, name)

        def noting(*given: Any, real: Any = real, **named: Any) -> Any:
            threads.append(threading.current_thread().name)
            return real(*given, **named)

        monkeypatch.setattr(module, name, noting)
    line = json.dumps(BOTH | CLICK).encode() + b"\n"
    post(client, path, line)
    post(client, path, line * (bodies.LARGE // len(line) + 1))
    assert len(threads) == 2
    assert threads[0] != threads[1]
    assert threads[1].startswith("asyncio")


def test_bodies_under_way_share_one_room(service: Service, client: TestClient) -> None:
    room = client.app.state.body_budget = bodies.BodyBudget(1000)  # type: ignore[attr-defined]
    body = json.dumps(BOTH).encode()
    most = service.settings.body_bytes
    room.take(most - len(body), most)  # by somebody else
    assert post(client, PATHS[0], body)["accepted"] == 1
    for path in PATHS:
        answer = client.post(path, content=body + b" ")
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    room.taken -= most - len(body)
    assert room.taken == 0, "what was taken is given back, after answers and after errors"
    assert client.post(PATHS[0], content=b"x", headers={"content-type": "application/json"}).is_client_error
    assert room.taken == 0


# What nobody may learn


SECRET = "zzplantedzz"


@pytest.mark.parametrize(
    ("method", "path", "more"),
    [
        ("GET", f"/{SECRET}?q={SECRET}", {}),
        ("GET", f"/v1/released?{SECRET}={SECRET}", {}),
        ("GET", f"/v1/released?after={SECRET}", {}),
        ("GET", f"/v1/certificates/{SECRET}", {}),
        ("DELETE", f"/v1/status?q={SECRET}", {}),
        ("GET", f"/static/{SECRET}", {}),
        ("POST", "/v1/records", {"content": SECRET, "headers": {"content-type": "application/json"}}),
        ("POST", "/v1/records", {"content": SECRET, "headers": {"content-type": SECRET}}),
        ("POST", "/v1/records", {"content": SECRET, "headers": {"content-encoding": SECRET}}),
        ("POST", "/v1/records", {"content": SECRET, "headers": {"content-encoding": "gzip"}}),
        ("POST", "/v1/erasures", {"json": {"user": "", SECRET: SECRET}}),
        ("POST", "/v1/profiles", {"json": {"label": SECRET}}),
        ("POST", "/v1/records", {"content": SECRET, "headers": {"origin": f"http://{SECRET}"}}),
        ("GET", "/v1/status", {"headers": {"host": SECRET}}),
    ],
)
def test_no_error_repeats_the_request(
    client: TestClient, method: str, path: str, more: dict[str, Any]
) -> None:
    answer = client.request(method, path, **more)
    assert answer.is_client_error, answer.text
    assert set(answer.json()["error"]) <= {"code", "message", "hint"}
    assert SECRET not in answer.text + str(answer.headers)


def test_health_names_codes_and_no_files(
    service: Service, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.get("/readyz").json() == {"status": "ok"}
    assert client.get("/healthz").json() == {"status": "ok"}
    monkeypatch.setattr(service.worker, "trouble", f"no room to write `{service.folder}/released`")
    answers = [client.get("/readyz")]
    assert "not ready: sink" in answers[0].text
    assert client.get("/healthz").status_code == 200
    assert client.get("/v1/overview").json()["trouble"] == service.worker.trouble
    monkeypatch.setattr(service.worker, "failure", DataError(f"`{service.folder}` is broken"))
    answers += [client.get("/readyz"), client.get("/healthz")]
    assert "not ready: worker-failed, sink" in answers[1].text
    assert [answer.status_code for answer in answers] == [503] * 3
    assert not [answer for answer in answers if str(service.folder) in answer.text]


def test_research_sees_round_numbers_of_whole_categories(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [{"category": "Health/Rare", "held": 1}, {"category": "Health/Other", "held": 18}]
    buffers = [
        {"category": "Health", "held": 19, "parts": parts},
        {"category": "Law", "held": 9, "parts": []},
    ]
    monkeypatch.setattr(service.monitor, "_set_buffers", lambda done: None)  # a count may be under way
    monkeypatch.setattr(service.monitor, "buffers", BufferStats(by_category=buffers))
    file = tmp_path / "tokens"
    tokens = {role: add_token(file, role, role) for role in ROLES}
    client = TestClient(make_app(service, Tokens(file)))
    seen = {
        role: client.get("/v1/overview", headers=bearer(tokens[role])).json()["buffers"]
        for role in ("research", "read", "admin")
    }
    assert seen["read"] == seen["admin"] == buffers
    assert seen["research"] == [
        {"category": "Health", "held": 10, "parts": []},
        {"category": "Law", "held": 0, "parts": []},
    ]
