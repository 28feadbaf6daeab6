"""`querycloak compare`: every defence against every attack, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click import option

from querycloak.cli.options import FILE, FOLDER, LOG, Output, defaulted, repeated, with_output, with_reading


@click.command("compare")
@LOG
@repeated(
    "-m",
    "--method",
    "methods",
    metavar="METHOD[:NAME=V1,V2]…",
    help="A method, and values to try for its settings; METHOD+METHOD composes.",
)
@option("--preset", metavar="NAME", help="quick, full, paper-000 … paper-004 or search-data-sharing.")
@repeated(
    "-a", "--attack", "attacks", metavar="ATTACK[:NAME=VALUE]…", help="Attacks to run instead of the usual."
)
@repeated("-u", "--measure", "measures", help="Measures to take instead of the usual.")
@option("-o", "--output", required=True, type=FOLDER, help="A folder for the report.")
@option("--sample", type=click.IntRange(min=0), help="Compare on so many people; 0: on all.")
@option("--repeats", type=click.IntRange(min=1, max=100), help="Runs of each candidate, for intervals.")
@option("--seconds", type=click.FloatRange(min=1), help="Give a candidate up after so long; it is reported.")
@option("--seed", type=int, help="What all draws start from (default 1).")
@option("--gate", type=FILE, help="Thresholds (TOML); exit status 4 if one is missed.")
@with_reading
@with_output
def compare(
    log: str, output: Path, gate: Path | None, reading: dict[str, Any], out: Output, **asked: Any
) -> None:
    """Protect a log in many ways, attack each release, measure what is kept, and write one report.

    Started again with the same folder it carries on where it was stopped.

    Example: querycloak compare log.tsv --preset quick -o out/
    """
    from querycloak.api import compare_files

    with out.progress() as show:
        found = compare_files(log, output, gate=gate, progress=show, reading=reading, **asked)
    out.emit(found.as_dict())
    for line in found.lines():
        out.say(line)
    if found.faults:
        raise click.exceptions.Exit(4)


@click.command("recommend")
@LOG
@option(
    "--max-linkage", type=float, required=True, help="The share that may be linked to people at most: 0.05."
)
@defaulted("--keep", default="topics", help="What it is for: topics, terms, sessions or clicks.")
@defaulted(
    "--attacker",
    default="any",
    help="Against whom: `release` (sees only that), `knowing` (knows people too) or `any`.",
)
@defaulted("--sample", type=click.IntRange(min=50), default=3000, help="People to search on.")
@defaulted("--seed", type=int, default=1, help="What all draws start from.")
@option("-o", "--output", type=FOLDER, help="A folder for the evidence; it can be resumed.")
@with_reading
@with_output
def recommend(log: str, output: Path | None, reading: dict[str, Any], out: Output, **goal: Any) -> None:
    """Search methods and settings on a sample, and propose the release that keeps most within a limit.

    Exit status 4 means that nothing keeps to it.

    Example: querycloak recommend log.tsv --max-linkage 0.05 --keep topics
    """
    from querycloak.api import recommend_release

    with out.progress() as show:
        found = recommend_release(log, output=output, progress=show, reading=reading, **goal)
    out.emit(found.proposal)
    for line in found.lines:
        out.print(line)
    if output is not None:
        out.say(f"\nThe evidence is in {output}")
    if not found.chosen:
        raise click.exceptions.Exit(4)
