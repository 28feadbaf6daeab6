"""An audit of `rules` by other means than the method's: word by word, character by character."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import pairwise
from typing import Final

import polars as pl

from querycloak.audits.evidence import Evidence
from querycloak.audits.lineage import faults
from querycloak.guarantee import Audit, NotCheckable

Test = Callable[[str], bool]
_ASCII_WORD: Final = re.compile("[a-z0-9]+")


def has_digit(text: str) -> bool:
    """Find any character that stands for a decimal digit in any script."""
    return any(letter.isdecimal() for letter in text)


def has_email(text: str) -> bool:
    """Find a word with something on both sides of an `@` and a dot behind it."""
    return any(_is_email(word) for word in text.split())


def _is_email(word: str) -> bool:
    name, at, host = word.strip(".,;:!?()<>[]\"'").partition("@")
    return bool(at and name and "." in host.strip("."))


def has_card(text: str) -> bool:
    """Find 13 to 19 digits in a row, blanks and dashes aside, whose Luhn sum ends in nought."""
    return any(_luhn_within(run) for run in _digit_runs(text, " -"))


def has_phone(text: str) -> bool:
    """Find 7 to 15 digits in a row, written as people write telephone numbers."""
    spaced = "".join(" " if letter.isspace() else letter for letter in text)
    return any(7 <= len(run) <= 15 for run in _digit_runs(spaced, " -.()+/"))


def _digit_runs(text: str, fillers: str) -> Iterable[list[int]]:
    run: list[int] = []
    for letter in text:
        if letter.isdecimal():
            run.append(int(letter))
        elif run and letter not in fillers:
            yield run
            run = []
    yield run


def _luhn_within(run: list[int]) -> bool:
    lengths = range(13, 20)
    return any(_luhn(run[i : i + n]) for n in lengths for i in range(len(run) - n + 1))


def _luhn(digits: list[int]) -> bool:
    doubled = [d if i % 2 == 0 else sum(divmod(2 * d, 10)) for i, d in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0


def has_phrase(phrases: Collection[str]) -> Test:
    """Make a test for any of the listed phrases standing in a text as whole words."""
    known = {tuple(_words(phrase)) for phrase in phrases} - {()}
    longest = max(map(len, known), default=0)

    def test(text: str) -> bool:
        words = _words(text)
        spans = ((i, n) for i in range(len(words)) for n in range(1, longest + 1))
        return any(tuple(words[i : i + n]) in known for i, n in spans)

    return test


def has_full_name(first: Collection[str], last: Collection[str]) -> Test:
    """Make a test for a first name beside a last name, in either order."""
    firsts, lasts = ({word for name in names for word in _words(name)} for names in (first, last))

    def test(text: str) -> bool:
        words = _words(text)
        return any((a in firsts and b in lasts) or (a in lasts and b in firsts) for a, b in pairwise(words))

    return test


def _words(text: str) -> list[str]:
    """Split a text into words without apostrophes, so that `o'brien` is one word."""
    return _words_as_spelt("".join(letter for letter in text if letter not in "'’`"))


def _words_as_spelt(text: str) -> list[str]:
    """Split a text into words: a letter or digit with the letters, digits and marks that follow it.

    A character that this Python does not know counts as a letter: the method may have a newer Unicode, in
    which it separates two words.
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    found: list[str] = []
    inside = False
    for letter in text.lower():
        category = unicodedata.category(letter)
        kind = "L" if category == "Cn" else category[0]
        starts = kind in "LN" and not inside
        inside = kind in "LN" or (kind == "M" and inside)
        if starts:
            found.append(letter)
        elif inside:
            found[-1] += letter
    return found


def longer_than(words: int, letters: int) -> Test:
    """Make a test for a text of too many words or letters."""
    return lambda text: len(_words_as_spelt(text)) > words or len(text) > letters


def never(reason: str, test: Test) -> Audit:
    """Promise that no released query passes a test."""

    def run(evidence: Evidence) -> str:
        shown = _queries(evidence)
        distinct = shown.select("query").unique().drop_nulls().collect().to_series()
        bad = [text for text in distinct.to_list() if test(text)]
        rows = shown.filter(pl.col("query").is_in(bad))
        return faults(rows, f"show a query with {reason}") if bad else ""

    return Audit(f"no released query has {reason}", run, on_counts=True, on_parts=True)


def _queries(evidence: Evidence) -> pl.LazyFrame:
    """Leave out the rows where a method put a category in the query's place: nobody typed that."""
    shown = evidence.text()
    if evidence.reworded_later:
        raise NotCheckable("a later method puts other words in their place")
    if evidence.rewritten_later and "category" in shown.collect_schema().names():
        return shown.filter(pl.col("query").ne_missing(pl.col("category")))
    return shown


def none_of(tests: Mapping[str, Test]) -> tuple[Audit, ...]:
    """Promise that no released query passes any of the named tests."""
    return tuple(never(reason, test) for reason, test in tests.items())
