"""`querycloak measure`: what analysts keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click import option

from querycloak.cli.options import FILE, Output, alone, repeated, with_output, with_reading
from querycloak.errors import UsageError
from querycloak.formatting import number


@click.command("measure")
@click.argument("release", type=click.Path(), required=False)
@option("--original", help="The log that was protected.")
@option("--truth", type=FILE, help="What `protect --truth` wrote.")
@option("--marketing", type=FILE, help="A CSV of term, bid, impressions, clicks.")
@repeated("-u", "--measure", "names", help="A name from `querycloak measures`; all if none is given.")
@option(
    "--own",
    metavar="HISTORY",
    help="Instead: what this history of one person says about its owner. Also reads Google's MyActivity.json "
    "(--format takeout) and one query a line (--format list).",
)
@option("--show", is_flag=True, help="With --own: show the queries behind the counts.")
@option("-o", "--output", type=FILE, help="With --own: a page, .html or .md.")
@with_reading
@with_output
def command(
    release: str | None,
    original: str | None,
    truth: Path | None,
    marketing: Path | None,
    names: tuple[str, ...],
    own: str | None,
    show: bool,
    output: Path | None,
    reading: dict[str, Any],
    out: Output,
) -> None:
    """Measure what a release keeps of the original.

    With --own: say what one person's own searches tell, on this machine only.

    Example: querycloak measure out.tsv --original log.tsv
    """
    from querycloak import api

    if own is not None:
        alone([release, original, truth, marketing, names], "--own", "it takes one history and nothing else")
        said, words = api.own_history(own, show=show, output=output, **reading)
        out.emit({"own": said})
        out.print(words)
        return
    alone([show, output], "RELEASE", hint="`--show` and `-o` go with `--own HISTORY`")
    if release is None or original is None:
        hint = "name a RELEASE and `--original LOG`, or a history of your own with `--own HISTORY`"
        raise UsageError("there are no two logs to compare", hint=hint)
    found = api.measure(original, release, names, truth=truth, marketing=marketing, **reading)
    out.emit({"measures": found})
    for name, value in found.items():
        out.print(f"{name}: {_text(value)}")


def _text(value: Any) -> str:
    if not isinstance(value, dict):
        return number(value)
    if "not_applicable" in value:
        return f"not applicable ({value['not_applicable']})"
    return ", ".join(f"{name} {number(part)}" for name, part in value.items())
