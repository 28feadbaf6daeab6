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
from markdown_it.token import Token
from markupsafe import Markup

from querycloak.errors import UsageError
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
    "kept": "good", "holds": "good", "low": "good", "yes": "good",
    "broken": "bad", "beaten": "bad", "high": "bad", "no": "bad", "Do not publish": "bad",
    "medium": "warn", "unknown": "warn", "not checkable": "warn", "open by design": "warn", "Caution": "warn",
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
    made.globals |= {"table": table, "bars": bars, "bold": bold, "plural": numbers.plural}
    return made


@cache
def _html_environment() -> Environment:
    made = _environment(autoescape=True)
    made.filters |= {"code": with_code, "mark": mark, "capitalised": numbers.capitalised}
    made.filters |= {"percent": numbers.percent, "with_interval": numbers.with_interval}
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
    parser = _parser()
    tokens = _arranged(parser.parse(text))
    title = next((one.content for one in tokens if one.type == "inline"), "")
    body = parser.renderer.render(tokens, parser.options, {})
    plain = re.sub(r"\\(.)", r"\1", title)
    return html("page.html.j2", plain, body=Markup(body))  # noqa: S704 - written by the renderer


def terminal(text: str, width: int = 100) -> str:
    """Return a Markdown document as plain text for a terminal."""
    from rich.console import Console
    from rich.markdown import Markdown as Rendered

    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(Rendered(text, hyperlinks=False))
    text = "\n".join(line.rstrip() for line in out.getvalue().splitlines())
    return re.sub(r"\n{3,}", "\n\n", text).strip()


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")

    def table_open(_: Any, tokens: Sequence[Token], place: int, *__: Any) -> str:
        caption = tokens[place].meta.get("caption", "")
        said = html_escapes.escape(caption or "table")
        shown = f"<caption>{html_escapes.escape(caption)}</caption>" if caption else ""
        return f'<div class="wide" role="region" tabindex="0" aria-label="{said}"><table>{shown}\n'

    def table_close(*_: Any) -> str:
        return "</table></div>\n"

    def strong_open(_: Any, tokens: Sequence[Token], place: int, *__: Any) -> str:
        kind = _VERDICTS.get(tokens[place + 1].content)
        return f'<strong class="mark {kind}">' if kind else "<strong>"

    for rule in (table_open, table_close, strong_open):
        parser.add_render_rule(rule.__name__, rule)
    return parser


def _arranged(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens of a page, with captions and row heads of tables, and classes of notes and blanks."""
    made: list[Token] = []
    column, headings, blank = 0, 0, ""
    place = 0
    while place < len(tokens):
        token = tokens[place]
        kinds = [one.type for one in tokens[place : place + 4]]
        if kinds == ["paragraph_open", "inline", "paragraph_close", "table_open"] and _is_caption(
            tokens[place + 1]
        ):
            tokens[place + 3].meta["caption"] = _plain(tokens[place + 1])
            place += 3
            continue
        if token.type == "thead_open" and not any(
            one.content for one in _until(tokens, place, "thead_close")
        ):
            place += len(_until(tokens, place, "thead_close"))
            continue
        if token.type == "heading_open" and token.tag == "h2":
            headings += 1
            token.attrSet("id", f"s{headings}")
        elif token.type == "tr_open":
            column = 0
        elif token.type in ("th_open", "td_open"):
            if token.attrs.pop("style", None) == "text-align:right":
                token.attrSet("class", "number")
            if token.type == "th_open" or column == 0:
                token.attrSet("scope", "col" if token.type == "th_open" else "row")
                token.tag = "th"
            column += 1
        elif token.type == "td_close" and column == 1:
            token.tag = "th"
        elif token.type == "inline" and token.content and not token.content.strip(_BAR):
            token.children = [_bar(len(token.content))]
        elif token.type == "blockquote_open":
            inside = _until(tokens, place, "blockquote_close")
            blank = _plain(inside[2]) if any(one.type == "hr" for one in inside) else ""
            token.tag = tokens[place + len(inside) - 1].tag = "div"
            token.attrSet("class", "blank" if blank else f"note {_kind(inside[2])}")
        elif token.type == "hr" and blank:
            token = _room(blank)
        made.append(token)
        place += 1
    return made


def _until(tokens: Sequence[Token], place: int, end: str) -> Sequence[Token]:
    last = next(at for at in range(place, len(tokens)) if tokens[at].type == end)
    return tokens[place : last + 1]


def _is_caption(inline: Token) -> bool:
    kinds = [one.type for one in inline.children or ()]
    return kinds[:1] == ["em_open"] and kinds[-1:] == ["em_close"] and kinds.count("em_open") == 1


def _plain(inline: Token) -> str:
    return "".join(one.content for one in inline.children or ())


def _kind(inline: Token) -> str:
    """Return the look of a note: that of the word in bold with which it begins."""
    parts = inline.children or []
    bold_first = next(
        (parts[at + 1].content for at, one in enumerate(parts) if one.type == "strong_open"), ""
    )
    return _VERDICTS.get(bold_first.rstrip(":."), "info")


def _bar(length: int) -> Token:
    width = f"width:{100 * length / _BAR_LENGTH:g}%"
    return _raw(f'<span class="bar" aria-hidden="true"><span style="{width}"></span></span>')


def _room(prompt: str) -> Token:
    said = html_escapes.escape(prompt)
    role = f'role="textbox" aria-multiline="true" aria-label="{said}"'
    return _raw(f'<div class="room" contenteditable="true" {role}></div>')


def _raw(content: str) -> Token:
    return Token("html_inline", "", 0, content=content)


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
