"""`km`: deletes terms until every combination of at most m of a history is k people's (paper 001)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from querycloak import settings as declared
from querycloak.dictionary import Dictionaries, Dictionary
from querycloak.errors import ParameterError, Refused
from querycloak.guarantee import Guarantee, Sentence
from querycloak.kernels import siphash
from querycloak.keys import derive
from querycloak.knowledge import Game, Knowledge
from querycloak.log import COLUMN_BIT, NO_TIME, Batch, IntArray
from querycloak.methods.km import deletion
from querycloak.methods.km.audit import audits
from querycloak.methods.km.deletion import HistoryTerms, Outcome
from querycloak.methods.shared import sessions as histories
from querycloak.methods.shared.labels import (
    LabelMethod,
    coarse_time_setting,
    labels_setting,
    pseudonyms,
    unit_of,
)
from querycloak.methods.shared.records import WindowProtector, require_users, users_setting
from querycloak.methods.shared.terms import TermOccurrences, Tokenizer
from querycloak.protector import USER_AND_QUERY, AttackBound, Labels, Traits
from querycloak.settings import setting

_CHANCE = 1
EMPTIED = "no term is left"
BOT = "a session with too many searches"


def supports(histories: Iterable[Iterable[str]], m: int) -> dict[tuple[str, ...], int]:
    """Count the histories that hold each combination of at most m terms, as sorted tuples.

    >>> supports([["a", "b"], ["b", "a", "a"], ["b"]], 2)
    {('a',): 2, ('b',): 3, ('a', 'b'): 2}
    """
    lists = [sorted(set(history)) for history in histories]
    sizes = range(1, m + 1)
    return dict(Counter(found for terms in lists for size in sizes for found in combinations(terms, size)))


def is_km_anonymous(histories: Iterable[Iterable[str]], k: int, m: int) -> bool:
    """Whether every combination of at most m terms of any history is in at least k histories.

    >>> is_km_anonymous([["a", "b"], ["a", "b"], ["b"]], k=2, m=2)
    True
    >>> is_km_anonymous([["a", "b"], ["a", "c"], ["b", "c"]], k=2, m=2)
    False
    """
    return all(count >= k for count in supports(histories, m).values())


class Km(LabelMethod, WindowProtector):
    """Delete terms from histories until nobody stands out by any m of them; what is left is real.

    All records wait until the log (or `window`) ends. Then terms go: first those of fewer than `k` people,
    then one of each pair that fewer than `k` have, then of each triple …; which one, `target` decides.

    Guarantee: every combination of at most `m` terms of a history is in the histories of at least `k` users.

    Limits: an attacker who knows more than m terms of a user; an attacker who knows that a term is absent, or
    how often or when a term was used; what all k histories have in common; k accounts that one attacker
    opened to preserve a combination.

    Reference: "Anonymous Search Histories Featuring Personalized Advertisement", Algorithms 1 and 2.
    """

    name = "km"
    late = "came after its window was closed"
    exempt: ClassVar[dict[str, str]] = {
        "memory_stays_bounded": "whether a term may stay is known only when the log or window has ended"
    }

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `km`."""

        k: int = users_setting(5, help="people who must share a combination of terms")
        m: int = setting(2, at_least=1, at_most=4, stronger="larger", help="terms of a combination, at most")
        target: str = setting(
            "logsize",
            file=True,
            help=f"what to keep most of: {', '.join(deletion.TARGETS)}, or a CSV of term, utility",
        )
        history: int | str = setting(
            "all",
            kind=int,
            at_least=1,
            also=("all", "session", "day", "week"),
            help="split a person's records into parts that nothing links; a number: so many searches each",
        )
        window: str = setting(
            "none",
            choices=("none", "day", "week"),
            stronger=("day", "week", "none"),
            help="protect each day or week by itself, as soon as it is over",
        )
        urls: str = setting(
            "empty",
            choices=("empty", "terms"),
            help="empty clicked pages, or count their words as terms and keep those that may stay whole",
        )
        bots: int = setting(100, at_least=0, help="drop people with more searches in one session; 0: nobody")
        time: str = coarse_time_setting()
        labels: str = labels_setting()
        marketing: str = setting(
            "", file=True, help="a CSV of term, bid, impressions, clicks (`--marketing`)"
        )

        def __post_init__(self) -> None:
            super().__post_init__()
            if self.target in deletion.MARKETING and not self.marketing:
                raise ParameterError(
                    f"km: `target={self.target}` needs to know what terms are worth",
                    hint="give a CSV of term, bid, impressions, clicks with `--marketing`",
                )
            if self.target not in deletion.TARGETS and not self.target.lower().endswith(".csv"):
                raise ParameterError(
                    "km: there is no such `target`",
                    hint=f"the targets are {', '.join(deletion.TARGETS)}, or the name of a .csv file",
                )

        @property
        def has_parts(self) -> bool:
            """Whether a user's records are released under several labels."""
            return self.history != "all" or self.window != "none"

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Dictionaries) -> None:
        super().__init__(settings, key, texts)
        self.per_row = settings.urls == "terms"  # every clicked page counts by itself
        self._terms = Dictionary()
        self._queries = Tokenizer(texts.query, self._terms)
        self._urls = Tokenizer(texts.url, self._terms)
        self._span = settings.window

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Name the settings that the conformance suite tries."""
        return [
            cls.Settings(k=2),
            cls.Settings(k=2, m=3, target="random", urls="terms", time="drop"),
            cls.Settings(k=2, m=2, target="fis", history="session", bots=3),
            cls.Settings(k=2, m=1, target="distinct", window="day", labels="fresh"),
            cls.Settings(k=2, m=2, target="users", history=2),
        ]

    @classmethod
    def traits(cls, settings: Settings) -> Traits:
        """Return the properties of `km` with these settings."""
        by_time = settings.history in ("session", "day", "week") or settings.window != "none"
        in_rows = settings.urls == "terms"
        times = {"time"} if settings.time == "drop" else set()
        bound = AttackBound(Game.IDENTIFICATION, 1 / settings.k, Knowledge.TEXTS, known_terms=settings.m)
        return Traits(
            reads=frozenset({"user", "query", "time", "url"} if in_rows else {"user", "query", "time"}),
            requires=USER_AND_QUERY | ({"time"} if by_time else frozenset()),
            rewrites=frozenset({"user", "query", "time"}),
            empties=frozenset({"rank", "category"} if in_rows else {"rank", "category", "url"}) | times,
            may_empty=frozenset({"url"} if in_rows else ()),
            time_unit=unit_of(settings.time),
            needs_whole_log=settings.window == "none",
            unit="row" if in_rows else "search",
            labels=Labels.PARTS if settings.has_parts else Labels.OWN,
            fresh_labels=settings.labels == "fresh",
            needs_authors=True,
            bounds=(bound,),
            spark_form="querycloak.methods.km:window",
            main_setting="k",
        )

    @classmethod
    def promise(cls, settings: Settings) -> Guarantee:
        """Return the guarantee of `km` with these settings."""
        k, m = settings.k, settings.m
        within = "" if settings.window == "none" else f" of the same {settings.window}"
        return Guarantee.of(
            Sentence(
                f"every combination of at most {m} terms of a history is in the histories of at least {k} "
                f"users{within}",
                audits(k, m, settings.window, urls=settings.urls == "terms"),
            ),
            limits=(
                f"an attacker who knows more than {m} terms of a user",
                "an attacker who knows that a term is absent, or how often or when a term was used",
                f"what all {k} histories have in common",
                f"{k} accounts that one attacker opened to preserve a combination",
            ),
        )

    def check_user_count(self, people: int) -> None:
        """Refuse a k that nothing in the log can meet."""
        if people < self.settings.k:
            held = self._held.records()
            entries, _ = self._entries(held, self._uses(held))
            most = int(entries.supports().max(initial=0))
            hint = f"the largest k at which a term stays is {most}" if most > 1 else ""
            require_users(self.name, self.settings.k, people, hint)

    def _release(self, held: Batch, moment: int) -> Batch:
        held = self._without_bots(held)
        if not len(held):
            return held
        shown = self._thinned(held, self._uses(held))
        query = shown.queries(len(held), self._terms, self.texts.query)
        blank = held.blank
        if self.per_row:
            blank = np.where(shown.pages(len(held)), blank, blank | COLUMN_BIT["url"])
        self.drop(held.row[query < 0], EMPTIED)
        # all leave at one moment, so that their order tells nothing about who asked
        seq = np.full(len(held), moment, np.int64)
        released = held.replace(query=query, user=self._label(held), blank=blank, seq=seq)
        return self._timed(released[query >= 0])

    def _uses(self, held: Batch) -> TermOccurrences:
        return TermOccurrences.of(held, self._queries, self._urls if self.per_row else None)

    def _thinned(self, held: Batch, uses: TermOccurrences) -> TermOccurrences:
        """Delete until what is shown is what was counted: a page that loses a word takes the others along."""
        while True:
            entries, entry = self._entries(held, uses)
            outcome = self._delete(entries)
            self._explain(outcome)
            stays = outcome.kept[entry]
            shown = uses.shown(stays, len(held))
            uses = uses[shown]
            if bool((shown == stays).all()):
                return uses

    def _entries(self, held: Batch, uses: TermOccurrences) -> tuple[HistoryTerms, IntArray]:
        window, part = self._parts(held)
        history = histories.dense_ids(held.user, window, part)
        some = np.unique(history, return_index=True)[1]
        people = self.texts.user.fingerprints(held.user[some], derive(self.key, "people"))
        for purpose, number in (("windows", window), ("parts", part)):
            people = people ^ siphash.draw(derive(self.key, purpose), _CHANCE, number[some])
        known = np.arange(len(self._terms.texts()))
        prints = self._terms.fingerprints(known, derive(self.key, "terms"))
        return HistoryTerms.of(uses, history, held.user[some], people, prints, derive(self.key, "chance"))

    def _without_bots(self, held: Batch) -> Batch:
        """Drop people who search faster than people do."""
        timed = held.time != NO_TIME
        if not self.settings.bots or not timed.any():
            return held
        session = histories.dense_ids(held.user, histories.sessions(held.user, held.time))
        once = histories.first_of_each(held.user, held.query, held.time) & timed  # clicks are no searches
        crowded = np.bincount(session[once], minlength=int(session.max()) + 1) > self.settings.bots
        bot = np.isin(held.user, held.user[crowded[session] & timed])
        self.drop(held.row[bot], BOT)
        return held[~bot]

    def _parts(self, held: Batch) -> tuple[IntArray, IntArray]:
        """Number the window, and the part of its person's history there, that each record belongs to."""
        how, window = self.settings.history, self.settings.window
        none = np.zeros(len(held), np.int64)
        whole = none if window == "none" else histories.calendar(held.time, window)
        if how == "all":
            return whole, none
        if how == "session":
            return whole, histories.sessions(held.user, held.time)
        if how in ("day", "week"):
            return whole, histories.calendar(held.time, str(how))
        return whole, histories.search_index(held.user, held.query, held.time) // int(how)

    def _delete(self, entries: HistoryTerms) -> Outcome:
        s, target, values = self.settings, self.settings.target, None
        terms = self._terms.texts()
        if target not in deletion.TARGETS:
            target, values = "file", deletion.read_values(s.target, "file", terms)
        elif target in deletion.MARKETING:
            values = deletion.read_values(s.marketing, target, terms)
        return deletion.greedy(target, s.k, s.m, entries, values)

    def _label(self, held: Batch) -> IntArray:
        """Return the label of each history: the user's own, or one that is not linked to other parts."""
        if not self.settings.has_parts:
            return self._labels.of(held.user)
        window, part = self._parts(held)
        history = histories.dense_ids(held.user, window, part)
        first = np.unique(history, return_index=True)[1]
        people = self.texts.user.decode(held.user[first]).to_list()
        parts = zip(people, window[first].tolist(), part[first].tolist(), strict=True)
        names = ["\0".join(map(str, one)) for one in parts]
        labels = pseudonyms(names, derive(self.key, "labels of parts"))
        return self.texts.user.intern(labels)[history]

    def _explain(self, outcome: Outcome) -> None:
        """Add up why terms were deleted, without naming them: a term is a part of a query."""
        known = self.explanation.setdefault("deleted_by_size_of_combination", {})
        for size, count in outcome.by_size.items():
            known[str(size)] = known.get(str(size), 0) + count
        self.explanation["target"] = self.settings.as_dict()["target"]
        self.explanation["rounds"] = self.explanation.get("rounds", 0) + outcome.rounds

    def label_of(self, users: IntArray) -> IntArray:
        """Return the label that stands for each user in what leaves; a split person has several."""
        return users if self.settings.has_parts else self._labels.of(users)


def window(settings: Km.Settings) -> str:
    """Return the number of a row's window as SQL over `time`, in microseconds: that of `sessions.calendar`.

    On Spark one worker runs the method on one window. Raise Refused if whole histories are to be protected.
    """
    if settings.window == "none":
        raise Refused(
            "on Spark `km` protects windows of time, and none was chosen",
            hint="use `-s window=week` or `window=day`, or run it on one machine, without `--engine spark`",
        )
    span, start = (histories.DAY, 0) if settings.window == "day" else (histories.WEEK, histories.MONDAY)
    moment = f"(time + {start}L)"
    return f"coalesce(({moment} - pmod({moment}, {span}L)) div {span}L, {histories.NEVER}L)"
