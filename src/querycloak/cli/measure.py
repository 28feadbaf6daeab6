"""`querycloak measure`: what analysts keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from querycloak.cli.options import READING, TALK, pairs
from querycloak.cli.show import emit, number


@click.command("measure")
@click.argument("release", type=click.Path())
@click.option("--original", required=True, help="The log that was protected.")
@click.option(
    "--truth", type=click.Path(dir_okay=False, path_type=Path), help="What `protect --truth` wrote."
)
@click.option("--marketing", type=click.Path(dir_okay=False), help="A CSV of term, bid, impressions, clicks.")
@click.option(
    "-u", "--measure", "names", multiple=True, help="A name from `querycloak measures`; all if none is given."
)
@READING
@TALK
def command(
    release: str,
    original: str,
    truth: Path | None,
    marketing: str | None,
    names: tuple[str, ...],
    format_: str | None,
    mapping: tuple[str, ...],
    strict: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Measure what a release keeps of the original.

    Example: querycloak measure out.tsv --original log.tsv
    """
    from querycloak.api import measure_files

    found = measure_files(
        release, original, names, truth=truth, marketing=marketing,
        format=format_, mapping=pairs(mapping, "--map"), strict=strict,
    )  # fmt: skip
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
