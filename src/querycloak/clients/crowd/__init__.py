"""The crowd (paper 003, chapter 4): friends forward and submit each other's queries.

`Member` decides without input or output; `peer` drives it over TLS. `simulator` runs the same rules,
compiled, for millions of members.
"""

from __future__ import annotations

from pathlib import Path

from querycloak.errors import import_extra


def run_peer(config: Path, http: str | None = None) -> None:
    """Run a peer of the crowd until it is stopped."""
    from querycloak.clients.crowd.config import host_and_port, read

    address = host_and_port(http, "`--http`") if http else None
    checked = read(config)
    import_extra("querycloak.clients.crowd.peer", "crowd", "a peer").run(checked, address)


def run_search_server(host: str, port: int) -> None:
    """Run a small search engine with synthetic results, for trials."""
    import_extra("querycloak.clients.crowd.demo_engine", "crowd", "the search server").run(host, port)
