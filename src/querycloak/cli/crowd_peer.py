"""`querycloak crowd peer` and `search-server`: a real member of the crowd, and an engine to try it with."""

from __future__ import annotations

from pathlib import Path

import click

from querycloak.cli.show import say
from querycloak.errors import UsageError


@click.command("peer")
@click.argument("config", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--http", metavar="HOST:PORT", help="Take searches there, e.g. 127.0.0.1:8686.")
@click.option(
    "--new-identity",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Make a key and a certificate in this folder, and do nothing else.",
)
def peer(config: Path | None, http: str | None, new_identity: Path | None) -> None:
    """Be a member of the crowd: pass queries of friends on, and have them pass on yours.

    CONFIG is a TOML file that names your friends and their certificates.

    Example: querycloak crowd peer crowd.toml --http 127.0.0.1:8686
    """
    if (config is None) == (new_identity is None):
        raise UsageError("give either a configuration file or `--new-identity DIR`")
    if new_identity is not None:
        from querycloak.clients.crowd.identity import new_identity as make

        say(f"your certificate has the fingerprint {make(new_identity)}")
        return
    from querycloak.clients.crowd.config import host_and_port, read
    from querycloak.clients.crowd.peer import run

    assert config is not None
    run(read(config), host_and_port(http, "`--http`") if http else None)


@click.command("search-server")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="The port.")
def search_server(host: str, port: int) -> None:
    """Run a small search engine with made-up results, for trials. It logs nothing.

    Example: querycloak crowd search-server --port 8000
    """
    from querycloak.clients.crowd.search_server import run

    run(host, port)
