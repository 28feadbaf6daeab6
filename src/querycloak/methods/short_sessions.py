"""`short-sessions`: frequent queries in short sessions, each under a label of its own, day by day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from querycloak import settings as declared
from querycloak.dictionary import Dictionary, Texts
from querycloak.errors import ParameterError
from querycloak.guarantees import Guarantee
from querycloak.guarantees.sessions import Limits, audits
from querycloak.kernels import siphash, unlinked
from querycloak.keys import derive
from querycloak.log import BIT, NO_TIME, NOTHING, Batch, IntArray
from querycloak.methods.histories import Splitter
from querycloak.methods.labels import pseudonyms
from querycloak.methods.uses import Uses
from querycloak.protector import Protector, State
from querycloak.settings import setting

RARE: Final = "asked by too few people"
NO_TERM_LEFT: Final = "no term is left that enough people used"
LATE: Final = "came after its day was closed"
TIMELESS: Final = "has no time"
_MINUTE: Final = 60_000_000
_UNITS: Final = {"hour": 60 * _MINUTE, "day": unlinked.DAY}
_USER: Final = (1 << 32) - 1  # the lower half of a query and a user in one number
_ORDER: Final = 1  # the purpose of the draws that order the sessions of a day
_BESIDE: Final = BIT["rank"] | BIT["url"] | BIT["category"]  # what tells about a query that lost terms


class ShortSessions(Protector):
    """Release what many people ask, in short sessions that nothing but their content links to each other.

    A history is cut at midnight (UTC), where somebody was silent for more than `gap` minutes, and after
    `most` searches that are shown. Each piece gets a label of its own. Searches whose query fewer than `k`
    people asked stay behind, or lose the terms that fewer than `k` people used (`rare=terms`). Times are
    coarse. A day leaves as a whole when it is over, its sessions in an order that tells nothing.

    Promise: each released query was asked by at least `k` people before it left (`rare=terms`: each of its
    terms was used by at least `k`). No label has more than `most` searches, more than one person or more than
    one day; none is a user id of the log. Times are no finer than `time` says.

    Does not protect against:
        - a text that k people typed and that still names one of them
        - what the searches of one session say together
        - linking sessions of one person by what she keeps asking, or by the hour
        - how many sessions there are of a kind, and that a query was asked at all
        - k accounts that one attacker opened to push a text over the threshold
        - clicked pages, which leave as they are with `clicks=keep`
    """

    name = "short-sessions"
    reads = frozenset({"user", "query", "time"})
    needs = frozenset({"user", "query", "time"})
    rewrites = frozenset({"user", "query", "time"})
    wants_people = True
    has_parts = True
    orders = True
    coded: ClassVar[dict[str, str]] = {**Protector.coded, "asked_query": "query"}
    exempt: ClassVar[dict[str, str]] = {
        "memory_stays_bounded": "a day is held until it is over, and who asked what for `days` of them"
    }

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `short-sessions`."""

        k: int = setting(5, kind=int, at_least=2, help="people who must have asked a query, or used a term")
        gap: float = setting(30.0, kind=float, at_least=0, help="minutes of silence that end a session")
        most: int = setting(5, kind=int, at_least=1, help="searches of a session, at most")
        rare: str = setting(
            "drop",
            kind=str,
            choices=("drop", "terms"),
            help="`drop` queries of too few people, or take only the `terms` out that too few used",
        )
        time: str = setting(
            "hour", kind=str, choices=("hour", "day", "drop"), help="how fine times are, or `drop` them"
        )
        batch: str = setting(
            "day",
            kind=str,
            choices=("day", "log"),
            help="let each `day` go when it is over, with people counted so far; or all when the `log` ends",
        )
        days: int = setting(
            30,
            kind=int,
            at_least=0,
            help="with `batch=day`: days of which people are counted, the day itself included; 0: all so far",
        )
        clicks: str = setting(
            "keep",
            kind=str,
            choices=("keep", "drop"),
            help="`keep` clicked pages and their ranks, or `drop` them",
        )

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Texts) -> None:
        super().__init__(settings, key, texts)
        emptied = {"rank", "url"} if settings.clicks == "drop" else set()
        self.empties = frozenset(emptied | ({"time"} if settings.time == "drop" else set()))
        self.streams = settings.batch == "day"
        self._terms = Dictionary()
        self._split = Splitter(texts.query, self._terms)
        self._held = Batch.empty(texts)
        self._asked = np.empty(0, np.int64)  # (query << 32) + user, each once, sorted
        self._last = np.empty(0, np.int64)  # the last day on which that was so
        self._open: int | None = None  # the day that records are gathered for

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Name the settings that the conformance suite tries."""
        return [
            cls.Settings(k=2, gap=2, most=2),
            cls.Settings(k=2, gap=1, most=3, rare="terms", time="day", days=1, clicks="drop"),
            cls.Settings(k=3, gap=0, most=1, batch="log", time="drop"),
            cls.Settings(k=2, gap=5, batch="log", rare="terms"),
        ]

    def promise(self) -> Guarantee:
        """Say what an independent audit can test."""
        s = self.settings
        what = "query was asked" if s.rare == "drop" else "term of a query was used"
        fine = "no times are shown" if s.time == "drop" else f"times are no finer than the {s.time}"
        clicks = () if s.clicks == "drop" else ("clicked pages, which leave as they are",)
        mixed = () if s.rare == "drop" else (f"terms of {s.k} people each that only one person put together",)
        return Guarantee(
            words=f"each released {what} by at least {s.k} people before it left; a label has at most "
            f"{s.most} searches, of one person and one day, and is no user id of the log; {fine}",
            does_not_protect_against=(
                f"a text that {s.k} people typed and that still names one of them",
                *mixed,
                "what the searches of one session say together",
                "linking sessions of one person by what she keeps asking, or by the hour",
                "how many sessions there are of a kind, and that a query was asked at all",
                f"{s.k} accounts that one attacker opened to push a text over the threshold",
                *clicks,
            ),
            audits=audits(
                Limits(s.k, round(s.gap * _MINUTE), s.most, s.rare == "terms", s.time, s.batch == "day")
            ),
        )

    def check_people(self, people: int) -> None:
        """Refuse a k that no query can meet."""
        if people < self.settings.k:
            raise ParameterError(
                f"ShortSessions: `k` is {self.settings.k}, but the log has only {people} "
                f"user{'' if people == 1 else 's'}",
                hint=f"the largest possible k is {people}" if people > 1 else "",
            )

    def push(self, batch: Batch) -> Batch:
        """Hold records until their day, or the log, is over."""
        timed = batch.time != NO_TIME
        self.drop(batch.row[~timed], TIMELESS)
        batch = batch[timed]
        if self.settings.batch == "log":
            self._held += batch
            return Batch.empty(self.texts)
        day = batch.time // unlinked.DAY
        if self._open is None and len(batch):
            self._open = int(day[0])
        released, start = Batch.empty(self.texts), 0
        for place in self._turning_points(day):
            self._hold(batch[start:place], day[start:place])
            released += self._release(int(batch.seq[place]))
            self._open, start = int(day[place]), place
        self._hold(batch[start:], day[start:])
        return released

    def _turning_points(self, day: IntArray) -> list[int]:
        """Find the records that are the first of a later day than any before."""
        highest = np.maximum.accumulate(np.append(self._open or 0, day)) if day.size else day
        return np.flatnonzero(np.diff(highest)).tolist()

    def _hold(self, batch: Batch, day: IntArray) -> None:
        late = day < (self._open or 0)
        self.drop(batch.row[late], LATE)
        self._held += batch[~late]

    def close(self) -> Batch:
        """Let go of what is held and may be shown."""
        return self._release(int(self._held.seq.max(initial=0)))

    def _release(self, moment: int) -> Batch:
        """Cut what is held into sessions, leave rare texts behind, and let the rest go at one moment."""
        held, self._held = self._held, Batch.empty(self.texts)
        if not len(held):
            return held
        self._remember(held)
        session = unlinked.sessions(held.user, held.time, round(self.settings.gap * _MINUTE))
        enough = self._enough()[held.query]
        query = np.where(enough, held.query, NOTHING if self.settings.rare == "drop" else self._left_of(held))
        stays = query >= 0
        self.drop(held.row[~stays], RARE if self.settings.rare == "drop" else NO_TERM_LEFT)
        blank = np.where(enough, held.blank, held.blank | _BESIDE)
        seq = np.full(len(held), moment, np.int64)
        shown = held.replace(query=query, blank=blank, seq=seq)[stays]
        return self._coarse(self._labelled(shown, session[stays]))

    def _remember(self, held: Batch) -> None:
        """Add who asked what, and forget what was last asked too many days ago."""
        day = held.time // unlinked.DAY
        asked, last = np.append(self._asked, (held.query << 32) + held.user), np.append(self._last, day)
        if self.settings.batch == "day" and self.settings.days:
            recent = last > int(day.max()) - self.settings.days
            asked, last = asked[recent], last[recent]
        self._asked, self._last = unlinked.latest(asked, last)

    def _enough(self) -> npt.NDArray[np.bool_]:
        """Say for each query whether enough people asked it, so far."""
        query, person = self._asked >> 32, self._asked & _USER
        return unlinked.people(query, person, len(self.texts.query)) >= self.settings.k

    def _left_of(self, held: Batch) -> IntArray:
        """Write each query from those of its terms that enough people used; `NOTHING` if none is left."""
        which, term = self._split.of(self._asked >> 32)
        person = self._asked[which] & _USER
        common = unlinked.people(term, person, len(self._terms)) >= self.settings.k
        uses = Uses.of(held, self._split, None)
        return uses[common[uses.term]].queries(len(held), self._terms, self.texts.query)

    def _labelled(self, shown: Batch, session: IntArray) -> Batch:
        """Give each part of a session a label of its own, and bring all into an order that tells nothing."""
        found = unlinked.parts(session, shown.time, self.settings.most)
        first = shown.row[found.first]
        labels = pseudonyms([str(row) for row in first.tolist()], derive(self.key, "labels of sessions"))
        draw = siphash.draw(derive(self.key, "order of sessions"), _ORDER, first)
        order = unlinked.shuffled(draw, found, shown.time // unlinked.DAY)
        return shown.replace(user=self.texts.user.intern(labels)[found.part])[order]

    def _coarse(self, shown: Batch) -> Batch:
        if self.settings.time == "drop":
            nothing = np.full(len(shown), NO_TIME, np.int64)
            return shown.replace(time=nothing, blank=shown.blank | BIT["time"])
        return shown.replace(time=shown.time - shown.time % _UNITS[self.settings.time])

    def erase(self, users: IntArray, rows: IntArray) -> None:
        """Drop what is held of theirs, and count without them from now on."""
        self._held = self._held[self.forget(self._held, users, rows)]
        stays = ~np.isin(self._asked & _USER, users)
        self._asked, self._last = self._asked[stays], self._last[stays]

    def snapshot(self) -> State:
        """Give the held records, the open day, and who asked what before."""
        held = {f"held_{name}": np.asarray(array) for name, array in self._held.arrays().items()}
        known = {
            "asked_query": self._asked >> 32,
            "asked_user": self._asked & _USER,
            "asked_last": self._last.copy(),
        }
        day = np.array([] if self._open is None else [self._open], np.int64)
        return held | known | {"open": day} | self._snapshot_dropped()

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        self._held = Batch.of({name: state[f"held_{name}"] for name in Batch.COLUMNS}, self.texts)
        asked = (state["asked_query"] << 32) + state["asked_user"]
        self._asked, self._last = unlinked.latest(asked, state["asked_last"])
        self._open = int(state["open"][0]) if state["open"].size else None
        self._restore_dropped(state)
