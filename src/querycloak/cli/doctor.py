"""`querycloak doctor`: what this machine can run, and how to add the rest."""

from __future__ import annotations

import click

from querycloak.cli.options import TALK
from querycloak.cli.show import emit


@click.command("doctor")
@TALK
def command(quiet: bool, as_json: bool) -> None:
    """Say what this machine can run, and how to add the rest.

    Example: querycloak doctor
    """
    from querycloak.engines.doctor import examine

    found = examine()
    if as_json:
        emit(found)
        return
    machine = f"Python {found['python']}, {found['cores']} cores, {found['memory_gb']} GB free"
    click.echo(f"querycloak {found['version']}, {machine}")
    for part in found["parts"] + found["programs"]:
        get = "" if part["there"] else f"; {part['get']}"
        click.echo(f"  {'yes' if part['there'] else 'no '}  {part['name']}: {part['for']}{get}")
