"""`querycloak serve`: the live service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click import option

from querycloak.cli.options import SEED, Output, pairs, repeated, with_output


@click.command("serve")
@option("--host", help="Address to listen on (default: 127.0.0.1); others need tokens.")
@option("--port", type=int, help="Port to listen on (default: 8484); 0: any free one.")
@option(
    "--state",
    type=click.Path(file_okay=False),
    help="Folder of the write-ahead log, snapshots and released lines.",
)
@repeated("-m", "--method", "methods", help="Method (default: cohort); several run in order.")
@repeated("-s", "--set", "chosen", metavar="NAME=VALUE", help="Setting of a method, for example k=10.")
@repeated("-o", "--option", "options", metavar="NAME=VALUE", help="Setting of the service.")
@option("--source", help="http (default), kafka://HOST:PORT/TOPIC or file-tail:PATH.")
@option("--sink", help="http-pull (default), kafka://HOST:PORT/TOPIC or file:PATH.")
@option("--profiles", help="sqlite (default), sqlite:///PATH or postgresql://…")
@option("--config", type=click.Path(exists=True, dir_okay=False), help="TOML file with settings.")
@option("--new-token", metavar="NAME:ROLE", help="Create a token, print it, store its hash; then exit.")
@SEED
@with_output
def command(
    methods: tuple[str, ...],
    chosen: tuple[str, ...],
    options: tuple[str, ...],
    config: str | None,
    new_token: str | None,
    seed: int | None,
    out: Output,
    **flags: Any,
) -> None:
    """Protect a live stream of records from HTTP, Kafka or a file.

    Example: querycloak serve --port 8484 -m cohort -s k=10
    """
    from querycloak.api import new_service_token, serve, service_setup

    file = Path(config) if config else None
    flags |= pairs(options, "--option")
    setup = service_setup(flags, list(methods), pairs(chosen, "--set"), seed=seed, config=file)
    if new_token is not None:
        click.echo(new_service_token(setup, new_token))
        return

    def ready(address: str) -> None:
        out.say(f"listening on {address}")
        out.emit({"address": address})

    serve(setup, ready)
