"""`querycloak obfuscate`: hide real queries among dummy queries, in a log or live."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from querycloak.cli.options import READING, SEED, TALK, emit, pairs, progress, say
from querycloak.errors import UsageError
from querycloak.formatting import plural

#: Options that are settings of a method.
SETTINGS = ("fakes", "timing", "bag")


@click.command("obfuscate")
@click.argument("log", type=click.Path(allow_dash=True), required=False)
@click.option("-m", "--method", required=True, help="tmn, usr, hybrid, shadow, or a method of a plug-in.")
@click.option("-o", "--output", help="Output file; live: standard output by default.")
@click.option("--truth", type=click.Path(dir_okay=False, path_type=Path),
              help="For evaluation only: ground truth, which rows are dummies (mode 0600).")  # fmt: skip
@click.option("--fakes", type=float,
              help="Dummy searches per real search; default 1 (usr: all of one other user).")  # fmt: skip
@click.option("--timing", help="random (default), burst or regular; for tmn and hybrid.")
@click.option("--bag", type=click.Path(),
              help="For tmn: a file or folder of text, RSS or Atom; default: synthetic news.")  # fmt: skip
@click.option("--pool", type=click.Path(),
              help="Another log whose searches are used as dummies; for all methods but tmn.")  # fmt: skip
@click.option("--keep", multiple=True, metavar="COLUMN", help="Pass a further column through.")
@click.option("--live", is_flag=True, help="Read real queries from standard input, line by line.")
@click.option("--every", type=float, help="Live: mean seconds between dummy queries; default 60.")
@click.option("--speed", type=float, help="Live: factor by which time passes faster, for trials.")
@READING
@SEED
@TALK
def command(live: bool, quiet: bool, as_json: bool, **given: Any) -> None:
    """Hide real searches among dummy searches; only the ground truth shows which are which.

    Example: querycloak obfuscate log.tsv -m shadow -o trace.tsv --truth t.parquet
    """
    _check(live, as_json, given)
    (_live if live else _file)(quiet, as_json, given)


def _check(live: bool, as_json: bool, given: dict[str, Any]) -> None:
    if live:
        wrong = [
            name for name in ("log", "truth", "pool", "keep", "mapping", "format_", "strict") if given[name]
        ]
        if wrong:
            raise UsageError(
                "`--live` reads queries from standard input: it takes no log, and writes no truth"
            )
        burst = given["timing"] == "burst"
        if given["every" if burst else "fakes"] is not None:
            raise UsageError("live, `--fakes` goes with `--timing burst`, and `--every` with the others")
    elif given["log"] is None or given["output"] is None:
        raise UsageError("a log and an output (`-o`) are needed", hint="or use `--live`")
    elif given["every"] is not None or given["speed"] is not None:
        raise UsageError("`--every` and `--speed` go with `--live`")
    if as_json and (given["output"] or "-") == "-":
        raise UsageError("--json and the result would both go to standard output", hint="name a file with -o")


def _file(quiet: bool, as_json: bool, given: dict[str, Any]) -> None:
    from querycloak.api.commands import obfuscate

    names = ("method", "pool", "truth", "seed", "keep", "strict")
    with progress(quiet or as_json) as show:
        done = obfuscate(
            given["log"],
            given["output"],
            format=given["format_"],
            mapping=pairs(given["mapping"], "--map"),
            settings={name: given[name] for name in SETTINGS},
            progress=show,
            **{name: given[name] for name in names},
        )
    if as_json:
        emit(done)
    many = f"{done['searches']:,} searches of {plural(done['users'], 'user')}"
    say(f"covered {many} with {plural(done['fakes'], 'fake')}", quiet or as_json)
    if not done["timed"]:
        say("the log has no times: rows of a user come in an order drawn at random", quiet or as_json)
    for reason, count in done["skipped"].items():
        say(f"skipped {plural(count, 'bad row')}: {reason}", quiet or as_json)


def _live(quiet: bool, as_json: bool, given: dict[str, Any]) -> None:
    from querycloak.api.commands import obfuscate_live

    names = ("method", "every", "speed", "seed")
    settings = {name: given[name] for name in SETTINGS}
    done = obfuscate_live(given["output"] or "-", settings=settings, **{name: given[name] for name in names})
    if as_json:
        emit(done)
    text = f"sent {done['real']:,} real queries and {plural(done['fakes'], 'fake')}"
    if done["not_understood"]:
        text += f"; {plural(done['not_understood'], 'line')} not understood"
    say(text, quiet or as_json)
