"""A list of fake queries that changes as they are asked: what comes back gives words for the next ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from querycloak.clients.obfuscation.draws import Draws
from querycloak.clients.obfuscation.feeds import Article

#: Queries that a client keeps in stock.
STOCK: Final = 60
#: Articles that a search brings.
RESULTS: Final = 10
#: How often a search is followed by taking words from its results, and by taking a new headline.
_FROM_RESULTS, _FROM_FEED = 0.5, 0.1
_LONGEST: Final = 6
_CLAUSE: Final = re.compile(r"[.,;:!?()\[\]{}\"“”„«»|/\\<>=*#_–—-]+|\s'|'\s")
_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_SMALL: Final = frozenset(
    re.findall(
        r"\w+",
        """a an the and or of to in on at by for from with as is are was were be been it its this that they
        their he she his her we you your our not no but if so than then about into over after before will
        may can has have had do does did who what when where why how says said new more""",
    )
)


class Bag:
    """Articles cut into clauses of words, and found by their words as a search engine would find them."""

    def __init__(self, articles: Sequence[Article]) -> None:
        self.articles = articles
        self.clauses = [clauses(f"{article.title}. {article.text}") for article in articles]
        self._with: dict[str, list[int]] = {}
        for number, parts in enumerate(self.clauses):
            for word in {word.lower() for part in parts for word in part} - _SMALL:
                self._with.setdefault(word, []).append(number)
        self._worded = [number for number, parts in enumerate(self.clauses) if parts]

    def search(self, query: str) -> list[int]:
        """Give the numbers of articles that have the query's rarest known word, the first page of them."""
        known = [self._with[word] for word in query.lower().split() if word in self._with]
        return min(known, key=len)[:RESULTS] if known else []

    def phrase(self, draws: Draws) -> str:
        """Take a phrase from any article."""
        return phrase_of(self.clauses[self._worded[draws.pick(len(self._worded))]], draws)

    def phrase_of(self, number: int, draws: Draws) -> str:
        """Take a phrase from this article."""
        return phrase_of(self.clauses[number], draws)


class Evolving:
    """One client's stock of queries."""

    def __init__(self, bag: Bag, draws: Draws) -> None:
        self._bag, self._draws = bag, draws
        self._stock = [bag.phrase(draws) for _ in range(STOCK)]

    def next(self) -> tuple[str, list[int]]:
        """Give a query, and the articles that it brings; the stock learns from them."""
        query = self._stock[self._draws.pick(STOCK)]
        results = self._bag.search(query)
        chance = self._draws.one()
        if results and chance < _FROM_RESULTS:
            self._learn(self._bag.phrase_of(results[self._draws.pick(len(results))], self._draws))
        elif chance > 1 - _FROM_FEED:
            self._learn(self._bag.phrase(self._draws))
        return query, results

    def observe(self, titles: Iterable[str]) -> None:
        """Learn from what a real search engine answered."""
        parts = [part for title in titles for part in clauses(title)]
        if parts:
            self._learn(phrase_of(parts, self._draws))

    def _learn(self, phrase: str) -> None:
        self._stock[self._draws.pick(STOCK)] = phrase


def clauses(text: str) -> list[list[str]]:
    """Cut a text at its marks and between them into words; clauses of small words only are left out."""
    parts = [_WORD.findall(part) for part in _CLAUSE.split(text)]
    return [words for words in parts if any(word.lower() not in _SMALL for word in words)]


def phrase_of(parts: list[list[str]], draws: Draws) -> str:
    """Take some neighbouring words that neither begin nor end with a small one."""
    words = parts[draws.pick(len(parts))]
    heavy = [place for place, word in enumerate(words) if word.lower() not in _SMALL]
    first = heavy[draws.pick(len(heavy))]
    longest = 1 + draws.pick(_LONGEST)
    last = max(place for place in heavy if first <= place < first + longest)
    return " ".join(words[first : last + 1])
