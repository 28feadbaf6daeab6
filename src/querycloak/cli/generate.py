"""`querycloak generate`: a realistic made-up log."""

from __future__ import annotations

import click

from querycloak.cli.options import SEED, TALK
from querycloak.cli.show import emit, plural, progress, say


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
def command(
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
    from querycloak.testing.made_up import write_log

    with progress(quiet or as_json) as show:
        made = write_log(
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
