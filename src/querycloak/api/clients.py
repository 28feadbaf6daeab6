"""Programs of searchers that load nothing heavy: peers of the crowd."""

from __future__ import annotations

from pathlib import Path


def new_peer_identity(folder: Path) -> str:
    """Create the key and the certificate of a crowd peer; return the fingerprint."""
    from querycloak.clients.crowd.identity import new_identity

    return new_identity(folder)


def run_peer(config: Path, http: str | None = None) -> None:
    """Run a peer of the crowd until it is stopped."""
    from querycloak.clients.crowd.config import host_and_port
    from querycloak.clients.crowd.config import read as read_config
    from querycloak.clients.crowd.peer import run

    run(read_config(config), host_and_port(http, "`--http`") if http else None)


def run_search_server(host: str, port: int) -> None:
    """Run a small search engine with synthetic results, for trials."""
    from querycloak.clients.crowd.search_server import run

    run(host, port)
