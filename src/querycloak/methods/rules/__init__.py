"""`rules`: current practice of operators. Drop queries with personal data; count the drops by rule."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from querycloak import settings as declared
from querycloak.dictionary import Dictionaries
from querycloak.errors import UsageError
from querycloak.guarantee import Guarantee
from querycloak.log import Batch, Flags, IntArray
from querycloak.methods.rules import audit
from querycloak.methods.shared.labels import LabelMethod, labels_setting
from querycloak.methods.shared.readings import CodedReadings, unread
from querycloak.protector import State, Traits
from querycloak.settings import setting
from querycloak.text.entities import KINDS, name_list
from querycloak.text.normalise import words
from querycloak.text.reader import TextReader, TextSpec

#: The entities in the order of tests; a query counts for the first that it has. The settings are plurals.
_ENTITIES: Final = ("email", "card", "phone", "digit", "name", "place")
TOO_LONG: Final = "too many words or letters"


class Rules(LabelMethod):
    """Drop queries that look personal: digits, addresses, numbers, names, places, great length.

    Each rule has its own switch, and every removal its reason, the first rule that fits.

    Guarantee: no released query has what a rule that is switched on removes, by the patterns and English
    lists of this version. It is a filter, and ensures no more than that.

    Limits: linking all records of one label, and recognising the user by them; names, places and numbers in
    forms that the lists and patterns do not contain; queries that identify without a name: rare diseases,
    small clubs, the own street.
    """

    name = "rules"

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `rules`."""

        digits: bool = setting(True, stronger="on", help="drop queries with a digit of any script")
        emails: bool = setting(True, stronger="on", help="drop queries with an e-mail address")
        phones: bool = setting(
            True, stronger="on", help="drop queries with 7 to 15 digits written as telephone numbers are"
        )
        cards: bool = setting(
            True, stronger="on", help="drop queries with a card number (13 to 19 digits, Luhn's sum)"
        )
        names: bool = setting(True, stronger="on", help="drop queries with a first name beside a last name")
        places: bool = setting(False, stronger="on", help="drop queries with a town, state or country")
        max_words: int = setting(8, at_least=1, stronger="smaller", help="drop queries of more words")
        max_letters: int = setting(80, at_least=1, stronger="smaller", help="drop queries of more letters")
        phrases: str = setting("", file=True, help="a file of further words and phrases to drop, one a line")
        labels: str = labels_setting()

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Dictionaries) -> None:
        super().__init__(settings, key, texts)
        self._listed = _phrases_of(settings.phrases)
        self._kinds = _kinds(settings, self._listed)
        spec = TextSpec(entities=self._kinds, listed=frozenset(self._listed))
        self._readings = CodedReadings(TextReader(spec), texts.query)
        self._long = np.zeros(0, np.int8)  # by query code: 1 if it is too long, -1 if not yet tested

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
        tests = _detectors(settings)
        return Guarantee(
            statement="no released query has, by the patterns and English lists of this version: "
            + ", ".join(tests),
            does_not_protect_against=(
                "linking all records of one label, and recognising the user by them",
                "names, places and numbers in forms that the lists and patterns do not contain",
                "queries that identify without a name: rare diseases, small clubs, the own street",
            ),
            audits=audit.none_of(tests),
        )

    def partition_key(self, batch: Batch) -> IntArray:
        """Return the row: every query can be judged anywhere."""
        return batch.row

    def push(self, batch: Batch) -> Batch:
        """Release the queries to which no rule applies; each distinct query is tested once."""
        long = self._is_long(batch.query)
        self.drop(batch.row[long], TOO_LONG)
        batch = batch[~long]
        found = self._readings.first_entity(batch.query)
        for place, kind in enumerate(self._kinds, start=1):
            self.drop(batch.row[found == place], KINDS[kind])
        return self._labels.apply(batch[found == 0])

    def _is_long(self, codes: IntArray) -> Flags:
        """Return which queries are too long. They are dropped first: other tests take time by length."""
        self._long, new = unread(self._long, codes)
        if new.size:
            texts, s = self.texts.query.decode(new), self.settings
            long = (words(texts).list.len() > s.max_words) | (texts.str.len_chars() > s.max_letters)
            self._long[new] = long.to_numpy()
        return (codes >= 0) & (self._long[codes] == 1) if self._long.size else codes < -1

    def close(self) -> Batch:
        """Nothing waits, so nothing is left."""
        return Batch.empty(self.texts)

    def snapshot(self) -> State:
        """Return the counters; there is no other state."""
        return self._snapshot_dropped()

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        self._restore_dropped(state)


def _kinds(s: Rules.Settings, listed: Collection[str]) -> tuple[str, ...]:
    chosen = [kind for kind in _ENTITIES if getattr(s, f"{kind}s")]
    return (*chosen, *(["listed"] if listed else []))


def _detectors(s: Rules.Settings) -> dict[str, audit.Test]:
    """Return the audit's own test of each rule, by what it finds."""
    listed = _phrases_of(s.phrases)
    first, last = name_list("first_names.txt"), name_list("last_names.txt")
    tests: dict[str, Callable[[], audit.Test]] = {
        "email": lambda: audit.has_email,
        "card": lambda: audit.has_card,
        "phone": lambda: audit.has_phone,
        "digit": lambda: audit.has_digit,
        "name": lambda: audit.has_full_name(first, last),
        "place": lambda: audit.has_phrase(name_list("place_names.txt")),
        "listed": lambda: audit.has_phrase(listed),
    }
    chosen = {KINDS[kind]: tests[kind]() for kind in _kinds(s, listed)}
    return chosen | {TOO_LONG: audit.longer_than(s.max_words, s.max_letters)}


def _phrases_of(file: str) -> list[str]:
    if not file:
        return []
    try:
        lines = Path(file).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"rules: the file of `phrases` cannot be read: {type(error).__name__}") from None
    return [line for line in lines if line.strip()]
