"""Microaggregation: groups of at least k users, and one history for each group, shown for all of its members.

The driver holds the log, numbers users, and releases the histories. A method decides which users are grouped
and which records represent a group.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt

from querycloak import settings as declared
from querycloak.guarantee import Guarantee, Sentence
from querycloak.kernels import siphash
from querycloak.keys import derive
from querycloak.log import MISSING, Batch, IntArray
from querycloak.methods.microaggregation import mdav, representatives, tree_distance
from querycloak.methods.microaggregation.audit import audits
from querycloak.methods.shared.labels import LabelMethod, coarse_time_setting, labels_setting, unit_of
from querycloak.methods.shared.records import RecordProtector, require_users, users_setting
from querycloak.protector import USER_AND_QUERY, Traits
from querycloak.settings import setting

REPLACED: Final = "replaced by the history of the person's group"
_REWRITES: Final = frozenset({"user", "query", "time", "rank", "url", "category"})
_USERS: Final = 1  # the purpose of the draws that break ties between users
_PICK: Final = 8  # the purpose of draws that pick records; smaller numbers are those of columns


@dataclass(frozen=True, kw_only=True)
class GroupSettings(declared.Settings):
    """First settings of every microaggregation; a method lists its bases from last settings to first."""

    k: int = users_setting(5, help="people who share a history, at least")
    diversity: int = setting(
        1,
        at_least=1,
        at_most=16,
        stronger="larger",
        help="topics that each history must have: groups are joined until it has",
    )
    closeness: float = setting(
        1.0,
        at_least=0,
        at_most=1,
        stronger="smaller",
        help="how far a history's topics may be from those of all histories together; 1: as far as can be",
    )


@dataclass(frozen=True, kw_only=True)
class ReleaseSettings(declared.Settings):
    """Settings of every microaggregation about the released columns."""

    time: str = coarse_time_setting()
    labels: str = labels_setting()


class Microaggregation(LabelMethod, RecordProtector):
    """Driver of all microaggregations: holds the log, groups users at its end, releases their histories."""

    #: Columns that histories are made of.
    reads: ClassVar[frozenset[str]] = frozenset({"user", "query", "time"})
    unit: ClassVar[Literal["search", "row"]] = "search"
    #: Whether released categories are those of the taxonomy instead of the log's.
    sets_categories: ClassVar[bool] = False
    exempt: ClassVar[dict[str, str]] = {
        "memory_stays_bounded": "who is like whom is known only when the log has ended"
    }

    def _prepare(self, held: Batch) -> tuple[Batch, dict[str, IntArray]]:
        """Return the records that can be compared, and the rows of the others by drop reason."""
        known = (held.query >= 0) & (held.user >= 0)
        return held[known], {"no user or no query": held.row[~known]}

    @abstractmethod
    def _groups(self, held: Batch, users: int) -> IntArray:
        """Return the group of each user, numbered from 0; a group has at least k users.

        Users are numbers from 0. Of equally good users the one with the lowest number is preferred.
        """

    @abstractmethod
    def _representative(self, records: Batch, members: IntArray) -> Batch:
        """Return the records that represent all members of a group, made from the members' records."""

    @classmethod
    def columns(cls, settings: Any) -> frozenset[str]:
        """Return the columns that histories are made of."""
        needed = representatives.is_required(settings) and not cls.sets_categories
        return cls.reads | {"category"} if needed else cls.reads

    @classmethod
    def traits(cls, settings: Any) -> Traits:
        """Return the properties of the method with these settings."""
        columns = cls.columns(settings)
        filled = columns | {"category"} if cls.sets_categories else columns
        return Traits(
            reads=columns,
            # without categories in the log no audit could see the topics
            requires=USER_AND_QUERY | ({"category"} if representatives.is_required(settings) else set()),
            rewrites=_REWRITES,
            empties=(_REWRITES - filled) | frozenset({"time"} if settings.time == "drop" else ()),
            time_unit=unit_of(settings.time),
            needs_whole_log=True,
            unit=cls.unit,
            creates_rows=True,
            fresh_labels=settings.labels == "fresh",
            needs_authors=True,
            main_setting="k",
        )

    @classmethod
    def promise(cls, settings: Any) -> Guarantee:
        """Return the guarantee of the method with these settings."""
        k, topics, apart = settings.k, settings.diversity, settings.closeness
        labels, users, *others = audits(k, topics, apart)
        more = [f"a history has at least {topics} topics"] if topics > 1 else []
        more += (
            [f"the topics of a history are within {apart:g} of those of all histories"] if apart < 1 else []
        )
        return Guarantee.of(
            Sentence(
                f"each released history, in all columns, is shared by at least {k} users", (labels, users)
            ),
            *(Sentence(text, (audit,)) for text, audit in zip(more, others, strict=True)),
            limits=(
                "query text: a query can name its author",
                f"what all {k} users of a group have in common, and that a user is in the log",
                f"{k} accounts that one attacker opened to be in the group of a user",
                "several releases of overlapping logs: groups differ, and histories can be compared",
            ),
        )

    def check_user_count(self, people: int) -> None:
        """Raise ParameterError if the log has fewer than k users."""
        require_users(self.name, self.settings.k, people)

    def push(self, batch: Batch) -> Batch:
        """Hold all records until the log has ended."""
        self._held.add(batch)
        return Batch.empty(self.texts)

    def close(self) -> Batch:
        """Group users, and release the history of its group for each of them."""
        held = self._held.take()
        if len(held):
            held, unusable = self._prepare(held)
            for reason, rows in unusable.items():
                self.drop(rows, reason)
        held, users = self._number_users(held)
        if users.size < self.settings.k:
            self.drop(held.row, "too few people have anything to go by")
            return Batch.empty(self.texts)
        group = self._groups(held, users.size)
        self.drop(held.row, REPLACED)
        return self._release(users, *self._represent_groups(held, group))

    def _number_users(self, held: Batch) -> tuple[Batch, IntArray]:
        """Return the records with users numbered from 0, and the code of each number.

        A keyed hash gives the order, so that neither pieces nor the order of the file decide a tie.
        """
        codes, place = np.unique(held.user, return_inverse=True)
        prints = self.texts.user.fingerprints(codes, derive(self.key, "people"))
        order = np.argsort(siphash.draw(derive(self.key, "ties"), _USERS, prints.view(np.int64)))
        return held.replace(user=np.argsort(order)[place]), codes[order]

    def _represent_groups(self, held: Batch, group: IntArray) -> tuple[list[IntArray], list[Batch]]:
        """Return the members of each group and their records; groups that lack diversity are merged."""
        groups, own = mdav.split(group), mdav.split(group[held.user])

        def represent(members: IntArray, rows: IntArray) -> Batch:
            return self._representative(held[rows], members)

        def topics(one: Batch) -> IntArray:
            return self.texts.category.at_level(one.category, 1)

        made = [represent(members, rows) for members, rows in zip(groups, own, strict=True)]
        if not representatives.is_required(self.settings):
            return groups, made
        return representatives.merge_until_diverse(groups, own, made, represent, topics, self.settings)

    def _release(self, users: IntArray, groups: list[IntArray], made: list[Batch]) -> Batch:
        """Return the records of each group once per member, numbered from -1 down."""
        parts = list(zip(made, groups, strict=True))
        size = np.concatenate([np.full(members.size, len(one)) for one, members in parts])  # by member
        columns = {
            name: np.concatenate([np.tile(getattr(one, name), members.size) for one, members in parts])
            for name in sorted(_REWRITES - {"user"})
        }
        columns["user"] = self._labels.of(np.repeat(users[np.concatenate(groups)], size))
        columns["row"] = -1 - np.arange(int(size.sum()))
        columns["seq"] = np.zeros(int(size.sum()), np.int64)  # all are released at the end of the log
        return self._timed(Batch.of(columns, self.texts))

    def _shown(self, query: IntArray, **columns: IntArray) -> Batch:
        """Return records of a history with these columns; the others are empty."""
        return Batch.of({"row": np.arange(query.size), "query": query} | columns, self.texts)

    def _mdav(self, parent: npt.NDArray[np.integer], user: IntArray, node: IntArray, users: int) -> IntArray:
        """Return the groups of MDAV by the distances of users in a tree; each node is one user's."""
        order = np.argsort(user, kind="stable")
        start = np.searchsorted(user[order], np.arange(users + 1))
        profiles = tree_distance.people(parent, start, node[order], np.ones(node.size, np.int64))
        return mdav.group(profiles, self.settings.k, np.arange(users, dtype=np.uint64), most=mdav.EXACT)

    def draws(self, records: Batch, purpose: int = _PICK) -> representatives.Draws:
        """Return a number for each record, drawn from its content: the order of a file decides nothing."""
        key, content = derive(self.key, "picks"), np.zeros(len(records), np.uint64)
        for name in sorted(self.columns(self.settings) - {"user", "time", "rank"}):
            codes = getattr(records, name)
            known = np.flatnonzero(codes >= 0)
            content[known] ^= getattr(self.texts, name).fingerprints(codes[known], derive(self.key, name))
        for place, name in enumerate(("user", "time", "rank")):
            content ^= siphash.draw(key, place, getattr(records, name))
        return siphash.draw(key, purpose, content.view(np.int64))

    def _picks(self, records: Batch, members: IntArray) -> IntArray:
        """Return the places of each member's share of records, by the frequencies of queries."""
        own = np.searchsorted(members, records.user)
        chosen = representatives.proportional_picks(own, records.query, self.draws(records))
        return self._diversify(chosen, records)

    def _diversify(self, chosen: IntArray, records: Batch) -> IntArray:
        """Return picks that have the required number of topics; the least draws are preferred."""
        least = self.settings.diversity
        if least == 1:
            return chosen
        top = self.texts.category.at_level(records.category, 1)
        topic, known = np.full(top.size, MISSING, np.int64), top >= 0
        prints = self.texts.category.fingerprints(top[known], derive(self.key, "topics"))
        topic[known] = np.unique(prints, return_inverse=True)[1]  # numbers that no order of arrival decides
        return representatives.diversify_picks(chosen, topic, self.draws(records).astype(np.float64), least)
