"""`short-sessions`: frequent queries in short sessions, each under a label of its own, day by day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from querycloak import settings as declared
from querycloak.dictionary import Dictionaries, Dictionary
from querycloak.guarantee import Guarantee, Sentence
from querycloak.kernels import siphash
from querycloak.kernels.arrays import ranks_in_groups
from querycloak.keys import derive
from querycloak.log import COLUMN_BIT, MISSING, NO_TIME, Batch, IntArray
from querycloak.methods.shared.labels import apply_time_policy, pseudonyms
from querycloak.methods.shared.records import WindowProtector, require_users, users_setting
from querycloak.methods.shared.sessions import DAY
from querycloak.methods.shared.terms import TermOccurrences, Tokenizer
from querycloak.methods.shared.user_counts import UsersByDay, users_of
from querycloak.methods.short_sessions.audit import Limits, audits
from querycloak.protector import HELD_CODES, Labels, State, Traits
from querycloak.settings import setting

RARE: Final = "asked by too few people"
NO_TERM_LEFT: Final = "no term is left that enough people used"
TIMELESS: Final = "has no time"
_MINUTE: Final = 60_000_000
_UNITS: Final = {"hour": 60 * _MINUTE, "day": DAY}
_ORDER: Final = 1  # the purpose of the draws that order the sessions of a day
#: Columns that would disclose the removed terms of a query.
_BESIDE: Final = COLUMN_BIT["rank"] | COLUMN_BIT["url"] | COLUMN_BIT["category"]


class ShortSessions(WindowProtector):
    """Release what many people ask, in short sessions that nothing but their content links to each other.

    A history is cut at midnight (UTC), where somebody was silent for more than `gap` minutes, and after
    `most` searches that are shown. Each piece gets a label of its own. Searches whose query fewer than `k`
    people asked stay behind, or lose the terms that fewer than `k` people used (`rare=terms`). Times are
    coarse. A day leaves as a whole when it is over, its sessions in random order.

    Guarantee: each released query was asked by at least `k` users before its release (`rare=terms`: each of
    its terms was used by at least `k`). A label has at most `most` searches, of one session of one user, and
    is no user id of the log. Times are truncated to `time`, or empty.

    Limits: a query that k users asked and that still identifies one of them; what the searches of one session
    reveal together; linking sessions of one user by repeated queries, or by the hour; how many sessions of a
    kind there are, and that a query was asked at all; k accounts that one attacker opened to lift a query
    over the threshold; clicked pages, which are released unchanged with `clicks=keep`.
    """

    name = "short-sessions"
    late = "came after its day was closed"
    exempt: ClassVar[dict[str, str]] = {
        "memory_stays_bounded": "a day is held until it is over, and who asked what for `days` of them"
    }

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `short-sessions`."""

        k: int = users_setting(5, help="people who must have asked a query, or used a term")
        gap: float = setting(30.0, at_least=0, help="minutes of silence that end a session")
        most: int = setting(5, at_least=1, stronger="smaller", help="searches of a session, at most")
        rare: str = setting(
            "drop",
            choices=("drop", "terms"),
            help="`drop` queries of too few people, or take only the `terms` out that too few used",
        )
        time: str = setting(
            "hour",
            choices=("hour", "day", "drop"),
            stronger="last",
            help="how fine times are, or `drop` them",
        )
        batch: str = setting(
            "day",
            choices=("day", "log"),
            help="let each `day` go when it is over, with people counted so far; or all when the `log` ends",
        )
        days: int = setting(
            30,
            at_least=0,
            help="with `batch=day`: days of which people are counted, the day itself included; 0: all so far",
        )
        clicks: str = setting(
            "keep",
            choices=("keep", "drop"),
            stronger="last",
            help="`keep` clicked pages and their ranks, or `drop` them",
        )

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Dictionaries) -> None:
        super().__init__(settings, key, texts)
        self._terms = Dictionary()
        self._split = Tokenizer(texts.query, self._terms)
        self._span = "day" if settings.batch == "day" else "none"
        self._users = UsersByDay(settings.days if settings.batch == "day" else 0)

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Return the settings that the conformance suite tries."""
        return [
            cls.Settings(k=2, gap=2, most=2),
            cls.Settings(k=2, gap=1, most=3, rare="terms", time="day", days=1, clicks="drop"),
            cls.Settings(k=3, gap=0, most=1, batch="log", time="drop"),
            cls.Settings(k=2, gap=5, batch="log", rare="terms"),
        ]

    @classmethod
    def traits(cls, settings: Settings) -> Traits:
        """Return the properties of `short-sessions` with these settings."""
        dropped = frozenset({"rank", "url"} if settings.clicks == "drop" else ())
        return Traits(
            reads=frozenset({"user", "query", "time"}),
            requires=frozenset({"user", "query", "time"}),
            rewrites=frozenset({"user", "time"}) | ({"query"} if settings.rare == "terms" else frozenset()),
            empties=dropped | frozenset({"time"} if settings.time == "drop" else ()),
            may_empty=frozenset({"rank", "url", "category"} if settings.rare == "terms" else ()),
            time_unit=_UNITS.get(settings.time, 0),
            needs_whole_log=settings.batch == "log",
            sets_release_order=True,
            labels=Labels.PARTS,
            needs_authors=True,
            coded_state={**HELD_CODES, "asked_query": "query"},
            main_setting="k",
        )

    @classmethod
    def promise(cls, settings: Settings) -> Guarantee:
        """Return the guarantee of `short-sessions` with these settings."""
        s = settings
        what = "query was asked" if s.rare == "drop" else "term of a query was used"
        times = {"hour": "truncated to the hour", "day": "truncated to the day", "drop": "empty"}[s.time]
        clicks = () if s.clicks == "drop" else ("clicked pages, which are released unchanged",)
        mixed = () if s.rare == "drop" else (f"terms of {s.k} users each that only one user combined",)
        limits = Limits(s.k, round(s.gap * _MINUTE), s.most, s.rare == "terms", s.batch == "day")
        of_users, of_labels = audits(limits)
        return Guarantee.of(
            Sentence(f"each released {what} by at least {s.k} users before its release", of_users),
            Sentence(
                f"a label has at most {s.most} searches of one session of one user, and is no user id",
                of_labels,
                ("user",),
            ),
            Sentence(f"times are {times}", (), ("time",)),
            limits=(
                f"a query that {s.k} users asked and that still identifies one of them",
                *mixed,
                "what the searches of one session reveal together",
                "linking sessions of one user by repeated queries, or by the hour",
                "how many sessions of a kind there are, and that a query was asked at all",
                f"{s.k} accounts that one attacker opened to lift a query over the threshold",
                *clicks,
            ),
        )

    def check_user_count(self, people: int) -> None:
        """Raise ParameterError for a k that no query can reach."""
        require_users(self.name, self.settings.k, people)

    def push(self, batch: Batch) -> Batch:
        """Hold records until their day, or the log, is over."""
        timed = batch.time != NO_TIME
        self.drop(batch.row[~timed], TIMELESS)
        return super().push(batch[timed])

    def _release(self, held: Batch, moment: int) -> Batch:
        """Cut records into sessions and drop rare texts; return the rest as released at one moment."""
        if not len(held):
            return held
        enough = self._users.add(held.query, held.user, held.time) >= self.settings.k
        session = _sessions(held.user, held.time, round(self.settings.gap * _MINUTE))
        query = np.where(enough, held.query, MISSING if self.settings.rare == "drop" else self._left_of(held))
        stays = query >= 0
        self.drop(held.row[~stays], RARE if self.settings.rare == "drop" else NO_TERM_LEFT)
        blank = np.where(enough, held.blank, held.blank | _BESIDE)
        seq = np.full(len(held), moment, np.int64)
        shown = held.replace(query=query, blank=blank, seq=seq)[stays]
        shown = self._labelled(shown, session[stays])
        if self.settings.time == "drop":
            return apply_time_policy("drop", shown)
        return shown.replace(time=shown.time - shown.time % _UNITS[self.settings.time])

    def _left_of(self, held: Batch) -> IntArray:
        """Write each query from those of its terms that enough people used; `MISSING` if none is left."""
        query, user = self._users.pairs
        which, term = self._split.of(query)
        common = users_of(term, user[which], len(self._terms)) >= self.settings.k
        uses = TermOccurrences.of(held, self._split, None)
        return uses[common[uses.term]].queries(len(held), self._terms, self.texts.query)

    def _labelled(self, shown: Batch, session: IntArray) -> Batch:
        """Cut sessions into parts of at most `most` searches, each with a label; return days in order.

        The parts of a day come in keyed random order.
        """
        order = np.lexsort((shown.time, session))  # of one moment, in the order of the log
        shown, session = shown[order], session[order]
        starts = np.flatnonzero(np.diff(session, prepend=-1))
        turn = ranks_in_groups(np.diff(starts, append=session.size)) % self.settings.most
        part, first = np.cumsum(turn == 0) - 1, shown.row[turn == 0]
        labels = pseudonyms([str(row) for row in first.tolist()], derive(self.key, "labels of sessions"))
        draw = siphash.draw(derive(self.key, "order of sessions"), _ORDER, first)
        mixed = np.lexsort((turn, part, draw[part], shown.time // DAY))
        return shown.replace(user=self.texts.user.intern(labels)[part])[mixed]

    def erase(self, users: IntArray, rows: IntArray) -> None:
        """Drop the held records of these users, and count without them from now on."""
        super().erase(users, rows)
        self._users.erase(users)

    def snapshot(self) -> State:
        """Return the held records, the open day, and the counted queries of each user."""
        return super().snapshot() | self._users.snapshot()

    def restore(self, state: State) -> None:
        """Continue from a snapshot."""
        super().restore(state)
        self._users.restore(state)


def _sessions(user: IntArray, time: IntArray, gap: int) -> IntArray:
    """Number sessions from 0: one person's searches of one day, without a silence of more than `gap`."""
    order = np.lexsort((time, user))
    u, t = user[order], time[order]
    new = np.ones(u.size, np.bool_)
    new[1:] = (u[1:] != u[:-1]) | (t[1:] - t[:-1] > gap) | (t[1:] // DAY != t[:-1] // DAY)
    number = np.empty(u.size, np.int64)
    number[order] = np.cumsum(new) - 1
    return number
