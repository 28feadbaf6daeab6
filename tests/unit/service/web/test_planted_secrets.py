"""No answer, log line or metric of the service shows a part of a request: secrets are planted in it."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from querycloak.service.service import Service
from querycloak.service.web.app import make_app
from querycloak.service.web.auth import Tokens
from tests.cli.test_planted_secrets import JSON_FAULTS, QUERY, RECORD, UBI, URL, USER, assert_clean
from tests.unit.service.running import running

UBI_PATHS = ("/v1/ubi/queries", "/v1/ubi/events")
POSTS = ("/v1/records", *UBI_PATHS, "/v1/profiles", "/v1/erasures", "/v1/exports", "/v1/epochs")
GETS = ("/v1/released", "/v1/status", "/v1/overview", "/v1/certificates", "/metrics", "/healthz", "/readyz")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("state"), k=3, options={"classify": "no"}) as service:
        yield service


@pytest.fixture
def client(service: Service) -> TestClient:
    app = make_app(service, Tokens(None))
    return TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)


def bodies() -> list[bytes]:
    """Return bodies with the secrets in every field, as keys, in wrong types, and cut off."""
    faults: list[Any] = [*JSON_FAULTS, {"user": {USER: QUERY}}, {"label": [USER]}, {"user": USER, QUERY: URL}]
    faults += [{"label": USER, USER: 1}, {"user": 1, "label": QUERY}, {**UBI, "client_id": {USER: 1}}]
    faults += [{**UBI, "timestamp": QUERY}, {"action_name": "click", "query_id": USER, "timestamp": QUERY}]
    whole = [json.dumps(one).encode() for one in faults]
    cut = [f'{{"user": "{USER}", "query": "{QUERY}'.encode(), f"{USER},{QUERY}\n".encode(), QUERY.encode()]
    return [*whole, json.dumps(faults).encode(), b"\n".join(whole), *cut, QUERY.encode() + b"\xff\x00"]


@pytest.mark.parametrize("path", POSTS)
def test_no_answer_and_no_log_line_shows_a_part_of_a_body(
    client: TestClient, path: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG, "querycloak")
    said = []
    for kind in ("application/json", "application/x-ndjson", f"text/{USER}"):
        for body in bodies():
            said.append(client.post(path, content=body, headers={"content-type": kind}))
    headers = {"content-encoding": "gzip"}
    said.append(client.post(path, content=gzip.compress(json.dumps(RECORD).encode())[:-9], headers=headers))
    said.append(client.post(path, content=b"{}", headers={"content-encoding": QUERY}))
    said.append(client.post(path, content=b"{}", headers={"idempotency-key": QUERY * 99}))
    said.append(client.post(path, content=b"{}", headers={"authorization": f"Bearer {USER}"}))
    shown = "\n".join(f"{one.text}\n{one.headers}" for one in said)
    assert_clean(shown + caplog.text + "".join(capfd.readouterr()))
    assert {one.status_code for one in said} <= {200, 202, 400, 401, 404, 408, 413, 415, 422, 429}


@pytest.mark.parametrize("path", [*GETS, *POSTS])
def test_no_answer_repeats_an_address(
    client: TestClient, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "querycloak")
    for asked in (
        f"{path}/{QUERY}",
        f"{path}?{QUERY}={USER}",
        f"{path}?after={QUERY}&limit={USER}&wait={URL}",
    ):
        for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS"):
            answer = client.request(method, asked, headers={"origin": URL, "referer": URL})
            assert_clean(answer.text + str(answer.headers))
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("querycloak")]
    assert_clean("\n".join(ours) + client.get("/metrics").text)
