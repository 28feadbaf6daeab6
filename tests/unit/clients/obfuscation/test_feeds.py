"""A bag of text may come from anybody: limits hold, and nothing in it is believed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.clients.obfuscation import feeds
from querycloak.clients.obfuscation.feeds import Article
from querycloak.errors import DataError, UsageError

RSS = """<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0"><channel><title>The channel</title><link>http://news.example</link>
<item><title>Lamps &amp; shades</title><link> http://news.example/1 </link>
<description>&lt;p&gt;All &lt;b&gt;about&lt;/b&gt; lamps&lt;/p&gt;</description></item>
<item><title><![CDATA[Second <i>one</i>]]></title><link>javascript:alert(1)</link></item>
</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>The feed</title>
<entry><title>Third</title><link rel="self" href="http://no.example"/><link href="https://news.example/3"/>
<summary>of them</summary><author><name>Nobody</name></author></entry></feed>"""


def test_rss():
    assert feeds.parse_feed(RSS.encode(), "x") == [
        Article("Lamps & shades", "All about lamps", "http://news.example/1"),
        Article("Second one", "", ""),
    ]


def test_atom():
    assert feeds.parse_feed(ATOM.encode(), "x") == [Article("Third", "of them", "https://news.example/3")]


def test_a_feed_with_a_document_type_is_read_and_nothing_is_fetched():
    """RSS 0.91 has a document type; an external one is never opened."""
    kind = '<!DOCTYPE rss SYSTEM "file:///etc/passwd">'
    feed = f'{kind}<rss version="0.91"><channel><item><title>Old</title></item></channel></rss>'
    assert feeds.parse_feed(feed.encode(), "x") == [Article("Old")]


def test_a_folder_is_read_by_name(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.txt").write_text("one line\n\nanother\x00line\n")
    (tmp_path / "a.xml").write_text(ATOM)
    (tmp_path / "sub" / "c.rss").write_text(RSS)
    (tmp_path / ".hidden").write_text("secret")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "d.txt").write_text("secret")
    titles = [article.title for article in feeds.read(tmp_path)]
    assert titles == ["Third", "one line", "another line", "Lamps & shades", "Second one"]


@pytest.mark.parametrize(
    "content",
    [
        '<!DOCTYPE x [<!ENTITY a "boom">]><rss><item><title>&a;</title></item></rss>',
        "<rss><item><title>open",
        "<a>" * 100 + "</a>" * 100,
        '<?xml version="1.0" encoding="no-such"?><rss/>',
        "<rss>&undeclared;</rss>",
        '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE x [<!ENTITY a "boom">]><rss/>',
        '<!DOCTYPE x [<!ENTITY a "'
        + "b" * 1000
        + '">]><rss><item><title>'
        + "&a;" * 1000
        + "</title></item></rss>",
    ],
)
def test_feeds_that_are_refused(tmp_path, content):
    (tmp_path / "f.xml").write_text(content)
    with pytest.raises(DataError, match=r"f\.xml of the bag of text is not a feed"):
        feeds.read(tmp_path)


def test_limits(tmp_path, monkeypatch):
    file = tmp_path / "a.txt"
    file.write_text("lamp\n" * 100)
    monkeypatch.setattr(feeds, "FILE_LIMIT", 499)
    with pytest.raises(DataError, match="too large"):
        feeds.read(file)
    monkeypatch.setattr(feeds, "FILE_LIMIT", 500)
    assert len(feeds.read(file)) == 100
    monkeypatch.setattr(feeds, "MAX_ARTICLES", 99)
    with pytest.raises(DataError, match="more than 99 articles"):
        feeds.read(file)
    monkeypatch.setattr(feeds, "MAX_FILES", 0)
    with pytest.raises(UsageError, match="1 files; at most 0"):
        feeds.read(tmp_path)


def test_long_texts_are_cut():
    long = f"<rss><item><title>{'x' * 10_000}</title><description>{'y ' * 50_000}</description></item></rss>"
    (article,) = feeds.parse_feed(long.encode(), "x")
    assert len(article.title) == feeds.TITLE_LIMIT
    assert len(article.text) <= feeds.TEXT_LIMIT


@pytest.mark.parametrize("content", [b"", b"123 456\n", b"<rss/>", b" \n "])
def test_a_bag_without_words(tmp_path, content):
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(DataError, match="contains no words"):
        feeds.read(tmp_path)


def test_no_bag(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        feeds.read(tmp_path / "none")


def test_a_file_in_another_encoding(tmp_path):
    (tmp_path / "a.txt").write_bytes("Lämpchen".encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8"):
        feeds.read(tmp_path)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content):
    try:
        articles = feeds.parse_feed(b"<rss>" + content, "x")
    except DataError:
        return
    assert all(isinstance(article, Article) for article in articles)
