"""Writes a document as one page of HTML."""

from __future__ import annotations

import re
from functools import singledispatch
from typing import Any

from querycloak.report import document as doc
from querycloak.report.html import Html, escape, join, page, table, tag

_CODE = re.compile(r"`([^`]+)`")


def render(document: doc.Document) -> str:
    """Write the whole page; it opens without a network and prints."""
    sections = (
        tag("section", tag("h2", section.title, id=f"s{place}"), join(map(block, section.blocks)),
            aria_labelledby=f"s{place}")
        for place, section in enumerate(document.sections, start=1)
    )  # fmt: skip
    return page(document.title, tag("h1", document.title), *map(block, document.summary), *sections)


def text(content: str) -> Html:
    """Escape a text; what stands between backticks in it becomes code."""
    return Html(_CODE.sub(r"<code>\1</code>", escape(content)))


def cell(content: doc.Cell) -> Html:
    """Write a cell: a word that stands out, or plain text."""
    if isinstance(content, doc.Mark):
        return tag("span", content.text, class_=f"mark {content.kind}")
    return text(content)


@singledispatch
def block(content: Any) -> Html:
    """Write one block."""
    raise TypeError(f"no way to write {type(content).__name__}")


@block.register
def _(content: doc.Words) -> Html:
    return tag("p", text(content.text))


@block.register
def _(content: doc.Bullets) -> Html:
    return tag("ul", *(tag("li", text(item)) for item in content.items))


@block.register
def _(content: doc.Facts) -> Html:
    pairs = (tag("dt", name) + tag("dd", cell(value)) for name, value in content.pairs)
    return tag("dl", *map(Html, pairs))


@block.register
def _(content: doc.Table) -> Html:
    rows = ([cell(part) for part in row] for row in content.rows)
    return table(content.head, rows, caption=content.caption, numbers=content.numbers)


@block.register
def _(content: doc.Bars) -> Html:
    most = max(content.counts.values(), default=0) or 1
    rows = ((name, f"{count:,}", _bar(count / most)) for name, count in content.counts.items())
    return table((*content.head, ""), rows, caption=content.caption, numbers={1})


def _bar(part: float) -> Html:
    return tag("span", tag("span", style=f"width:{100 * part:.1f}%"), class_="bar", aria_hidden="true")


@block.register
def _(content: doc.Blank) -> Html:
    who = tag("p", "To be filled in by the officer", class_="who")
    role = {"role": "textbox", "aria_multiline": "true", "aria_label": content.prompt}
    style = f"--lines:{content.lines}"
    room = tag("div", class_="room", contenteditable="true", **role, style=style)  # to be typed or written
    return tag("div", who, tag("p", text(content.prompt)), room, class_="blank")


@block.register
def _(content: doc.Note) -> Html:
    return tag("p", text(content.text), class_=f"note {content.kind}")
