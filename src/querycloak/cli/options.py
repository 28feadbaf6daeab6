"""Options and output that commands share: data to standard output, everything else to standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from querycloak.errors import UsageError

Decorator = Callable[[Any], Any]

LOG = click.argument("log", type=click.Path(allow_dash=True))
SEED = click.option(
    "--seed", type=int, help="Make every draw repeatable. For tests: do not publish the result."
)


def together(*decorators: Decorator) -> Decorator:
    """Apply several options in the order in which help should list them."""

    def apply(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


TALK = together(
    click.option("--quiet", is_flag=True, help="Say nothing but errors."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output."),
)

READING = together(
    click.option(
        "--format",
        "format_",
        metavar="NAME",
        help="aol, csv, tsv, jsonl, parquet, excite or ubi; else guessed.",
    ),
    click.option(
        "--map",
        "mapping",
        multiple=True,
        metavar="COLUMN=NAME",
        help="Where a column is, e.g. user=client_id.",
    ),
    click.option("--strict", is_flag=True, help="Stop at the first bad row instead of counting it."),
)


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


def say(text: str, quiet: bool = False) -> None:
    """Print a line to standard error."""
    if not quiet and text:
        click.echo(text, err=True)


def emit(value: Any) -> None:
    """Print one JSON object; what is not a number there is null, since JSON knows no NaN."""
    click.echo(json.dumps(_plain(value), indent=2, ensure_ascii=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@contextmanager
def progress(quiet: bool = False) -> Iterator[Callable[[str, int, int | None], None]]:
    """Show what is being done, on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield lambda step, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description:<9}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("start", total=None)
        yield lambda step, done, total: bar.update(task, description=step, completed=done, total=total)
