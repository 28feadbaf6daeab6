"""`querycloak generate` and `querycloak demo`: a synthetic log, and all steps on one."""

from __future__ import annotations

from pathlib import Path

import click

from querycloak.cli.options import SEED, TALK, emit, progress, say
from querycloak.formatting import plural


@click.command("generate")
@click.option("--users", type=click.IntRange(min=1), required=True, help="How many people to make up.")
@click.option(
    "-o",
    "--output",
    required=True,
    help="Where the log goes; the extension chooses the format (.tsv: AOL's).",
)
@click.option(
    "--marketing",
    type=click.Path(dir_okay=False),
    help="Also write made-up bids, impressions and clicks of terms.",
)
@click.option(
    "--days", type=click.IntRange(min=1), default=92, show_default=True, help="How long they search."
)
@click.option("--categories", is_flag=True, help="Also write the category that each query was made from.")
@SEED
@TALK
def generate(
    users: int,
    output: str,
    marketing: str | None,
    days: int,
    categories: bool,
    seed: int | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Make up a log that behaves like AOL's of 2006. No real person's search is in it.

    Example: querycloak generate --users 1000 --seed 7 -o log.tsv
    """
    from querycloak.api.commands import generate_file

    with progress(quiet or as_json) as show:
        made = generate_file(
            users,
            output,
            seed=seed or 0,
            days=days,
            categories=categories,
            marketing=marketing,
            progress=show,
        )
    if as_json:
        emit(made)
    say(f"made up {plural(made['records'], 'record')} of {plural(users, 'user')}: {output}", quiet or as_json)


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
def demo(output: Path, users: int, quiet: bool, as_json: bool) -> None:
    """Make up a log, classify, protect, verify and measure it, and show what came of it.

    Example: querycloak demo -o demo-out
    """
    from querycloak.api.commands import run_demo

    with progress(quiet or as_json) as show:
        story = run_demo(output, users, progress=show)
    if as_json:
        emit(story)
        return
    for line in story["lines"]:
        say(line, quiet)
