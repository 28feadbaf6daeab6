"""`cli.md`: what each command says about itself with `--help`."""

from __future__ import annotations

from collections.abc import Iterable

import click

from pages.markdown import fenced, table
from pages.markdown import page as put_together
from querycloak.cli import COMMANDS, main

WIDTH = 100

EXITS = (
    (0, "good"),
    (1, "a fault in querycloak itself; `QUERYCLOAK_DEBUG=1` shows the traceback, which may hold data"),
    (2, "the request cannot be carried out, or a policy refuses it"),
    (3, "the log is not what was declared"),
    (4, "a promise or a bound is broken, or a file is not the one that was certified"),
    (130, "interrupted"),
)


def context_of(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    """Give a command the fixed width in which its help is written."""
    return click.Context(
        command, info_name=name, parent=parent, terminal_width=WIDTH, max_content_width=WIDTH
    )


def sections(group: click.Group, context: click.Context, names: Iterable[str], level: str) -> list[str]:
    """Write the help of commands, and below each group that of its own."""
    parts = []
    for name in names:
        command = group.get_command(context, name)
        assert command is not None
        own = context_of(command, name, context)
        parts += [f"{level} {own.command_path}", fenced(command.get_help(own))]
        if isinstance(command, click.Group):
            parts += sections(command, own, command.list_commands(own), level + "#")
    return parts


def page() -> str:
    """Write the page."""
    commands = sections(main, context_of(main, "querycloak"), COMMANDS, "##")
    return put_together(
        "# The command line",
        "Data goes to standard output or to `-o`; everything else goes to standard error. `--json` prints "
        "one JSON object, `--quiet` prints errors only. Progress shows on a terminal only.",
        *commands,
        "## Exit status",
        table(("status", "meaning"), [(f"`{status}`", meaning) for status, meaning in EXITS]),
        "Which error leads to which status: [errors](errors.md).",
    )
