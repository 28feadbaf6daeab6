"""`tmn` makes queries of a bag of text, and shows that a machine does."""

from __future__ import annotations

import polars as pl
import pytest

from querycloak.clients.obfuscation import feeds, tmn
from querycloak.clients.obfuscation.feeds import Article
from querycloak.clients.obfuscation.random_stream import KeyedStream
from querycloak.clients.obfuscation.tmn import PhraseStock, TextCorpus
from tests.support.covers import KEY, area, covered, log_of, searches
from tests.support.logs import made_up

LOG = made_up(users=60, seed=4).frame


def test_fakes_look_like_the_log_s_rows():
    found = covered(LOG, "tmn").filter("fake")
    assert (found["query"] == found["query"].str.to_lowercase().str.strip_chars()).all()
    assert not found["query"].str.contains(r"\s\s").any()
    clicked = found.filter(pl.col("rank").is_not_null())
    assert clicked["url"].null_count() == 0
    assert found["url"].drop_nulls().len() == clicked.height > 0
    assert clicked["url"].str.contains(r"^http://www\.[a-z]+\.com$").all()
    assert clicked["rank"].is_between(1, 10).all()


def test_words_of_every_script_stay_whole():
    """Vowel signs were lost, so that dummy queries in Hindi were single consonants."""
    found = tmn.clauses(["हिन्दी फिल्म", "The O'Neil café, of the"])
    assert found == [[["हिन्दी", "फिल्म"]], [["The", "O'Neil", "café"]]]


def test_addresses_are_written_as_the_log_s_are(tmp_path):
    feed = tmp_path / "feed.xml"
    feed.write_text(
        "<rss><item><title>Blue lamps</title><link>https://lamps.example/a/b?c</link></item></rss>"
    )
    shapes = {"site.example": "lamps.example", "http://x.example": "https://lamps.example",
              "http://x.example/page": "https://lamps.example/a/b?c"}  # fmt: skip
    for like, expected in shapes.items():
        log = log_of([("a", "q", n) for n in range(40)], url=[like] * 40)
        assert set(covered(log, "tmn", bag=str(feed)).filter("fake")["url"]) == {expected}


def test_capitals_stay_where_people_use_them(tmp_path):
    (tmp_path / "bag.txt").write_text("Blue Lamps\n")
    log = log_of([("a", "Red Lamps", n) for n in range(40)])
    assert covered(log, "tmn", bag=str(tmp_path)).filter("fake")["query"].str.contains("[BL]").all()


def test_a_landing_page_is_the_article(tmp_path):
    (tmp_path / "f.xml").write_text("<feed><entry><title>Lamps</title><summary>of glass</summary>"
                                    "<link href='http://l.example'/></entry></feed>")  # fmt: skip
    log = log_of([("a", "q", n) for n in range(40)], url=["http://x.example"] * 40, landing=["text"] * 40)
    assert set(covered(log, "tmn", bag=str(tmp_path)).filter("fake")["landing"]) == {"Lamps of glass"}


def test_what_shows_is_said_in_the_page():
    """The page says that hours, lengths and ranks give these fakes away; if they no longer do, say so."""
    found = searches(covered(LOG, "tmn"))
    assert area(found["time"].dt.hour(), found["fake"]) < 0.4
    assert area(found["query"].str.len_chars(), found["fake"]) < 0.4


def test_a_stock_of_queries_evolves():
    bag = TextCorpus([Article(f"lamp number{n} glass{n % 7}", f"shade{n}") for n in range(200)])
    client = PhraseStock(bag, KeyedStream(KEY, "test"))
    before = set(client._stock)
    asked = [client.draw() for _ in range(300)]
    assert len(set(client._stock) - before) > 20
    assert all(query.lower().split()[0] in " ".join(bag.articles[n].title + " " + bag.articles[n].text
               for n in results) for query, results in asked if results)  # fmt: skip


def test_observed_results_give_new_queries():
    client = PhraseStock(TextCorpus([Article("lamp")]), KeyedStream(KEY, "test"))
    client.observe(["Zebra crossing opened"])
    assert any(
        "zebra" in query.lower() or "crossing" in query or "opened" in query for query in client._stock
    )
    client.observe(["", "of the and", "!!"])


def test_phrases_neither_begin_nor_end_with_small_words():
    draws = KeyedStream(KEY, "test")
    (parts,) = tmn.clauses(["The lamp of the house, and a door for it. Nothing"])
    phrases = {tmn.phrase_of(parts, draws) for _ in range(300)}
    assert phrases == {"lamp", "lamp of the house", "house", "door", "Nothing"}


def test_the_newspaper_is_always_the_same_and_made_up():
    assert len(feeds.builtin_articles()) == feeds.ARTICLES
    assert feeds.builtin_articles.__wrapped__() == feeds.builtin_articles()
    assert len({article.title for article in feeds.builtin_articles()}) > 0.9 * feeds.ARTICLES
    assert not any("{" in article.title + article.text for article in feeds.builtin_articles())


@pytest.mark.parametrize("timing", ["random", "burst", "regular"])
def test_any_timing_gives_the_same_number(timing):
    assert covered(LOG, "tmn", timing=timing)["fake"].sum() == searches(LOG).height
