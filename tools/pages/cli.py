"""`cli.md`: what each command says about itself with `--help`."""

from __future__ import annotations

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


def help_of(name: str) -> str:
    """Give a command's help text at a fixed width."""
    root = click.Context(main, info_name="querycloak", terminal_width=WIDTH, max_content_width=WIDTH)
    command = main.get_command(root, name)
    assert command is not None
    context = click.Context(
        command, info_name=name, parent=root, terminal_width=WIDTH, max_content_width=WIDTH
    )
    return command.get_help(context)


def page() -> str:
    """Write the page."""
    commands = [part for name in COMMANDS for part in (f"## querycloak {name}", fenced(help_of(name)))]
    return put_together(
        "# The command line",
        "Data goes to standard output or to `-o`; everything else goes to standard error. `--json` prints "
        "one JSON object, `--quiet` prints errors only. Progress shows on a terminal only.",
        *commands,
        "## Exit status",
        table(("status", "meaning"), [(f"`{status}`", meaning) for status, meaning in EXITS]),
        "Which error leads to which status: [errors](errors.md).",
    )
