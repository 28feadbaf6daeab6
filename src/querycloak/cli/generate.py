"""`querycloak generate`, `classify` and `demo`: a synthetic log, categories of a log, and all steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click import option

from querycloak.cli.options import FOLDER, LOG, SEED, Output, defaulted, repeated, with_output, with_reading
from querycloak.formatting import percent, plural


@click.command("generate")
@option("--users", type=click.IntRange(min=1), required=True, help="How many people to make up.")
@option(
    "-o",
    "--output",
    required=True,
    help="Where the log goes; the extension chooses the format (.tsv: AOL's).",
)
@option(
    "--marketing",
    type=click.Path(dir_okay=False),
    help="Also write made-up bids, impressions and clicks of terms.",
)
@defaulted("--days", type=click.IntRange(min=1), default=92, help="How long they search.")
@option("--categories", is_flag=True, help="Also write the category that each query was made from.")
@SEED
@with_output
def generate(users: int, output: str, seed: int | None, out: Output, **options: Any) -> None:
    """Make up a log that behaves like AOL's of 2006. No real person's search is in it.

    Example: querycloak generate --users 1000 --seed 7 -o log.tsv
    """
    from querycloak.api import generate_file

    with out.progress() as show:
        made = generate_file(users, output, seed=seed or 0, progress=show, **options)
    out.emit(made)
    out.say(f"made up {plural(made['records'], 'record')} of {plural(users, 'user')}: {output}")


@click.command("classify")
@LOG
@option("-o", "--output", required=True, help="Where the log with categories goes; Parquet is fastest.")
@option("--taxonomy", metavar="FILE", help="An ODP dump or a CSV tree, instead of the one that ships.")
@defaulted("--classifier", default="lexical", help="lexical, a plug-in's name, or a URL.")
@repeated("--keep", metavar="COLUMN", help="Pass a further column through.")
@with_reading
@with_output
def classify(log: str, output: str, reading: dict[str, Any], out: Output, **options: Any) -> None:
    """Return for each query a category, a path from general to specific.

    Example: querycloak classify log.tsv -o classified.parquet
    """
    from querycloak.api import classify_file

    with out.progress() as show:
        done = classify_file(log, output, progress=show, **reading, **options)
    out.emit(done)
    shares = f"{percent(done['answered'])} answered, {percent(done['confident'])} with confidence"
    out.say(f"classified {plural(done['records'], 'record')}: {shares}")
    out.say_skipped(done["skipped"])


@click.command("demo")
@defaulted("-o", "--output", type=FOLDER, default="demo-out", help="A folder for what is made.")
@defaulted("--users", type=click.IntRange(min=50), default=2000, help="How many people to make up.")
@with_output
def demo(output: Path, users: int, out: Output) -> None:
    """Make up a log, classify, protect, verify and measure it, and show what came of it.

    Example: querycloak demo -o demo-out
    """
    from querycloak.api import run_demo

    with out.progress() as show:
        story = run_demo(output, users, progress=show)
    out.emit(story)
    for line in story["lines"]:
        out.say(line)
