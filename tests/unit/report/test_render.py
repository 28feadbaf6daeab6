"""Rendering: what comes in is text, and stays text, in Markdown, on a page and in a terminal."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from querycloak.errors import UsageError
from querycloak.report import render
from querycloak.report.numbers import printable
from querycloak.report.render import (
    bars,
    bold,
    check_target,
    escape_markdown,
    html,
    page,
    table,
    terminal,
    write,
)

NASTY = "<script>alert(1)</script>\"'&`x`| [a](javascript:b)"


class Reader(HTMLParser):
    """Reads a page as a browser does, to see what became of a text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.data = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.data.append(data)


def document(text):
    """A document with a text in every place where a template puts one."""
    some = escape_markdown(text)
    parts = [
        f"# {some}",
        some,
        f"- {some}\n- {some}",
        f"> {some}",
        f"> **Caution:** {some}",
        f"> **To be filled in by the officer:** {some}\n>\n> ______",
        f"## {some}",
        table(text, ["", ""], [(text, text), (text, bold(text))]),
        table(text, (text, text), [(text, bold(text))], right=[1]),
        bars(text, (text, text), {text: 3}),
    ]
    return "\n\n".join(parts) + "\n"


@given(st.text(st.characters(exclude_categories=("C", "Z")), min_size=1))
def test_a_text_comes_back_as_it_was(text):
    found = Reader(page(f"# t\n\n{escape_markdown(text)}\n"))
    assert {name for name, _ in found.tags} <= {
        "html", "head", "meta", "title", "style", "body", "a", "main", "h1", "p", "code",
    }  # fmt: skip
    said = "".join(found.data[found.data.index("t", found.data.index("t") + 1) :])
    assert text.replace("`", "") in said.replace("`", "")


def test_a_table_names_its_rows_and_columns():
    found = Reader(page(f"# t\n\n{table('c', ('a', 'b'), [('x', '1')], right=[1])}\n")).tags
    assert [attrs.get("scope") for name, attrs in found if name == "th"] == ["col", "col", "row"]
    assert [attrs.get("class") for name, attrs in found if name == "td"] == ["number"]
    assert ("caption", {}) in found
    assert [attrs["aria-label"] for name, attrs in found if attrs.get("role") == "region"] == ["c"]


def test_a_table_of_facts_has_no_heading():
    found = [name for name, _ in Reader(page(f"# t\n\n{table('c', ('', ''), [('x', '1')])}\n")).tags]
    assert "thead" not in found
    assert "td" in found


def test_verdicts_notes_bars_and_blanks_have_their_look():
    text = page(document("word").replace("**word**", "**broken**"))
    assert '<strong class="mark bad">broken</strong>' in text
    assert '<div class="note warn">' in text
    assert '<div class="note info">' in text
    assert '<span style="width:100%">' in text
    assert 'contenteditable="true" role="textbox" aria-multiline="true"' in text


def test_a_page_asks_for_nothing_and_runs_only_its_own_scripts():
    body = Markup("<p>x</p>")
    text = html("page.html.j2", "t", scripts=["let a = 1;"], styles=["p { color: red }"], body=body)
    assert not re.search(r"(?:https?:)?//[a-z]|@import|url\(", text)
    policy = next(a["content"] for name, a in Reader(text).tags if "http-equiv" in a)
    digest = base64.b64encode(hashlib.sha256(b"let a = 1;").digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "script-src 'none'" in html("page.html.j2", "t", body=body)
    with pytest.raises(ValueError, match="end tag"):
        html("page.html.j2", "t", scripts=["'</ScRipt>'"], body=body)


def test_a_body_that_is_no_html_is_escaped():
    assert "&lt;b&gt;" in html("page.html.j2", "<i>", body="<b>")
    assert "<i>" not in html("page.html.j2", "<i>", body="<b>")


def test_a_text_is_escaped_in_every_place_of_a_page():
    found = Reader(page(document(NASTY)))
    names = {name for name, _ in found.tags}
    assert not {"script", "img", "iframe", "object", "link", "form"} & names
    assert {name for _, attrs in found.tags for name in attrs if name.startswith("on")} == set()
    assert [attrs["href"] for name, attrs in found.tags if name == "a"] == ["#content"]
    assert "".join(found.data).count("<script>alert(1)</script>") >= 20


def test_a_text_is_escaped_in_every_place_of_markdown():
    text = document(NASTY)
    assert not re.search(r"(?<!\\)<|(?<!\\)\]\(", text)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {3, 4}


def test_every_value_of_a_template_is_escaped(monkeypatch):
    from jinja2 import DictLoader

    environment = render._markdown_environment().overlay(loader=DictLoader({"t": "{{ x }}\n{{ bold(x) }}"}))
    monkeypatch.setattr(render, "_markdown_environment", lambda: environment)
    text = render.markdown("t", x="<b> [a](b)\n# x")
    assert text == "\\<b\\> \\[a\\](b) \\# x\n**\\<b\\> \\[a\\](b) \\# x**\n"


@pytest.mark.parametrize("start", ["- a", "1. a", "# a", "> a", "+ a", "=== a", "---", "2) a"])
def test_a_value_starts_no_list_heading_or_rule(start):
    assert [name for name, _ in Reader(page(f"# t\n\nx\n\n{escape_markdown(start)}\n")).tags][-2:] == [
        "p",
        "p",
    ]


def test_what_moves_text_elsewhere_is_left_out():
    assert printable("a\x1b[31mb\u202e\nc\x00") == "a [31mb c"
    assert printable(None) == printable("") == printable([]) == printable({}) == "–"
    assert printable({"a": [1, True, 0.12345]}) == "a 1, yes, 0.1235"
    assert escape_markdown("a\x1b[31m\nb") == "a \\[31m b"


def test_the_terminal_gets_aligned_columns():
    text = terminal(document("word"))
    assert re.search(r"word +3 +████████████████████", text)
    assert all(line == line.rstrip() for line in text.splitlines())
    assert "\x1b" not in terminal(document("a\x1b[31m"))


def test_a_page_goes_where_its_name_says(tmp_path):
    for name, start in (("a.html", "<!doctype"), ("b.HTM", "<!doctype"), ("c.md", "# word")):
        write(document("word"), tmp_path / name)
        assert (tmp_path / name).read_text("utf-8").startswith(start)
    write(document("word"), tmp_path / "own.html", private=True)
    assert (tmp_path / "own.html").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "b.HTM", "c.md", "own.html"]


@pytest.mark.parametrize("name", ["a.pdf", "a", "nowhere/a.html", "folder.html"])
def test_a_page_that_cannot_be_written_is_refused_before_work(tmp_path, name):
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(UsageError):
        check_target(tmp_path / name)
