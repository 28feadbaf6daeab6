"""`querycloak demo`: the whole story on a made-up log."""

from __future__ import annotations

from pathlib import Path

import click

from querycloak.cli.options import TALK
from querycloak.cli.show import emit, progress, say


@click.command("demo")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default="demo-out",
    show_default=True,
    help="A folder for what is made.",
)
@click.option(
    "--users",
    type=click.IntRange(min=50),
    default=2000,
    show_default=True,
    help="How many people to make up.",
)
@TALK
def command(output: Path, users: int, quiet: bool, as_json: bool) -> None:
    """Make up a log, classify, protect, verify and measure it, and show what came of it.

    Example: querycloak demo -o demo-out
    """
    from querycloak.testing.demo import run

    with progress(quiet or as_json) as show:
        story = run(output, users, show)
    if as_json:
        emit(story)
        return
    for line in story["lines"]:
        say(line, quiet)
