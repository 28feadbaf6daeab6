"""`querycloak classify`: a category for every query."""

from __future__ import annotations

import click

from querycloak.cli.options import LOG, READING, TALK, emit, pairs, progress, say
from querycloak.formatting import plural


@click.command("classify")
@LOG
@click.option("-o", "--output", required=True, help="Where the log with categories goes; Parquet is fastest.")
@click.option("--taxonomy", metavar="FILE", help="An ODP dump or a CSV tree, instead of the one that ships.")
@click.option(
    "--classifier", default="lexical", show_default=True, help="lexical, a plug-in's name, or a URL."
)
@click.option("--keep", multiple=True, metavar="COLUMN", help="Pass a further column through.")
@READING
@TALK
def command(
    log: str,
    output: str,
    taxonomy: str | None,
    classifier: str,
    keep: tuple[str, ...],
    format_: str | None,
    mapping: tuple[str, ...],
    strict: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Return for each query a category, a path from general to specific.

    Example: querycloak classify log.tsv -o classified.parquet
    """
    from querycloak.api.commands import classify_file

    with progress(quiet or as_json) as show:
        done = classify_file(
            log, output, taxonomy=taxonomy, classifier=classifier, keep=keep,
            format=format_, mapping=pairs(mapping, "--map"), strict=strict, progress=show,
        )  # fmt: skip
    if as_json:
        emit(done)
    shares = f"{100 * done['answered']:.1f} % answered, {100 * done['confident']:.1f} % with confidence"
    say(f"classified {plural(done['records'], 'record')}: {shares}", quiet or as_json)
    for reason, count in done["skipped"].items():
        say(f"skipped {plural(count, 'bad row')}: {reason}", quiet or as_json)
