"""The live service: ingestion, write-ahead log, stream, sinks, monitoring, HTTP.

The functions here check that the extra `service` is installed before they import the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from querycloak.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from querycloak.service.settings import Setup

_NEEDED = ("fastapi", "msgspec", "prometheus_client", "uvicorn")


def _check_extra() -> None:
    if any(find_spec(name) is None for name in _NEEDED):
        raise MissingExtra("service", "the live service")


def serve(setup: Setup, ready: Callable[[str], None]) -> None:
    """Run the service until it is stopped; `ready` is called with its address."""
    _check_extra()
    from querycloak.service.launch import run

    run(setup, ready)


def new_token(setup: Setup, name_and_role: str) -> str:
    """Create a token for `NAME:ROLE`, store its hash in the token file, and return it."""
    _check_extra()
    from querycloak.service.web.auth import add_token

    name, colon, role = name_and_role.partition(":")
    if not colon or not name:
        raise UsageError("`--new-token` takes NAME:ROLE, for example shop:ingest")
    if not setup.settings.tokens:
        raise UsageError(
            "no token file is set", hint="add `-o tokens=FILE`, or set `tokens` in the configuration"
        )
    return add_token(Path(setup.settings.tokens), name, role)
