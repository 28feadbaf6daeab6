"""Entities in queries: personal data by patterns and lists, and names of places."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from querycloak.text.lexicon import PhraseSet
from querycloak.text.normalise import BoolArray, IntArray, Tokens, normalise, tokens_of, words

#: The kinds, and what a query has that contains one.
KINDS: Final = {
    "email": "an e-mail address",
    "card": "a card number",
    "phone": "a telephone number",
    "digit": "a digit",
    "name": "a person's name",
    "place": "a place",
    "listed": "a listed phrase",
    "street": "a street address",
}
_DATA: Final = Path(__file__).parent / "data"
_NAME_FILES: Final = ("first_names.txt", "last_names.txt")
_WHOLE: Final = 1 << 30  # characters: all of them are read
_GAP: Final = r"[\s\x1c-\x1f\-.()+/]*"
_EMAIL: Final = r"\S@\S*\."
_CARD: Final = r"(?:\d[ -]*){13,}"
_PHONE: Final = rf"\d(?:{_GAP}\d){{6,}}"
_STREET: Final = (
    r"(?i)\b\d{1,5}[a-z]?\s+(?:[\p{L}\p{M}_]+\s+){0,3}"
    r"(?:street|st|avenue|ave|road|rd|lane|ln|drive|dr|boulevard|blvd|court|ct|way|place|square|terrace)\b"
)
#: Digits of telephone and card numbers.
_PHONE_DIGITS, _CARD_DIGITS = (7, 15), range(13, 20)


@cache
def name_list(file: str) -> frozenset[str]:
    """Return the entries of a list in `data/`, as they are written."""
    text = (_DATA / file).read_text("utf-8")
    return frozenset(text.splitlines() if file == "place_names.txt" else text.split())


def find_entities(
    queries: pl.Series, kinds: Sequence[str], listed: Collection[str] = frozenset()
) -> BoolArray:
    """Return row per query and column per kind: whether the query contains an entity of that kind.

    `listed` has the phrases of the kind `listed`. Null contains nothing.
    """
    texts = queries.fill_null("")
    found = np.zeros((texts.len(), len(kinds)), np.bool_)
    for column, kind in enumerate(kinds):
        if kind == "listed":
            found[:, column] = _marked(texts, PhraseSet(_forms(listed)).texts_with)
        else:
            found[:, column] = _FINDERS[kind](texts)
    return found


def _contains(pattern: str) -> Callable[[pl.Series], BoolArray]:
    return lambda texts: texts.str.contains(pattern).to_numpy()


def _with_phone(texts: pl.Series) -> BoolArray:
    """Mark texts with a run of 7 to 15 digits that is written as telephone numbers are."""
    likely = texts.str.contains(_PHONE).to_numpy().copy()
    runs = texts.filter(pl.Series(likely)).str.extract_all(_PHONE)
    fits = runs.list.eval(pl.element().str.count_matches(r"\d").is_between(*_PHONE_DIGITS))
    likely[likely] = fits.list.any().to_numpy()
    return likely


def _with_card(texts: pl.Series) -> BoolArray:
    """Mark texts with 13 to 19 consecutive digits whose Luhn sum is a multiple of ten."""
    likely = texts.str.contains(_CARD).to_numpy().copy()
    runs = texts.filter(pl.Series(likely)).str.extract_all(_CARD).to_list()
    likely[likely] = [any(map(_has_luhn, found)) for found in runs]
    return likely


def _has_luhn(run: str) -> bool:
    digits = np.array([int(letter) for letter in run if letter.isdecimal()], np.int64)
    doubled = np.where(digits < 5, 2 * digits, 2 * digits - 9)
    even = np.arange(digits.size) % 2 == 0
    sums = [_before(np.where(even == plain, digits, doubled)) for plain in (True, False)]
    ends = np.arange(digits.size + 1)
    for size in _CARD_DIGITS:  # the last digit of a window is not doubled
        end = ends[size:]
        totals = [(each[end] - each[end - size]) % 10 for each in sums]
        if (np.where((end - 1) % 2 == 0, *totals) == 0).any():
            return True
    return False


def _before(values: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(values)])


def _forms(phrases: Collection[str]) -> set[str]:
    """Return phrases as words, spelt as they are and in normal form."""
    texts = pl.Series(list(phrases), dtype=pl.String)
    return {*_spelt(texts), *normalise(texts, _WHOLE)} - {""}


def _spelt(texts: pl.Series) -> pl.Series:
    return words(texts.str.replace_all("['’`]", "")).list.join(" ")


def _marked(texts: pl.Series, find: Callable[[Tokens], IntArray]) -> BoolArray:
    """Mark texts in which `find` finds something, as they are spelt or in normal form."""
    found = np.zeros(texts.len(), np.bool_)
    spelt, normal = _spelt(texts), normalise(texts, _WHOLE)
    found[find(tokens_of(spelt))] = True
    other = (spelt != normal).arg_true()
    if other.len():
        found[other.to_numpy()[find(tokens_of(normal.gather(other)))]] = True
    return found


@cache
def _place_names() -> PhraseSet:
    return PhraseSet(_forms(name_list("place_names.txt")))


def _beside(tokens: Tokens) -> IntArray:
    """Return the texts with a first name beside a last name, in either order."""
    words = pl.Series(tokens.words, dtype=pl.String)
    first, last = (words.is_in(_names(file)).to_numpy()[tokens.codes] for file in _NAME_FILES)
    named = (first[:-1] & last[1:]) | (last[:-1] & first[1:])
    text = tokens.text_of(np.arange(tokens.codes.size))
    return np.asarray(text[:-1][named & (text[:-1] == text[1:])], np.int64)


@cache
def _names(file: str) -> list[str]:
    return sorted(_forms(name_list(file)))


_FINDERS: Final[dict[str, Callable[[pl.Series], BoolArray]]] = {
    "email": _contains(_EMAIL),
    "card": _with_card,
    "phone": _with_phone,
    "digit": _contains(r"\d"),
    "name": lambda texts: _marked(texts, _beside),
    "place": lambda texts: _marked(texts, _place_names().texts_with),
    "street": _contains(_STREET),
}


@dataclass(frozen=True)
class Place:
    """A city (none for a country) and its countries, the nearest first."""

    city: str | None
    countries: tuple[str, ...]


@cache
def places() -> dict[str, Place]:
    """Return cities and countries by their names in normal form; built by `tools/build_places.py`."""
    with (_DATA / "places.csv").open(encoding="utf-8", newline="") as file:
        return {
            row["phrase"]: Place(row["city"] or None, tuple(filter(None, row["countries"].split(";"))))
            for row in csv.DictReader(file)
        }
