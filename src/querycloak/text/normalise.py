"""The one definition of a word, and the normal form in which texts are looked up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Texts = TypeVar("Texts", pl.Series, pl.Expr)

#: A word: a letter or digit of any script, then letters, digits, and the marks that belong to them.
WORD: Final = r"[\p{L}\p{N}][\p{L}\p{M}\p{N}]*"
#: Characters of a query that are read; real queries are far shorter.
LONGEST: Final = 400

#: Signs that are part of a name, and apostrophes, which do not separate words.
_SIGNS: Final = {"c++": " cplusplus ", "c#": " csharp ", ".net ": " dotnet ", "’": "", "'": "", "`": ""}
_ACCENTS: Final = (
    r"([\p{Latin}\p{Greek}\p{Cyrillic}])\p{M}+"  # marks of other scripts are vowels, not accents
)
_VARIANTS: Final = {"ß": "ss", "ς": "σ"}

_DATA: Final = Path(__file__).parent / "data"
#: Words that hold a sentence together.
FUNCTION_WORDS: Final = frozenset((_DATA / "function_words.txt").read_text("utf-8").split())
#: Words that state no topic on their own; inside a known phrase they still count.
STOP_WORDS: Final = FUNCTION_WORDS | frozenset((_DATA / "weak_words.txt").read_text("utf-8").split())
#: Words that open a tail such as `in boston`, which names the topic less than the words before it.
TAIL_OPENERS: Final = frozenset(
    {"in", "for", "at", "near", "from", "by", "with", "on", "to", "around", "within", "about", "vs", "versus"}
)


def words(texts: Texts) -> Texts:
    """Return the words of each text as a list, in lower case and otherwise as they are spelt."""
    return texts.str.to_lowercase().str.extract_all(WORD)


def normalise(texts: pl.Series, longest: int = LONGEST) -> pl.Series:
    """Return the words of each text without accents and apostrophes, separated by one space.

    `Café-Olé` and `cafe ole` have the same normal form. Null becomes the empty text.
    """
    lower = texts.cast(pl.String).fill_null("").str.slice(0, longest).str.to_lowercase()
    plain = words(lower.str.replace_many(list(_SIGNS), list(_SIGNS.values()))).list.join(" ")
    foreign = plain.str.contains(r"[^\x00-\x7f]").arg_true()
    return plain.scatter(foreign, _folded(plain.gather(foreign))) if foreign.len() else plain


def _folded(texts: pl.Series) -> pl.Series:
    apart = texts.str.normalize("NFKD").str.to_lowercase().str.replace_all(_ACCENTS, "$1")
    one = apart.str.replace_many(list(_VARIANTS), list(_VARIANTS.values()))
    return words(one).list.join(" ").str.normalize("NFC")


def normalise_text(text: str) -> str:
    """Return the normal form of one text.

    >>> normalise_text("Mother's  Day - café_menu")
    'mothers day cafe menu'
    """
    return str(normalise(pl.Series([text], dtype=pl.String), len(text))[0])


@dataclass(frozen=True)
class Tokens:
    """The words of many texts in one row: `codes` into `words`, text i at `bounds[i]:bounds[i + 1]`."""

    codes: IntArray
    bounds: IntArray
    words: list[str]

    def text_of(self, places: IntArray) -> IntArray:
        """Return the texts of words, by their places in the row."""
        return np.asarray(np.searchsorted(self.bounds, places, side="right") - 1, np.int64)


def tokens_of(texts: pl.Series) -> Tokens:
    """Return the words of texts in normal form; the empty text has one empty word."""
    split = texts.str.split(" ")
    bounds = np.concatenate([[0], np.cumsum(split.list.len().to_numpy())]).astype(np.int64)
    codes, distinct = number(split.explode().rename("word"))
    return Tokens(codes, bounds, distinct)


def number(column: pl.Series) -> tuple[IntArray, list[str]]:
    """Return a number for each word, in the order of first occurrence, and the distinct words."""
    distinct = column.unique(maintain_order=True)
    numbers = pl.DataFrame({"word": distinct, "number": np.arange(distinct.len(), dtype=np.int64)})
    joined = column.to_frame("word").join(numbers, on="word", how="left", maintain_order="left")
    return joined["number"].to_numpy().astype(np.int64, copy=False), distinct.to_list()


def is_stop(column: Sequence[str]) -> BoolArray:
    """Mark words that state nothing on their own: stop words, single letters, numbers such as years."""
    series = pl.Series("word", column, dtype=pl.String)
    silent = series.is_in(list(STOP_WORDS)) | (series.str.len_chars() < 2)
    return (silent | series.str.contains(r"^[0-9]{1,4}$")).to_numpy()


def in_tail(tokens: Tokens, stop: BoolArray) -> BoolArray:
    """Mark words after the first `in`, `for`, ... of their text, if a content word precedes that one."""
    opens = pl.Series(tokens.words, dtype=pl.String).is_in(list(TAIL_OPENERS)).to_numpy()
    first = np.repeat(tokens.bounds[:-1], np.diff(tokens.bounds))  # word of each word's text
    content = ~stop[tokens.codes]
    before: IntArray = np.cumsum(content) - content
    opened = np.cumsum(opens[tokens.codes] & (before > before[first]))
    return np.asarray(opened > opened[first], np.bool_)


@cache
def stemmer() -> Any:
    """Return the Porter stemmer."""
    import Stemmer

    return Stemmer.Stemmer("porter", 0)  # no cache: every word is asked for once
