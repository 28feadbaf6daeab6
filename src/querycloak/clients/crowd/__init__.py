"""The crowd (paper 003, chapter 4): friends forward and submit each other's queries.

`Member` decides without input or output; `peer` drives it over TLS. `simulator` runs the same rules,
compiled, for millions of members.
"""

from __future__ import annotations

from pathlib import Path

from querycloak.errors import MissingExtra


def run_peer(config: Path, http: str | None = None) -> None:
    """Run a peer of the crowd until it is stopped."""
    from querycloak.clients.crowd.config import host_and_port, read

    address = host_and_port(http, "`--http`") if http else None
    checked = read(config)
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
