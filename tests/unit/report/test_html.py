"""Pieces of a page: what comes in is text, and stays text."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.errors import UsageError
from querycloak.report import as_html, as_markdown, as_text, files
from querycloak.report import document as doc
from querycloak.report.html import Html, escape, page, table, tag

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


def every_block(text):
    return [
        doc.Words(text),
        doc.Bullets([text, text]),
        doc.Facts([(text, text), (text, doc.Mark("bad", text))]),
        doc.Table(text, (text, text), [(text, doc.Mark("good", text))], frozenset({1})),
        doc.Bars(text, (text, text), {text: 3}),
        doc.Blank(text),
        doc.Note("warn", text),
    ]


def whole(text):
    return doc.Document(text, every_block(text), [doc.Section(text, every_block(text))])


@given(st.text())
def test_a_text_comes_back_as_it_was(text):
    clean = text.replace("\r", "").replace("\0", "")
    found = Reader(tag("p", clean, title=clean))
    assert "".join(found.data) == clean
    assert found.tags == [("p", {"title": clean})]


def test_html_is_left_and_attributes_are_written_out():
    assert escape(Html("<b>x</b>")) == "<b>x</b>"
    made = tag("div", Html("<b>x</b>"), "<i>", class_="a", aria_label="b", hidden=True, id=None)
    assert made == '<div class="a" aria-label="b" hidden><b>x</b>&lt;i&gt;</div>'


def test_a_table_names_its_rows_and_columns():
    found = Reader(table(("a", "b"), [("x", "1")], caption="c", numbers=[1])).tags
    assert [attrs.get("scope") for name, attrs in found if name == "th"] == ["col", "col", "row"]
    assert [attrs.get("class") for name, attrs in found if name == "td"] == ["number"]


def test_a_page_asks_for_nothing_and_runs_only_its_own_scripts():
    text = page("t", tag("p", "x"), scripts=["let a = 1;"], styles=["p { color: red }"])
    assert not re.search(r"(?:https?:)?//[a-z]|@import|url\(", text)
    policy = next(a["content"] for name, a in Reader(text).tags if "http-equiv" in a)
    digest = base64.b64encode(hashlib.sha256(b"let a = 1;").digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "script-src 'none'" in page("t")
    with pytest.raises(ValueError, match="end tag"):
        page("t", scripts=["'</ScRipt>'"])


def test_every_block_is_escaped_in_every_place_of_a_page():
    found = Reader(as_html.render(whole(NASTY)))
    assert "script" not in [name for name, _ in found.tags]
    assert {name for _, attrs in found.tags for name in attrs if name.startswith("on")} == set()
    assert "".join(found.data).count("<script>alert(1)</script>") >= 20


def test_every_block_is_escaped_in_markdown():
    text = as_markdown.render(whole(NASTY))
    assert not re.search(r"(?<!\\)<|(?<!\\)\]\(", text)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert rows
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {3}


@pytest.mark.parametrize("start", ["- a", "1. a", "# a", "> a", "+ a", "=== a"])
def test_a_paragraph_of_markdown_starts_nothing_else(start):
    assert "\\" in as_markdown.block(doc.Words(start))


def test_what_moves_text_elsewhere_is_left_out():
    assert doc.shown("a\x1b[31mb\u202e\nc\x00") == "a [31mb c"
    assert doc.shown(None) == doc.shown("") == doc.shown([]) == doc.shown({}) == "–"
    assert doc.shown({"a": [1, True, 0.12345]}) == "a 1, yes, 0.1235"


def test_the_terminal_gets_aligned_columns():
    text = as_text.render(whole("word"))
    assert "  word  3  ████████████████████" in text
    assert all(line == line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize("kind", [as_html, as_markdown, as_text])
def test_an_unknown_block_is_not_passed_over(kind):
    with pytest.raises(TypeError, match="no way to write"):
        kind.block(object())


def test_a_page_goes_where_its_name_says(tmp_path):
    for name, start in (("a.html", "<!doctype"), ("b.HTM", "<!doctype"), ("c.md", "# word")):
        files.write(whole("word"), tmp_path / name)
        assert (tmp_path / name).read_text("utf-8").startswith(start)
    files.write(whole("word"), tmp_path / "own.html", private=True)
    assert (tmp_path / "own.html").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "b.HTM", "c.md", "own.html"]


@pytest.mark.parametrize("name", ["a.pdf", "a", "nowhere/a.html", "folder.html"])
def test_a_page_that_cannot_be_written_is_refused_before_work(tmp_path, name):
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(UsageError):
        files.check_target(tmp_path / name)
