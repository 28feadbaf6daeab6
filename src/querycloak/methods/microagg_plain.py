"""`microagg-plain`: groups of k people who asked the same queries share one history (003, 5.5.2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from querycloak import settings as declared
from querycloak.dictionary import Texts
from querycloak.kernels import candidates, semantic_distance
from querycloak.keys import derive
from querycloak.log import Batch, IntArray
from querycloak.methods.aggregation import quotas
from querycloak.methods.labels import labels_setting
from querycloak.methods.microaggregation import EXACT, Microaggregation, Representative
from querycloak.settings import setting


class MicroaggPlain(Microaggregation):
    """Group people by the queries that they have in common, as plain texts, and show one history a group.

    The baseline of the semantic method: two queries are the same or they are not. The history of a group
    has as many queries from each person as she asked, those she asked most.

    Promise: each released history, with all of its columns, is that of at least `k` people.

    Does not protect against:
        - what a query itself says: its text may name who asked it
        - what all k people of a group have in common, and that a person is in the log
        - k accounts that one attacker opened to be in one group with somebody
        - several releases of overlapping logs

    Reference: A. Erola, "Contributions to privacy in web search engines", section 5.5.2.2.
    """

    name = "microagg-plain"
    reads = frozenset({"user", "query", "time"})

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `microagg-plain`."""

        k: int = setting(5, kind=int, at_least=2, help="people who share a history, at least")
        time: str = setting(
            "coarsen", kind=str, choices=("coarsen", "drop"), help="`coarsen` to the hour, or `drop`, times"
        )
        labels: str = labels_setting()  # type: ignore[assignment]

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Texts) -> None:
        super().__init__(settings, key, texts)
        emptied = {"url", "rank", "category"}
        self.empties = frozenset(emptied | ({"time"} if settings.time == "drop" else set()))

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Name the settings that the conformance suite tries."""
        return [cls.Settings(k=2), cls.Settings(k=3, time="drop", labels="fresh")]

    def _usable(self, held: Batch) -> Batch:
        known = (held.query >= 0) & (held.user >= 0)
        self.drop(held.row[~known], "no user or no query")
        return held[known]

    def _groups(self, held: Batch, people: IntArray) -> IntArray:
        distinct, node = np.unique(held.query, return_inverse=True)
        owner = np.searchsorted(people, held.user)
        order = np.argsort(owner, kind="stable")
        start = np.searchsorted(owner[order], np.arange(people.size + 1))
        flat = np.concatenate([[-1], np.zeros(distinct.size, np.int64)])  # every query hangs on the root
        once = np.ones(node.size, np.int64)
        profile = semantic_distance.people(flat, start, node[order] + 1, once)
        return candidates.group(profile, self.settings.k, self._ranks(people), most=EXACT)

    def _represented(self, theirs: Batch, members: IntArray) -> Representative:
        """Take each person's share of queries, those that she asked most."""
        owner = np.searchsorted(members, theirs.user)
        quota = quotas(np.bincount(owner, minlength=members.size) / members.size)
        prints = self.texts.query.fingerprints(theirs.query, derive(self.key, "ties of queries"))
        parts = [np.flatnonzero(owner == m) for m in range(members.size)]
        picked = [
            own[_proportional(theirs.query[own], prints[own], most)]
            for own, most in zip(parts, quota.tolist(), strict=True)
        ]
        chosen = np.concatenate(picked)
        return Representative.of(theirs.query[chosen], time=theirs.time[chosen])


def _proportional(query: IntArray, prints: Any, most: int) -> IntArray:
    """Choose so many records that each query keeps its share; a query's own first records are taken."""
    _, number, count = np.unique(prints, return_inverse=True, return_counts=True)
    share = quotas(count * (most / max(query.size, 1)))
    order = np.argsort(number, kind="stable")
    turn = np.empty(query.size, np.int64)
    turn[order] = np.arange(query.size) - np.searchsorted(number[order], number[order])
    return np.flatnonzero(turn < share[number])
