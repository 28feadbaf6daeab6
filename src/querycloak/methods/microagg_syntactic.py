"""`microagg-syntactic`: groups of k people whose searches look alike share an averaged history (003, 5.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from querycloak import settings as declared
from querycloak.kernels import candidates, mdav
from querycloak.kernels.history_distance import WEIGHTS
from querycloak.kernels.semantic_distance import UNIT
from querycloak.log import NO_TIME, NOTHING, Batch, IntArray
from querycloak.methods.appearance import distances, outlines, starts_of
from querycloak.methods.microagg_texts import MicroaggTexts
from querycloak.methods.microaggregation import Representative
from querycloak.methods.sharing import common_right_part, labels_of, means
from querycloak.settings import setting


class MicroaggSyntactic(MicroaggTexts):
    """Group people whose searches look alike, and show one history a group: queries, mean times and ranks.

    People are compared search by search: time, rank, domain name, and the words by edit distance. The
    history of a group has queries of each person in proportion to how many she asked, and how often; each
    with the mean time and rank of the group's searches for it, and what their domain names end in alike.

    Promise: each released history, with all of its columns, is that of at least `k` people.

    Does not protect against:
        - what a query itself says: its text may name who asked it
        - what all k people of a group have in common, and that a person is in the log
        - k accounts that one attacker opened to be in one group with somebody
        - several releases of overlapping logs

    Reference: A. Erola, "Contributions to privacy in web search engines", section 5.3.
    """

    name = "microagg-syntactic"
    reads = frozenset({"user", "query", "time", "rank", "url"})
    per_row = True  # clicks have ranks and domain names of their own
    #: Up to so many people, all distances are worked out; above, people are first divided into blocks.
    exact: ClassVar[int] = 2_000
    #: People of a block at most.
    block: ClassVar[int] = 500

    @dataclass(frozen=True, kw_only=True)
    class Settings(MicroaggTexts.Settings):
        """Settings of `microagg-syntactic`."""

        weights: str = setting(
            "text",
            kind=str,
            choices=tuple(WEIGHTS),
            help="what counts double in a query: its words (`text`), or how many (`printed`, eq. 5.1)",
        )

    settings: Settings

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Name the settings that the conformance suite tries."""
        return [cls.Settings(k=2), cls.Settings(k=3, weights="printed", time="drop", labels="fresh")]

    def _groups(self, held: Batch, people: IntArray) -> IntArray:
        held = held[np.argsort(held.user, kind="stable")]
        if people.size <= self.exact:
            return self._group(held)
        starts, label, made = starts_of(held.user), np.empty(people.size, np.int64), 0
        for block in candidates.blocks(outlines(held), people, self.settings.k, self.block):
            rows = np.concatenate([np.arange(starts[p], starts[p + 1]) for p in block.tolist()])
            own = self._group(held[rows])
            label[block] = own + made
            made += int(own.max()) + 1
        return label

    def _group(self, held: Batch) -> IntArray:
        """Group the people of some records by all of their distances."""
        apart = np.rint(distances(held, self.settings.weights) * UNIT).astype(np.int32)
        return mdav.by_matrix(apart, self.settings.k, np.arange(apart.shape[0]).astype(np.uint64))

    def _represented(self, theirs: Batch, members: IntArray) -> Representative:
        chosen = self._chosen(theirs, members)
        time = means(theirs.query, theirs.time, theirs.time != NO_TIME, NO_TIME)
        rank = means(theirs.query, theirs.rank, theirs.rank >= 0, NOTHING)
        return Representative.of(
            theirs.query[chosen],
            time=time[chosen],
            rank=rank[chosen],
            url=self._common_url(theirs.query, theirs.url)[chosen],
            category=theirs.category[chosen],
        )

    def _common_url(self, query: IntArray, url: IntArray) -> IntArray:
        """Cut the domain names of a query's clicks to what all of them end in."""
        ends: dict[int, tuple[str, ...]] = {}
        clicks = np.unique(np.column_stack((query, url))[url >= 0], axis=0)
        texts = self.texts.url.decode(clicks[:, 1]).to_list()
        for q, text in zip(clicks[:, 0].tolist(), texts, strict=True):
            labels = labels_of(text)
            ends[q] = common_right_part([ends[q], labels]) if q in ends else labels
        shown = {q: ".".join(reversed(labels)) for q, labels in ends.items() if labels}
        code = dict(zip(shown, self.texts.url.intern(list(shown.values())).tolist(), strict=True))
        return np.array([code.get(q, NOTHING) for q in query.tolist()], np.int64)
