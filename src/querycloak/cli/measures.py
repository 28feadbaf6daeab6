"""`querycloak measures`: what can be measured."""

from __future__ import annotations

import click

from querycloak.cli.options import TALK
from querycloak.cli.show import emit


@click.command("measures")
@TALK
def command(quiet: bool, as_json: bool) -> None:
    """List the measures.

    Example: querycloak measures
    """
    from querycloak.registry import MEASURES

    measures = [{"name": name, "help": MEASURES.get(name).help} for name in MEASURES.names()]
    if as_json:
        emit({"measures": measures})
        return
    for measure in measures:
        click.echo(f"{measure['name']}: {measure['help']}")
