"""Options that several commands share, declared once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
