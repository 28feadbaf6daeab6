"""`microagg-plain`: groups of k people who asked the same queries share one history (003, 5.5.2.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from querycloak import settings as declared
from querycloak.kernels import candidates, semantic_distance
from querycloak.log import Batch, IntArray
from querycloak.methods.microagg_texts import MicroaggTexts
from querycloak.methods.microaggregation import EXACT, Representative


class MicroaggPlain(MicroaggTexts):
    """Group people by the queries that they have in common, as plain texts, and show one history a group.

    The baseline of the semantic method: two queries are the same or they are not. The history of a group
    has queries of each person in proportion to how many she asked, and how often.

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
    class Settings(MicroaggTexts.Settings):
        """Settings of `microagg-plain`."""

    settings: Settings

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Name the settings that the conformance suite tries."""
        return [cls.Settings(k=2), cls.Settings(k=3, time="drop", labels="fresh")]

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
        chosen = theirs[self._chosen(theirs, members)]
        return Representative.of(chosen.query, time=chosen.time, category=chosen.category)
