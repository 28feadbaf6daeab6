"""Writes a document as Markdown, with every mark of the language in the texts taken literally."""

from __future__ import annotations

import re
from functools import singledispatch
from typing import Any

from querycloak.report import document as doc

#: A mark of the language; a plain word between backticks is code and stays as it is.
_MARKS = re.compile(r"(`[^`|<>\\]+`)|([\\`*_{}\[\]<>#|~&!])")
_STARTS = re.compile(r"^(\s*)([-+=])|^(\s*\d+)([.)])")


def render(document: doc.Document) -> str:
    """Write the whole text."""
    parts = [f"# {escape(document.title)}", *map(block, document.summary)]
    for section in document.sections:
        parts += [f"## {escape(section.title)}", *map(block, section.blocks)]
    return "\n\n".join(part for part in parts if part) + "\n"


def escape(text: str) -> str:
    """Give a text in which nothing is a link, a tag, a table or emphasis."""
    return _MARKS.sub(lambda found: found[1] or f"\\{found[2]}", text)


def _paragraph(text: str) -> str:
    """Give a text that does not start a list or a rule either."""
    return _STARTS.sub(r"\1\3\\\2\4", escape(text))


def _cell(content: doc.Cell) -> str:
    return f"**{escape(content.text)}**" if isinstance(content, doc.Mark) else escape(content)


def _table(head: Any, rows: Any) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@singledispatch
def block(content: Any) -> str:
    """Write one block."""
    raise TypeError(f"no way to write {type(content).__name__}")


@block.register
def _(content: doc.Words) -> str:
    return _paragraph(content.text)


@block.register
def _(content: doc.Bullets) -> str:
    return "\n".join(f"- {_paragraph(item)}" for item in content.items)


@block.register
def _(content: doc.Facts) -> str:
    return _table(["", ""], [[escape(name), _cell(value)] for name, value in content.pairs])


@block.register
def _(content: doc.Table) -> str:
    rows = [[_cell(part) for part in row] for row in content.rows]
    return f"{escape(content.caption)}\n\n{_table([escape(name) for name in content.head], rows)}"


@block.register
def _(content: doc.Bars) -> str:
    rows = [[escape(name), f"{count:,}"] for name, count in content.counts.items()]
    return f"{escape(content.caption)}\n\n{_table([escape(name) for name in content.head], rows)}"


@block.register
def _(content: doc.Blank) -> str:
    return f"**To be filled in by the officer:** {escape(content.prompt)}\n\n> ______"


@block.register
def _(content: doc.Note) -> str:
    return f"> **{escape(content.text)}**"
