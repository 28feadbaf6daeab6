"""`km`: deletes terms until every combination of at most m of a history is k people's (paper 001)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from querycloak import settings as declared
from querycloak.dictionary import Dictionary, Texts
from querycloak.errors import ParameterError
from querycloak.guarantees import Guarantee
from querycloak.guarantees.combinations import audits
from querycloak.kernels import siphash
from querycloak.keys import derive
from querycloak.log import BIT, NO_TIME, Batch, IntArray
from querycloak.methods import histories, targets, times
from querycloak.methods.deletion import Entries, Outcome
from querycloak.methods.labels import Labels, labels_setting, pseudonyms
from querycloak.methods.uses import Uses
from querycloak.protector import Protector, State
from querycloak.settings import setting

_CHANCE, _SHOWN = 1, 20
EMPTIED = "no term is left"
BOT = "a session with too many searches"
LATE = "came after its window was closed"


def supports(histories: Iterable[Iterable[str]], m: int) -> dict[tuple[str, ...], int]:
    """Count the histories that hold each combination of at most m terms, as sorted tuples.

    >>> supports([["a", "b"], ["b", "a", "a"], ["b"]], 2)
    {('a',): 2, ('b',): 3, ('a', 'b'): 2}
    """
    found: Counter[tuple[str, ...]] = Counter()
    for history in histories:
        terms = sorted(set(history))
        for size in range(1, m + 1):
            found.update(combinations(terms, size))
    return dict(found)


def is_km_anonymous(histories: Iterable[Iterable[str]], k: int, m: int) -> bool:
    """Say whether every combination of at most m terms of any history is in at least k histories.

    >>> is_km_anonymous([["a", "b"], ["a", "b"], ["b"]], k=2, m=2)
    True
    >>> is_km_anonymous([["a", "b"], ["a", "c"], ["b", "c"]], k=2, m=2)
    False
    """
    return all(count >= k for count in supports(histories, m).values())


class Km(Protector):
    """Delete terms from histories until nobody stands out by any m of them; what is left is real.

    All records wait until the log (or `window`) ends. Then terms go: first those of fewer than `k` people,
    then one of each pair that fewer than `k` have, then of each triple …; which one, `target` decides.

    Promise: whoever knows up to `m` terms of a history finds nobody or at least `k` people who have them.

    Does not protect against:
        - somebody who knows more than m terms of a person
        - somebody who knows that a term is missing, or how often or when a term was used
        - what all k histories have in common
        - k accounts that one attacker opened to keep a combination alive

    Reference: "Anonymous Search Histories Featuring Personalized Advertisement", Algorithms 1 and 2.
    """

    name = "km"
    wants_people = True
    needs = frozenset({"user", "query"})
    rewrites = frozenset({"user", "query", "time"})
    exempt: ClassVar[dict[str, str]] = {
        "memory_stays_bounded": "whether a term may stay is known only when the log or window has ended"
    }

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `km`."""

        k: int = setting(5, kind=int, at_least=2, help="people who must share a combination of terms")
        m: int = setting(2, kind=int, at_least=1, at_most=4, help="terms of a combination, at most")
        target: str = setting(
            "logsize",
            kind=str,
            help=f"what to keep most of: {', '.join(targets.TARGETS)}, or a CSV of term, utility",
        )
        optimise: str = setting(
            "greedy",
            kind=str,
            choices=("greedy", "search"),
            help="`greedy` as the paper; `search` tries several orders and keeps the best",
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
            kind=str,
            choices=("none", "day", "week"),
            help="protect each day or week by itself, as soon as it is over",
        )
        urls: str = setting(
            "empty",
            kind=str,
            choices=("empty", "terms"),
            help="empty clicked pages, or count their words as terms and keep those that may stay whole",
        )
        bots: int = setting(
            100, kind=int, at_least=0, help="drop people with more searches in one session; 0: nobody"
        )
        time: str = setting(
            "coarsen",
            kind=str,
            choices=("coarsen", "drop"),
            help="`coarsen` times to the hour, or `drop` them",
        )
        labels: str = labels_setting()  # type: ignore[assignment]
        marketing: str = setting("", kind=str, help="a CSV of term, bid, impressions, clicks (`--marketing`)")

        def __post_init__(self) -> None:
            super().__post_init__()
            if self.target in targets.MARKETING and not self.marketing:
                raise ParameterError(
                    f"Km: `target={self.target}` needs to know what terms are worth",
                    hint="give a CSV of term, bid, impressions, clicks with `--marketing`",
                )
            if self.target not in targets.TARGETS and not self.target.lower().endswith(".csv"):
                raise ParameterError(
                    "Km: there is no such `target`",
                    hint=f"the targets are {', '.join(targets.TARGETS)}, or the name of a .csv file",
                )

        def as_dict(self) -> dict[str, Any]:
            """Name files without their folders: a certificate travels."""
            return super().as_dict() | {
                "target": Path(self.target).name,
                "marketing": Path(self.marketing).name,
            }

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Texts) -> None:
        super().__init__(settings, key, texts)
        self._labels = Labels(settings.labels, key, texts)
        self.has_parts = settings.history != "all" or settings.window != "none"
        self.per_row = settings.urls == "terms"  # every clicked page counts by itself
        emptied = {"rank", "category"} | ({"url"} if settings.urls == "empty" else set())
        self.empties = frozenset(emptied | ({"time"} if settings.time == "drop" else set()))
        self.reads = frozenset({"user", "query", "time"} | ({"url"} if self.per_row else set()))
        self._terms = Dictionary()
        self._queries = histories.Splitter(texts.query, self._terms)
        self._urls = histories.Splitter(texts.url, self._terms)
        self._held = Batch.empty(texts)
        self._gone = np.zeros(0, np.int64)  # by term: how often it was deleted where k people had it
        self._open: int | None = None  # the window that records are gathered for
        self.streams = settings.window != "none"

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Name the settings that the conformance suite tries."""
        return [
            cls.Settings(k=2),
            cls.Settings(k=2, m=3, target="random", urls="terms", time="drop"),
            cls.Settings(k=2, m=2, target="fis", history="session", bots=3),
            cls.Settings(k=2, m=1, target="distinct", window="day", labels="fresh"),
            cls.Settings(k=2, m=2, target="users", optimise="search", history=2),
        ]

    @classmethod
    def needs_for(cls, settings: declared.Settings) -> frozenset[str]:
        """Ask for times where parts or windows go by them."""
        assert isinstance(settings, cls.Settings)
        by_time = settings.history in ("session", "day", "week") or settings.window != "none"
        return cls.needs | ({"time"} if by_time else frozenset())

    def promise(self) -> Guarantee:
        """Say what an independent audit can test."""
        k, m = self.settings.k, self.settings.m
        within = "" if self.settings.window == "none" else f" of the same {self.settings.window}"
        return Guarantee(
            words=f"every combination of at most {m} terms of a history is in histories of at least {k} "
            f"people{within}",
            does_not_protect_against=(
                f"somebody who knows more than {m} terms of a person",
                "somebody who knows that a term is missing, or how often or when a term was used",
                f"what all {k} histories have in common",
                f"{k} accounts that one attacker opened to keep a combination alive",
            ),
            audits=audits(k, m, self.settings.window, urls=self.per_row),
        )

    def check_people(self, people: int) -> None:
        """Refuse a k that nothing in the log can meet."""
        if people < self.settings.k:
            entries, _ = self._entries(self._held, self._uses(self._held))
            most = int(entries.supports().max(initial=0))
            raise ParameterError(
                f"Km: `k` is {self.settings.k}, but the log has only {people} users",
                hint=f"the largest k at which a term stays is {most}" if most > 1 else "",
            )

    def push(self, batch: Batch) -> Batch:
        """Hold records until their window is over."""
        if self.settings.window == "none":
            self._held += batch
            return Batch.empty(self.texts)
        window = histories.calendar(batch.time, self.settings.window)
        if self._open is None and len(batch):
            self._open = int(window[0])
        released, start = Batch.empty(self.texts), 0
        for place in self._turning_points(window):
            self._hold(batch[start:place], window[start:place])
            released += self._release(int(batch.seq[place]))
            self._open, start = int(window[place]), place
        self._hold(batch[start:], window[start:])
        return released

    def _turning_points(self, window: IntArray) -> list[int]:
        """Find the records that are the first of a later window than any before."""
        highest = np.maximum.accumulate(np.append(self._open or 0, window)) if window.size else window
        return np.flatnonzero(np.diff(highest)).tolist()

    def _hold(self, batch: Batch, window: IntArray) -> None:
        late = window < (self._open or 0)
        self.drop(batch.row[late], LATE)
        self._held += batch[~late]

    def close(self) -> Batch:
        """Protect what is held."""
        return self._release(int(self._held.seq.max(initial=0)))

    def _release(self, moment: int) -> Batch:
        """Delete terms from what is held, and let the rest go."""
        held, self._held = self._without_bots(self._held), Batch.empty(self.texts)
        if not len(held):
            return held
        shown = self._thinned(held, self._uses(held))
        query = shown.queries(len(held), self._terms, self.texts.query)
        blank = held.blank
        if self.per_row:
            blank = np.where(shown.pages(len(held)), blank, blank | BIT["url"])
        self.drop(held.row[query < 0], EMPTIED)
        # all leave at one moment, so that their order tells nothing about who asked
        seq = np.full(len(held), moment, np.int64)
        released = held.replace(query=query, user=self._label(held), blank=blank, seq=seq)
        return times.apply(self.settings.time, released[query >= 0])

    def _uses(self, held: Batch) -> Uses:
        return Uses.of(held, self._queries, self._urls if self.per_row else None)

    def _thinned(self, held: Batch, uses: Uses) -> Uses:
        """Delete until what is shown is what was counted: a page that loses a word takes the others along."""
        while True:
            entries, entry = self._entries(held, uses)
            outcome = self._delete(entries)
            self._explain(entries, outcome)
            stays = outcome.alive[entry]
            shown = uses.shown(stays, len(held))
            uses = uses[shown]
            if bool((shown == stays).all()):
                return uses

    def _entries(self, held: Batch, uses: Uses) -> tuple[Entries, IntArray]:
        window, part = self._parts(held)
        history = histories.numbered(held.user, window, part)
        some = np.unique(history, return_index=True)[1]
        people = self.texts.user.fingerprints(held.user[some], derive(self.key, "people"))
        for purpose, number in (("windows", window), ("parts", part)):
            people = people ^ siphash.draw(derive(self.key, purpose), _CHANCE, number[some])
        known = np.arange(len(self._terms.texts()))
        prints = self._terms.fingerprints(known, derive(self.key, "terms"))
        return uses.entries(history, held.user[some], people, prints, derive(self.key, "chance"))

    def _without_bots(self, held: Batch) -> Batch:
        """Drop people who search faster than people do."""
        timed = held.time != NO_TIME
        if not self.settings.bots or not timed.any():
            return held
        session = histories.numbered(held.user, histories.sessions(held.user, held.time))
        once = histories.firsts(held.user, held.query, held.time) & timed  # clicks are no searches
        crowded = np.bincount(session[once], minlength=int(session.max()) + 1) > self.settings.bots
        bot = np.isin(held.user, held.user[crowded[session] & timed])
        self.drop(held.row[bot], BOT)
        return held[~bot]

    def _parts(self, held: Batch) -> tuple[IntArray, IntArray]:
        """Number the window, and the part of its person's history there, that each record belongs to."""
        how, window = self.settings.history, self.settings.window
        none = np.zeros(len(held), np.int64)
        whole = none if window == "none" else histories.calendar(held.time, window)
        if how == "session":
            return whole, histories.sessions(held.user, held.time)
        if how in ("day", "week"):
            return whole, histories.calendar(held.time, str(how))
        if how == "all":
            return whole, none
        return whole, histories.turns(held.user, held.query, held.time) // int(how)

    def _delete(self, entries: Entries) -> Outcome:
        s, target, values = self.settings, self.settings.target, None
        terms = self._terms.texts()
        if target not in targets.TARGETS:
            target, values = "file", targets.read_values(s.target, "file", terms)
        elif target in targets.MARKETING:
            values = targets.read_values(s.marketing, target, terms)
        if s.optimise == "search":
            outcome, self.explanation["tried"] = targets.search(target, s.k, s.m, entries, values)
            return outcome
        return targets.greedy(target, s.k, s.m, entries, values)

    def _label(self, held: Batch) -> IntArray:
        """Give each history its label: the person's own, or one that nothing links to her other parts."""
        if not self.has_parts:
            return self._labels.of(held.user)
        window, part = self._parts(held)
        history = histories.numbered(held.user, window, part)
        first = np.unique(history, return_index=True)[1]
        people = self.texts.user.decode(held.user[first]).to_list()
        parts = zip(people, window[first].tolist(), part[first].tolist(), strict=True)
        names = ["\0".join(map(str, one)) for one in parts]
        labels = pseudonyms(names, derive(self.key, "labels of parts"))
        return self.texts.user.intern(labels)[history]

    def _explain(self, entries: Entries, outcome: Outcome) -> None:
        """Add up why terms went; a term is named only if k histories had it: then it names nobody."""
        known = self.explanation.setdefault("deleted_by_size_of_combination", {})
        for size, count in outcome.by_size.items():
            known[str(size)] = known.get(str(size), 0) + count
        self.explanation["target"] = self.settings.as_dict()["target"]
        self.explanation["rounds"] = self.explanation.get("rounds", 0) + outcome.rounds
        gone = np.bincount(entries.term[~outcome.alive], minlength=entries.terms)
        gone[entries.supports() < self.settings.k] = 0
        gone[: self._gone.size] += self._gone
        self._gone = gone
        top = np.argsort(-gone, kind="stable")[:_SHOWN]
        top = top[gone[top] > 0]
        names = self._terms.decode(top).to_list()
        self.explanation["most_often_deleted"] = dict(zip(names, gone[top].tolist(), strict=True))

    def label_of(self, users: IntArray) -> IntArray:
        """Give the label that stands for each user in what leaves; a split person has several."""
        return users if self.has_parts else self._labels.of(users)

    def erase(self, users: IntArray, rows: IntArray) -> None:
        """Drop what is held of theirs: the others' records are worked out without it."""
        self._held = self._held[self.forget(self._held, users, rows)]

    def snapshot(self) -> State:
        """Give the held records and the open window."""
        held = {f"held_{name}": np.asarray(array) for name, array in self._held.arrays().items()}
        window = np.array([] if self._open is None else [self._open], np.int64)
        return held | {"open": window} | self._snapshot_dropped()

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        self._held = Batch.of({name: state[f"held_{name}"] for name in Batch.COLUMNS}, self.texts)
        self._open = int(state["open"][0]) if state["open"].size else None
        self._restore_dropped(state)
