"""`querycloak assess`: a page for whoever has to decide about a release."""

from __future__ import annotations

from pathlib import Path

import click

from querycloak.cli.options import TALK
from querycloak.cli.show import emit, say

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("assess")
@click.argument("release", type=_FILE)
@click.option(
    "--findings", multiple=True, type=_FILE, help="What `attack --json` wrote; may be given several times."
)
@click.option("--measures", type=_FILE, help="What `measure --json` wrote.")
@click.option("-o", "--output", type=_FILE, required=True, help="The page to write: .html or .md.")
@TALK
def command(
    release: Path, findings: tuple[Path, ...], measures: Path | None, output: Path, quiet: bool, as_json: bool
) -> None:
    """Write a page in the style of an impact assessment, from certificate and findings.

    RELEASE is a release or its certificate. What only a person can say is left blank on the page.

    Example: querycloak assess out.tsv --findings found.json -o assessment.html
    """
    from querycloak.report.assessment import assess_files

    found = assess_files(release, output, findings=findings, measures=measures)
    if as_json:
        emit(found)
    for one in found["risks"]:
        say(f"{one['test'].lower()}: {one['risk']} ({one['why']})", quiet or as_json)
    say(f"wrote {output}", quiet or as_json)
