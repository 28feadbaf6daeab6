"""`cohort`: everyone shares a label with k - 1 others for good, and labels tell nothing about authors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from querycloak import settings as declared
from querycloak.dictionary import Texts
from querycloak.errors import ParameterError
from querycloak.guarantees import Guarantee
from querycloak.guarantees.cohorts import GENERATIONS, audits
from querycloak.kernels import cohort as kernel
from querycloak.kernels.siphash import key_words
from querycloak.keys import derive
from querycloak.log import Batch, IntArray, is_same
from querycloak.methods import times
from querycloak.methods.holding import Held
from querycloak.methods.labels import Labels, labels_setting
from querycloak.methods.seating import ByArrival, ByLikeness, Seating, grown, topic_number
from querycloak.protector import Protector, State
from querycloak.settings import setting


class Cohort(Protector):
    """Give each user k companions for good; each of their searches gets the label of a random one.

    A user joins one cohort of `k` users and never leaves it. Each of her searches gets a label drawn
    uniformly and independently from the cohort, her own included. Records wait until the cohort is full.

    Promise: given the cohort, of at least `k` users, a record's label is uniform over it and independent
    of author, text, time and all other labels. So labels add nothing to what text, time and volume
    already say: an attacker with equal prior over the members is right with probability 1/k, one with
    other priors keeps exactly those.

    Does not protect against:
        - text: a query that names its author, or words that only one member uses
        - sessions: records close in time and topic are recognised as one person's
        - volumes known from elsewhere: the heaviest member wrote more than 1/k of a cohort's records
        - join dates: a cohort's members came at about the same time
        - sybil accounts that fill a cohort, and members who left
    """

    name = "cohort"
    needs = frozenset({"user", "query"})
    keeps_book = True
    coded: ClassVar[dict[str, str]] = {
        f"{part}_{column}": column for part in ("held", "parked") for column in ("query", "url", "category")
    }
    exempt: ClassVar[dict[str, str]] = {
        "memory_stays_bounded": "the cohort book grows with the number of different users, by design"
    }

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `cohort`."""

        k: int = setting(10, kind=int, at_least=2, at_most=10_000, help="users of a cohort")
        shards: int = setting(
            8,
            kind=int,
            at_least=1,
            at_most=4096,
            help="parts that the users are split into by a keyed hash; cohorts form inside one",
        )
        assign: str = setting(
            "arrival",
            kind=str,
            choices=("arrival", "similar"),
            help="seat users in order of arrival, or with others like them",
        )
        first: int = setting(
            5, kind=int, at_least=1, help="with `similar`: searches after which a user is seated"
        )
        patience: int = setting(
            100_000,
            kind=int,
            at_least=1,
            help="with `similar`: arrivals in a shard after which a user is seated with whom there is",
        )
        pool: int = setting(
            64,
            kind=int,
            at_least=2,
            at_most=4096,
            help="with `similar`: users to choose from, in multiples of k",
        )
        time: str = times.time_setting()
        leftover: str = setting(
            "suppress",
            kind=str,
            choices=("suppress", "join"),
            help="at the end: suppress users without a full cohort, or let them join one",
        )
        scope: str = setting(
            "source",
            kind=str,
            choices=("source", "category"),
            help="one cohort for all of a user's searches, or (experimental, no 1/k claim) one per topic",
        )
        labels: str = labels_setting()  # type: ignore[assignment]

        def __post_init__(self) -> None:
            super().__post_init__()
            if self.scope == "category" and self.time != "drop":
                raise ParameterError(
                    "Cohort: `scope=category` needs `time=drop`: records of two topics that belong together "
                    "by their times show which cohorts a person is in, and those meet in one person",
                    hint="add `-s time=drop`, or use `scope=source`",
                )

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Texts) -> None:
        super().__init__(settings, key, texts)
        similar = settings.assign == "similar"
        self.reads = frozenset({"user", "time"} | ({"category"} if similar or self._by_topic else set()))
        self.rewrites = frozenset({"user"}) | times.rewrites(settings.time)
        self.empties = frozenset({"time"}) if settings.time == "drop" else frozenset()
        self._labels = Labels(settings.labels, key, texts)
        self._words = key_words(derive(key, "label"))
        self._shard_key = derive(key, "shard")
        self._held = Held(texts)
        kind = ByLikeness if similar else ByArrival
        self.seating: Seating = kind(settings.k, settings.shards, self._shard_of, settings)
        self._people = People(self._by_topic, texts)
        self._head = np.empty(0, np.int64)
        self._following = np.empty(0, np.int64)
        self._records = np.empty(0, np.int64)
        #: With `leftover=join`, the newest full cohort of each shard waits: who is left over may join it.
        self._last_full = np.full(settings.shards if settings.leftover == "join" else 0, kernel.NOWHERE)
        self._parked = Batch.empty(texts)
        self.erases = not self._by_topic  # parked records have labels already, and those may be hers

    @classmethod
    def needs_for(cls, settings: declared.Settings) -> frozenset[str]:
        """Say that likeness and topics need categories."""
        chosen: Any = settings
        by_topic = chosen.assign == "similar" or chosen.scope == "category"
        return cls.needs | {"category"} if by_topic else cls.needs

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Name the settings that the conformance suite tries."""
        return [
            cls.Settings(k=2, shards=1),
            cls.Settings(k=2, shards=2, labels="fresh", time="coarsen"),
            cls.Settings(k=2, shards=2, leftover="join", time="drop"),
            cls.Settings(k=2, shards=1, assign="similar", first=2, patience=6, pool=2),
            cls.Settings(k=3, shards=1, scope="category", time="drop"),
        ]

    @property
    def _by_topic(self) -> bool:
        return self.settings.scope == "category"

    def promise(self) -> Guarantee:
        """Say what an independent audit can test."""
        k = self.settings.k
        words = (
            f"given the cohort of at least {k} users, a record's label is uniform over it and independent "
            "of author, text, time and all other labels"
        )
        if self._by_topic:
            words = f"experimental, no 1/{k} claim: within a topic, {words}"
        return Guarantee(
            words=words,
            does_not_protect_against=(
                "text: a query that names its author, or words that only one member uses",
                "sessions: records close in time and topic are recognised as one person's",
                f"volumes known from elsewhere: the heaviest member wrote more than 1/{k} of the records",
                "join dates: a cohort's members came at about the same time",
                "sybil accounts that fill a cohort, and members who left",
            ),
            audits=audits(k),
        )

    def _shard_of(self, people: IntArray) -> IntArray:
        users = self._people.user_of(people)
        prints = self.texts.user.fingerprints(users, self._shard_key)
        return (prints % np.uint64(self.settings.shards)).astype(np.int64)

    def partition_key(self, batch: Batch) -> IntArray:
        """Keep a shard's users together."""
        prints = self.texts.user.fingerprints(batch.user, self._shard_key)
        return (prints % np.uint64(self.settings.shards)).astype(np.int64)

    def push(self, batch: Batch) -> Batch:
        """Seat new users; let go of every record whose cohort is full."""
        people, topic = self._people.of(batch)
        completed = self.seating.seat(people, topic)
        self._records = grown(self._records, self.seating.people)
        np.add.at(self._records, people, 1)
        slots = self._held.add(batch)
        self._make_room(slots)
        out = np.empty((len(self._held), 2), np.int64)
        chains = self._head, self._following
        n = kernel.release(people, slots, completed, *self.seating.seats, self._last_full, *chains, out)
        freed = self._held.take(out[:n, 0])
        moved = self._labelled(freed.replace(seq=np.maximum(freed.seq, batch.seq[out[:n, 1]])))
        if not self._by_topic:
            return moved
        self._parked += moved  # the order of release would tell which topics' records belong together
        return Batch.empty(self.texts)

    def _make_room(self, slots: IntArray) -> None:
        self._head = grown(self._head, self.seating.people, kernel.NOWHERE)
        self._following = grown(self._following, int(slots.max(initial=-1)) + 1, kernel.NOWHERE)

    def _labelled(self, freed: Batch) -> Batch:
        """Draw each record's label from the cohort of its author."""
        cohort = self.seating.cohort_of[self._people.of(freed)[0]]
        drawn = np.empty(len(freed), np.int64)
        seats = self.seating
        kernel.draw_labels(*self._words, freed.row, cohort, seats.size, seats.members, seats.start, drawn)
        moved = freed.replace(user=self._people.user_of(drawn))
        return times.apply(self.settings.time, self._labels.apply(moved))

    def erase(self, users: IntArray, rows: IntArray) -> None:
        """Drop what waits of theirs and empty their seats: a cohort holds until somebody new takes them."""
        slots = self._waiting_slots()
        stays = self.forget(self._held.look(slots), users, rows)
        self._held.take(slots[~stays])
        self._chain(slots[stays])
        broken = self.seating.erase(users)
        self._last_full[np.isin(self._last_full, broken)] = kernel.NOWHERE
        self._records[users[users < self._records.size]] = 0

    def _chain(self, slots: IntArray) -> None:
        kernel.chain(self._people.of(self._held.look(slots))[0], slots, self._head, self._following)

    def label_of(self, users: IntArray) -> IntArray:
        """Give the label that stands for each user in what leaves."""
        return self._labels.of(users)

    def close(self) -> Batch:
        """Seat whom one still can; then suppress the rest, or let them join full cohorts."""
        last = self.seating.finish()
        if self.settings.leftover == "join":
            last = self._joined(last)
        freed = self._freed_last(last)
        self._drop_the_rest()
        released, self._parked = self._parked + freed, Batch.empty(self.texts)
        return released.replace(seq=np.full(len(released), self._last_seq())) if self._by_topic else released

    def _joined(self, last: IntArray) -> IntArray:
        """Let everyone without a seat fill one that is empty, or join the last full cohort of her shard.

        Nothing has left that cohort yet. One that was full and misses somebody keeps its members.
        """
        cohorts = np.concatenate([self._last_full[self._last_full >= 0], last])
        fresh = np.sort(cohorts[self.seating.full[cohorts] == 0])
        newest = {int(cohort) % self.settings.shards: int(cohort) for cohort in fresh}
        whole = self.seating.fill(self._without_seat(cohorts))
        self.seating.join_the_rest(self._without_seat(cohorts), newest)
        self._last_full[:] = kernel.NOWHERE
        return np.concatenate([cohorts, whole])

    def _without_seat(self, full: IntArray) -> IntArray:
        """Give those with something to release who are neither in these cohorts nor in one that was full.

        They come in an order that only the key knows: their numbers tell how the log was read.
        """
        waiting = np.flatnonzero(self._head[: self.seating.people] >= 0)
        cohort = self.seating.cohort_of[waiting]
        was_full = (cohort >= 0) & (self.seating.full[cohort] != 0)
        found = waiting[~was_full & ~np.isin(cohort, full)]
        prints = self.texts.user.fingerprints(self._people.user_of(found), self._shard_key)
        return np.asarray(found[np.argsort(prints, kind="stable")])

    def _last_seq(self) -> int:
        return int(self._parked.seq.max(initial=0))

    def _freed_last(self, cohorts: IntArray) -> Batch:
        out = np.empty((len(self._held), 2), np.int64)
        seats = self.seating
        n = kernel.release_rest(
            cohorts, seats.full, seats.size, seats.members, seats.start, self._head, self._following, out
        )
        return self._labelled(self._held.take(out[:n, 0]))

    def _drop_the_rest(self) -> None:
        slots = self._waiting_slots()
        self.drop(self._held.take(slots).row, "the cohort did not fill up")
        self._head[:] = kernel.NOWHERE

    def _waiting_slots(self) -> IntArray:
        """Give the slots of all that waits, by record."""
        found, last = [], self._head[self._head >= 0]
        while last.size:
            found.append(last)
            last = self._following[last]
            last = last[last >= 0]
        slots = np.concatenate([np.empty(0, np.int64), *found])
        return slots[np.argsort(self._held.look(slots).row)]

    def cohort_of(self, users: IntArray) -> tuple[IntArray, IntArray]:
        """Give each user's cohort and how many people it has, for the truth; -1 where a user is in none.

        A cohort that is whole again after an erasure has other members, so it counts as another generation.
        """
        seats = self.seating
        met = users < seats.cohort_of.size
        cohort = np.full(users.size, kernel.NOWHERE)
        cohort[met] = seats.cohort_of[users[met]]
        name = np.where(cohort >= 0, cohort + np.append(seats.generation, 0)[cohort] * GENERATIONS, cohort)
        return name, np.append(seats.size - seats.missing, 0)[cohort]

    def check_people(self, people: int) -> None:
        """Refuse a k that so many people cannot fill."""
        if people < self.settings.k:
            raise ParameterError(
                f"Cohort: `k` is {self.settings.k}, but the log has only {people} users",
                hint=f"the largest k that can release anything is {people}, with `-s shards=1`"
                if people > 1
                else "",
            )

    def tally(self) -> State:
        """Give, by full cohort of the log: its records, its heaviest member's, and pairs of one author."""
        cohort, person = self.seating.book()
        cohort, person = cohort[person >= 0], person[person >= 0]
        records = grown(self._records, self.seating.people)[person].astype(np.float64)
        present = np.bincount(cohort, records) > 0  # members of earlier releases may all be absent
        keep = (self.seating.full[cohort] > 0) & present[cohort]
        records = records[keep]
        _, index = np.unique(cohort[keep], return_inverse=True)
        total = np.bincount(index, records)
        heaviest = np.zeros(total.size)
        np.maximum.at(heaviest, index, records)
        pairs = np.bincount(index, records * (records - 1)) / np.maximum(total * (total - 1), 1)
        return {"total": total, "heaviest": heaviest, "pairs": pairs}

    def facts(self, tally: State | None = None) -> dict[str, Any]:
        """State how unequal the members of a cohort are: that is what labels cannot hide."""
        found = self.tally() if tally is None else tally
        total, heaviest, pairs = found["total"], found["heaviest"], found["pairs"]
        if not total.size:
            return {"cohorts": 0}
        share = heaviest / total
        return {
            "cohorts": int(total.size),
            "largest_share_of_one_member_median": round(float(np.median(share)), 4),
            "largest_share_of_one_member_worst": round(float(share.max()), 4),
            "two_records_of_a_cohort_have_one_author": round(float(np.average(pairs, weights=total)), 4),
        }

    def book(self) -> pl.DataFrame:
        """Give the cohort book by name, to be kept with the state of a source. Guard it like the log.

        A seat whose user was erased is there without a user, so that the next release fills it first.
        """
        cohort, person = self.seating.book()
        return pl.DataFrame({"cohort": cohort, "user": self.texts.user.decode(person)})

    def open_book(self, book: pl.DataFrame) -> IntArray:
        """Carry on with the cohorts of earlier releases of the same source."""
        people = self.texts.user.encode(book["user"])
        self.seating.load(book["cohort"].to_numpy(), people)
        return people[people >= 0]

    def snapshot(self) -> State:
        """Give the book, what waits, and how many records each person has."""
        waiting = self._held.snapshot(self._waiting_slots())
        parked = {f"parked_{name}": array for name, array in self._parked.arrays().items()}
        own = {"records": self._records[: self.seating.people], "last_full": self._last_full.copy()}
        return (
            waiting
            | parked
            | own
            | self._people.snapshot()
            | self.seating.snapshot()
            | self._snapshot_dropped()
        )

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        slots = self._held.restore(state)
        self._people.restore(state)
        self._parked = Batch.of({name: state[f"parked_{name}"] for name in Batch.COLUMNS}, self.texts)
        self._records = state["records"].copy()
        self.seating.restore(state)
        self._last_full = state["last_full"].copy()
        self.seating.full[self._last_full[self._last_full >= 0]] = 0
        self._head = np.empty(0, np.int64)
        self._make_room(slots)
        self._chain(slots)
        self._restore_dropped(state)


class People:
    """Who counts as one person: a user, or (by topic) a user in one of her topics."""

    def __init__(self, by_topic: bool, texts: Texts) -> None:
        self._by_topic, self._texts = by_topic, texts
        self._number: dict[int, int] = {}
        self._user = np.empty(0, np.int64)

    def of(self, batch: Batch) -> tuple[IntArray, IntArray]:
        """Give each record's person and topic."""
        unread = is_same(batch.category) and not (batch.category >= 0).any()
        if unread:
            topic = np.zeros(len(batch), np.int64)
        else:
            topic = self._topics(self._texts.category.at_level(batch.category, 1))
        if not self._by_topic:
            return batch.user, topic
        keys = batch.user * (1 << 20) + topic
        for key in keys[np.sort(np.unique(keys, return_index=True)[1])].tolist():
            if key not in self._number:
                self._number[key] = len(self._number)
                self._user = grown(self._user, len(self._number))
                self._user[self._number[key]] = key >> 20
        return np.array([self._number[key] for key in keys.tolist()], np.int64), topic

    def _topics(self, level_one: IntArray) -> IntArray:
        """Give each topic the same small number in every run, whatever order topics come in."""
        codes = np.unique(level_one)
        names = self._texts.category.decode(codes).to_list()
        return np.array([topic_number(name) for name in names], np.int64)[np.searchsorted(codes, level_one)]

    def user_of(self, people: IntArray) -> IntArray:
        """Give the user behind each person."""
        return self._user[people] if self._by_topic else people

    def snapshot(self) -> State:
        """Give the numbers of persons."""
        return {"people_keys": np.array(list(self._number), np.int64)}

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        keys = state["people_keys"]
        self._number = {key: number for number, key in enumerate(keys.tolist())}
        self._user = keys >> 20
