"""`querycloak verify`: does a release keep what its certificate promises?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from querycloak.cli.options import TALK, alone, emit, pairs, say
from querycloak.errors import UsageError

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("verify")
@click.argument("release", type=click.Path(path_type=Path), required=False)
@click.option(
    "--diff",
    type=_FILE,
    nargs=2,
    metavar="A B",
    help="Compare two certificates, or those of two releases, instead: 4 if B is weaker anywhere.",
)
@click.option(
    "--findings",
    type=_FILE,
    nargs=2,
    metavar="A B",
    help="With --diff: what `attack --json` wrote about each.",
)
@click.option("--state", type=click.Path(path_type=Path), help="With --diff: the folder of the ledger.")
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
def verify(
    ctx: click.Context,
    /,
    release: Path | None,
    diff: tuple[Path, Path] | None,
    findings: tuple[Path, Path] | None,
    state: Path | None,
    format_: str | None,
    mapping: tuple[str, ...],
    quiet: bool,
    as_json: bool,
    **rest: Any,
) -> None:
    """Check a release against its certificate. Exit status 4 means that something is broken.

    With --diff: compare two certificates. Exit status 4 means that something got weaker.

    Example: querycloak verify out.tsv --original log.tsv --truth truth.parquet
    """
    if diff is not None:
        alone([release, format_, *mapping, *rest.values()], "--diff")
        ctx.exit(_diff(diff, findings, state, quiet, as_json))
    alone([findings, state], "RELEASE", hint="`--findings` and `--state` go with `--diff A B`")
    if release is None:
        raise UsageError("there is nothing to verify", hint="name a RELEASE, or two with `--diff A B`")
    from querycloak import api

    found = api.verify(release, format=format_, mapping=pairs(mapping, "--map"), **rest)
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


def _diff(
    files: tuple[Path, Path],
    findings: tuple[Path, Path] | None,
    state: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    from querycloak.api.commands import diff_certificates

    found = diff_certificates(*files, findings=findings, state=state)
    if as_json:
        emit(found.as_dict())
    elif not quiet:
        for title, changes in (
            ("weaker", found.weaker),
            ("stronger", found.stronger),
            ("changed", found.changed),
        ):
            click.echo(f"{title}:" if changes else f"{title}: nothing")
            for change in changes:
                note = f" ({change.note})" if change.note else ""
                click.echo(f"  {change.about}: {change.what}: {change.before} → {change.after}{note}")
        click.echo(f"the same: {found.same:,}")
        for line in found.relation:
            click.echo(f"  {line}")
    return 0 if found.not_weaker else 4


@click.command("assess")
@click.argument("release", type=_FILE)
@click.option(
    "--findings", multiple=True, type=_FILE, help="What `attack --json` wrote; may be given several times."
)
@click.option("--measures", type=_FILE, help="What `measure --json` wrote.")
@click.option("-o", "--output", type=_FILE, required=True, help="The page to write: .html or .md.")
@TALK
def assess(
    release: Path, findings: tuple[Path, ...], measures: Path | None, output: Path, quiet: bool, as_json: bool
) -> None:
    """Write a page in the style of an impact assessment, from certificate and findings.

    RELEASE is a release or its certificate. What only a person can say is left blank on the page.

    Example: querycloak assess out.tsv --findings found.json -o assessment.html
    """
    from querycloak.api.commands import assess_release

    found = assess_release(release, output, findings=findings, measures=measures)
    if as_json:
        emit(found)
    for one in found["risks"]:
        say(f"{one['test'].lower()}: {one['risk']} ({one['why']})", quiet or as_json)
    say(f"wrote {output}", quiet or as_json)
