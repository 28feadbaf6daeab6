"""`querycloak recommend`: which release to make of this log."""

from __future__ import annotations

from pathlib import Path

import click

from querycloak.cli.options import LOG, READING, TALK, pairs
from querycloak.cli.show import emit, progress, say


@click.command("recommend")
@LOG
@click.option(
    "--max-linkage", type=float, required=True, help="The share that may be linked to people at most: 0.05."
)
@click.option(
    "--keep", default="topics", show_default=True, help="What it is for: topics, terms, sessions or clicks."
)
@click.option(
    "--attacker",
    default="any",
    show_default=True,
    help="Against whom: `release` (sees only that), `knowing` (knows people too) or `any`.",
)
@click.option(
    "--sample", type=click.IntRange(min=50), default=3000, show_default=True, help="People to search on."
)
@click.option("--seed", type=int, default=1, show_default=True, help="What all draws start from.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder for the evidence; it can be resumed.",
)
@READING
@TALK
@click.pass_context
def command(
    ctx: click.Context,
    /,
    log: str,
    max_linkage: float,
    keep: str,
    attacker: str,
    sample: int,
    seed: int,
    output: Path | None,
    format_: str | None,
    mapping: tuple[str, ...],
    strict: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Search methods and settings on a sample, and propose the release that keeps most within a limit.

    Exit status 4 means that nothing keeps to it.

    Example: querycloak recommend log.tsv --max-linkage 0.05 --keep topics
    """
    from querycloak.engines.compare.recommend import Wish, recommend, write
    from querycloak.engines.compare.run import Reading
    from querycloak.report.comparison.told import proposed

    with progress(quiet or as_json) as show:
        found = recommend(
            log, Wish(max_linkage, keep, attacker), folder=output, sample=sample, seed=seed,
            reading=Reading(format_, pairs(mapping, "--map"), strict), progress=show,
        )  # fmt: skip
    if as_json:
        emit(found.as_dict())
    elif not quiet:
        for line in proposed(found.as_dict()):
            click.echo(line)
    if output is not None:
        say(f"\nThe evidence is in {write(found, output).parent}", quiet or as_json)
    ctx.exit(0 if found.chosen else 4)
