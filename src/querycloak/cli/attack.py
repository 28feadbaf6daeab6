"""`querycloak attack`: what an attacker still learns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from querycloak.cli.options import READING, SEED, TALK, emit, pairs, progress, say
from querycloak.formatting import percent, plural

if TYPE_CHECKING:
    from querycloak.api import Finding

_FILE = click.Path(dir_okay=False, path_type=Path)
_HEAD = ("attack", "game", "success", "95 % interval", "bound", "holds", "n", "seconds")


@click.command("attack")
@click.argument("release", type=click.Path())
@click.option("--original", required=True, help="The log that was protected.")
@click.option("--truth", type=_FILE, required=True, help="What `protect --truth` wrote.")
@click.option(
    "-a",
    "--attack",
    "attacks",
    multiple=True,
    help="A name from `querycloak attacks`; all fast ones if none.",
)
@click.option(
    "-s", "--set", "chosen", multiple=True, metavar="[ATTACK.]NAME=VALUE", help="A setting of an attack."
)
@click.option("--certificate", type=_FILE, help="The certificate, if it is not beside the release.")
@click.option(
    "--fail-above-bound",
    is_flag=True,
    help="Exit with 4 if a stated bound is beaten or untested.",
)
@click.option("--write-log", metavar="FILE", help="Write the log that one attribution rebuilt (mode 0600).")
@click.option(
    "--write-profiles",
    type=_FILE,
    help="Write its guessed users' counts by category, as .csv or .parquet (mode 0600).",
)
@READING
@SEED
@TALK
@click.pass_context
def command(
    ctx: click.Context,
    /,
    chosen: tuple[str, ...],
    fail_above_bound: bool,
    format_: str | None,
    mapping: tuple[str, ...],
    quiet: bool,
    as_json: bool,
    **rest: Any,
) -> None:
    """Attack a release and say how often each attack is right, against the bound that was promised.

    Example: querycloak attack out.parquet --original log.parquet --truth truth.parquet
    """
    from querycloak import api

    with progress(quiet or as_json) as show:
        findings = api.attack(
            rest.pop("release"),
            rest.pop("original"),
            *rest.pop("attacks"),
            settings=pairs(chosen, "-s"),
            format=format_,
            mapping=pairs(mapping, "--map"),
            progress=show,
            **rest,
        )
    if as_json:
        emit({"findings": [finding.as_dict() for finding in findings]})
    elif not quiet:
        _tell(findings)
    beaten = [finding.attack for finding in findings if finding.holds is False]
    if beaten:
        say(f"above the bound: {', '.join(beaten)}", quiet or as_json)
    if findings.untested:
        say(f"bound not tested: {', '.join(findings.untested)}", quiet or as_json)
    ctx.exit(4 if fail_above_bound and (beaten or findings.untested) else 0)


def _tell(findings: list[Finding]) -> None:
    table = [_HEAD, *(_row(finding) for finding in findings if not finding.not_applicable)]
    widths = [max(len(row[place]) for row in table) for place in range(len(_HEAD))]
    for row in table:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for finding in findings:
        if finding.not_applicable:
            click.echo(f"{finding.attack}: not applicable ({finding.not_applicable})")
        if finding.structure:
            _tell_privacy(finding)


def _tell_privacy(finding: Finding) -> None:
    """Return what fakes left to people, and how many people that is about."""
    assert finding.structure
    assert finding.semantic
    numbers = {
        "structure privacy": finding.structure["error"],
        "worst-case semantic privacy": finding.semantic["worst"],
        "relative privacy": (finding.relative or {}).get("error", {"mean": None, "low": None, "high": None}),
    }
    click.echo(f"\n{finding.attack}, {finding.details['targets']} of {finding.details['people']} people:")
    for name, found in numbers.items():
        interval = f"{_percent(found['low'])} … {_percent(found['high'])}"
        click.echo(f"  {name.ljust(28)}{_percent(found['mean'])}  ({interval})")


def _row(finding: Finding) -> tuple[str, ...]:
    holds = {None: "–", True: "yes", False: "NO"}[finding.holds]
    interval = f"{_percent(finding.low)} … {_percent(finding.high)}"
    number = plural(finding.n, finding.unit)
    success, bound = _percent(finding.success), _percent(finding.bound)
    return finding.attack, finding.game, success, interval, bound, holds, number, f"{finding.seconds:.1f}"


def _percent(share: float | None) -> str:
    return percent(share, 2)
