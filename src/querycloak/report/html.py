"""Pieces of a page: tags that escape whatever they are given, tables, and a page that needs no other file."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any


class Html(str):
    """Text that is HTML already. Any other text is escaped before it becomes part of a page."""

    __slots__ = ()


def escape(value: Any) -> Html:
    """Give a value as HTML: as it is if it is HTML, else with nothing left that a browser obeys."""
    return value if isinstance(value, Html) else Html(html.escape(str(value), quote=True))


def join(parts: Iterable[Any]) -> Html:
    """Put pieces one after the other."""
    return Html("\n".join(escape(part) for part in parts))


def tag(name: str, *content: Any, **attributes: Any) -> Html:
    """Make an element; `class_` is the attribute `class`, and `aria_label` is `aria-label`.

    An attribute that is True stands without a value; one that is None or False is left out.
    """
    said = "".join(_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    inner = "".join(escape(part) for part in content)
    return Html(f"<{name}{said}>{inner}</{name}>")


def _attribute(name: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


def table(
    head: Sequence[Any], rows: Iterable[Sequence[Any]], *, caption: str = "", numbers: Iterable[int] = ()
) -> Html:
    """Make a table whose first column names the rows; a wide one scrolls within itself, by keyboard too."""
    right = set(numbers)

    def cell(place: int, content: Any) -> Html:
        kind = "number" if place in right else None
        if place == 0:
            return tag("th", content, scope="row", class_=kind)
        return tag("td", content, class_=kind)

    top = [
        tag("th", text, scope="col", class_="number" if i in right else None) for i, text in enumerate(head)
    ]
    body = [tag("tr", *(cell(i, content) for i, content in enumerate(row))) for row in rows]
    parts = [tag("caption", caption)] if caption else []
    whole = tag("table", *parts, tag("thead", tag("tr", *top)), tag("tbody", *body))
    return tag("div", whole, class_="wide", role="region", tabindex="0", aria_label=caption or "table")


def page(title: str, *body: Any, styles: Sequence[str] = (), scripts: Sequence[str] = ()) -> str:
    """Make a whole page that asks for nothing: styles and scripts stand inside it, and no other may run.

    Scripts are named by their hash in the page's own policy, so that nothing that slips into the text
    is ever carried out.
    """
    for script in scripts:
        if "</script" in script.lower():
            raise ValueError("a script cannot hold its own end tag")
    metas = (
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">',
        '<meta name="referrer" content="no-referrer">',
    )
    skip = tag("a", "Skip to the content", href="#content", class_="skip")
    parts = (
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        *metas,
        tag("title", title),
        *(f"<style>{text}</style>" for text in (_style(), *styles)),
        "</head>",
        "<body>",
        skip,
        tag("main", join(body), id="content"),
        *(f"<script>{text}</script>" for text in scripts),
        "</body>",
        "</html>",
    )
    return "\n".join(parts) + "\n"


def _policy(scripts: Sequence[str]) -> str:
    digests = (hashlib.sha256(text.encode()).digest() for text in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests) or "'none'"
    return (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
        f"form-action 'none'; script-src {allowed}"
    )


@cache
def _style() -> str:
    return files("querycloak.report").joinpath("style.css").read_text("utf-8")
