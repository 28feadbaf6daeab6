"""`querycloak verify`: does a release keep what its certificate promises?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from querycloak.cli.options import TALK, pairs
from querycloak.cli.show import emit, say

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("verify")
@click.argument("release", type=click.Path(path_type=Path))
@click.option("--certificate", type=_FILE, help="The certificate, if it is not beside the release.")
@click.option("--original", help="The log that was protected; with --truth, everything can be checked.")
@click.option("--truth", type=_FILE, help="What `protect --truth` wrote.")
@click.option(
    "--secret-file", type=_FILE, help="The secret of `protect`; with --original, every label is recomputed."
)
@click.option("--public-key", type=_FILE, help="Check the signature with this Ed25519 key (PEM).")
@click.option("--format", "format_", metavar="NAME", help="The original's format, if it cannot be guessed.")
@click.option(
    "--map", "mapping", multiple=True, metavar="COLUMN=NAME", help="Where a column of the original is."
)
@TALK
@click.pass_context
def command(
    ctx: click.Context,
    /,
    format_: str | None,
    mapping: tuple[str, ...],
    quiet: bool,
    as_json: bool,
    **rest: Any,
) -> None:
    """Check a release against its certificate. Exit status 4 means that something is broken.

    Example: querycloak verify out.tsv --original log.tsv --truth truth.parquet
    """
    from querycloak.engines.verify import Question, verify

    found = verify(Question(format=format_, mapping=pairs(mapping, "--map"), **rest))
    if as_json:
        emit(found.as_dict())
    lists = (
        ("checked", found.checked),
        ("not checkable from this evidence", found.not_checkable),
        ("broken", found.broken),
    )
    for title, lines in lists:
        say(f"{title}:" if lines else f"{title}: nothing", quiet or as_json)
        for line in lines:
            detail = f" ({line['detail']})" if line["detail"] else ""
            say(f"  {line['about']}: {line['check']}{detail}", quiet or as_json)
    ctx.exit(0 if found.holds else 4)
