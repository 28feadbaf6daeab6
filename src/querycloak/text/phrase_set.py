"""The phrase finder: phrases of a set inside sequences of words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class PhraseSet:
    """Phrases by their first word, for lookup in time that does not depend on their number."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self.phrases = frozenset(phrases)
        lengths: dict[str, set[int]] = {}
        for words in (phrase.split(" ") for phrase in self.phrases):
            lengths.setdefault(words[0], set()).add(len(words))
        self._lengths = {word: tuple(sorted(sizes, reverse=True)) for word, sizes in lengths.items()}

    def __len__(self) -> int:
        return len(self.phrases)

    @property
    def first_words(self) -> list[str]:
        """The first words of all phrases, sorted."""
        return sorted(self._lengths)

    def at(self, words: Sequence[str], place: int) -> list[str]:
        """Return the phrases that begin at a place, the longest first."""
        return [
            phrase
            for size in self._lengths.get(words[place], ())
            if place + size <= len(words)
            and (phrase := " ".join(words[place : place + size])) in self.phrases
        ]

    def occurs_in(self, words: Sequence[str]) -> bool:
        """Check whether any phrase occurs."""
        return any(self.at(words, place) for place in range(len(words)))

    def all_in(self, words: Sequence[str]) -> list[str]:
        """Return every phrase that occurs, also those inside a longer one."""
        return [phrase for place in range(len(words)) for phrase in self.at(words, place)]

    def longest_in(self, words: Sequence[str]) -> list[str]:
        """Return the phrases from left to right, the longest first, none overlapping."""
        found, place = [], 0
        while place < len(words):
            phrases = self.at(words, place)
            found += phrases[:1]
            place += phrases[0].count(" ") + 1 if phrases else 1
        return found
