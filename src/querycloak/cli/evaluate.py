"""`querycloak attack` and `measure`: what an attacker still learns, and what analysts keep."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import option

from querycloak.cli.options import FILE, SEED, Output, alone, pairs, repeated, with_output, with_reading
from querycloak.errors import UsageError
from querycloak.formatting import number, percent, plural

if TYPE_CHECKING:
    from querycloak.api import Finding

_percent = partial(percent, digits=2)
_HEAD = ("attack", "game", "success", "95 % interval", "bound", "holds", "n", "seconds")


@click.command("attack")
@click.argument("release", type=click.Path())
@option("--original", required=True, help="The log that was protected.")
@option("--truth", type=FILE, required=True, help="What `protect --truth` wrote.")
@repeated("-a", "--attack", "attacks", help="A name from `querycloak attacks`; all fast ones if none.")
@repeated("-s", "--set", "chosen", metavar="[ATTACK.]NAME=VALUE", help="A setting of an attack.")
@option("--certificate", type=FILE, help="The certificate, if it is not beside the release.")
@option(
    "--fail-above-bound",
    is_flag=True,
    help="Exit with 4 if a stated bound is beaten, or if no attack of its game could test it.",
)
@option("--write-log", metavar="FILE", help="Write the log that one attribution rebuilt (mode 0600).")
@option(
    "--write-profiles",
    type=FILE,
    help="Write its guessed users' counts by category, as .csv or .parquet (mode 0600).",
)
@with_reading
@SEED
@with_output
def attack(
    release: str,
    original: str,
    attacks: tuple[str, ...],
    chosen: tuple[str, ...],
    fail_above_bound: bool,
    reading: dict[str, Any],
    out: Output,
    **rest: Any,
) -> None:
    """Attack a release and say how often each attack is right, against the bound that was promised.

    Example: querycloak attack out.parquet --original log.parquet --truth truth.parquet
    """
    from querycloak import api

    settings = pairs(chosen, "-s")
    with out.progress() as show:
        findings = api.attack(
            release, original, *attacks, settings=settings, progress=show, **reading, **rest
        )
    out.emit({"findings": [finding.as_dict() for finding in findings]})
    _print(findings, out)
    beaten = [finding.attack for finding in findings if finding.holds is False]
    if beaten:
        out.say(f"above the bound: {', '.join(beaten)}")
    if findings.untested:
        out.say(f"bound not tested: {', '.join(findings.untested)}")
    if fail_above_bound and (beaten or findings.untested):
        raise click.exceptions.Exit(4)


def _print(findings: list[Finding], out: Output) -> None:
    table = [_HEAD, *(_row(finding) for finding in findings if not finding.not_applicable)]
    widths = [max(len(row[place]) for row in table) for place in range(len(_HEAD))]
    for row in table:
        out.print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for finding in findings:
        if finding.not_applicable:
            out.print(f"{finding.attack}: not applicable ({finding.not_applicable})")
        if finding.structure:
            _print_privacy(finding, out)


def _print_privacy(finding: Finding, out: Output) -> None:
    """Print what dummy queries left to users, and how many users that is about."""
    assert finding.structure
    assert finding.semantic
    numbers = {
        "structure privacy": finding.structure["error"],
        "worst-case semantic privacy": finding.semantic["worst"],
        "relative privacy": (finding.relative or {}).get("error", {"mean": None, "low": None, "high": None}),
    }
    out.print(f"\n{finding.attack}, {finding.details['targets']} of {finding.details['people']} people:")
    for name, found in numbers.items():
        interval = f"{_percent(found['low'])} … {_percent(found['high'])}"
        out.print(f"  {name.ljust(28)}{_percent(found['mean'])}  ({interval})")


def _row(finding: Finding) -> tuple[str, ...]:
    holds = {None: "–", True: "yes", False: "NO"}[finding.holds]
    interval = f"{_percent(finding.low)} … {_percent(finding.high)}"
    units = plural(finding.n, finding.unit)
    success, bound = _percent(finding.success), _percent(finding.bound)
    return finding.attack, finding.game, success, interval, bound, holds, units, f"{finding.seconds:.1f}"


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
def measure(
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
