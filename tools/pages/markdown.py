"""Small pieces of Markdown that the pages share."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any


def cell(value: object) -> str:
    """Make a text safe inside a table: one line, no bar that would end the cell."""
    return " ".join(str(value).split()).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a table."""
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    return "\n".join(lines + ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows])


def bullets(items: Iterable[str]) -> str:
    """Write a list."""
    return "\n".join(f"- {item}" for item in items)


def fenced(text: str, kind: str = "text") -> str:
    """Write a block of code."""
    return f"```{kind}\n{text.rstrip()}\n```"


def default(value: object) -> str:
    """Write a setting's default as one would type it."""
    if isinstance(value, bool):
        return "`yes`" if value else "`no`"
    return "required" if value is None else "empty" if value == "" else f"`{value}`"


def first_line(text: str | None) -> str:
    """Give the sentence that opens a docstring."""
    return (text or "").strip().partition("\n")[0]


def page(*parts: str) -> str:
    """Put the parts of a page together, a blank line between them."""
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def signature(part: Any) -> str:
    """Write a signature as its source does, over several lines when one is too long."""
    found = inspect.signature(part)
    parameters = [_parameter(p) for p in found.parameters.values()]
    kinds = [p.kind for p in found.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        parameters.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    one = f"{part.__name__}({', '.join(parameters)}) -> {found.return_annotation}"
    return (
        one if len(one) <= 100 else one.partition("(")[0] + _over_lines(parameters, found.return_annotation)
    )


def _over_lines(parameters: list[str], back: Any) -> str:
    return "(\n    " + ",\n    ".join(parameters) + f",\n) -> {back}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    text = f"{stars.get(parameter.kind, '')}{parameter.name}: {parameter.annotation}"
    if parameter.default is inspect.Parameter.empty:
        return text
    default = parameter.default
    return f"{text} = {default.__name__ if inspect.isfunction(default) else repr(default)}"
