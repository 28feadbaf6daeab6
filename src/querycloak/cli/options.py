"""Options and output that commands share: data to standard output, everything else to standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click
from click import option

from querycloak.errors import UsageError
from querycloak.formatting import plural

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
#: An option that can be given several times.
repeated = partial(click.option, multiple=True)
#: An option whose help shows its default.
defaulted = partial(click.option, show_default=True)
LOG = click.argument("log", type=click.Path(allow_dash=True))
SEED = option("--seed", type=int, help="Make every draw repeatable. For tests: do not publish the result.")


@dataclass(frozen=True)
class Output:
    """Where the result of a command goes: lines for readers, one JSON object with `--json`, or nothing."""

    quiet: bool
    as_json: bool

    def say(self, text: str) -> None:
        """Print a line to standard error."""
        if text and not (self.quiet or self.as_json):
            click.echo(text, err=True)

    def print(self, text: str) -> None:
        """Print a line to standard output."""
        if not (self.quiet or self.as_json):
            click.echo(text)

    def emit(self, value: Any) -> None:
        """With `--json`, print one object; what is not a number there is null, since JSON knows no NaN."""
        if self.as_json:
            click.echo(json.dumps(_plain(value), indent=2, ensure_ascii=False))

    def say_skipped(self, skipped: dict[str, int]) -> None:
        """Print how many bad rows were skipped, by reason."""
        for reason, count in skipped.items():
            self.say(f"skipped {plural(count, 'bad row')}: {reason}")

    @contextmanager
    def progress(self) -> Iterator[Callable[[str, int, int | None], None]]:
        """Show what is being done, on a terminal only."""
        if self.quiet or self.as_json or not sys.stderr.isatty():
            yield lambda step, done, total: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        step, done = TextColumn("{task.description:<9}"), TextColumn("{task.completed:,.0f}")
        columns = (step, BarColumn(), done, TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("start", total=None)
            yield lambda step, done, total: bar.update(task, description=step, completed=done, total=total)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def with_output(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--quiet` and `--json`; the command receives them as `out`."""

    @option("--quiet", is_flag=True, help="Say nothing but errors.")
    @option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
    @wraps(command)
    def call(quiet: bool, as_json: bool, **rest: Any) -> None:
        command(out=Output(quiet, as_json), **rest)

    return call


def with_reading(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of reading a log; the command receives them as `reading`, for the function it calls."""

    @option(
        "--format",
        "format_",
        metavar="NAME",
        help="aol, csv, tsv, jsonl, parquet, excite or ubi; else guessed.",
    )
    @repeated("--map", "mapping", metavar="COLUMN=NAME", help="Where a column is, e.g. user=client_id.")
    @option("--strict", is_flag=True, help="Stop at the first bad row instead of counting it.")
    @wraps(command)
    def call(format_: str | None, mapping: tuple[str, ...], strict: bool, **rest: Any) -> None:
        command(reading={"format": format_, "mapping": pairs(mapping, "--map"), "strict": strict}, **rest)

    return call


def pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """Read `NAME=VALUE` texts."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"`{option}` takes NAME=VALUE; one of them has no `=`")
        found[name] = value
    return found


def alone(others: Iterable[object], option: str, hint: str = "") -> None:
    """Refuse options that belong to another use of a command."""
    if any(other is not None and other is not False and other != () for other in others):
        raise UsageError(f"`{option}` does not go with some of the other options", hint=hint)
