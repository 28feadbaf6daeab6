"""`swap`: real-time k-anonymity by topic (paper 000, Algorithm 1), with what its authors left for later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from querycloak import settings as declared
from querycloak.dictionary import Dictionaries
from querycloak.errors import ParameterError
from querycloak.formatting import plural
from querycloak.guarantee import Guarantee, Sentence
from querycloak.kernels.arrays import grown, spans
from querycloak.kernels.hash_table import CountTable
from querycloak.kernels.siphash import key_words
from querycloak.keys import derive
from querycloak.knowledge import Game
from querycloak.log import MISSING, Batch, Flags, IntArray
from querycloak.methods.shared.labels import LabelMethod, labels_setting, time_setting, unit_of
from querycloak.methods.shared.records import SlotBuffer, users_setting
from querycloak.methods.swap import kernel
from querycloak.methods.swap.audit import audits, remaining
from querycloak.methods.swap.categories import Categories
from querycloak.methods.swap.guard import Guard
from querycloak.protector import ERASED, UNDER_ERASED_LABEL, AttackBound, Labels, State, Traits
from querycloak.settings import setting

DEEPEST = 13  # levels of a category path
GUARDED_CHUNK = 32  # fewer, since what the guard may have to remember grows with each
CHUNK = 1 << 12  # arrivals taken at once, so that the table of tokens stays in the cache
SURPLUS = "dropped to stay balanced after an erasure"


class Swap(LabelMethod):
    """Hold records by category until more than k users are there; then release them to each other's ids.

    Each arrival puts its record and a token of its user into its category. While more than `k` different
    users are present, a random record leaves with a random token that is not its own user's.

    Guarantee: no record is released under the label of its author. More than `k` users are present in a
    category at each release from it. A label is released from a category at most as often as its user
    searched there. The bound of 1/k that the paper claims is not guaranteed: `link-repeat` breaks it.

    Limits: queries that one user repeats: each repetition is further evidence about the same author;
    volumes: how often each user searched in each category is published exactly; sessions, if times are kept:
    they link records across categories; a query whose text names its author; k accounts of one attacker in
    one category.

    Reference: "A Real-Time Query Log Protection Method for Web Search Engines", Algorithm 1.
    """

    name = "swap"
    exempt: ClassVar[dict[str, str]] = {
        "memory_stays_bounded": "a category that never exceeds k users holds its records until the end"
    }

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `swap`."""

        k: int = users_setting(10, at_most=10_000, help="users that a category must exceed")
        level: int | str = setting(
            1,
            at_least=1,
            at_most=DEEPEST,
            also=("auto",),
            help="depth at which categories are cut; `auto`: as deep as k users allow",
        )
        patience: int = setting(
            10_000,
            at_least=1,
            help="with `auto`: arrivals in a topic after which a category hands on to its parent",
        )
        draw: str = setting(
            "token",
            choices=("token", "distinct"),
            help="draw a label among all tokens, or among different users",
        )
        guard: float | str = setting(
            "off",
            kind=float,
            at_least=0,
            at_most=1,
            also=("off", "1/k"),
            stronger="smaller",
            weakest=("off",),
            help="hold a record while an attacker would be surer of its author than this; no promise",
        )
        leftover: str = setting(
            "suppress",
            choices=("suppress", "rollup"),
            help="at the end: suppress what is held, or try its parents first",
        )
        time: str = time_setting()
        labels: str = labels_setting()

        def __post_init__(self) -> None:
            super().__post_init__()
            plain = self.level != "auto" and self.leftover == "suppress" and self.draw == "token"
            if self.guard != "off" and not plain:
                raise ParameterError(
                    "swap: `guard` works with a fixed `level`, `draw=token` and `leftover=suppress`",
                    hint="leave those settings as they are by default",
                )

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Dictionaries) -> None:
        super().__init__(settings, key, texts)
        self._words = key_words(derive(key, "swap"))
        self.k = settings.k
        self.levels: Counter[int] = Counter()
        self._held = SlotBuffer(texts)
        self._tokens = CountTable()
        level = DEEPEST if settings.level == "auto" else int(settings.level)
        self._numbers = Categories(texts, derive(key, "category"), level, linked=self._moves)
        self._pool = np.zeros((1024, 3), np.int64)
        self._free = np.full(48, MISSING, np.int64)
        self._ends = np.zeros(2, np.int64)
        #: Tokens that were dropped to stay balanced after erasures: so often fewer do their users' ids leave.
        self.tokens_dropped = 0
        self._guard: Guard | None = None
        if settings.guard != "off":
            limit = 1 / settings.k if settings.guard == "1/k" else float(settings.guard)
            self._guard = Guard(limit, texts.query, derive(key, "guarded texts"))

    @classmethod
    def traits(cls, settings: Settings) -> Traits:
        """Return the properties of `swap` with these settings."""
        guarded = frozenset({"query"} if settings.guard != "off" else ())
        return Traits(
            reads=frozenset({"user", "category", "time"}) | guarded,
            requires=frozenset({"user", "query", "category"}),
            rewrites=frozenset({"user"}) | frozenset({"time"} if settings.time == "coarsen" else ()),
            empties=frozenset({"time"} if settings.time == "drop" else ()),
            time_unit=unit_of(settings.time),
            labels=Labels.OTHERS,
            fresh_labels=settings.labels == "fresh",
            bounds=(AttackBound(Game.ATTRIBUTION, 1 / settings.k, claimed_by="the paper"),),
            live_settings=frozenset({"k"}),
            main_setting="k",
        )

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Name the settings that the conformance suite tries."""
        return [
            cls.Settings(k=2),
            cls.Settings(k=2, level=2, draw="distinct", time="coarsen", labels="fresh"),
            cls.Settings(k=2, level="auto", patience=4, leftover="rollup"),
            cls.Settings(k=2, level=3, leftover="rollup", time="drop"),
            cls.Settings(k=2, guard=0.5),
        ]

    @property
    def _moves(self) -> bool:
        return self.settings.level == "auto" or self.settings.leftover == "rollup"

    @classmethod
    def promise(cls, settings: Settings) -> Guarantee:
        """Return the guarantee of `swap` with these settings."""
        k = settings.k
        not_own, present, conserved, one_label = audits(k, settings.level, settings.leftover)
        return Guarantee.of(
            Sentence("no record is released under the label of its author", (not_own, one_label)),
            Sentence(f"more than {k} users are present in a category at each release from it", (present,)),
            Sentence(
                "a label is released from a category at most as often as its user searched there",
                (conserved,),
            ),
            limits=(
                "queries that one user repeats: each repetition is further evidence about the same author",
                "volumes: how often each user searched in each category is published exactly",
                "sessions, if times are kept: they link records across categories",
                "a query whose text names its author",
                f"{k} accounts of one attacker in one category",
            ),
            labels_waiting=lambda e: remaining(e, settings.level, settings.leftover),
            facts={"claimed_by_the_paper": f"at most 1/{k} per record; measured attacks exceed it"},
        )

    def check_user_count(self, people: int) -> None:
        """Refuse a k that no category of so many people can exceed."""
        if people <= self.settings.k:
            raise ParameterError(
                f"swap: `k` is {self.settings.k}, but the log has only {plural(people, 'user')}, "
                "and a category must exceed k",
                hint=f"the largest k that can release anything is {people - 1}" if people > 2 else "",
            )

    def tally(self) -> State:
        """Return how many records left at each level."""
        counted = np.array(sorted(self.levels.items()), np.int64).reshape(-1, 2)
        return {"level": counted[:, 0], "left": counted[:, 1]}

    def facts(self, tally: State | None = None) -> dict[str, Any]:
        """State at which levels records left, where that may differ."""
        if self.settings.level != "auto":
            return {}
        found = self.tally() if tally is None else tally
        levels = np.unique(found["level"]).tolist()
        left = {n: int(found["left"][found["level"] == n].sum()) for n in levels}
        total = max(sum(left.values()), 1)
        return {"released_by_level": {str(n): round(c / total, 4) for n, c in left.items()}}

    def partition_key(self, batch: Batch) -> IntArray | None:
        """Keep a category together; its whole topic where records may move up.

        A guard follows a string through all categories in which it was asked, so it needs them all.
        """
        if self._guard is not None:
            return None
        level = 1 if self._moves else int(self.settings.level)
        return self.key_of_text(self.texts.category, self.texts.category.at_level(batch.category, level))

    def change_setting(self, name: str, value: Any) -> None:
        """Use another `k` from now on, as an operator may while records flow."""
        if name != "k":
            super().change_setting(name, value)
        self.k = self.Settings(**(self.settings.as_dict() | {"k": value})).k

    def current_settings(self) -> Settings:
        """Return the settings with the `k` in force."""
        return self.Settings(**(self.settings.as_dict() | {"k": self.k}))

    def push(self, batch: Batch) -> Batch:
        """Take records in; hand back what may leave."""
        category, top = self._numbers.of(batch.category)
        same = np.broadcast_to(np.int64(0), len(batch))
        slots = self._held.add(batch.replace(user=same, seq=same))  # both will be others' when it leaves
        chunk = CHUNK if self._guard is None else GUARDED_CHUNK
        released = [np.empty((0, 4), np.int64)]
        for cut in (slice(i, i + chunk) for i in range(0, len(batch), chunk)):
            out = self._swap(category[cut], top[cut], batch[cut], slots[cut])
            out[:, 2] = batch.seq[cut][out[:, 2]]  # the arrival after which it leaves
            released.append(out)
        return self._hand_back(np.concatenate(released))

    def _swap(self, category: IntArray, top: IntArray, batch: Batch, slots: IntArray) -> IntArray:
        self._tokens.reserve(len(batch))
        start, arrivals = (self.k, *self._words), (category, batch.user, slots)
        if self._guard is not None:
            crowd = int(self._numbers.table[:, kernel.HELD].max(initial=0)) + len(batch)
            self._guard.meet(batch.query, slots)
            self._guard.make_room(kernel.TRIES * len(batch) * crowd)
            own = (*arrivals, self._guard.text_of)
            return self._run(kernel.guarded, (*start, self._guard.limit), own, self._guard.arrays)
        distinct = self.settings.draw == "distinct"
        if self.settings.level == "auto":
            patient = (*start, distinct, self.settings.patience)
            return self._run(kernel.swap_with_promotion, patient, (category, top, batch.user, slots))
        return self._run(kernel.swap, (*start, distinct), arrivals)

    def _run(
        self,
        step: Callable[..., int],
        start: tuple[Any, ...],
        arrivals: tuple[IntArray, ...],
        rest: tuple[Any, ...] = (),
    ) -> IntArray:
        """Call a kernel until it has gone through its arrivals, with a larger pool each time it stops."""
        out = np.empty((len(self._held), 4), np.int64)
        self._ends[kernel.RELEASES] = done = 0
        while done < arrivals[0].size:
            state = (self._tokens.cells, self._pool, self._numbers.table, self._free, self._ends, out)
            now = step(*start, *arrivals, *state, *rest, done)
            if now < arrivals[0].size:
                self._pool = grown(self._pool, 2 * len(self._pool))
            done = now
        return out[: self._ends[kernel.RELEASES]]

    def _hand_back(self, out: IntArray) -> Batch:
        slots, label, seq, level = out.T
        counts = np.bincount(level, minlength=1)
        self.levels.update({n: int(counts[n]) for n in np.flatnonzero(counts).tolist()})
        moved = self._held.pop(slots).replace(user=label, seq=seq)
        return self._timed(self._labels.apply(moved))

    def erase(self, users: IntArray, rows: IntArray) -> None:
        """Take their records and tokens out of every category, and what one bag then has more than the other.

        Records and tokens must be equally many, so that users per category stay conserved. Which of the
        others' go, the category's own draws decide.
        """
        places = self._stretches()
        held, token = self._pool[places], self._pool[places, kernel.TOKEN]
        own = np.isin(self._held.peek(held[:, kernel.RECORD]).row, rows)
        marked = own | np.isin(held[:, kernel.ORIGIN], users)
        theirs = np.isin(token, users) & self._is_token(places)
        self._pool[places[marked], kernel.ORIGIN] = MISSING
        self._pool[places[theirs], kernel.TOKEN] = kernel.ERASED_TOKEN - token[theirs]
        sizes = self._numbers.table[: len(self._numbers), kernel.HELD]
        touched = np.unique(np.repeat(np.arange(sizes.size), sizes)[marked | theirs])
        self._rebalance(touched, held[own, kernel.RECORD], len(places))
        if self._guard is not None:
            self._guard.forget(users)

    def _is_token(self, places: IntArray) -> Flags:
        """Return which places hold a token: with `draw=distinct` a user has one place for all tokens."""
        if self.settings.draw != "distinct":
            return np.ones(places.size, np.bool_)
        table = self._numbers.table[: len(self._numbers)]
        sizes, users = table[:, kernel.HELD], table[:, kernel.USERS]
        return np.asarray(places - np.repeat(table[:, kernel.START], sizes) < np.repeat(users, sizes))

    def _rebalance(self, touched: IntArray, own: IntArray, held: int) -> None:
        out = np.empty(held, np.int64)
        state = (self._tokens.cells, self._pool, self._numbers.table, out)
        distinct = self.settings.draw == "distinct"
        n, surplus, lost = kernel.erase(*self._words, distinct, touched, *state)
        marked, drawn = self._held.pop(out[:n]).row, self._held.pop(out[n : n + surplus]).row
        theirs = np.isin(out[:n], own)
        self.drop(marked[theirs], ERASED)
        self.drop(marked[~theirs], UNDER_ERASED_LABEL)
        self.drop(drawn, SURPLUS)
        self.tokens_dropped += lost

    def close(self) -> Batch:
        """Try the parents of what is left, if asked to; drop the rest."""
        out = np.empty((0, 4), np.int64)
        if self.settings.leftover == "rollup":
            self._tokens.reserve(len(self._held))
            start = (self.k, *self._words, self.settings.draw == "distinct")
            out = self._run(kernel.roll_up, start, (self._numbers.deepest_first(),))
            out[:, 2] = 0
        released = self._hand_back(out)
        left = self._pool[self._stretches(), kernel.RECORD]
        self.drop(self._held.pop(left).row, "too few users in the category")
        self._numbers.table[:, (kernel.HELD, kernel.USERS)] = 0
        self._tokens = CountTable()
        return released

    def _stretches(self) -> IntArray:
        """Return the places of the pool that are in use, category after category."""
        table = self._numbers.table[: len(self._numbers)]
        return spans(table[:, kernel.START], table[:, kernel.HELD])

    def snapshot(self) -> State:
        """Return categories, stretches and held records."""
        pool = self._pool[self._stretches()]
        state = self._held.snapshot(pool[:, kernel.RECORD])
        table = self._numbers.table[: len(self._numbers)].copy()
        table[:, (kernel.START, kernel.ROOM)] = 0
        levels = np.array(sorted(self.levels.items()), np.int64).reshape(-1, 2)
        parts = {"pool": pool[:, 1:], "categories": table, "tokens": self._tokens.items(), "levels": levels}
        watch = self._guard.snapshot() if self._guard is not None else {}
        counters = {"k": np.array([self.k]), "tokens_dropped": np.array([self.tokens_dropped])}
        counters |= self._snapshot_dropped()
        return state | parts | watch | counters

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        slots = self._held.restore(state)
        self.k, self.tokens_dropped = int(state["k"][0]), int(state["tokens_dropped"][0])
        self.levels = Counter(dict(state["levels"].tolist()))
        self._tokens = CountTable.of(state["tokens"])
        self._numbers.restore(state["categories"])
        if self._guard is not None:
            self._guard.restore(state)
            self._guard.meet(self._held.peek(slots).query, slots)
        self._lay_out(np.column_stack([slots, state["pool"]]))
        self._restore_dropped(state)

    def _lay_out(self, pool: IntArray) -> None:
        """Assign a new range of the pool to every category."""
        table = self._numbers.table[: len(self._numbers)]
        held = table[:, kernel.HELD]
        room = np.where(held > 0, 4 << np.ceil(np.log2(np.maximum(held, 4) / 4)).astype(np.int64), 0)
        table[:, kernel.START], table[:, kernel.ROOM] = np.cumsum(room) - room, room
        self._free = np.full(48, MISSING, np.int64)
        self._ends = np.array([room.sum(), 0], np.int64)
        self._pool = np.zeros((max(int(room.sum()), 1024), 3), np.int64)
        self._pool[self._stretches()] = pool
