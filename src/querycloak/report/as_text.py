"""Writes a document for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

from querycloak.report import document as doc


def render(document: doc.Document) -> str:
    """Write the whole text."""
    parts = [document.title, *map(block, document.summary)]
    for section in document.sections:
        parts += [f"\n{section.title}", *map(block, section.blocks)]
    return "\n".join(parts)


def _cell(content: doc.Cell) -> str:
    return content.text if isinstance(content, doc.Mark) else content


def _aligned(rows: Sequence[Sequence[str]], numbers: frozenset[int] = frozenset()) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def line(row: Sequence[str]) -> str:
        cells = (
            c.rjust(w) if i in numbers else c.ljust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        )
        return f"  {'  '.join(cells)}".rstrip()

    return "\n".join(line(row) for row in rows)


@singledispatch
def block(content: Any) -> str:
    """Write one block."""
    raise TypeError(f"no way to write {type(content).__name__}")


@block.register
def _(content: doc.Words) -> str:
    return f"  {content.text}"


@block.register
def _(content: doc.Bullets) -> str:
    return "\n".join(f"  - {item}" for item in content.items)


@block.register
def _(content: doc.Facts) -> str:
    return _aligned([(name, _cell(value)) for name, value in content.pairs])


@block.register
def _(content: doc.Table) -> str:
    rows = [tuple(content.head), *(tuple(map(_cell, row)) for row in content.rows)]
    return f"  {content.caption}:\n{_aligned(rows, content.numbers)}"


@block.register
def _(content: doc.Bars) -> str:
    most = max(content.counts.values(), default=0) or 1
    rows = [(name, f"{count:,}", "█" * round(20 * count / most)) for name, count in content.counts.items()]
    return f"  {content.caption}:\n{_aligned(rows, frozenset({1}))}" if rows else f"  {content.caption}: none"


@block.register
def _(content: doc.Blank) -> str:
    return f"  [ ] {content.prompt}"


@block.register
def _(content: doc.Note) -> str:
    return f"  ! {content.text}"
