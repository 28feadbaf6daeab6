"""The routes for watching: who may, what they say, and what they never say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from querycloak._version import __version__
from querycloak.service.service import Service
from querycloak.service.web.app import make_app
from querycloak.service.web.auth import Tokens, add_token
from tests.unit.service.running import SECRET_QUERY, SECRET_USER, made_up, running, send

ROUTES = ("/v1/overview", "/v1/certificates", "/v1/certificates/1", "/metrics")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("state"), k=3) as service:
        send(service, made_up())
        service.monitor.sample()
        service.monitor.count_held().result()
        service.monitor.attack()
        service.monitor.certify()
        yield service


@pytest.fixture
def client(service: Service) -> TestClient:
    return TestClient(make_app(service, Tokens(None)), base_url="http://127.0.0.1")


def test_the_overview_says_what_the_page_needs(service: Service, client: TestClient) -> None:
    found = client.get("/v1/overview").json()
    assert found["version"] == __version__
    assert found["ready"] is True
    assert (found["trouble"], found["source"], found["sink"]) == ("", "http", "http-pull")
    assert found["reproducible"] is True
    (method,) = found["methods"]
    assert method["name"] == "cohort"
    assert method["settings"]["k"] == 3
    assert method["promise"]
    assert method["does_not_protect_against"]
    assert found["counts"] == service.state().status()
    assert found["samples"][-1][1:] == [
        service.state().status()[n] for n in ("accepted", "released", "held", "queued")
    ]
    assert found["delay"]["worst"] >= found["delay"]["p95"] >= found["delay"]["median"] >= 0
    assert found["age"]["oldest"] >= found["age"]["median"] >= 0
    assert sum(one["held"] for one in found["buffers"]) == found["counts"]["held"]
    assert found["linkage"]["bound"] == pytest.approx(1 / 3, abs=1e-6)
    assert found["certificates"] == client.get("/v1/certificates").json()
    assert set(found["certificates"][0]) == {"number", "from", "to", "first", "last", "verdict"}


def test_the_address_of_a_sink_is_not_shown(tmp_path: Path) -> None:
    with running(tmp_path, options={"sink": f"file:{tmp_path / 'lines'}"}) as service:
        assert service.state().sink == "file"


def test_a_certificate_is_given_as_it_was_written(service: Service, client: TestClient) -> None:
    answer = client.get("/v1/certificates/1")
    assert answer.content == (service.folder / "certificates" / "000001.json").read_bytes()
    assert client.get("/v1/certificates/999").status_code == 404
    assert client.get("/v1/certificates/0").status_code == 422
    assert client.get("/v1/certificates/..%2F..%2Fsecret").status_code in (404, 422)


def test_metrics_count_by_route_and_never_by_address(service: Service, client: TestClient) -> None:
    client.get(f"/v1/{SECRET_QUERY}?q={SECRET_QUERY}")
    client.get("/v1/certificates/1")
    client.request("BREW", "/v1/status")
    body = json.dumps({"user": SECRET_USER, "query": SECRET_QUERY})
    assert client.post("/v1/records", content=body, headers={"content-type": "application/json"}).is_success
    text = client.get("/metrics").text
    assert f'querycloak_build_info{{version="{__version__}"}} 1.0' in text
    assert 'querycloak_requests_total{method="GET",route="none",status="404"} 1.0' in text
    assert (
        'querycloak_requests_total{method="GET",route="/v1/certificates/{number}",status="200"} 1.0' in text
    )
    assert 'querycloak_requests_total{method="other"' in text
    assert "querycloak_acknowledgement_seconds_count 1.0" in text
    assert 'querycloak_certificates_total{verdict="kept"} 1.0' in text
    assert 'querycloak_linkage{attack="link-repeat",figure="bound"}' in text
    assert f"querycloak_records_released_total {float(service.state().status()['released'])}" in text
    for name in ("journal_bytes", "snapshot_age_seconds", "outlet_trouble", "records_held", "records_queued"):
        assert f"\nquerycloak_{name} " in text


def test_no_user_or_query_is_in_what_monitoring_shows(service: Service, client: TestClient) -> None:
    lines = service.released.read(0, 1 << 30).splitlines()
    labels = {json.loads(line)["user"] for line in lines}
    assert labels
    assert any(SECRET_QUERY.encode() in line for line in lines), "or else this test could not fail"
    for route in ROUTES:
        text = client.get(route).text
        assert not [word for word in (SECRET_USER, SECRET_QUERY, *labels) if word in text]


def test_monitoring_needs_its_right(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    tokens = {role: add_token(file, role, role) for role in ("ingest", "read", "research", "admin")}
    client = TestClient(make_app(service, Tokens(file)))
    for route in ROUTES:
        assert client.get(route).status_code == 401
        status = {
            role: client.get(route, headers={"Authorization": f"Bearer {token}"}).status_code
            for role, token in tokens.items()
        }
        assert status == {"ingest": 403, "read": 200, "research": 200, "admin": 200}
