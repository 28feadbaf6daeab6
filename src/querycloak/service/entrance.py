"""The door for the command line: checks that the extra is installed before anything else is imported."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from querycloak.errors import MissingExtra, UsageError
from querycloak.service.settings import Setup, setup

__all__ = ["new_token", "serve", "setup"]
_NEEDED = ("fastapi", "msgspec", "prometheus_client", "uvicorn")


def _check() -> None:
    if any(find_spec(name) is None for name in _NEEDED):
        raise MissingExtra("service", "the live service")


def serve(chosen: Setup, ready: Callable[[str], None]) -> None:
    """Run the service until it is told to stop."""
    _check()
    from querycloak.service.run import serve as run

    run(chosen, ready)


def new_token(chosen: Setup, wanted: str) -> str:
    """Make a token for `NAME:ROLE` and keep its hash in the file of tokens."""
    _check()
    from querycloak.service.web.tokens import add_token

    name, colon, role = wanted.partition(":")
    if not colon or not name:
        raise UsageError("`--new-token` takes NAME:ROLE, for example shop:ingest")
    if not chosen.settings.tokens:
        raise UsageError(
            "no file of tokens is set", hint="add `-o tokens=FILE`, or name it in the configuration"
        )
    return add_token(Path(chosen.settings.tokens), name, role)
