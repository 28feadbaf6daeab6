"""`querycloak attacks`: what there is, with games, knowledge and settings."""

from __future__ import annotations

import click

from querycloak.cli.options import TALK
from querycloak.cli.show import emit


@click.command("attacks")
@TALK
def command(quiet: bool, as_json: bool) -> None:
    """List the attacks with what each tries, what it gets to see, and its settings.

    Example: querycloak attacks
    """
    from querycloak.api import describe_attacks

    attacks = describe_attacks()
    if as_json:
        emit({"attacks": attacks})
        return
    for attack in attacks:
        click.echo(f"{attack['name']}: {attack['summary']}")
        slow = "" if attack["fast"] else "; runs only when named"
        click.echo(f"  game: {attack['game']}; sees: {' + '.join(attack['sees'])}{slow}")
        for setting in attack["settings"]:
            click.echo(
                f"  -s {setting['name']}={setting['default']}  {setting['help']} ({setting['allowed']})"
            )
        click.echo("")
