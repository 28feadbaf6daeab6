"""Programs of searchers: peers of the crowd, its simulation, dummy queries. Nothing heavy is loaded here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

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


def simulate_crowd(
    *,
    cut: tuple[float, float],
    seed: int | None,
    truth: str | None = None,
    progress: Callable[[str, int, int | None], None],
    **options: Any,
) -> dict[str, Any]:
    """Simulate friends who submit each other's queries."""
    import secrets

    from querycloak.clients.crowd import study
    from querycloak.clients.crowd.simulator import Behaviour

    own = {f.name: options.pop(f.name) for f in fields(Behaviour) if f.name in options}
    chosen = study.Study(
        behaviour=Behaviour(least_cut=cut[0], most_cut=cut[1], **own),
        seed=secrets.randbits(32) if seed is None else seed % 2**63,
        truth=Path(truth) if truth else None,
        **options,
    )
    return study.run(chosen, progress)


def obfuscate(*, progress: Callable[[str, int, int | None], None], **options: Any) -> dict[str, Any]:
    """Hide the searches of a log among dummy queries; write the traces to a file."""
    from querycloak.clients.obfuscation.mixing import Cover, cover

    return cover(Cover(**options), progress)
