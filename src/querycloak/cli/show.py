"""How commands talk: data to standard output, all else to standard error, progress on a terminal only."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click


def say(text: str, quiet: bool = False) -> None:
    """Tell the person at the terminal."""
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


def number(value: Any) -> str:
    """Write a number for a reader."""
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def plural(count: int, word: str) -> str:
    """Write `1 row`, `2 rows`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


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
