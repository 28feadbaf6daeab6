"""`tmn`: phrases from news, after TrackMeNot (paper 004, section 2.2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Final
from urllib.parse import urlsplit

import numpy as np
import polars as pl

from querycloak.clients.obfuscation import feeds
from querycloak.clients.obfuscation.base import CoverMethod, DummySearches, TimedSettings
from querycloak.clients.obfuscation.feeds import Article
from querycloak.clients.obfuscation.history import SearchHistory
from querycloak.clients.obfuscation.random_stream import KeyedStream
from querycloak.clients.obfuscation.timing import machine_times
from querycloak.errors import UsageError
from querycloak.log import CANONICAL, MISSING
from querycloak.settings import setting
from querycloak.text.normalise import WORD

#: Phrases that a client has in stock.
STOCK: Final = 60
#: Articles that a search returns.
RESULTS: Final = 10
#: Probability that a search adds a phrase of its results to the stock, and that it adds any phrase.
_FROM_RESULTS, _FROM_FEED = 0.5, 0.1
_LONGEST: Final = 6
_CLAUSE: Final = re.compile(r"[.,;:!?()\[\]{}\"“”„«»|/\\<>=*#_–—-]+|\s'|'\s")
_WORD: Final = rf"{WORD}(?:['’]{WORD})?"
_STOP_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        """a an the and or of to in on at by for from with as is are was were be been it its this that they
        their he she his her we you your our not no but if so than then about into over after before will
        may can has have had do does did who what when where why how says said new more""",
    )
)


class TextCorpus:
    """Articles as clauses of words, found by their words as a search engine would find them."""

    def __init__(self, articles: Sequence[Article]) -> None:
        self.articles = articles
        self.clauses = clauses([f"{article.title}. {article.text}" for article in articles])
        self._with: dict[str, list[int]] = {}
        for number, parts in enumerate(self.clauses):
            for word in {word.lower() for part in parts for word in part} - _STOP_WORDS:
                self._with.setdefault(word, []).append(number)
        self._worded = [number for number, parts in enumerate(self.clauses) if parts]

    def search(self, query: str) -> list[int]:
        """Return the first articles that have the query's rarest known word."""
        known = [self._with[word] for word in query.lower().split() if word in self._with]
        return min(known, key=len)[:RESULTS] if known else []

    def phrase(self, stream: KeyedStream) -> str:
        """Draw a phrase from any article."""
        return phrase_of(self.clauses[self._worded[stream.pick(len(self._worded))]], stream)


class PhraseStock:
    """Phrases of one client; results of searches change them."""

    def __init__(self, corpus: TextCorpus, stream: KeyedStream) -> None:
        self._corpus, self._stream = corpus, stream
        self._stock = [corpus.phrase(stream) for _ in range(STOCK)]

    def draw(self) -> tuple[str, list[int]]:
        """Draw a query; return it with the articles that it finds, from which the stock learns."""
        query = self._stock[self._stream.pick(STOCK)]
        results = self._corpus.search(query)
        chance = self._stream.one()
        if results and chance < _FROM_RESULTS:
            article = results[self._stream.pick(len(results))]
            self._learn(phrase_of(self._corpus.clauses[article], self._stream))
        elif chance > 1 - _FROM_FEED:
            self._learn(self._corpus.phrase(self._stream))
        return query, results

    def next_query(self) -> str:
        """Return the next dummy query."""
        return self.draw()[0]

    def observe(self, titles: Iterable[str]) -> None:
        """Learn from the titles of a search engine's results."""
        parts = [part for found in clauses([*titles]) for part in found]
        if parts:
            self._learn(phrase_of(parts, self._stream))

    def _learn(self, phrase: str) -> None:
        self._stock[self._stream.pick(STOCK)] = phrase


def clauses(texts: Sequence[str]) -> list[list[list[str]]]:
    """Return the clauses of each text as words; clauses of stop words only are left out."""
    parts = [_CLAUSE.split(text) for text in texts]
    found = iter(pl.Series([*chain.from_iterable(parts)], dtype=pl.String).str.extract_all(_WORD).to_list())
    split = [[next(found) for _ in one] for one in parts]
    return [[words for words in one if any(w.lower() not in _STOP_WORDS for w in words)] for one in split]


def phrase_of(parts: list[list[str]], stream: KeyedStream) -> str:
    """Draw neighbouring words of a clause that neither begin nor end with a stop word."""
    words = parts[stream.pick(len(parts))]
    heavy = [place for place, word in enumerate(words) if word.lower() not in _STOP_WORDS]
    first = heavy[stream.pick(len(heavy))]
    longest = 1 + stream.pick(_LONGEST)
    last = max(place for place in heavy if first <= place < first + longest)
    return " ".join(words[first : last + 1])


class TrackMeNot(CoverMethod):
    """Phrases from a text corpus; the client of each user has a stock of its own, which evolves."""

    name = "tmn"

    @dataclass(frozen=True, kw_only=True)
    class Settings(TimedSettings):
        """Settings of `tmn`."""

        bag: str = setting("", file=True, help="file or folder of text, RSS or Atom; else synthetic news")

    def __init__(self, history: SearchHistory, settings: Settings, key: bytes) -> None:
        super().__init__(history, settings, key)
        unknown = set(history.frame.columns) - {*CANONICAL, "row", "landing"}
        if unknown:
            raise UsageError(
                f"`tmn` has no values for the column `{min(unknown)}`, and empty ones would reveal dummies",
                hint="leave the column out",
            )
        self.corpus = _corpus(settings)
        self._number: dict[str, int] = {}
        self._lower = bool((history.texts == history.texts.str.to_lowercase()).all())

    @classmethod
    def live(cls, settings: Settings, stream: KeyedStream) -> PhraseStock:
        """Return the live form."""
        return PhraseStock(_corpus(settings), stream)

    def fakes(self, user: int, stream: KeyedStream) -> DummySearches:
        """Return the searches of the user's client, with the clicks of a machine."""
        real = self.history.time[self.history.of_user(user)]
        many = stream.whole(self.settings.per_real * real.size)
        time = machine_times(self.settings.timing, many, real, self.history.span, stream)
        client = PhraseStock(self.corpus, stream)
        drawn = [client.draw() for _ in range(many)]
        queries = (query.lower() if self._lower else query for query, _ in drawn)
        source = [self._number.setdefault(query, len(self._number)) for query in queries]
        click = [self._draw_click(results, stream) for _, results in drawn]
        return DummySearches(np.arange(many), time, np.array(source, np.int64), np.array(click, np.int64))

    def _draw_click(self, results: list[int], stream: KeyedStream) -> int:
        if not results or stream.one() >= self.history.clicked_share:
            return MISSING
        place = stream.pick(len(results))
        return results[place] * RESULTS + place if self._urls[results[place]] is not None else MISSING

    def columns(self, dummies: DummySearches) -> pl.DataFrame:
        """Return the phrases, with addresses in the form of the log's."""
        wanted = self.history.frame.columns
        clicked = pl.Series(dummies.click).replace(MISSING, None)
        frame = pl.DataFrame({"query": pl.Series(list(self._number), dtype=pl.String).gather(dummies.source)})
        if "rank" in wanted:
            frame = frame.with_columns(rank=clicked % RESULTS + 1)
        if "url" in wanted:
            frame = frame.with_columns(url=pl.Series(self._urls, dtype=pl.String).gather(clicked // RESULTS))
        if "landing" in wanted:
            texts = pl.Series([f"{a.title} {a.text}".strip() for a in self.corpus.articles], dtype=pl.String)
            frame = frame.with_columns(landing=texts.gather(clicked // RESULTS))
        if "category" in wanted:
            from querycloak.text import classify_log

            frame = classify_log(frame).drop("confidence")
        return frame

    @cached_property
    def _urls(self) -> list[str | None]:
        """Addresses of the articles in the form of the log's: sites only, or without `http://`."""
        known = self.history.frame
        seen = known["url"].drop_nulls() if "url" in known.columns else pl.Series([], dtype=pl.String)
        bare = not seen.str.contains("://", literal=True).any()
        sites = not seen.str.replace(r"^[a-z]+://", "").str.contains(r"/.").any()
        addresses = (article.url for article in self.corpus.articles)
        return [_shaped(address, bare, sites) if address else None for address in addresses]


def _corpus(settings: TrackMeNot.Settings) -> TextCorpus:
    return TextCorpus(feeds.read(settings.bag) if settings.bag else feeds.builtin_articles())


def _shaped(address: str, bare: bool, site: bool) -> str:
    parts = urlsplit(address)
    cut = f"{parts.scheme}://{parts.netloc}" if site else address
    return cut.partition("://")[2] if bare else cut
