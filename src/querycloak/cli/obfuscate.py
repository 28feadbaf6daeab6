"""`querycloak obfuscate`: hide real queries among fakes, in a log or live."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from querycloak.cli.options import READING, SEED, TALK, emit, pairs, progress, say
from querycloak.errors import UsageError
from querycloak.formatting import plural


@click.command("obfuscate")
@click.argument("log", type=click.Path(allow_dash=True), required=False)
@click.option("-m", "--method", required=True, help="tmn, usr, hybrid or shadow.")
@click.option("-o", "--output", help="Where the traces go; live: standard output, if not said.")
@click.option("--truth", type=click.Path(dir_okay=False, path_type=Path),
              help="Also write, for evaluation only, which rows are fakes (mode 0600).")  # fmt: skip
@click.option("--fakes", type=float,
              help="For each real search; 1 if not said (usr: all that another one asked).")  # fmt: skip
@click.option("--timing", help="random (default), burst or regular; for tmn and hybrid.")
@click.option("--bag", type=click.Path(),
              help="For tmn: a file or folder of text, RSS or Atom; else a made-up newspaper.")  # fmt: skip
@click.option("--pool", type=click.Path(),
              help="Another log to borrow from, not this one; for all ways but tmn.")  # fmt: skip
@click.option("--keep", multiple=True, metavar="COLUMN", help="Pass a further column through.")
@click.option("--live", is_flag=True, help="Read real queries line by line, write them among fakes.")
@click.option("--every", type=float, help="Live: seconds between fakes on average; 60 if not said.")
@click.option("--speed", type=float, help="Live: how much faster time runs, for trials.")
@READING
@SEED
@TALK
def command(live: bool, quiet: bool, as_json: bool, **given: Any) -> None:
    """Hide real searches among fakes; only the truth file says which are which.

    Example: querycloak obfuscate log.tsv -m shadow -o trace.tsv --truth t.parquet
    """
    _check(live, as_json, given)
    (_live if live else _file)(quiet, as_json, given)


def _check(live: bool, as_json: bool, given: dict[str, Any]) -> None:
    if live:
        wrong = [name for name in ("log", "truth", "keep", "mapping", "format_", "strict") if given[name]]
        if wrong:
            raise UsageError(
                "`--live` reads queries from standard input: it takes no log, and writes no truth"
            )
        burst = given["timing"] == "burst"
        if given["every" if burst else "fakes"] is not None:
            raise UsageError("live, `--fakes` goes with `--timing burst`, and `--every` with the others")
    elif given["log"] is None or given["output"] is None:
        raise UsageError("name a log and, with `-o`, where the traces go", hint="or give `--live`")
    elif given["every"] is not None or given["speed"] is not None:
        raise UsageError("`--every` and `--speed` go with `--live`")
    if as_json and (given["output"] or "-") == "-":
        raise UsageError("--json and the result would both go to standard output", hint="name a file with -o")


def _file(quiet: bool, as_json: bool, given: dict[str, Any]) -> None:
    from querycloak.api.commands import obfuscate

    names = ("method", "fakes", "timing", "bag", "pool", "truth", "seed", "keep", "strict")
    with progress(quiet or as_json) as show:
        done = obfuscate(
            given["log"],
            given["output"],
            format=given["format_"],
            mapping=pairs(given["mapping"], "--map"),
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

    names = ("method", "fakes", "timing", "bag", "pool", "every", "speed", "seed")
    done = obfuscate_live(given["output"] or "-", **{name: given[name] for name in names})
    if as_json:
        emit(done)
    told = f"sent {done['real']:,} real queries and {plural(done['fakes'], 'fake')}"
    if done["not_understood"]:
        told += f"; {plural(done['not_understood'], 'line')} not understood"
    say(told, quiet or as_json)
