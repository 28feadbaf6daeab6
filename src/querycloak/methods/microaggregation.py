"""What all microaggregations share: people in groups of k, and one made-up history for each group."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from querycloak import settings as declared
from querycloak.dictionary import Texts
from querycloak.errors import ParameterError
from querycloak.guarantees import Guarantee
from querycloak.guarantees.groups import audits
from querycloak.kernels import siphash
from querycloak.keys import derive
from querycloak.log import NO_TIME, NOTHING, Batch, IntArray
from querycloak.methods import mixing, times
from querycloak.methods.labels import Labels
from querycloak.protector import Protector, State
from querycloak.settings import setting


def diversity_setting() -> Any:
    """Declare `diversity` in a method's settings."""
    return setting(
        1,
        kind=int,
        at_least=1,
        at_most=16,
        help="topics that each history must have: groups are joined until it has",
    )


def closeness_setting() -> Any:
    """Declare `closeness` in a method's settings."""
    return setting(
        1.0,
        kind=float,
        at_least=0,
        at_most=1,
        help="how far a history's topics may be from those of all histories together; 1: as far as can be",
    )


STANDS_FOR = "the history of the person's group stands for it"
#: Up to so many people, all distances are worked out; above, people are first divided into blocks of alike.
EXACT = 10_000
_PEOPLE = 1  # the purpose of the draws that break ties between people
_PICK = 8  # and between records; smaller numbers are those of columns


class Representative(NamedTuple):
    """The made-up records of a group, by column; what a method does not give is empty."""

    query: IntArray
    time: IntArray
    category: IntArray
    rank: IntArray
    url: IntArray

    @classmethod
    def of(cls, query: IntArray, **columns: IntArray) -> Representative:
        """Fill columns that are not given with nothing."""
        absent = {"time": NO_TIME, "category": NOTHING, "rank": NOTHING, "url": NOTHING}
        filled = {name: np.full(query.size, value, np.int64) for name, value in absent.items()}
        return cls(query=query, **(filled | columns))


class Microaggregation(Protector):
    """The parent of all microaggregations: holds the log, groups people at its end, shows their histories."""

    wants_people = True
    makes_rows = True
    streams = False
    needs = frozenset({"user", "query"})
    rewrites = frozenset({"user", "query", "time", "rank", "url", "category"})
    exempt: ClassVar[dict[str, str]] = {
        "memory_stays_bounded": "who is like whom is known only when the log has ended"
    }
    settings: Any

    def __init__(self, settings: declared.Settings, key: bytes, texts: Texts) -> None:
        super().__init__(settings, key, texts)
        self._labels = Labels(self.settings.labels, key, texts)
        self._held = Batch.empty(texts)
        self._code = np.empty(0, np.int64)  # of each person, while the log is at its end

    def promise(self) -> Guarantee:
        """Say what an independent audit can test."""
        k, topics, apart = self.settings.k, *self._wanted
        more = f", and has at least {topics} topics" if topics > 1 else ""
        more += f", and its topics are within {apart:g} of all histories'" if apart < 1 else ""
        return Guarantee(
            words=f"each released history, with all of its columns, is that of at least {k} people{more}",
            does_not_protect_against=(
                "what a query itself says: its text may name who asked it",
                f"what all {k} people of a group have in common, and that a person is in the log",
                f"{k} accounts that one attacker opened to be in one group with somebody",
                "several releases of overlapping logs: groups differ, and histories can be compared",
            ),
            audits=audits(k, topics, apart),
        )

    @property
    def _wanted(self) -> tuple[int, float]:
        """How many topics a history must have, and how far they may be from everybody's; texts have none."""
        return getattr(self.settings, "diversity", 1), getattr(self.settings, "closeness", 1.0)

    def check_people(self, people: int) -> None:
        """Refuse a log with fewer than k people."""
        if people < self.settings.k:
            raise ParameterError(
                f"{self.name}: `k` is {self.settings.k}, but the log has only {people} "
                f"user{'' if people == 1 else 's'}",
                hint=f"the largest possible k is {people}" if people > 1 else "",
            )

    @classmethod
    def needs_for(cls, settings: declared.Settings) -> frozenset[str]:
        """Ask for categories where histories must have several: else no audit could see them."""
        mixed = getattr(settings, "diversity", 1) > 1 or getattr(settings, "closeness", 1.0) < 1
        return cls.needs | ({"category"} if mixed else frozenset())

    def push(self, batch: Batch) -> Batch:
        """Hold everything until the log has ended; what must not be shown is not even looked at."""
        self._held += batch.without_blanks()
        return Batch.empty(self.texts)

    def close(self) -> Batch:
        """Group people, and let each show the history of her group."""
        held, self._held = self._held, Batch.empty(self.texts)
        held = self._usable(held) if len(held) else held
        held = self._numbered(held)
        people = np.arange(self._code.size)
        if people.size < self.settings.k:
            self.drop(held.row, "too few people have anything to go by")
            return Batch.empty(self.texts)
        group = self._groups(held, people)
        self.drop(held.row, STANDS_FOR)
        return self._shown(held, group)

    def _numbered(self, held: Batch) -> Batch:
        """Number people from 0 by a keyed hash, so that neither pieces nor the file's order decide a tie."""
        codes, place = np.unique(held.user, return_inverse=True)
        prints = self.texts.user.fingerprints(codes, derive(self.key, "people"))
        order = np.argsort(siphash.draw(derive(self.key, "ties"), _PEOPLE, prints.view(np.int64)))
        self._code = codes[order]
        return held.replace(user=np.argsort(order)[place])

    def _ranks(self, people: IntArray) -> Any:
        """Give people the numbers by which ties are broken: their order in the file tells nothing."""
        return people.astype(np.uint64)

    def _shown(self, held: Batch, group: IntArray) -> Batch:
        """Represent every group, joining those whose topics are too few or too unlike the log's."""
        groups, own = _split(group), _split(group[held.user])

        def represent(members: IntArray, rows: IntArray) -> Representative:
            return self._represented(held[rows], members)

        made = [represent(members, rows) for members, rows in zip(groups, own, strict=True)]
        if self._mixed:
            groups, made = mixing.joined(groups, own, made, represent, self._topic, self.settings)
        return self._told(self._code, groups, made)

    @property
    def _mixed(self) -> bool:
        topics, apart = self._wanted
        return topics > 1 or apart < 1

    def _topic(self, one: Representative) -> IntArray:
        return self.texts.category.at_level(one.category, 1)

    def _told(self, people: IntArray, groups: list[IntArray], made: list[Representative]) -> Batch:
        """Let each member of a group show its records; they are numbered from -1 down."""
        sizes = np.array([one.query.size for one in made])
        members = np.concatenate(groups)
        each = np.repeat(sizes, [g.size for g in groups])  # records of each member, group after group
        columns = {
            name: np.concatenate(
                [np.tile(getattr(one, name), g.size) for one, g in zip(made, groups, strict=True)]
            )
            for name in Representative._fields
        }
        columns["user"] = np.repeat(people[members], each)
        columns["row"] = -1 - np.arange(int(each.sum()))
        columns["seq"] = np.zeros(int(each.sum()), np.int64)  # all leave at the end, which the engine knows
        shown = Batch.of(columns, self.texts)
        shown = shown.replace(user=self._labels.of(shown.user))
        return times.apply(self.settings.time, shown)

    def label_of(self, users: IntArray) -> IntArray:
        """Give the label that stands for each user in what leaves."""
        return self._labels.of(users)

    def _draws(self, theirs: Batch, purpose: int = _PICK) -> npt.NDArray[np.uint64]:
        """Draw a number for each record from what it says: the order of a file decides nothing."""
        key, said = derive(self.key, "picks"), np.zeros(len(theirs), np.uint64)
        for name in sorted(self.reads - {"user", "time", "rank"}):
            codes = getattr(theirs, name)
            known = np.flatnonzero(codes >= 0)
            said[known] ^= getattr(self.texts, name).fingerprints(codes[known], derive(self.key, name))
        for place, name in enumerate(("user", "time", "rank")):
            said ^= siphash.draw(key, place, getattr(theirs, name))
        return siphash.draw(key, purpose, said.view(np.int64))

    def _varied(self, chosen: IntArray, theirs: Batch, draws: npt.NDArray[np.uint64]) -> IntArray:
        """Exchange picks, by their draws, until they have the topics that are asked for."""
        if self._wanted[0] == 1:
            return chosen
        top = self.texts.category.at_level(theirs.category, 1)
        topic, known = np.full(top.size, NOTHING, np.int64), top >= 0
        prints = self.texts.category.fingerprints(top[known], derive(self.key, "topics"))
        topic[known] = np.unique(prints, return_inverse=True)[1]  # numbers that no order of coming decides
        return mixing.varied(chosen, topic, draws.astype(np.float64), self._wanted[0])

    @abstractmethod
    def _usable(self, held: Batch) -> Batch:
        """Drop records, and people, that the method cannot compare."""

    @abstractmethod
    def _groups(self, held: Batch, people: IntArray) -> IntArray:
        """Give each of these people (numbers from 0) that of a group of at least k."""

    @abstractmethod
    def _represented(self, theirs: Batch, members: IntArray) -> Representative:
        """Make the records that stand for all members of a group, from their own."""

    def erase(self, users: IntArray, rows: IntArray) -> None:
        """Drop what is held of theirs: the others' records are worked out without it."""
        self._held = self._held[self.forget(self._held, users, rows)]

    def snapshot(self) -> State:
        """Give the held records."""
        held = {f"held_{name}": np.asarray(array) for name, array in self._held.arrays().items()}
        return held | self._snapshot_dropped()

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        self._held = Batch.of({name: state[f"held_{name}"] for name in Batch.COLUMNS}, self.texts)
        self._restore_dropped(state)


def _split(group: IntArray) -> list[IntArray]:
    """Give the places of each group's elements, in their order."""
    order = np.argsort(group, kind="stable")
    return np.split(order, np.cumsum(np.bincount(group))[:-1])
