"""`querycloak measure`: what analysts keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from querycloak.cli.options import READING, TALK, alone, emit, pairs
from querycloak.errors import UsageError
from querycloak.formatting import number


@click.command("measure")
@click.argument("release", type=click.Path(), required=False)
@click.option("--original", help="The log that was protected.")
@click.option(
    "--truth", type=click.Path(dir_okay=False, path_type=Path), help="What `protect --truth` wrote."
)
@click.option("--marketing", type=click.Path(dir_okay=False), help="A CSV of term, bid, impressions, clicks.")
@click.option(
    "-u", "--measure", "names", multiple=True, help="A name from `querycloak measures`; all if none is given."
)
@click.option(
    "--own",
    metavar="HISTORY",
    help="Instead: what this history of one person says about its owner. Also reads Google's MyActivity.json "
    "(--format takeout) and one query a line (--format list).",
)
@click.option("--show", is_flag=True, help="With --own: show the queries behind the counts.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --own: a page, .html or .md.",
)
@READING
@TALK
def command(
    release: str | None,
    original: str | None,
    truth: Path | None,
    marketing: str | None,
    names: tuple[str, ...],
    own: str | None,
    show: bool,
    output: Path | None,
    format_: str | None,
    mapping: tuple[str, ...],
    strict: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Measure what a release keeps of the original.

    With --own: say what one person's own searches tell, on this machine only.

    Example: querycloak measure out.tsv --original log.tsv
    """
    from querycloak import api

    reading: dict[str, Any] = {"format": format_, "mapping": pairs(mapping, "--map"), "strict": strict}
    if own is not None:
        alone([release, original, truth, marketing, names], "--own", "it takes one history and nothing else")
        said, words = api.own_history(own, show=show, output=output, **reading)
        if as_json:
            emit({"own": said})
        elif not quiet:
            click.echo(words)
        return
    alone([show, output], "RELEASE", hint="`--show` and `-o` go with `--own HISTORY`")
    if release is None or original is None:
        hint = "name a RELEASE and `--original LOG`, or a history of your own with `--own HISTORY`"
        raise UsageError("there are no two logs to compare", hint=hint)
    found = api.measure(original, release, names, truth=truth, marketing=marketing, **reading)
    if as_json:
        emit({"measures": found})
    elif not quiet:
        for name, value in found.items():
            click.echo(f"{name}: {_text(value)}")


def _text(value: Any) -> str:
    if not isinstance(value, dict):
        return number(value)
    if "not_applicable" in value:
        return f"not applicable ({value['not_applicable']})"
    return ", ".join(f"{name} {number(part)}" for name, part in value.items())
