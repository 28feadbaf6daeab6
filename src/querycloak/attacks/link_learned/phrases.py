"""Phrases of a list inside texts: adult terms, cities and countries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from querycloak.text.places import places
from querycloak.text.taxonomy import load

#: Terms as deep as this come from our own lists; what lies deeper are WordNet's words of many meanings.
_OWN_LISTS = 2


@dataclass(frozen=True)
class Phrases:
    """Phrases by their first word: how many words those have that begin with it, the longest first."""

    known: frozenset[str]
    lengths: dict[str, tuple[int, ...]]

    @classmethod
    def of(cls, phrases: Iterable[str]) -> Phrases:
        """Prepare phrases for lookup."""
        known = frozenset(phrases)
        lengths: dict[str, set[int]] = {}
        for words in (phrase.split(" ") for phrase in known):
            lengths.setdefault(words[0], set()).add(len(words))
        return cls(known, {word: tuple(sorted(sizes, reverse=True)) for word, sizes in lengths.items()})

    def all_in(self, words: Sequence[str]) -> list[str]:
        """List every phrase that occurs, also those inside a longer one."""
        return [phrase for at in range(len(words)) for phrase in self._at(words, at)]

    def longest_in(self, words: Sequence[str]) -> list[str]:
        """List the phrases that occur from left to right, the longest first, none overlapping."""
        found, at = [], 0
        while at < len(words):
            phrases = self._at(words, at)
            found += phrases[:1]
            at += phrases[0].count(" ") + 1 if phrases else 1
        return found

    def _at(self, words: Sequence[str], at: int) -> list[str]:
        sizes = self.lengths.get(words[at], ())
        return [
            phrase
            for size in sizes
            if at + size <= len(words) and (phrase := " ".join(words[at : at + size])) in self.known
        ]


@cache
def adult() -> Phrases:
    """Return the adult terms: phrases of our own lists whose strongest category is Adult."""
    taxonomy = load()
    top = taxonomy.node("Adult")
    strongest = taxonomy.terms.node[taxonomy.terms.start[:-1]]
    theirs = (taxonomy.at_level(strongest, 1) == top) & (taxonomy.depth[strongest] <= _OWN_LISTS)
    return Phrases.of(text for text, hit in zip(taxonomy.terms.texts, theirs.tolist(), strict=True) if hit)


@cache
def _places() -> Phrases:
    return Phrases.of(places())


def cities_and_countries(words: Sequence[str]) -> tuple[Collection[str], Collection[str]]:
    """Name the cities in a text, and the countries in it, those of its cities included."""
    found = [places()[phrase] for phrase in _places().longest_in(words)]
    cities = {place.city for place in found if place.city}
    return cities, {country for place in found for country in place.countries}
