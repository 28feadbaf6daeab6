"""`dp-histogram`: noisy counts of every concept that could have been searched for (paper 002, HBDP)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from querycloak import settings as declared
from querycloak.accounting import rounded_up
from querycloak.dictionary import Dictionaries
from querycloak.errors import ParameterError
from querycloak.guarantee import Guarantee
from querycloak.kernels.arrays import grown
from querycloak.log import Batch, IntArray
from querycloak.methods import dp_counts
from querycloak.methods.dp_counts.audit import bin_counts
from querycloak.methods.shared import readings
from querycloak.methods.shared.budget import STORED, budget_of, budget_setting, epsilon_setting
from querycloak.methods.shared.labels import Pseudonyms, labels_setting
from querycloak.protector import State, Traits
from querycloak.settings import setting
from querycloak.text.concept_space import ConceptModel, ConceptSpec

#: Larger tables consist of little but noise.
LARGEST_TABLE = 20_000_000
UNMAPPED = "no phrase of it is known"


class DpHistogram(dp_counts.CountsProtector):
    """Count how often each concept of a taxonomy was searched for, and add noise to every count.

    All concepts are counted, whether anybody searched for them or not: that a line is there tells nothing.
    One table for the whole log, or (as the paper does) one for each person.

    Guarantee: `epsilon`-differential privacy of the first `max_queries` phrases of a history: replacing a
    whole history changes the probability of any table by at most a factor e^`epsilon`.

    Limits: that somebody is in the log at all, with `by=history`; conclusions from what all people have in
    common; several accounts of one person, which each have their own share.

    Reference: the baseline HBDP of "A Semantic-Preserving Differentially Private Method for Releasing Query
    Logs", section 4, with the sensitivity that replacing a history has: 2 · `max_queries`.
    """

    name = "dp-histogram"
    _way_out = "lower `epsilon`"

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `dp-histogram`."""

        epsilon: float = epsilon_setting(1.0)
        max_queries: int = setting(
            100, at_least=1, at_most=100_000, help="phrases of a person that count, the first ones"
        )
        by: str = setting(
            "log",
            choices=("log", "history"),
            stronger=("history", "log"),
            help="one table for the whole `log`, or (as in the paper) one for each person's `history`",
        )
        bins: str = setting(
            "concepts", choices=("concepts", "topics"), help="count each of the `concepts`, or only `topics`"
        )
        topics: str = readings.topics_setting()
        only_topics: bool = setting(False, help="leave out concepts and searches that belong to no topic")
        root: str = readings.root_setting()
        taxonomy: str = readings.taxonomy_setting()
        mapper: str = readings.mapper_setting()
        at_least: int = setting(0, at_least=0, help="leave out noisy counts below this; 0: show every line")
        budget: float = budget_setting()
        labels: str = labels_setting()

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Dictionaries) -> None:
        super().__init__(settings, key, texts, limit=settings.max_queries, cost=settings.epsilon, delta=0.0)
        self._labels = Pseudonyms(settings.labels, key, texts)
        self._model = _model(settings)
        self._readings = readings.CodedReadings(self._model.reader, texts.query, self._model.is_candidate)
        self._met = np.zeros(0, np.bool_)  # by user code

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Return the settings that the conformance suite tries."""
        return [
            cls.Settings(bins="topics", max_queries=2),
            cls.Settings(bins="topics", by="history", topics="paper-4", labels="fresh"),
            cls.Settings(epsilon=5.0, topics="paper-4", only_topics=True, at_least=5),
        ]

    @classmethod
    def traits(cls, settings: Settings) -> Traits:
        """Return the properties of `dp-histogram` with these settings."""
        return Traits(
            reads=frozenset({"user", "query", "time"}),
            replaces_words=True,
            needs_whole_log=True,
            needs_time_order=True,
            output="counts",
            fresh_labels=settings.labels == "fresh",
            needs_authors=True,
            needs_user_independent_input=True,
            stored_state=STORED,
            budget=budget_of(settings.budget),
            system_noise=True,
            main_setting="epsilon",
        )

    @classmethod
    def promise(cls, settings: Settings) -> Guarantee:
        """Return the guarantee of `dp-histogram` with these settings."""
        s = settings
        shown = {"category": True, "count": True, "query": s.bins == "concepts", "user": s.by == "history"}
        allowed = frozenset(name for name, applies in shown.items() if applies)
        return Guarantee(
            statement=f"{s.epsilon:g}-differential privacy of the first {s.max_queries} phrases of a history",
            does_not_protect_against=(
                *(["that a user is in the log"] if s.by == "history" else []),
                "conclusions from what all users have in common",
                "several accounts of one person",
            ),
            audits=bin_counts(allowed, lambda: _names(s), s.at_least),
            facts={
                "epsilon": s.epsilon,
                "unit": "history",
                "neighbours": "one history exchanged",
                "sensitivity": 2 * s.max_queries,
                "scale_of_noise": _scale(s),
            },
        )

    def check_ready(self) -> None:
        """Raise if an extra is missing, before a long log is read."""
        super().check_ready()
        self._model.reader.check_ready()

    def partition_key(self, batch: Batch) -> IntArray | None:
        """Split by user only if each user has a table."""
        return self.key_of_text(self.texts.user, batch.user) if self.settings.by == "history" else None

    def push(self, batch: Batch) -> Batch:
        """Count the first phrases of each user; nothing is released before the end."""
        self._readings.learn(batch.query)
        self._reserve(batch.user)
        self._met[batch.user[batch.user >= 0]] = True
        sizes = np.where(batch.user >= 0, self._readings.sizes(batch.query), 0)
        self.drop(batch.row[sizes == 0], UNMAPPED)
        batch, sizes = batch[sizes > 0], sizes[sizes > 0]
        taken = self._take_first(batch.user, sizes)
        self.drop(batch.row[~taken], dp_counts.BEYOND)
        self.drop(batch.row[taken], dp_counts.COUNTED)
        slots = self._readings.concepts(batch.query[taken])
        self._counts.add(batch.user[taken][slots.record], slots.concept)
        return Batch.empty(self.texts)

    def _reserve(self, users: IntArray) -> None:
        super()._reserve(users)
        self._met = grown(self._met, self._used.size)

    def _people(self) -> IntArray:
        """Return the users of the log, also those without a known phrase."""
        return np.flatnonzero(self._met)

    def close(self) -> Batch:
        """Draw the noise, once."""
        self._check_budget()
        bins = _bins(self.settings, self._model)
        if not bins.height:
            raise ParameterError(
                "dp-histogram: no concept is left to be counted",
                hint="check `root`, `topics` and `only_topics`",
            )
        owners = self._people() if self.settings.by == "history" else np.zeros(1, np.int64)
        if bins.height * owners.size > LARGEST_TABLE:
            raise ParameterError(
                f"dp-histogram: the table would have more than {LARGEST_TABLE:,} lines",
                hint="narrow it with `bins=topics`, `topics` and `only_topics`, or `root`; or use `by=log`",
            )
        exact = self._table(owners, bins)
        noisy = dp_counts.add_laplace(exact.ravel(), _scale(self.settings)).reshape(exact.shape)
        self._result = self._shown(np.maximum(noisy, 0), owners, bins)
        self._counts = dp_counts.ItemCounts()
        return Batch.empty(self.texts)

    def _table(self, owners: IntArray, bins: pl.DataFrame) -> IntArray:
        """Count by owner and bin; what belongs to no bin is left out."""
        number = bins["number"].to_numpy().astype(np.int64)
        who, concept, count = self._counts.cells()
        wanted = self._model.topics.of[concept] if self.settings.bins == "topics" else concept
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

    def facts(self, tally: State | None = None) -> dict[str, Any]:
        """Return what is spent; nothing here is computed from the searches of users."""
        return {
            "bins": _bins(self.settings, self._model).height,
            "spent_by_anyone_at_most": self._budget.total_after(),
            "budget": self.settings.budget or None,
        }

    def erase(self, users: IntArray, rows: IntArray) -> None:
        """Count as if these users had never been in the log."""
        super().erase(users, rows)
        self._met[users] = False

    def snapshot(self) -> State:
        """Return the exact counts so far."""
        known = slice(int(self._people().max(initial=-1)) + 1)
        counted = {"used": self._used[known].copy(), "met": self._met[known].copy()}
        return counted | {"cells": self._counts.cells()} | self._snapshot_dropped()

    def restore(self, state: State) -> None:
        """Continue from a snapshot."""
        self._used, self._met = state["used"].copy(), state["met"].copy()
        self._counts.replace(state["cells"])
        self._restore_dropped(state)


def _model(settings: DpHistogram.Settings) -> ConceptModel:
    s = settings
    return ConceptModel(ConceptSpec(taxonomy=s.taxonomy, phrases=s.mapper, topics=s.topics, root=s.root))


def _scale(settings: DpHistogram.Settings) -> float:
    """Return the scale of the noise: what replacing a history can change, over epsilon, rounded up."""
    return rounded_up(Fraction(2 * settings.max_queries) / Fraction(settings.epsilon))


def _bins(settings: DpHistogram.Settings, model: ConceptModel) -> pl.DataFrame:
    """Return what is counted: `query` and `category`, and the numbers of the concepts or topics."""
    topics = model.topics
    members = np.sort(model.space.candidates.members.astype(np.int64))
    if settings.only_topics and topics.has_other:
        members = members[topics.of[members] != len(topics.names) - 1]
    if settings.bins == "topics":
        present = np.unique(topics.of[members])
        return pl.DataFrame({"category": [topics.names[t] for t in present], "number": present})
    labels = [model.concepts.label[c] for c in members.tolist()]
    category = [model.concepts.category[c] for c in members.tolist()]
    return pl.DataFrame({"query": labels, "category": category, "number": members})


def _names(settings: DpHistogram.Settings) -> set[str]:
    bins = _bins(settings, _model(settings))
    return set(bins["query" if "query" in bins.columns else "category"])
