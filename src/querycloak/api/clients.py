"""Programs of searchers that load nothing heavy: peers of the crowd."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from querycloak.errors import MissingExtra


def new_peer_identity(folder: Path) -> str:
    """Create the key and the certificate of a crowd peer; return the fingerprint."""
    from querycloak.clients.crowd.tls import new_identity

    return new_identity(folder)


def protocol_settings() -> dict[str, dict[str, Any]]:
    """Return the settings of the crowd's protocol by name, with default and help."""
    from querycloak.clients.crowd.rules import ProtocolSettings

    return {one["name"]: one for one in ProtocolSettings.declarations()}


def run_peer(config: Path, http: str | None = None) -> None:
    """Run a peer of the crowd until it is stopped."""
    from querycloak.clients.crowd.config import host_and_port
    from querycloak.clients.crowd.config import read as read_config

    address = host_and_port(http, "`--http`") if http else None
    checked = read_config(config)
    try:
        from querycloak.clients.crowd.peer import run
    except ImportError:
        raise MissingExtra("crowd", "a peer") from None
    run(checked, address)


def run_search_server(host: str, port: int) -> None:
    """Run a small search engine with synthetic results, for trials."""
    try:
        from querycloak.clients.crowd.demo_engine import run
    except ImportError:
        raise MissingExtra("crowd", "the search server") from None
    run(host, port)
