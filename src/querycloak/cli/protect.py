"""`querycloak protect`: turn a log into a release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
from click import option

from querycloak.cli.options import (
    FILE,
    FOLDER,
    LOG,
    SEED,
    Output,
    defaulted,
    pairs,
    repeated,
    with_output,
    with_reading,
)
from querycloak.errors import UsageError
from querycloak.formatting import plural, verdict_word

if TYPE_CHECKING:
    from querycloak.api import Report


@click.command("protect")
@LOG
@repeated(
    "-m", "--method", "methods", required=True, help="A name from `querycloak methods`; repeat to compose."
)
@repeated("-s", "--set", "chosen", metavar="[METHOD.]NAME=VALUE", help="A setting of a method.")
@defaulted("-o", "--output", default="-", help="The release; its certificate goes beside it.")
@option(
    "--truth",
    type=FILE,
    help="Also write, for evaluation only, where each released row came from (mode 0600).",
)
@option("--state", type=FOLDER, help="Where a source's ledger and state are kept.")
@option("--source", metavar="NAME", help="What the log is a part of, so that repeated releases are counted.")
@repeated("--keep", metavar="COLUMN", help="Pass a further column through. It may carry identity!")
@option(
    "--marketing",
    type=FILE,
    help="A CSV of term, bid, impressions, clicks, for methods that ask what terms are worth.",
)
@option("--explain", is_flag=True, help="Say how many searches were withheld and why, by method.")
@option("--dry-run", is_flag=True, help="Do everything, audit included, but write nothing.")
@option("--allow-bad", is_flag=True, help="Accept a log with more than half of its rows bad, or without any.")
@option(
    "--secret-file",
    type=FILE,
    help="Take the secret from this file, made on first use (mode 0600), so that `verify` can use it too.",
)
@option("--sign", type=FILE, metavar="KEY", help="Sign the certificate with an Ed25519 key (PEM).")
@defaulted(
    "--engine",
    type=click.Choice(["local", "spark"]),
    default="local",
    help="What does the work: this machine alone, or Spark.",
)
@defaulted("--master", metavar="URL", default="local[*]", help="Where Spark runs, with `--engine spark`.")
@repeated("--conf", "conf", metavar="NAME=VALUE", help="An option of Spark's own, e.g. its memory.")
@with_reading
@SEED
@with_output
def command(
    log: str,
    methods: tuple[str, ...],
    chosen: tuple[str, ...],
    conf: tuple[str, ...],
    explain: bool,
    reading: dict[str, Any],
    out: Output,
    **rest: Any,
) -> None:
    """Turn a log into a release, with a certificate that says what is promised and what is not.

    Example: querycloak protect log.tsv -m rules -m frequent-only -s k=5 -o out.tsv
    """
    from querycloak import api

    if out.as_json and rest["output"] == "-":
        raise UsageError(
            "--json and the release would both go to standard output", hint="name a file with -o"
        )
    rest |= {"truth": rest["truth"] or False, "conf": pairs(conf, "--conf")}
    with out.progress() as show:
        report = api.protect(
            log, *methods, settings=pairs(chosen, "-s"), progress=show, **reading, **rest
        ).report
    out.emit(report.as_dict())
    for line in _lines(report, explain, rest["dry_run"]):
        out.say(line)


def _lines(report: Report, explain: bool, dry_run: bool) -> Iterator[str]:
    good = report.rows_read - sum(report.skipped.values())
    did = "would release" if dry_run else "released"
    if report.table:
        yield f"{did} a table of {plural(report.released, 'line')}, from {plural(good, 'record')}"
    else:
        yield f"{did} {report.released:,} of {plural(good, 'record')}"
    yield from _verdicts(report.certificate)
    for reason, count in report.skipped.items():
        rows = ", ".join(str(row) for row in report.skipped_rows[reason][:5])
        yield f"skipped {plural(count, 'bad row')}: {reason} (data rows {rows}{', …' if count > 5 else ''})"
    if report.joined_users:
        ids = plural(report.joined_users, "user id")
        yield f"joined {ids} with another spelling of the same user: white space, Unicode form, case"
    if report.dropped_columns:
        names = ", ".join(report.dropped_columns)
        yield f"emptied what may carry identity ({plural(len(report.dropped_columns), 'column')}): {names}"
    if explain:
        yield from _explanation(report)
    if report.earlier_releases:
        times = plural(report.earlier_releases, "time")
        yield f"this source was released {times} before: what the releases tell adds up"
    if report.released_elsewhere:
        times = plural(report.released_elsewhere, "time")
        where = "for another source, or for none" if report.earlier_releases is not None else "before"
        yield f"warning: this log was released {times} {where}: releases of the same users can be intersected"
        yield "hint: name the log's source with `--source NAME` in every release"
    if not report.certificate["randomness"]["publishable"]:
        what = "all but its noise" if "noise" in report.certificate["randomness"] else "its draws"
        yield f"made with --seed, so anyone can recompute {what}: for tests, not for publication"
    for path in report.written[1:]:
        yield f"wrote {path}"
    for text in report.warnings:
        yield f"warning: {text}"


def _verdicts(certificate: dict[str, Any]) -> Iterator[str]:
    """Yield each guarantee with its verdict, and the checks that were not made."""
    for part in certificate["methods"]:
        yield f"  {part['method']}: {part['promise']} [{verdict_word(part['audit'])}]"
        yield from _not_tested(part["checks"], "    ")
    yield from _not_tested(certificate["lineage"], "  release: ")


def _not_tested(checks: list[dict[str, str]], margin: str) -> Iterator[str]:
    for check in checks:
        if check["verdict"] == "not checkable":
            yield f"{margin}not tested: {check['check']} ({check['detail']})"


def _explanation(report: Report) -> Iterator[str]:
    if report.withheld < 0:
        yield f"shows {plural(-report.withheld, 'record')} more than it read; searches by reason:"
    else:
        yield f"withheld {plural(report.withheld, 'record')}; searches by reason:"
    for method, reasons in report.reasons.items():
        for reason, count in sorted(reasons.items(), key=lambda pair: -pair[1]):
            yield f"  {method}: {reason}: {count:,}"
    for method, parts in report.explanation.items():
        for name, value in parts.items():
            text = ", ".join(f"{k} {v:,}" for k, v in value.items()) if isinstance(value, dict) else value
            yield f"  {method}: {name.replace('_', ' ')}: {text}"
