"""`Mapper`: what queries mean, phrase by phrase, and how to write them again with other concepts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.text.classify.linguistic import noun_phrases
from querycloak.text.concepts.words import Concepts
from querycloak.text.normalise import FUNCTION_WORDS, STOP_WORDS, normalise, stemmer

MAPPERS: Final = ("lexical", "linguistic")
_ADDRESS: Final = r"(?i)(?:^|\s)(?:https?:|www[. ])|[\w-]\.(?:com|net|org|edu|gov|info|biz|co|us|uk|de|tv)\b"
_BETWEEN: Final = r"[,;|\n]+"
_SHARP = re.compile(r"(?:s|x|z|ch|sh)$")
_AFTER_CONSONANT = re.compile(r"[^aeiou]y$")
_Found = tuple[str, int, bool]


@dataclass(frozen=True)
class Phrase:
    """A phrase of a query that means a concept, and what the mapping took away from it."""

    concept: int
    before: tuple[str, ...] = ()  # words that stand between it and the phrase before
    removed: tuple[str, ...] = ()  # its own first words, which no known phrase has
    plural: bool = False
    known: str = ""  # the phrase of the lexicon that it was found as


@dataclass(frozen=True)
class Mapped:
    """The phrases of many texts in one row: those of text i are `phrases[start[i]:start[i + 1]]`."""

    phrases: list[Phrase]
    start: npt.NDArray[np.int64]

    @property
    def concept(self) -> npt.NDArray[np.int64]:
        """The concept of each phrase."""
        return np.fromiter((phrase.concept for phrase in self.phrases), np.int64, len(self.phrases))


class Mapper:
    """Splits queries into noun phrases and finds the concept that each means.

    A phrase means what it says as it stands, else what its stems say, else what it says without its
    first word, and so on. An address means nothing, nor does a phrase of which no part is known.
    """

    def __init__(self, concepts: Concepts, how: str = "lexical") -> None:
        self.concepts = concepts
        self._how = how
        self._known: dict[tuple[str, ...], _Found] = {}
        self._stem = stemmer().stemWord

    def read(self, queries: pl.Series) -> Mapped:
        """Read queries, one after the other; each distinct one should come once."""
        parts = queries.fill_null("").str.replace_all(_BETWEEN, ",").str.split(",")
        sizes = parts.list.len().to_numpy()
        flat = parts.explode().fill_null("")
        flat = flat.set(flat.str.contains(_ADDRESS), "")
        words = [text.split(" ") if text else [] for text in normalise(flat).to_list()]
        spans = (
            [self.concepts.split(part) for part in words] if self._how == "lexical" else _parsed(flat, words)
        )
        phrases: list[Phrase] = []
        counts = np.zeros(sizes.size + 1, np.int64)
        ends = np.repeat(np.arange(sizes.size), sizes).tolist()
        for query, part, found in zip(ends, words, spans, strict=True):
            new = list(self._meant(part, found))
            counts[query + 1] += len(new)
            phrases += new
        return Mapped(phrases, np.cumsum(counts))

    def _meant(self, words: list[str], spans: Iterable[tuple[int, int]]) -> Iterator[Phrase]:
        last = 0
        for start, end in spans:
            known, removed, plural = self._meaning(tuple(words[start:end]))
            if known:
                concept, between = self.concepts.meaning[known], tuple(words[last:start])
                yield Phrase(concept, between, tuple(words[start : start + removed]), plural, known)
            last = end

    def _meaning(self, words: tuple[str, ...]) -> _Found:
        """Find the known phrase in a phrase, how many words had to go, and whether it was a plural."""
        known = self._known.get(words)
        if known is None:
            known = self._known[words] = self._looked_up(words)
        return known

    def _looked_up(self, words: tuple[str, ...]) -> _Found:
        """Look a phrase up, then without its first words; run together by words alone, also without its last.

        A list of words without a parser often ends in a name that nobody knows: `siding new haddonburg`.
        """
        stems = [self._stem(word) for word in words]
        for end in range(len(words), 0, -1) if self._how == "lexical" else [len(words)]:
            if end < len(words) and words[end - 1] in STOP_WORDS:
                continue  # `free` says nothing alone
            for removed in range(end):
                text = " ".join(words[removed:end])
                if text in self.concepts.meaning:
                    return text, removed, False
                text = self.concepts.stems.get(" ".join(stems[removed:end]), "")
                if text and len(words[end - 1]) > 1:
                    return text, removed, words[end - 1].endswith("s")
        return "", 0, False


def _parsed(texts: pl.Series, words: Sequence[list[str]]) -> list[list[tuple[int, int]]]:
    """Find where the parser's noun phrases stand among the words."""
    spans = []
    for phrases, inside in zip(noun_phrases(texts.to_list()), words, strict=True):
        found, place = [], 0
        for phrase in phrases:
            wanted = phrase.split(" ")
            starts = range(place, len(inside) - len(wanted) + 1)
            start = next((s for s in starts if inside[s : s + len(wanted)] == wanted), None)
            if start is not None:  # the parser cuts `bob's` in two
                place = start + len(wanted)
                found.append((start, place))
        spans.append(found)
    return spans


def say(phrases: Sequence[Phrase], spoken: Sequence[str], how: str) -> str:
    """Write a query with other concepts' words in place of its own.

    `none`: their words alone. `form`: also its plurals and the stop words between them. `paper`: all that
    the mapping took away is put back.
    """
    if how == "none":
        return ", ".join(spoken)
    text: list[str] = []
    for phrase, words in zip(phrases, spoken, strict=True):
        before = [word for word in phrase.before if how == "paper" or word in FUNCTION_WORDS]
        if text and not before:
            text[-1] += ","
        removed = phrase.removed if how == "paper" else ()
        text += [*before, *removed, pluralised(words) if phrase.plural else words]
    return " ".join(text)


def pluralised(text: str) -> str:
    """Give the plural of a phrase by its last word, as English usually forms it.

    >>> pluralised("huawei tablet"), pluralised("city"), pluralised("watch"), pluralised("glasses")
    ('huawei tablets', 'cities', 'watches', 'glasses')
    """
    if text.endswith("s") and not text.endswith("ss"):
        return text
    if _AFTER_CONSONANT.search(text):
        return text[:-1] + "ies"
    return text + ("es" if _SHARP.search(text) else "s")
