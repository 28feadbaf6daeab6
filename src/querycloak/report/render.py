"""Render templates: Markdown once, from it an HTML page (markdown-it-py) and terminal text (rich).

Every value in a template is escaped. Only `Markdown` and `Markup` objects, which are made here, are not.
"""

from __future__ import annotations

import base64
import hashlib
import html as html_escapes
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from querycloak.errors import UsageError
from querycloak.formatting import percent, plural
from querycloak.keys import write_private
from querycloak.report import numbers

#: A character with a meaning in Markdown; a plain word between backticks is code and stays as it is.
_SPECIAL: Final = re.compile(r"(`[^`|<>\\]+`)|([\\`*_{}\[\]<>#|~&!])")
#: What makes the start of a line a list, a rule or a heading.
_STARTS: Final = re.compile(r"^([-+=])(?=[\s=-]|$)|^(\d+)([.)])(?=\s|$)")
_CODE: Final = re.compile(r"`([^`]+)`")
_BAR: Final = "█"
_BAR_LENGTH: Final = 20
#: The look of a word in bold that is a verdict, and of a quotation that begins with such a word.
_VERDICTS: Final = {
    "passed": "good", "holds": "good", "low": "good", "yes": "good",
    "failed": "bad", "broken": "bad", "beaten": "bad", "high": "bad", "no": "bad", "Do not publish": "bad",
    "medium": "warn", "unknown": "warn", "not tested": "warn", "open by design": "warn", "Caution": "warn",
    "not applicable": "info", "no bound stated": "info",
}  # fmt: skip
_SIGNS: Final = {"good": "✓ ", "bad": "✗ ", "warn": "? "}


class Markdown(str):
    """Text that is Markdown already; any other text is escaped before it becomes part of a document."""

    __slots__ = ()


def escape_markdown(value: Any) -> Markdown:
    """Return a value as Markdown text in which nothing is a link, a tag, a list, a table or emphasis."""
    if isinstance(value, Markdown):
        return value
    text = _SPECIAL.sub(lambda found: found[1] or f"\\{found[2]}", numbers.one_line(str(value)))
    return Markdown(_STARTS.sub(lambda found: f"{found[2] or ''}\\{found[1] or found[3]}", text))


def table(
    caption: str, head: Sequence[Any], rows: Iterable[Sequence[Any]], right: Sequence[int] = ()
) -> Markdown:
    """Return a Markdown table under its caption; `right` are the columns of numbers."""
    rule = ["---:" if place in right else "---" for place in range(len(head))]
    lines = [head, [Markdown(cell) for cell in rule], *rows]
    body = "\n".join(f"| {' | '.join(map(escape_markdown, line))} |" for line in lines)
    return Markdown(f"*{escape_markdown(caption)}*\n\n{body}")


def bars(caption: str, head: Sequence[str], counts: Mapping[str, int]) -> Markdown:
    """Return a table of counts with bars."""
    most = max(counts.values(), default=0) or 1
    rows = ((name, f"{count:,}", _BAR * round(_BAR_LENGTH * count / most)) for name, count in counts.items())
    return table(caption, (*head, ""), rows, right=(1,))


def bold(word: str) -> Markdown:
    """Return a word in bold; a page shows a verdict as a coloured mark."""
    return Markdown(f"**{escape_markdown(word)}**")


def mark(word: str) -> Markup:
    """Return a verdict as a coloured mark for an HTML template; a sign says the same as the colour."""
    kind = _VERDICTS.get(word, "info")
    return Markup('<span class="mark {}">{}{}</span>').format(kind, _SIGNS.get(kind, ""), word)


def with_code(text: str) -> Markup:
    """Return a text for an HTML template; what stands between backticks becomes code."""
    return Markup(_CODE.sub(r"<code>\1</code>", html_escapes.escape(text)))  # noqa: S704 - escaped before


def _nobreak(text: Markup) -> Markup:
    """Return HTML in which a number and its percent sign stay on one line."""
    return Markup(re.sub(r"(?<=\d) %", "\u00a0%", text))  # noqa: S704 - escaped before


def _environment(**options: Any) -> Environment:
    loader = PackageLoader("querycloak.report", "templates")
    return Environment(  # noqa: S701 - the Markdown environment escapes by `finalize`
        loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, **options
    )


@cache
def _markdown_environment() -> Environment:
    made = _environment(finalize=escape_markdown)
    made.filters["ready"] = Markdown  # the output of a macro, whose values are escaped already
    made.globals |= {"table": table, "bars": bars, "bold": bold, "plural": plural}
    return made


@cache
def _html_environment() -> Environment:
    made = _environment(autoescape=True)
    made.filters |= {"code": with_code, "mark": mark, "capitalised": numbers.capitalised}
    made.filters |= {"percent": percent, "with_interval": numbers.with_interval}
    made.filters |= {"listed": numbers.listed, "zip": zip, "nobreak": _nobreak}
    return made


def markdown(template: str, **view: Any) -> str:
    """Render a Markdown template."""
    text = _markdown_environment().get_template(template).render(**view)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def html(
    template: str, title: str, *, styles: Sequence[str] = (), scripts: Sequence[str] = (), **view: Any
) -> str:
    """Render an HTML template as one file that loads nothing; `styles` and `scripts` stand inside it.

    The page's policy names scripts by their hash, so that nothing that slips into the text can run.
    """
    for script in scripts:
        if "</script" in script.lower():
            raise ValueError("a script cannot hold its own end tag")
    digests = (hashlib.sha256(text.encode()).digest() for text in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests) or "'none'"
    return _html_environment().get_template(template).render(
        title=title,
        styles=[Markup(text) for text in (asset("style.css"), *styles)],  # noqa: S704 - files of ours
        scripts=[Markup(text) for text in scripts],  # noqa: S704 - files of ours
        allowed=Markup(allowed),  # noqa: S704 - digests
        **view,
    ) + "\n"  # fmt: skip


@cache
def asset(name: str) -> str:
    """Return the text of a style sheet or script beside the templates."""
    environment = _html_environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


# Markdown to a page and to a terminal


def page(text: str) -> str:
    """Return a Markdown document as one HTML file; its first heading is the title.

    A line in italics before a table is its caption. A rule in a quotation is room for writing.
    """
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    title = re.search(r"<h1>(.*?)</h1>", body)
    for pattern, replacement in _PAGE:
        body = re.sub(pattern, replacement, body, flags=re.DOTALL)
    sections = iter(range(1, 1 + body.count("<h2>")))
    body = re.sub("<h2>", lambda _: f'<h2 id="s{next(sections)}">', body)
    plain = html_escapes.unescape(_plain(title[1])) if title else ""
    return html("page.html.j2", plain, body=Markup(body))  # noqa: S704 - written by the renderer


def _plain(markup: str) -> str:
    """Return the text of some HTML, still escaped."""
    return re.sub("<[^>]*>", "", markup)


def _table_open(found: re.Match[str]) -> str:
    caption = found[1] and _plain(found[1])
    shown = f"<caption>{caption}</caption>" if caption else ""
    role = f'role="region" tabindex="0" aria-label="{caption or "table"}"'
    return f'<div class="wide" {role}><table>{shown}'


def _bar(found: re.Match[str]) -> str:
    width = f"width:{100 * len(found[1]) / _BAR_LENGTH:g}%"
    return f'><span class="bar" aria-hidden="true"><span style="{width}"></span></span></td>'


def _strong(found: re.Match[str]) -> str:
    kind = _VERDICTS.get(found[1])
    return f'<strong class="mark {kind}">{found[1]}</strong>' if kind else found[0]


def _quotation(found: re.Match[str]) -> str:
    """Return a note, which looks like the word in bold with which it begins, or a blank to be filled in."""
    first = re.search("<p>(.*?)</p>", found[1], re.DOTALL)
    begins = re.search("<strong>(.*?)</strong>", first[1]) if first else None
    if first and "<hr />" in found[1]:
        role = f'role="textbox" aria-multiline="true" aria-label="{_plain(first[1])}"'
        room = f'<div class="room" contenteditable="true" {role}></div>'
        return f'<div class="blank">{found[1].replace("<hr />", room)}</div>'
    kind = _VERDICTS.get(begins[1].rstrip(":."), "info") if begins else "info"
    return f'<div class="note {kind}">{found[1]}</div>'


#: Patterns in the HTML of a document, and their replacements on a page. Texts in it are escaped already.
_PAGE: Final = (
    (' style="text-align:right"', ' class="number"'),
    (r"<thead>\n<tr>\n(?:<th[^>]*></th>\n)+</tr>\n</thead>\n", ""),
    (r"<th( class=\"number\")?>", r'<th\1 scope="col">'),
    (r"<tr>\n<td( class=\"number\")?>(.*?)</td>", r'<tr>\n<th\1 scope="row">\2</th>'),
    (f">({_BAR}+)</td>", _bar),
    (r"(?:<p><em>((?:(?!</?em>|</p>).)*)</em></p>\n)?<table>", _table_open),
    ("</table>", "</table></div>"),
    ("<blockquote>(.*?)</blockquote>", _quotation),
    ("<strong>([^<]*)</strong>", _strong),
)


def terminal(text: str, width: int = 100) -> str:
    """Return a Markdown document as plain text for a terminal."""
    from rich.console import Console
    from rich.markdown import Markdown as Rendered

    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(Rendered(text, hyperlinks=False))
    text = "\n".join(line.rstrip() for line in out.getvalue().splitlines())
    return re.sub(r"\n{3,}", "\n\n", text).strip()


# Files


def check_target(path: Path) -> None:
    """Raise UsageError for a file name without a known format, or a place that cannot be written."""
    if path.suffix.lower() not in (".html", ".htm", ".md"):
        raise UsageError("a page is written as .html or .md", hint="give the file one of these endings")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageError("a file to be written has no folder, or is one", hint="make the folder first")


def write(text: str, path: Path, *, private: bool = False) -> None:
    """Write a Markdown document as .md or .html, by the file's name; `private`: mode 0600."""
    check_target(path)
    content = (text if path.suffix.lower() == ".md" else page(text)).encode()
    try:
        write_private(path, content) if private else write_whole(path, content)
    except OSError as error:
        raise UsageError(f"the page cannot be written: {error.strerror}") from None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that gets its final name when it is complete."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_bytes(content)
    unfinished.replace(path)
