"""`querycloak obfuscate`: hide real queries among dummy queries, in a log or live."""

from __future__ import annotations

from typing import Any

import click
from click import option

from querycloak.cli.options import FILE, SEED, Output, repeated, with_output, with_reading
from querycloak.errors import UsageError
from querycloak.formatting import plural

#: Options that are settings of a method.
SETTINGS = ("fakes", "timing", "bag")


@click.command("obfuscate")
@click.argument("log", type=click.Path(allow_dash=True), required=False)
@option("-m", "--method", required=True, help="tmn, usr, hybrid, shadow, or a method of a plug-in.")
@option("-o", "--output", help="Output file; live: standard output by default.")
@option("--truth", type=FILE, help="For evaluation only: ground truth, which rows are dummies (mode 0600).")
@option("--fakes", type=float, help="Dummy searches per real search; default 1 (usr: all of one other user).")
@option("--timing", help="random (default), burst or regular; for tmn and hybrid.")
@option(
    "--bag",
    type=click.Path(),
    help="For tmn: a file or folder of text, RSS or Atom; default: synthetic news.",
)
@option(
    "--pool",
    type=click.Path(),
    help="Another log whose searches are used as dummies; for all methods but tmn.",
)
@repeated("--keep", metavar="COLUMN", help="Pass a further column through.")
@option("--live", is_flag=True, help="Read real queries from standard input, line by line.")
@option("--every", type=float, help="Live: mean seconds between dummy queries; default 60.")
@option("--speed", type=float, help="Live: factor by which time passes faster, for trials.")
@with_reading
@SEED
@with_output
def command(live: bool, out: Output, **given: Any) -> None:
    """Hide real searches among dummy searches; only the ground truth shows which are which.

    Example: querycloak obfuscate log.tsv -m shadow -o trace.tsv --truth t.parquet
    """
    if out.as_json and (given["output"] or "-") == "-":
        raise UsageError("--json and the result would both go to standard output", hint="name a file with -o")
    settings = {name: given.pop(name) for name in SETTINGS}
    pace = {name: given.pop(name) for name in ("every", "speed")}
    (_live if live else _file)(out, given, settings, pace)


def _file(out: Output, given: dict[str, Any], settings: dict[str, Any], pace: dict[str, Any]) -> None:
    from querycloak.api import obfuscate

    if given["log"] is None or given["output"] is None:
        raise UsageError("a log and an output (`-o`) are needed", hint="or use `--live`")
    if any(value is not None for value in pace.values()):
        raise UsageError("`--every` and `--speed` go with `--live`")
    with out.progress() as show:
        done = obfuscate(settings=settings, progress=show, **given.pop("reading"), **given)
    out.emit(done)
    many = f"{done['searches']:,} searches of {plural(done['users'], 'user')}"
    out.say(f"covered {many} with {plural(done['fakes'], 'fake')}")
    if not done["timed"]:
        out.say("the log has no times: rows of a user come in an order drawn at random")
    out.say_skipped(done["skipped"])


def _live(out: Output, given: dict[str, Any], settings: dict[str, Any], pace: dict[str, Any]) -> None:
    from querycloak.api import obfuscate_live

    if any([*given["reading"].values(), *(given[name] for name in ("log", "truth", "pool", "keep"))]):
        raise UsageError("`--live` reads queries from standard input: it takes no log, and writes no truth")
    if (pace["every"] if settings["timing"] == "burst" else settings["fakes"]) is not None:
        raise UsageError("live, `--fakes` goes with `--timing burst`, and `--every` with the others")
    done = obfuscate_live(given["method"], settings, pace, given["output"] or "-", given["seed"])
    out.emit(done)
    unread = done["not_understood"]
    text = f"sent {done['real']:,} real queries and {plural(done['fakes'], 'fake')}"
    out.say(text + (f"; {plural(unread, 'line')} not understood" if unread else ""))
