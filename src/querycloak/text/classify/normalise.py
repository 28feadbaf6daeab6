"""Brings queries, phrases and addresses into one plain form: lower case, no accents, single spaces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from querycloak.text.classify.result import Dictionaries, IntArray

LONGEST = 400  # characters of a query that are read; what people type is far shorter

_SIGNS = {
    "c++": " cplusplus ",
    "c#": " csharp ",
    ".net ": " dotnet ",
    "’": "",
    "'": "",
    "`": "",
}

_WORD_LISTS = Path(__file__).parent / "data"

FUNCTION_WORDS = frozenset((_WORD_LISTS / "function_words.txt").read_text("utf-8").split())
"""Words that hold a sentence together."""

STOP_WORDS = FUNCTION_WORDS | frozenset((_WORD_LISTS / "weak_words.txt").read_text("utf-8").split())
"""Words that say nothing about a topic on their own; inside a known phrase they still count."""

TAIL_OPENERS = frozenset(
    {"in", "for", "at", "near", "from", "by", "with", "on", "to", "around", "within", "about", "vs", "versus"}
)
"""Words that open a tail such as `in boston`, which names the topic less than what stands before it."""


@dataclass(frozen=True)
class Tokens:
    """The words of many texts in one row: `codes` into `words`, text i at `bounds[i]:bounds[i + 1]`."""

    codes: IntArray
    bounds: IntArray
    words: list[str]


def plain(texts: pl.Series, longest: int = LONGEST) -> pl.Series:
    """Bring texts into the plain form; `Café-Olé` and `cafe ole` become the same."""
    short = texts.cast(pl.String).fill_null("").str.slice(0, longest)
    folded = short.str.normalize("NFKD").str.to_lowercase().str.replace_all(r"\p{M}+", "")
    signs = folded.str.replace_many(list(_SIGNS), list(_SIGNS.values()))
    return signs.str.replace_all(r"[^\p{L}\p{N}]+", " ").str.strip_chars()


def plain_text(text: str) -> str:
    """Bring one text into the plain form."""
    return str(plain(pl.Series([text], dtype=pl.String))[0])


def tokenise(texts: Dictionaries | pl.Series) -> Tokens:
    """Split texts into words and number the distinct words."""
    series = texts if isinstance(texts, pl.Series) else pl.Series(list(texts), dtype=pl.String)
    return split(plain(series))


def split(texts: pl.Series) -> Tokens:
    """Split texts in plain form at their spaces."""
    words = texts.str.split(" ")
    bounds = np.concatenate([[0], np.cumsum(words.list.len().to_numpy())]).astype(np.int64)
    codes, distinct = number(words.explode().rename("word"))
    return Tokens(codes, bounds, distinct)


def number(words: pl.Series) -> tuple[IntArray, list[str]]:
    """Give equal words equal numbers; numbers follow the order of first coming."""
    distinct = words.unique(maintain_order=True)
    numbers = pl.DataFrame({"word": distinct, "number": np.arange(distinct.len(), dtype=np.int64)})
    joined = words.to_frame("word").join(numbers, on="word", how="left", maintain_order="left")
    return joined["number"].to_numpy().astype(np.int64, copy=False), distinct.to_list()


def tails(opens: Any, stop: Any, codes: IntArray, bounds: IntArray) -> Any:
    """Mark the words that follow the first `in`, `for`, ... of their text, if a content word precedes it."""
    content = ~stop[codes]
    before = np.cumsum(content) - content
    first = np.repeat(before[np.minimum(bounds[:-1], codes.size - 1)], np.diff(bounds))
    opening = opens[codes] & (before > first)
    opened = np.cumsum(opening)
    at_start = np.repeat(opened[np.minimum(bounds[:-1], codes.size - 1)], np.diff(bounds))
    return opened > at_start


@cache
def stemmer() -> Any:
    """Give the Porter stemmer."""
    import Stemmer

    return Stemmer.Stemmer("porter", 0)  # no cache: every word is asked for once
