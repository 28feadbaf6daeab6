"""The OpenAPI description and the service agree: schemathesis sends what it allows and what it forbids."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

schemathesis = pytest.importorskip("schemathesis")

from hypothesis import HealthCheck, Phase, given, settings  # noqa: E402
from schemathesis import GenerationMode  # noqa: E402

from querycloak.service.service import Service  # noqa: E402
from querycloak.service.settings import setup  # noqa: E402
from querycloak.service.web.app import make_app  # noqa: E402
from querycloak.service.web.auth import Tokens, add_token  # noqa: E402

#: Rows that are wrong are counted, not refused: so a body that is not as described can be accepted.
FEW = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
COUNTED = {"/v1/records", "/v1/ubi/queries", "/v1/ubi/events"}
NUMBERS = count()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str]]:
    folder = tmp_path_factory.mktemp("service")
    token = add_token(folder / "tokens", "tests", "admin")
    flags = {"state": str(folder / "state"), "classify": "no", "wait_seconds": "0"}
    service = Service(setup(flags, ["cohort"], {"k": "3"}, seed=1, environment={}))
    service.open()
    service.start()
    yield make_app(service, Tokens(Path(folder / "tokens"))), token
    assert service.worker.failure is None
    service.stop()


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_every_route_answers_as_described(served: tuple[Any, str], mode: GenerationMode) -> None:
    app, token = served
    description = schemathesis.openapi.from_asgi("/openapi.json", app)
    operations = [found.ok() for found in description.get_all_operations()]
    assert {operation.path for operation in operations} >= COUNTED | {"/v1/released", "/v1/erasures"}
    for operation in operations:
        if mode is GenerationMode.POSITIVE or operation.body or operation.query or operation.path_parameters:
            _try(operation, mode, token)


def _try(operation: Any, mode: GenerationMode, token: str) -> None:
    @FEW
    @given(case=operation.as_strategy(generation_mode=mode))
    def call(case: Any) -> None:
        left_out = [schemathesis.checks.negative_data_rejection] if case.path in COUNTED else []
        headers = {**(case.headers or {}), "Authorization": f"Bearer {token}"}
        if (key := headers.get("Idempotency-Key")) and len(key) <= 255:  # a key is good for one body only
            headers["Idempotency-Key"] = f"{next(NUMBERS)} {key}"[:255]
        case.call_and_validate(headers=headers, excluded_checks=left_out)

    call()
