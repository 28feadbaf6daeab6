"""`querycloak crowd`: friends that forward each other's queries, simulated or real."""

from __future__ import annotations

from importlib import import_module

import click

#: Each command and where it lives; it is imported on use.
COMMANDS = {
    "simulate": "crowd_simulate:command",
    "peer": "crowd_peer:peer",
    "search-server": "crowd_peer:search_server",
}


class Crowd(click.Group):
    """Commands that are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order of the story."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command when it is asked for."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        found: click.Command = getattr(import_module(f"querycloak.cli.{module}"), name)
        return found


@click.group("crowd", cls=Crowd)
def command() -> None:
    """Let friends submit each other's queries, so that no profile is anybody's own.

    Example: querycloak crowd simulate --users 10000 --queries 1000000
    """
