"""`rules`: what operators do today. Drop queries that look personal, and say how many by which rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from querycloak import settings as declared
from querycloak.dictionary import Dictionaries
from querycloak.errors import UsageError
from querycloak.guarantee import Guarantee
from querycloak.log import Batch, IntArray
from querycloak.methods.rules import audit as patterns
from querycloak.methods.shared.labels import Pseudonyms, labels_setting
from querycloak.protector import Protector, State, Traits
from querycloak.settings import setting

_CARD = r"(?:\d[ -]*){13,}"
_PHONE = r"(?:\d[\s\-.()+/]*){7,}"
_EMAIL = r"\S@\S*\."
_WORD = re.compile(r"(?:[^\W_]|['’])+")


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(files("querycloak.methods.rules").joinpath("data", name).read_text("utf-8").split())


@cache
def _lines(name: str) -> frozenset[str]:
    return frozenset(files("querycloak.methods.rules").joinpath("data", name).read_text("utf-8").splitlines())


class Rules(Protector):
    """Drop queries that look personal: digits, addresses, numbers, names, places, great length.

    Each rule has its own switch, and every removal its reason, the first rule that fits.

    Guarantee: no released query fits a rule that is switched on. No more than that: it is a filter.

    Limits:
        - linking all records of one label, and then recognising the person by them
        - names, places and numbers written in ways that the lists and patterns do not know
        - queries that tell without any name: rare diseases, small clubs, one's own street
    """

    name = "rules"

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `rules`."""

        digits: bool = setting(True, kind=bool, stronger="on", help="drop queries with a digit of any script")
        emails: bool = setting(True, kind=bool, stronger="on", help="drop queries with an e-mail address")
        phones: bool = setting(
            True,
            kind=bool,
            stronger="on",
            help="drop queries with 7 to 15 digits written as telephone numbers are",
        )
        cards: bool = setting(
            True,
            kind=bool,
            stronger="on",
            help="drop queries with a card number (13 to 19 digits, Luhn's sum)",
        )
        names: bool = setting(
            True, kind=bool, stronger="on", help="drop queries with a first name beside a last name"
        )
        places: bool = setting(
            False, kind=bool, stronger="on", help="drop queries with a town, state or country"
        )
        max_words: int = setting(
            8, kind=int, at_least=1, stronger="smaller", help="drop queries of more words"
        )
        max_letters: int = setting(
            80, kind=int, at_least=1, stronger="smaller", help="drop queries of more letters"
        )
        phrases: str = setting(
            "", kind=str, file=True, help="a file of further words and phrases to drop, one a line"
        )
        labels: str = labels_setting()

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Dictionaries) -> None:
        super().__init__(settings, key, texts)
        self._labels = Pseudonyms(settings.labels, key, texts)
        self._tests = _chosen_tests(settings)
        self._verdict = np.empty(0, np.int64)

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Name the settings that the conformance suite tries."""
        only_digits = cls.Settings(emails=False, phones=False, cards=False, names=False, max_words=3)
        return [cls.Settings(), only_digits, cls.Settings(places=True, digits=False, labels="fresh")]

    @classmethod
    def traits(cls, settings: Settings) -> Traits:
        """Return the properties of `rules` with these settings."""
        return Traits(
            rewrites=frozenset({"user"}),
            buffers_records=False,
            fresh_labels=settings.labels == "fresh",
            user_independent=True,
        )

    @classmethod
    def promise(cls, settings: Settings) -> Guarantee:
        """Return the guarantee of `rules` with these settings."""
        tests = _chosen_tests(settings)
        return Guarantee(
            statement="no released query has " + ", ".join(tests),
            does_not_protect_against=(
                "linking all records of one label, and recognising the person by them",
                "names, places and numbers written in ways that the lists and patterns do not know",
                "queries that tell without any name: rare diseases, small clubs, one's own street",
            ),
            audits=patterns.none_of({why: _independent(why, settings) for why in tests}),
        )

    def partition_key(self, batch: Batch) -> IntArray:
        """Return the row: every query can be judged anywhere."""
        return batch.row

    def push(self, batch: Batch) -> Batch:
        """Judge each distinct query once; let the clean ones go."""
        self._judge_new(int(batch.query.max(initial=-1)) + 1)
        verdict = self._verdict[batch.query]
        for place, reason in enumerate(self._tests, start=1):
            self.drop(batch.row[verdict == place], reason)
        return self._labels.apply(batch[verdict == 0])

    def _judge_new(self, known: int) -> None:
        start = self._verdict.size
        if known <= start:
            return
        queries = self.texts.query.texts()[start:]
        verdict = np.zeros(len(queries), np.int64)
        for place, test in enumerate(self._tests.values(), start=1):
            verdict[(verdict == 0) & test(queries).to_numpy()] = place
        self._verdict = np.concatenate([self._verdict, verdict])

    def label_of(self, users: IntArray) -> IntArray:
        """Return the label that stands for each user in what leaves."""
        return self._labels.of(users)

    def close(self) -> Batch:
        """Nothing waits, so nothing is left."""
        return Batch.empty(self.texts)

    def snapshot(self) -> State:
        """Return the counters; there is no other state."""
        return self._snapshot_dropped()

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        self._restore_dropped(state)


def _chosen_tests(s: Rules.Settings) -> dict[str, Callable[[pl.Series], pl.Series]]:
    """Return the rules that are switched on, by what they find."""
    phrases, tests = _phrases_of(s.phrases), dict[str, Callable[[pl.Series], pl.Series]]()
    if s.emails:
        tests["an e-mail address"] = lambda q: q.str.contains(_EMAIL)
    if s.cards:
        tests["a card number"] = _with_card
    if s.phones:
        tests["a telephone number"] = lambda q: q.str.contains(_PHONE)
    if s.digits:
        tests["a digit"] = lambda q: q.str.contains(r"\d")
    if s.names:
        tests["a person's name"] = lambda q: _where(q, list(_words("last_names.txt")), _names_someone)
    if s.places:
        tests["a place"] = _phrase_test(_lines("places.txt"))
    if phrases:
        tests["a listed phrase"] = _phrase_test(phrases)
    tests["too many words or letters"] = lambda q: _too_long(q, s)
    return tests


def _too_long(queries: pl.Series, s: Rules.Settings) -> pl.Series:
    words = queries.str.count_matches(r"[^\s\x1c-\x1f]+")
    return (words > s.max_words) | (queries.str.len_chars() > s.max_letters)


def _independent(why: str, s: Rules.Settings) -> patterns.Test:
    first, last = _words("first_names.txt"), _words("last_names.txt")
    return {
        "an e-mail address": patterns.has_email,
        "a card number": patterns.has_card,
        "a telephone number": patterns.has_phone,
        "a digit": patterns.has_digit,
        "a person's name": patterns.has_full_name(first, last),
        "a place": patterns.has_phrase(_lines("places.txt")),
        "a listed phrase": patterns.has_phrase(_phrases_of(s.phrases)),
        "too many words or letters": patterns.longer_than(s.max_words, s.max_letters),
    }[why]


def signs() -> dict[str, patterns.Test]:
    """Return every test for personal content of a query, places included, by what it finds."""
    every = Rules.Settings(places=True)
    return {
        why: _independent(why, every) for why in _chosen_tests(every) if why != "too many words or letters"
    }


def _phrases_of(file: str) -> frozenset[str]:
    if not file:
        return frozenset()
    try:
        lines = Path(file).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"rules: the file of `phrases` cannot be read: {type(error).__name__}") from None
    return frozenset(text for line in lines if (text := " ".join(_WORD.findall(line.casefold()))))


def _where(queries: pl.Series, hints: list[str], test: Callable[[list[str]], bool]) -> pl.Series:
    """Run a slow test on the words of those queries only that hold one of the hints."""
    near = queries.str.contains_any(hints, ascii_case_insensitive=True)
    folds = queries.str.contains(r"[^\x00-\x7f]")  # other letters may fold into the hints' letters
    likely = (near | folds).to_numpy().copy()
    found = (test(_WORD.findall(text.casefold())) for text in queries.filter(pl.Series(likely)))
    likely[likely] = np.fromiter(found, bool, count=int(likely.sum()))
    return pl.Series(likely)


def _names_someone(words: list[str]) -> bool:
    first, last = _words("first_names.txt"), _words("last_names.txt")
    return any((a in first and b in last) or (a in last and b in first) for a, b in pairwise(words))


def _phrase_test(phrases: frozenset[str]) -> Callable[[pl.Series], pl.Series]:
    pattern = re.compile("|".join(rf" {re.escape(phrase)} " for phrase in sorted(phrases)))
    hints = sorted({phrase.split()[0] for phrase in phrases})
    return lambda queries: _where(queries, hints, lambda words: bool(pattern.search(f" {' '.join(words)} ")))


def _with_card(queries: pl.Series) -> pl.Series:
    likely = queries.str.contains(_CARD).to_numpy().copy()
    runs = queries.filter(pl.Series(likely)).str.extract_all(_CARD)
    likely[likely] = [any(map(_passes_luhn, _digit_strings(found))) for found in runs.to_list()]
    return pl.Series(likely)


def _digit_strings(found: list[str]) -> Iterator[str]:
    """Yield every stretch of 13 to 19 digits within the runs that were found."""
    for run in (re.sub(r"\D", "", text) for text in found):
        yield from (run[i : i + n] for n in range(13, 20) for i in range(len(run) - n + 1))


def _passes_luhn(digits: str) -> bool:
    total = 0
    for place, digit in enumerate(map(int, reversed(digits))):
        total += digit if place % 2 == 0 else (2 * digit if digit < 5 else 2 * digit - 9)
    return total % 10 == 0
