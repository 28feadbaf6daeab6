"""`cohort`: permanent groups of k users; the label of a record is a random member of its author's group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from querycloak import settings as declared
from querycloak.dictionary import Dictionaries
from querycloak.guarantee import Guarantee, Sentence
from querycloak.kernels.arrays import grown
from querycloak.kernels.siphash import key_words
from querycloak.keys import derive
from querycloak.knowledge import Game
from querycloak.log import Batch, IntArray, is_same
from querycloak.methods.cohort import assignment, kernel
from querycloak.methods.cohort.audit import GENERATIONS, audits
from querycloak.methods.shared.labels import LabelMethod, labels_setting, time_setting, unit_of
from querycloak.methods.shared.records import ChainedSlots, require_users, users_setting
from querycloak.protector import USER_AND_QUERY, AttackBound, Labels, State, StoredState, Traits
from querycloak.settings import setting


class Cohort(LabelMethod):
    """Assign each user to a permanent cohort of k; each search gets the label of a random member.

    A user joins one cohort of `k` users and never leaves it. Each search gets a label drawn
    uniformly and independently from the cohort, the author's own included. Records wait until the cohort
    is full.

    Guarantee: given the cohort, of at least `k` users, a record's label is uniform over it and independent
    of author, text, time and all other labels. So labels add nothing to what text, time and volume
    already say: an attacker with equal prior over the members is right with probability 1/k, one with
    other priors keeps exactly those.

    Limits: text: a query that names its author, or words that only one member uses; sessions: records close
    in time and topic are recognised as one person's; volumes known from elsewhere: the heaviest member
    wrote more than 1/k of a cohort's records; join dates: a cohort's members came at about the same time;
    sybil accounts that fill a cohort, and members who left.
    """

    name = "cohort"
    exempt: ClassVar[dict[str, str]] = {
        "memory_stays_bounded": "the cohort book grows with the number of different users, by design"
    }

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `cohort`."""

        k: int = users_setting(10, at_most=10_000, help="users of a cohort")
        shards: int = setting(
            8,
            at_least=1,
            at_most=4096,
            help="parts that the users are split into by a keyed hash; cohorts form inside one",
        )
        assign: str = setting(
            "arrival",
            choices=("arrival", "similar"),
            help="assign users in order of arrival, or with similar users",
        )
        first: int = setting(5, at_least=1, help="with `similar`: searches after which a user is assigned")
        patience: int = setting(
            100_000,
            at_least=1,
            help="with `similar`: arrivals in a shard after which a user is assigned with those there",
        )
        pool: int = setting(
            64, at_least=2, at_most=4096, help="with `similar`: users to choose from, in multiples of k"
        )
        time: str = time_setting()
        leftover: str = setting(
            "suppress",
            choices=("suppress", "join"),
            help="at the end: suppress users without a full cohort, or let them join one",
        )
        labels: str = labels_setting()

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Dictionaries) -> None:
        super().__init__(settings, key, texts)
        self._words = key_words(derive(key, "label"))
        self._shard_key = derive(key, "shard")
        self._held = ChainedSlots(texts)
        kinds = {"similar": assignment.SimilarityAssignment, "arrival": assignment.ArrivalAssignment}
        self.assignment: assignment.Assignment = kinds[settings.assign](settings, self._shard_of)
        self.source_state = assignment.CohortState(self.assignment, texts.user)
        self._records = np.empty(0, np.int64)
        #: With `leftover=join`, the newest full cohort of each shard waits: who is left over may join it.
        self._last_full = np.full(settings.shards if settings.leftover == "join" else 0, kernel.UNASSIGNED)

    @classmethod
    def traits(cls, settings: Settings) -> Traits:
        """Return the properties of `cohort` with these settings."""
        category = frozenset({"category"} if settings.assign == "similar" else ())
        return Traits(
            reads=frozenset({"user", "time"}) | category,
            requires=USER_AND_QUERY | category,
            rewrites=frozenset({"user"}) | frozenset({"time"} if settings.time == "coarsen" else ()),
            empties=frozenset({"time"} if settings.time == "drop" else ()),
            time_unit=unit_of(settings.time),
            labels=Labels.GROUP,
            fresh_labels=settings.labels == "fresh",
            stored_state=StoredState("cohort", fixed_settings=("k", "shards")),
            bounds=(AttackBound(Game.ATTRIBUTION, 1 / settings.k),),
            main_setting="k",
        )

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Return the settings that the conformance suite tries."""
        return [
            cls.Settings(k=2, shards=1),
            cls.Settings(k=2, shards=2, labels="fresh", time="coarsen"),
            cls.Settings(k=2, shards=2, leftover="join", time="drop"),
            cls.Settings(k=2, shards=1, assign="similar", first=2, patience=6, pool=2),
        ]

    @classmethod
    def promise(cls, settings: Settings) -> Guarantee:
        """Return the guarantee of `cohort` with these settings."""
        k = settings.k
        return Guarantee.of(
            Sentence(
                f"given the cohort of at least {k} users, a record's label is uniform over it and "
                "independent of author, text, time and all other labels",
                audits(k),
            ),
            limits=(
                "query text: a query that names its author, or words that only one member uses",
                "sessions: searches close in time and topic are recognised as one user's",
                f"known volumes: the most active member wrote more than 1/{k} of a cohort's records",
                "first-search dates: members of a cohort started at about the same time",
                "fake accounts that fill a cohort, and members who no longer search",
            ),
        )

    def _shard_of(self, people: IntArray) -> IntArray:
        prints = self.texts.user.fingerprints(people, self._shard_key)
        return (prints % np.uint64(self.settings.shards)).astype(np.int64)

    def partition_key(self, batch: Batch) -> IntArray:
        """Keep a shard's users together."""
        return self._shard_of(batch.user)

    def push(self, batch: Batch) -> Batch:
        """Assign new users; release every record whose cohort is full."""
        people = batch.user
        completed = self.assignment.assign(people, self._topics(batch.category))
        self._records = grown(self._records, self.assignment.people)
        np.add.at(self._records, people, 1)
        slots = self._held.add(batch)
        self._held.reserve(self.assignment.people)
        out = np.empty((len(self._held), 2), np.int64)
        chains = self._held.last, self._held.before
        arrays = self.assignment.full, self.assignment.arrays, self._last_full
        n = kernel.release(people, slots, completed, *arrays, *chains, out)
        freed = self._held.pop(out[:n, 0])
        return self._labelled(freed.replace(seq=np.maximum(freed.seq, batch.seq[out[:n, 1]])))

    def _topics(self, category: IntArray) -> IntArray:
        """Number the level-1 topics of a batch, equally in every run; 0 where categories were not read."""
        if is_same(category) and not (category >= 0).any():
            return np.zeros(category.size, np.int64)
        level_one = self.texts.category.at_level(category, 1)
        codes, place = np.unique(level_one, return_inverse=True)
        names = self.texts.category.decode(codes).to_list()
        return np.array([assignment.topic_number(name) for name in names], np.int64)[place]

    def _labelled(self, freed: Batch) -> Batch:
        """Draw each record's label from the cohort of its author."""
        cohort = self.assignment.cohort_of[freed.user]
        drawn = np.empty(len(freed), np.int64)
        kernel.draw_labels(*self._words, freed.row, cohort, self.assignment.arrays, drawn)
        return self._timed(self._labels.apply(freed.replace(user=drawn)))

    def erase(self, users: IntArray, rows: IntArray) -> None:
        """Drop their held records and free their slots: a cohort holds until new users take them."""
        held = self._held.peek(self._held.slots())
        self._held.keep(self.drop_erased(held, users, rows), held.user)
        broken = self.assignment.erase(users)
        self._last_full[np.isin(self._last_full, broken)] = kernel.UNASSIGNED
        self._records[users[users < self._records.size]] = 0

    def close(self) -> Batch:
        """Assign whom one still can; suppress the rest, or append them to full cohorts."""
        last = self.assignment.assign_remaining()
        if self.settings.leftover == "join":
            last = self._joined(last)
        out = np.empty((len(self._held), 2), np.int64)
        chains = self._held.last, self._held.before
        n = kernel.release_rest(last, self.assignment.full, self.assignment.arrays, *chains, out)
        freed = self._labelled(self._held.pop(out[:n, 0]))
        self.drop(self._held.pop_all().row, "the cohort did not fill up")
        return freed

    def _joined(self, last: IntArray) -> IntArray:
        """Assign every remaining user to a free slot, or append them to the last full cohort of the shard.

        Nothing has left that cohort yet. One that was full and misses somebody keeps its members.
        """
        cohorts = np.concatenate([self._last_full[self._last_full >= 0], last])
        fresh = np.sort(cohorts[self.assignment.full[cohorts] == 0])
        newest = {int(cohort) % self.settings.shards: int(cohort) for cohort in fresh}
        whole = self.assignment.fill_free_slots(self._without_slot(cohorts))
        self.assignment.append_to_last_cohort(self._without_slot(cohorts), newest)
        self._last_full[:] = kernel.UNASSIGNED
        return np.concatenate([cohorts, whole])

    def _without_slot(self, full: IntArray) -> IntArray:
        """Return those with something to release who are neither in these cohorts nor in one that was full.

        They come in keyed random order: that of their numbers depends on how the log was read.
        """
        waiting = np.flatnonzero(self._held.last[: self.assignment.people] >= 0)
        cohort = self.assignment.cohort_of[waiting]
        was_full = (cohort >= 0) & (self.assignment.full[cohort] != 0)
        found = waiting[~was_full & ~np.isin(cohort, full)]
        prints = self.texts.user.fingerprints(found, self._shard_key)
        return np.asarray(found[np.argsort(prints, kind="stable")])

    def truth_columns(self, users: IntArray) -> dict[str, IntArray]:
        """Return each user's cohort and its number of users; -1 for a user without a cohort.

        A cohort completed again after an erasure has other members, so it counts as another generation.
        """
        assigned = self.assignment
        met = users < assigned.cohort_of.size
        cohort = np.full(users.size, kernel.UNASSIGNED)
        cohort[met] = assigned.cohort_of[users[met]]
        name = np.where(cohort >= 0, cohort + np.append(assigned.generation, 0)[cohort] * GENERATIONS, cohort)
        return {"cohort": name, "cohort_size": np.append(assigned.size - assigned.missing, 0)[cohort]}

    def check_user_count(self, people: int) -> None:
        """Refuse a k that so many people cannot fill."""
        hint = "the largest k that can release anything is {people}, with `-s shards=1`"
        require_users(self.name, self.settings.k, people, hint)

    @classmethod
    def weaker_settings(cls, settings: declared.Settings, users: int) -> str:
        """Return numbers of shards and users with which one shard at least fills a cohort."""
        assert isinstance(settings, cls.Settings)
        shards, k = users // settings.k, users // settings.shards
        if not 1 <= shards < settings.shards:
            return super().weaker_settings(settings, users)
        smaller = f" or `-s {cls.name}.k={k}`, which protects less" if k >= 2 else ""
        return f"use `-s {cls.name}.shards={shards}`{smaller}"

    def tally(self) -> State:
        """Return the records of each full cohort, those of its heaviest member, and pairs of one author."""
        cohort, person = self.assignment.slots()
        cohort, person = cohort[person >= 0], person[person >= 0]
        records = grown(self._records, self.assignment.people)[person].astype(np.float64)
        present = np.bincount(cohort, records) > 0  # members of earlier releases may all be absent
        keep = (self.assignment.full[cohort] > 0) & present[cohort]
        records = records[keep]
        _, index = np.unique(cohort[keep], return_inverse=True)
        total = np.bincount(index, records)
        heaviest = np.zeros(total.size)
        np.maximum.at(heaviest, index, records)
        pairs = np.bincount(index, records * (records - 1)) / np.maximum(total * (total - 1), 1)
        return {"total": total, "heaviest": heaviest, "pairs": pairs}

    def facts(self, tally: State | None = None) -> dict[str, Any]:
        """Return how unequal the volumes of a cohort's members are, which labels cannot hide."""
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

    def snapshot(self) -> State:
        """Return the assignments, the held records, and how many records each person has."""
        waiting = self._held.snapshot(self._held.slots())
        own = {"records": self._records[: self.assignment.people], "last_full": self._last_full.copy()}
        return waiting | own | self.assignment.snapshot() | self._snapshot_dropped()

    def restore(self, state: State) -> None:
        """Continue from a snapshot."""
        slots = self._held.restore(state)
        self._records = state["records"].copy()
        self.assignment.restore(state)
        self._last_full = state["last_full"].copy()
        self.assignment.full[self._last_full[self._last_full >= 0]] = 0
        self._held.reserve(self.assignment.people)
        self._held.chain(state["held_user"], slots)
        self._restore_dropped(state)
