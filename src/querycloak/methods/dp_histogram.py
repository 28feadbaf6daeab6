"""`dp-histogram`: noisy counts of every concept that could have been searched for (paper 002, HBDP)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from querycloak import settings as declared
from querycloak.accounting import rounded_up
from querycloak.dictionary import Texts
from querycloak.errors import ParameterError
from querycloak.guarantees import Guarantee
from querycloak.guarantees.counts import bin_counts
from querycloak.kernels import noise
from querycloak.kernels.spending import admit
from querycloak.log import Batch, IntArray
from querycloak.methods.budget import Spending
from querycloak.methods.labels import Labels, labels_setting
from querycloak.methods.meaning_settings import (
    budget_setting,
    epsilon_setting,
    mapper_setting,
    root_setting,
    taxonomy_setting,
    topics_setting,
)
from querycloak.methods.replacing import Reader
from querycloak.protector import Protector, State
from querycloak.settings import setting
from querycloak.topics.concepts.field import Field

#: A table with more lines would be a log of noise.
LARGEST_TABLE = 20_000_000
UNMAPPED = "no phrase of it is known"
BEYOND = "beyond the person's share"
COUNTED = "counted, not shown"


class DpHistogram(Protector):
    """Count how often each concept of a taxonomy was searched for, and add noise to every count.

    All concepts are counted, whether anybody searched for them or not: that a line is there tells nothing.
    One table for the whole log, or (as the paper does) one for each person.

    Promise: whatever a person searched for, replacing it all by other searches changes the probability of
    any table by at most a factor e^`epsilon`.

    Does not protect against:
        - that somebody is in the log at all, with `by=history`
        - conclusions from what all people have in common
        - several accounts of one person, which each have their own share

    Reference: the baseline HBDP of "A Semantic-Preserving Differentially Private Method for Releasing Query
    Logs", section 4, with the sensitivity that replacing a history has: 2 · `max_queries`.
    """

    name = "dp-histogram"
    wants_people = True
    needs = frozenset({"user", "query"})
    reads = frozenset({"user", "query", "time"})
    wants_order = True
    rewords = True
    keeps_book = True
    book_name = "budget"
    own_noise = True
    wants_alone = True
    extra = "dp"
    table = True
    streams = False
    exempt: ClassVar[dict[str, str]] = {}

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `dp-histogram`."""

        epsilon: float = epsilon_setting(1.0)
        max_queries: int = setting(
            100, kind=int, at_least=1, at_most=100_000, help="phrases of a person that count, the first ones"
        )
        by: str = setting(
            "log",
            kind=str,
            choices=("log", "history"),
            help="one table for the whole `log`, or (as in the paper) one for each person's `history`",
        )
        bins: str = setting(
            "concepts",
            kind=str,
            choices=("concepts", "topics"),
            help="count each of the `concepts`, or only `topics`",
        )
        topics: str = topics_setting()
        only_topics: bool = setting(
            False, kind=bool, help="leave out concepts and searches that belong to no topic"
        )
        root: str = root_setting()
        taxonomy: str = taxonomy_setting()
        mapper: str = mapper_setting()
        at_least: int = setting(
            0, kind=int, at_least=0, help="leave out noisy counts below this; 0: show every line"
        )
        budget: float = budget_setting()
        labels: str = labels_setting()  # type: ignore[assignment]

        def as_dict(self) -> dict[str, Any]:
            """Name files without their folders: a certificate travels."""
            return super().as_dict() | {"taxonomy": Path(self.taxonomy).name}

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Texts) -> None:
        super().__init__(settings, key, texts)
        self._labels = Labels(settings.labels, key, texts)
        self._field = Field(settings)
        self._reader = Reader(self._field, texts)
        self._spending = Spending(settings.budget, texts.user)
        self._used = np.zeros(0, np.int64)  # by user code: phrases that count so far
        self._met = np.zeros(0, np.bool_)
        self._cells = np.zeros((3, 0), np.int64)  # a user, a concept, and how often
        self._result: pl.DataFrame | None = None

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Name the settings that the conformance suite tries."""
        return [
            cls.Settings(bins="topics", max_queries=2),
            cls.Settings(bins="topics", by="history", topics="paper-4", labels="fresh"),
            cls.Settings(epsilon=5.0, topics="paper-4", only_topics=True, at_least=5),
        ]

    @property
    def scale(self) -> float:
        """The scale of the noise: what replacing a history can change, over epsilon, rounded up."""
        return rounded_up(Fraction(2 * self.settings.max_queries) / Fraction(self.settings.epsilon))

    def promise(self) -> Guarantee:
        """Say what is proven, and what of it an independent audit can test."""
        s = self.settings
        limits = ["conclusions from what all people have in common", "several accounts of one person"]
        if s.by == "history":
            limits.insert(0, "that somebody is in the log at all")
        kinds = ({"user"} if s.by == "history" else set()) | {"category", "count"}
        if s.bins == "concepts":
            kinds.add("query")
        return Guarantee(
            words=f"{s.epsilon:g}-differential privacy of a history's first {s.max_queries} phrases, "
            "whatever they are replaced by",
            does_not_protect_against=tuple(limits),
            audits=bin_counts(frozenset(kinds), self._names, s.at_least),
            facts={
                "epsilon": s.epsilon,
                "unit": "history",
                "neighbours": "one history exchanged",
                "sensitivity": 2 * s.max_queries,
                "scale_of_noise": self.scale,
            },
        )

    def _names(self) -> set[str]:
        """Give the names of all bins."""
        bins = self._bins()
        return set(bins["query" if "query" in bins.columns else "category"])

    def prepare(self) -> None:
        """Say that OpenDP is missing before a long log is read."""
        noise.require()

    def partition_key(self, batch: Batch) -> IntArray | None:
        """Let people be counted apart only where each has a table of her own."""
        return self.key_of_text(self.texts.user, batch.user) if self.settings.by == "history" else None

    def push(self, batch: Batch) -> Batch:
        """Count the first phrases of each person; nothing leaves before the end."""
        self._reader.learn(batch.query)
        self._grow(batch.user)
        self._met[batch.user[batch.user >= 0]] = True
        sizes = np.where(batch.user >= 0, self._reader.sizes(batch.query), 0)
        self.drop(batch.row[sizes == 0], UNMAPPED)
        batch, sizes = batch[sizes > 0], sizes[sizes > 0]
        most = np.full(self._used.size, self.settings.max_queries)
        taken = admit(batch.user, sizes, self._used, most)
        self.drop(batch.row[~taken], BEYOND)
        self.drop(batch.row[taken], COUNTED)
        slots = self._reader.slots(batch.query[taken])
        self._add(batch.user[taken][slots.record], slots.concept)
        return Batch.empty(self.texts)

    def _add(self, who: IntArray, concept: IntArray) -> None:
        """Add one to the count of each pair."""
        width = self._field.concepts.size
        old_who, old_concept, old = self._cells
        cell = np.concatenate([old_who * width + old_concept, who * width + concept])
        cells, place = np.unique(cell, return_inverse=True)
        count = np.bincount(place, np.concatenate([old, np.ones(who.size)]), minlength=cells.size)
        self._cells = np.stack([cells // width, cells % width, count.astype(np.int64)])

    def _grow(self, users: IntArray) -> None:
        more = int(users.max(initial=-1)) + 1 - self._used.size
        if more > 0:
            self._used = np.concatenate([self._used, np.zeros(more, np.int64)])
            self._met = np.concatenate([self._met, np.zeros(more, np.bool_)])

    def close(self) -> Batch:
        """Draw the noise, once."""
        people = np.flatnonzero(self._met)
        amount = np.full(people.size, self.settings.epsilon)
        if not self._spending.fits(people, amount).all():
            self._spending.refuse(people, "lower `epsilon`")
        bins = self._bins()
        if not bins.height:
            raise ParameterError(
                "DpHistogram: no concept is left to be counted",
                hint="check `root`, `topics` and `only_topics`",
            )
        owners = people if self.settings.by == "history" else np.zeros(1, np.int64)
        self._check_size(bins.height * owners.size)
        exact = self._table(owners, bins)
        noisy = noise.add_laplace(exact.ravel(), self.scale).reshape(exact.shape)
        self._result = self._shown(np.maximum(noisy, 0), owners, bins)
        self._cells = np.zeros((3, 0), np.int64)
        return Batch.empty(self.texts)

    def _check_size(self, lines: int) -> None:
        if lines > LARGEST_TABLE:
            raise ParameterError(
                f"DpHistogram: the table would have more than {LARGEST_TABLE:,} lines",
                hint="narrow it with `bins=topics`, `topics` and `only_topics`, or `root`; or use `by=log`",
            )

    def _bins(self) -> pl.DataFrame:
        """List what is counted: `query` and `category`, and the concepts' numbers or the topics'."""
        field, topics = self._field, self._field.topics
        members = np.sort(field.space.candidates.members.astype(np.int64))
        if self.settings.only_topics and topics.has_other:
            members = members[topics.of[members] != len(topics.names) - 1]
        if self.settings.bins == "topics":
            present = np.unique(topics.of[members])
            return pl.DataFrame({"category": [topics.names[t] for t in present], "number": present})
        spoken = [field.concepts.spoken[c] for c in members.tolist()]
        category = [field.concepts.category[c] for c in members.tolist()]
        return pl.DataFrame({"query": spoken, "category": category, "number": members})

    def _table(self, owners: IntArray, bins: pl.DataFrame) -> IntArray:
        """Count by owner and bin; what belongs to no bin is left out."""
        number = bins["number"].to_numpy().astype(np.int64)
        who, concept, count = self._cells
        wanted = self._field.topics.of[concept] if self.settings.bins == "topics" else concept
        place = np.minimum(np.searchsorted(number, wanted), number.size - 1)
        known = number[place] == wanted
        owner = np.searchsorted(owners, who[known]) if self.settings.by == "history" else 0
        cell = owner * number.size + place[known]
        table = np.bincount(cell, count[known], minlength=owners.size * number.size)
        return table.astype(np.int64).reshape(owners.size, number.size)

    def _shown(self, noisy: IntArray, owners: IntArray, bins: pl.DataFrame) -> pl.DataFrame:
        place = np.tile(np.arange(bins.height), owners.size)
        lines = bins.drop("number")[place].with_columns(count=pl.Series(noisy.ravel()))
        if self.settings.by == "history":
            names = self.texts.user.decode(np.repeat(self._labels.of(owners), bins.height))
            lines = lines.with_columns(names.alias("user"))
        return lines.filter(pl.col("count") >= self.settings.at_least)

    def counts(self) -> pl.DataFrame:
        """Give the table that `close` drew."""
        if self._result is None:
            raise RuntimeError("the counts are there once the input has ended")
        return self._result

    def facts(self, tally: State | None = None) -> dict[str, Any]:
        """State what is spent; nothing here is computed from anybody's searches."""
        return {
            "bins": self._bins().height,
            "spent_by_anyone_at_most": self._spending.after(self.settings.epsilon),
            "budget": self.settings.budget or None,
        }

    def book(self) -> pl.DataFrame:
        """Give what everyone has spent by now."""
        people = np.flatnonzero(self._met)
        return self._spending.book(people, np.full(people.size, self.settings.epsilon), self.settings.epsilon)

    @classmethod
    def merge_books(cls, books: list[pl.DataFrame]) -> pl.DataFrame:
        """Put together what workers' people have spent."""
        return Spending.merged(books)

    def miss_book(self) -> None:
        """Carry on knowing that earlier releases left a book which is not here."""
        self._spending.miss()

    def open_book(self, book: pl.DataFrame) -> IntArray:
        """Carry on with what earlier releases spent."""
        self._spending.open(book)
        return np.empty(0, np.int64)

    def erase(self, users: IntArray, rows: IntArray) -> None:
        """Count as if they had never been here."""
        self._grow(users)
        self._used[users] = 0
        self._met[users] = False
        self._cells = self._cells[:, ~np.isin(self._cells[0], users)]
        self._spending.forget(users)

    def snapshot(self) -> State:
        """Give the exact counts so far."""
        counted = {"used": self._used, "met": self._met, "cells": self._cells}
        return counted | self._snapshot_dropped()

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        self._used, self._met = state["used"].copy(), state["met"].copy()
        self._cells = state["cells"].copy()
        self._restore_dropped(state)
