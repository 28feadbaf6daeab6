"""`querycloak verify`: check a release against its certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click import option

from querycloak.cli.options import FILE, Output, alone, pairs, repeated, with_output
from querycloak.errors import UsageError

_TITLES = ("passed", "not testable with this evidence", "failed", "not applicable")


@click.command("verify")
@click.argument("release", type=click.Path(path_type=Path), required=False)
@option(
    "--diff",
    type=FILE,
    nargs=2,
    metavar="A B",
    help="Compare two certificates, or those of two releases, instead: 4 if B is weaker anywhere.",
)
@option(
    "--findings",
    type=FILE,
    nargs=2,
    metavar="A B",
    help="With --diff: what `attack --json` wrote about each.",
)
@option("--state", type=click.Path(path_type=Path), help="With --diff: the folder of the ledger.")
@option("--certificate", type=FILE, help="The certificate, if it is not beside the release.")
@option("--original", help="The log that was protected; with --truth, everything can be checked.")
@option("--truth", type=FILE, help="What `protect --truth` wrote.")
@option(
    "--secret-file", type=FILE, help="The secret of `protect`; with --original, every label is recomputed."
)
@option("--public-key", type=FILE, help="Check the signature with this Ed25519 key (PEM).")
@option(
    "--ledger",
    type=FILE,
    help="The ledger of the source, or a copy: one that was put back lacks the entry of a later certificate.",
)
@option("--format", "format_", metavar="NAME", help="The original's format, if it cannot be guessed.")
@repeated("--map", "mapping", metavar="COLUMN=NAME", help="Where a column of the original is.")
@with_output
def verify(
    release: Path | None,
    diff: tuple[Path, Path] | None,
    findings: tuple[Path, Path] | None,
    state: Path | None,
    format_: str | None,
    mapping: tuple[str, ...],
    out: Output,
    **rest: Any,
) -> None:
    """Check a release against its certificate. Exit status 4 means that a check failed.

    With --diff: compare two certificates. Exit status 4 means that something got weaker.

    Example: querycloak verify out.tsv --original log.tsv --truth truth.parquet
    """
    if diff is not None:
        alone([release, format_, *mapping, *rest.values()], "--diff")
        _diff(diff, findings, state, out)
        return
    alone([findings, state], "RELEASE", hint="`--findings` and `--state` go with `--diff A B`")
    if release is None:
        raise UsageError("there is nothing to verify", hint="name a RELEASE, or two with `--diff A B`")
    from querycloak import api

    found = api.verify(release, format=format_, mapping=pairs(mapping, "--map"), **rest)
    out.emit(found.as_dict())
    for title, lines in zip(_TITLES, found.as_dict().values(), strict=True):
        out.say(f"{title}:" if lines else f"{title}: nothing")
        for line in lines:
            detail = f" ({line['detail']})" if line["detail"] else ""
            out.say(f"  {line['about']}: {line['check']}{detail}")
    if not found.holds:
        raise click.exceptions.Exit(4)


def _diff(
    files: tuple[Path, Path], findings: tuple[Path, Path] | None, state: Path | None, out: Output
) -> None:
    from querycloak.api import diff_certificates

    found = diff_certificates(*files, findings=findings, state=state)
    out.emit(found.as_dict())
    for title in ("weaker", "stronger", "changed"):
        changes = getattr(found, title)
        out.print(f"{title}:" if changes else f"{title}: nothing")
        for change in changes:
            note = f" ({change.note})" if change.note else ""
            out.print(f"  {change.about}: {change.what}: {change.before} → {change.after}{note}")
    out.print(f"the same: {found.same:,}")
    for line in found.relation:
        out.print(f"  {line}")
    if not found.not_weaker:
        raise click.exceptions.Exit(4)


@click.command("assess")
@click.argument("release", type=FILE)
@repeated("--findings", type=FILE, help="What `attack --json` wrote; may be given several times.")
@option("--measures", type=FILE, help="What `measure --json` wrote.")
@option("-o", "--output", type=FILE, required=True, help="The page to write: .html or .md.")
@with_output
def assess(release: Path, output: Path, out: Output, **evidence: Any) -> None:
    """Write a page in the style of an impact assessment, from certificate and findings.

    RELEASE is a release or its certificate. What only a person can say is left blank on the page.

    Example: querycloak assess out.tsv --findings found.json -o assessment.html
    """
    from querycloak.api import assess_release

    found = assess_release(release, output, **evidence)
    out.emit(found)
    for one in found["risks"]:
        out.say(f"{one['test'].lower()}: {one['risk']} ({one['why']})")
    out.say(f"wrote {output}")
