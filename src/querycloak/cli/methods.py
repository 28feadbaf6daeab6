"""`querycloak methods`: what there is, with settings and promises."""

from __future__ import annotations

import click

from querycloak.cli.options import TALK
from querycloak.cli.show import emit


@click.command("methods")
@TALK
def command(quiet: bool, as_json: bool) -> None:
    """List the protection methods with their settings, what they promise and what they do not.

    Example: querycloak methods
    """
    from querycloak.api import describe_methods

    methods = describe_methods()
    if as_json:
        emit({"methods": methods})
        return
    for method in methods:
        click.echo(f"{method['name']}: {method['summary']}")
        click.echo(f"  promise: {method['promise']}")
        for limit in method["does_not_protect_against"]:
            click.echo(f"  does not protect against {limit}")
        for setting in method["settings"]:
            click.echo(
                f"  -s {setting['name']}={setting['default']}  {setting['help']} ({setting['allowed']})"
            )
        click.echo("")
