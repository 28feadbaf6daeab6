"""`microagg-plain` and `microagg-syntactic`: users are grouped by the texts of their searches (003, 5.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from querycloak import settings as declared
from querycloak.log import MISSING, NO_TIME, Batch, IntArray
from querycloak.methods.microaggregation import GroupSettings, Microaggregation, ReleaseSettings, mdav
from querycloak.methods.microaggregation.representatives import common_right_part, means
from querycloak.methods.microaggregation.text_distance import WEIGHTS, distances, starts_of, summary_vectors
from querycloak.methods.microaggregation.tree_distance import UNIT
from querycloak.settings import setting
from querycloak.text.urls import labels_of


class MicroaggPlain(Microaggregation):
    """Group people by the queries that they have in common, as plain texts, and show one history a group.

    The baseline of the semantic method: two queries are the same or they are not. The history of a group
    has queries of each user in proportion to the user's number of queries, and to their frequencies.

    Guarantee: each released history, in all columns, is shared by at least `k` users.

    Limits: what a query itself says: its text may name who asked it; what all k people of a group have in
    common, and that a person is in the log; k accounts that one attacker opened to be in one group with
    somebody; several releases of overlapping logs.

    Reference: A. Erola, "Contributions to privacy in web search engines", section 5.5.2.2.
    """

    name = "microagg-plain"

    @dataclass(frozen=True, kw_only=True)
    class Settings(ReleaseSettings, GroupSettings):
        """Settings of `microagg-plain`."""

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Return the settings that the conformance suite tries."""
        return [cls.Settings(k=2), cls.Settings(k=3, time="drop", labels="fresh")]

    def _groups(self, held: Batch, users: int) -> IntArray:
        distinct, node = np.unique(held.query, return_inverse=True)
        flat = np.concatenate([[-1], np.zeros(distinct.size, np.int64)])  # every query is a child of the root
        return self._mdav(flat, held.user, node + 1, users)

    def _representative(self, records: Batch, members: IntArray) -> Batch:
        chosen = records[self._picks(records, members)]
        return self._shown(chosen.query, time=chosen.time, category=chosen.category)


class MicroaggSyntactic(Microaggregation):
    """Group people whose searches look alike, and show one history a group: queries, mean times and ranks.

    Users are compared search by search: time, rank, domain name, and the words by edit distance. The history
    of a group has queries of each user in proportion to the user's number of queries, and to their
    frequencies. Each query has the mean time and rank of the group's searches for it, and the common right
    part of their domain names.

    Guarantee: each released history, in all columns, is shared by at least `k` users.

    Limits: what a query itself says: its text may name who asked it; what all k people of a group have in
    common, and that a person is in the log; k accounts that one attacker opened to be in one group with
    somebody; several releases of overlapping logs.

    Reference: A. Erola, "Contributions to privacy in web search engines", section 5.3.
    """

    name = "microagg-syntactic"
    reads = frozenset({"user", "query", "time", "rank", "url"})
    unit = "row"  # clicks have ranks and domain names of their own
    #: Up to this many users, all distances are computed; more users are first cut into blocks.
    exact: ClassVar[int] = 2_000
    #: Users of a block at most.
    block: ClassVar[int] = 500

    @dataclass(frozen=True, kw_only=True)
    class Settings(ReleaseSettings, GroupSettings):
        """Settings of `microagg-syntactic`."""

        weights: str = setting(
            "text",
            choices=tuple(WEIGHTS),
            help="what counts double in a query: its words (`text`), or how many (`printed`, eq. 5.1)",
        )

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Return the settings that the conformance suite tries."""
        return [cls.Settings(k=2), cls.Settings(k=3, weights="printed", time="drop", labels="fresh")]

    def _groups(self, held: Batch, users: int) -> IntArray:
        """Return the groups of MDAV, block by block."""
        held = held[np.argsort(held.user, kind="stable")]
        if users <= self.exact:
            return self._group(held)
        starts, label, made = starts_of(held.user), np.empty(users, np.int64), 0
        for block in mdav.blocks(summary_vectors(held), np.arange(users), self.settings.k, self.block):
            rows = np.concatenate([np.arange(starts[p], starts[p + 1]) for p in block.tolist()])
            own = self._group(held[rows])
            label[block] = own + made
            made += int(own.max()) + 1
        return label

    def _group(self, held: Batch) -> IntArray:
        """Return the groups of the users of some records, by all of their distances."""
        apart = np.rint(distances(held, self.settings.weights) * UNIT).astype(np.int32)
        return mdav.by_matrix(apart, self.settings.k, np.arange(apart.shape[0], dtype=np.uint64))

    def _representative(self, records: Batch, members: IntArray) -> Batch:
        """Return each user's share of queries, with the mean time and rank, and the common domain name."""
        chosen = self._picks(records, members)
        time = means(records.query, records.time, records.time != NO_TIME, NO_TIME)
        rank = means(records.query, records.rank, records.rank >= 0, MISSING)
        return self._shown(
            records.query[chosen],
            time=time[chosen],
            rank=rank[chosen],
            url=self._common_url(records.query, records.url)[chosen],
            category=records.category[chosen],
        )

    def _common_url(self, query: IntArray, url: IntArray) -> IntArray:
        """Return for each record the common right part of the domain names clicked for its query."""
        ends: dict[int, tuple[str, ...]] = {}
        clicks = np.unique(np.column_stack((query, url))[url >= 0], axis=0)
        texts = self.texts.url.decode(clicks[:, 1]).to_list()
        for q, text in zip(clicks[:, 0].tolist(), texts, strict=True):
            labels = labels_of(text)
            ends[q] = common_right_part([ends[q], labels]) if q in ends else labels
        names = {q: ".".join(reversed(labels)) for q, labels in ends.items() if labels}
        code = dict(zip(names, self.texts.url.intern(list(names.values())).tolist(), strict=True))
        return np.array([code.get(q, MISSING) for q in query.tolist()], np.int64)
