"""What a page holds, apart from how it is written: sections of text, lists, tables and blanks to fill in."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["good", "warn", "bad", "info"]


@dataclass(frozen=True)
class Mark:
    """A word or two that stand out in a text or a cell; the kind is never told by colour alone."""

    kind: Kind
    text: str


Cell = str | Mark


@dataclass(frozen=True)
class Words:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list of short texts."""

    items: Sequence[str]


@dataclass(frozen=True)
class Facts:
    """Names with their values."""

    pairs: Sequence[tuple[str, Cell]]


@dataclass(frozen=True)
class Table:
    """Rows under a head; the first cell of a row names it. `numbers` are the places of columns of numbers."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numbers: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Bars:
    """Counts by name, drawn as bars."""

    caption: str
    head: tuple[str, str]
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Blank:
    """Something that a person has to write, and room for it."""

    prompt: str
    lines: int = 3


@dataclass(frozen=True)
class Note:
    """A text that must not be overlooked."""

    kind: Kind
    text: str


Block = Words | Bullets | Facts | Table | Bars | Blank | Note


@dataclass(frozen=True)
class Section:
    """A title and what stands below it."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Document:
    """A whole page."""

    title: str
    summary: Sequence[Block]
    sections: Sequence[Section] = field(default_factory=list)


def shown(value: Any) -> str:
    """Write any value for a reader, on one line; what could move or hide text elsewhere is left out."""
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{shown(name)} {shown(part)}" for name, part in value.items()) or "–"
    if isinstance(value, list | tuple):
        return ", ".join(shown(part) for part in value) or "–"
    return " ".join("".join(_harmless(letter) for letter in str(value)).split())


def _harmless(letter: str) -> str:
    """Keep letters; a control or direction character, which a terminal or a page obeys, becomes a blank."""
    return " " if unicodedata.category(letter)[0] in "CZ" else letter


def plural(count: int, word: str) -> str:
    """Write `1 row`, `2 rows`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"
