"""`dp-semantic`: replaces what a query means by something alike, with differential privacy (paper 002)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak import accounting
from querycloak import settings as declared
from querycloak.dictionary import Texts
from querycloak.errors import ParameterError
from querycloak.guarantees import Guarantee
from querycloak.guarantees.replacement import audits
from querycloak.kernels.spending import admit
from querycloak.keys import derive
from querycloak.log import Batch, IntArray
from querycloak.methods import grouping, times
from querycloak.methods.budget import OVERSPENT, Spending
from querycloak.methods.labels import Labels, labels_setting
from querycloak.methods.meaning_settings import (
    budget_setting,
    epsilon_setting,
    mapper_setting,
    root_setting,
    taxonomy_setting,
    topics_setting,
)
from querycloak.methods.replacing import Reader, Slots, drawn, written
from querycloak.protector import Protector, State
from querycloak.settings import setting
from querycloak.topics.concepts.field import Field
from querycloak.topics.concepts.sharing import stretches
from querycloak.topics.concepts.space import LARGEST_EPSILON

UNMAPPED = "no phrase of it is known, or none in the domain"
ALL_USED = "all of the person's draws are used"
Floats = npt.NDArray[np.float64]
_MANY = 1 << 60
_WAY_OUT = "lower `epsilon`, or leave them out with `overspent=drop`"
_LEAST_SHARE = 1e-9  # of epsilon for a draw: less cannot be told from nothing


class DpSemantic(Protector):
    """Replace each noun phrase of a query by one of similar meaning, drawn by the exponential mechanism.

    Phrases are looked up in a taxonomy; for each, a concept is drawn with a chance that grows with its
    likeness. Each history has a budget `epsilon`, shared by all of its phrases.

    Promise: whatever a person searched for, replacing it all by other searches with as many phrases
    changes the probability of any release by at most a factor e^`epsilon`.

    Does not protect against:
        - how many searches, phrases and clicked rows a person has, and in which hours
        - that a search was left out because no phrase of it is known
        - its topic, if `domain=topic`
        - conclusions from what all people have in common

    Reference: "A Semantic-Preserving Differentially Private Method for Releasing Query Logs", section 3.
    """

    name = "dp-semantic"
    wants_people = True
    needs = frozenset({"user", "query"})
    reads = frozenset({"user", "query", "time"})
    rewrites = frozenset({"user", "query", "time", "category"})
    rewords = True
    keeps_book = True
    book_name = "budget"
    each_alone = True
    wants_alone = True
    exempt: ClassVar[dict[str, str]] = {
        "memory_stays_bounded": "without `max_queries`, the number of a person's phrases is known at the end"
    }

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `dp-semantic`."""

        epsilon: float = epsilon_setting(5.0)
        per: str = setting(
            "history",
            kind=str,
            choices=("history", "query"),
            help="`epsilon` for a whole `history`, or for each phrase: then m of them spend m times it",
        )
        criterion: str = setting(
            "sqc2",
            kind=str,
            choices=("sqc1", "sqc2", "none"),
            help="`sqc1`: by likeness; `sqc2`: by likeness within the topic; `none`: same or other",
        )
        domain: str = setting(
            "all",
            kind=str,
            choices=("all", "topic"),
            help="replace by `all` concepts, or by those of the same `topic`, which then shows",
        )
        topics: str = topics_setting()
        domain_topics: str = setting(
            "", kind=str, help="the topics that are domains with `domain=topic`, if others than `topics`"
        )
        root: str = root_setting()
        taxonomy: str = taxonomy_setting()
        mapper: str = mapper_setting()
        max_queries: int | str = setting(
            "own",
            kind=int,
            at_least=1,
            also=("own",),
            at_most=10**9,
            help="phrases of a person, each with its share of `epsilon` at once; `own`: as many as she has",
        )
        budget: float = budget_setting()
        overspent: str = setting(
            "refuse",
            kind=str,
            choices=("refuse", "drop"),
            help="`refuse` a release for which someone's budget is too small, or `drop` her records",
        )
        composition: str = setting(
            "sequential",
            kind=str,
            choices=("sequential", "zcdp"),
            help="how phrases add up: plainly, or by `zcdp` (extra `dp`): more for each, but with `delta`",
        )
        delta: float = setting(
            1e-6, kind=float, at_least=1e-15, at_most=0.01, help="the chance that `zcdp` may fail with"
        )
        prior: str = setting(
            "none",
            kind=str,
            choices=("none", "microagg-semantic"),
            help="`microagg-semantic`: `group` alike phrases of a history share one draw (an experiment)",
        )
        group: int = setting(3, kind=int, at_least=2, help="phrases that share a draw with `prior`")
        rebuild: str = setting(
            "none",
            kind=str,
            choices=("none", "form", "paper"),
            help="put back nothing, plurals and stop words, or (`paper`) all removed words: no promise then",
        )
        time: str = setting(
            "coarsen",
            kind=str,
            choices=("coarsen", "drop"),
            help="`coarsen` times to the hour, or `drop` them",
        )
        labels: str = labels_setting()  # type: ignore[assignment]

        def __post_init__(self) -> None:
            super().__post_init__()
            if self.prior != "none" and (self.max_queries != "own" or self.per == "query"):
                raise ParameterError(
                    "DpSemantic: `prior` needs to see whole histories",
                    hint="leave out `max_queries` and `per=query`",
                )
            if self.domain_topics and self.domain != "topic":
                raise ParameterError(
                    "DpSemantic: `domain_topics` are the domains of `domain=topic`", hint="set both, or none"
                )
            if self.max_queries != "own" and self.epsilon / int(self.max_queries) < _LEAST_SHARE:
                raise ParameterError(
                    "DpSemantic: too little of `epsilon` is left for each of so many `max_queries`",
                    hint="raise `epsilon` or lower `max_queries`",
                )
            if self.per == "query" and self.composition != "sequential":
                raise ParameterError(
                    "DpSemantic: `per=query` spends `epsilon` for each phrase, however it is added up",
                    hint="leave out `composition`",
                )

        def as_dict(self) -> dict[str, Any]:
            """Name files without their folders: a certificate travels."""
            return super().as_dict() | {"taxonomy": Path(self.taxonomy).name}

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Texts) -> None:
        super().__init__(settings, key, texts)
        self.empties = frozenset({"url", "rank"} | ({"time"} if settings.time == "drop" else set()))
        self._labels = Labels(settings.labels, key, texts)
        self._field = Field(settings)
        self._reader = Reader(self._field, texts)
        self._spending = Spending(settings.budget, texts.user)
        self._draws = np.zeros(0, np.int64)  # by user code
        self._amount = np.zeros(0)  # by user code: spent in this release
        self._held = Batch.empty(texts)
        self.streams = not self._waits

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Name the settings that the conformance suite tries."""
        return [
            cls.Settings(epsilon=5.0),
            cls.Settings(epsilon=2.0, criterion="sqc1", domain="topic", max_queries=3, rebuild="form"),
            cls.Settings(epsilon=1.0, criterion="none", per="query", max_queries=2, rebuild="paper"),
            cls.Settings(epsilon=8.0, prior="microagg-semantic", group=2, labels="fresh", time="drop"),
        ]

    def promise(self) -> Guarantee:
        """Say what an independent audit can test."""
        s = self.settings
        limit = None if s.max_queries == "own" else int(s.max_queries)
        return Guarantee(
            words=_promise(s),
            does_not_protect_against=_limits(s),
            audits=audits(self._field.spoken if s.rebuild == "none" else None, limit, s.time),
        )

    def prepare(self) -> None:
        """Refuse domains that hide nothing, before a long log is read."""
        sizes = np.diff(self._field.space.candidates.members_start)
        if self.settings.domain == "topic" and int(sizes.min()) < 2:
            raise ParameterError(
                "DpSemantic: a topic has only one concept, so its phrases would be shown as they are",
                hint="leave that topic out of the list, or use `domain=all`",
            )

    def partition_key(self, batch: Batch) -> IntArray:
        """Keep all records of a person together."""
        return self.key_of_text(self.texts.user, batch.user)

    @property
    def _waits(self) -> bool:
        """Whether a person's share per phrase is known only when all of them are."""
        return self.settings.max_queries == "own" and self.settings.per == "history"

    def push(self, batch: Batch) -> Batch:
        """Replace at once if it is known what each phrase may spend; else hold."""
        self._reader.learn(batch.query)
        sizes = self._reader.sizes(batch.query)
        self.drop(batch.row[sizes == 0], UNMAPPED)
        batch = batch[sizes > 0]
        if self._waits:
            self._held += batch
            return Batch.empty(self.texts)
        return self._replace(self._within_budget(batch))

    def close(self) -> Batch:
        """Replace what is held."""
        held, self._held = self._held, Batch.empty(self.texts)
        if not len(held):
            return held
        self._grow(held.user)
        people = np.unique(held.user)
        fits = self._spending.fits(people, np.full(people.size, self.settings.epsilon))
        if not fits.all() and self.settings.overspent == "refuse":
            self._spending.refuse(people, _WAY_OUT)
        stays = np.isin(held.user, people[fits])
        self.drop(held.row[~stays], OVERSPENT)
        held = held[stays]
        self._draws += np.bincount(
            held.user, self._reader.sizes(held.query), minlength=self._draws.size
        ).astype(np.int64)
        self._amount[people[fits]] += self.settings.epsilon
        # All leave at one moment, the end, which the engine knows: their order tells nothing about who asked.
        return self._replace(held.replace(seq=np.zeros(len(held), np.int64)))

    def _grow(self, users: IntArray) -> None:
        more = int(users.max(initial=-1)) + 1 - self._draws.size
        if more > 0:
            self._draws = np.concatenate([self._draws, np.zeros(more, np.int64)])
            self._amount = np.concatenate([self._amount, np.zeros(more)])

    def _within_budget(self, batch: Batch) -> Batch:
        """Drop what a person's draws or her budget no longer allow."""
        self._grow(batch.user)
        everyone = np.arange(self._draws.size)
        own = self.settings.max_queries
        most = np.full(everyone.size, _MANY if own == "own" else int(own))
        affordable = self._affordable(everyone)
        used = self._draws.copy()
        need = self._reader.sizes(batch.query)
        taken = admit(batch.user, need, self._draws, np.minimum(most, affordable))
        allowed = admit(batch.user, need, used, most)
        if (allowed & ~taken).any() and self.settings.overspent == "refuse":
            self._spending.refuse(np.unique(batch.user[allowed & ~taken]), _WAY_OUT)
        self.drop(batch.row[~allowed & ~taken], ALL_USED)
        self.drop(batch.row[allowed & ~taken], OVERSPENT)
        self._amount = self._spent(self._draws)
        return batch[taken]

    def _affordable(self, users: IntArray) -> IntArray:
        """Say how many draws users can still pay for; those that are added up otherwise cost all at once."""
        left = self._spending.left(users)
        if self.settings.composition != "sequential":
            return np.where(left >= self.settings.epsilon, _MANY, 0)
        return np.floor(left / self._share(1)).clip(max=float(_MANY)).astype(np.int64)

    def _spent(self, draws: IntArray) -> Floats:
        if self.settings.composition != "sequential":
            return np.where(draws > 0, self.settings.epsilon, 0.0)
        return np.asarray(draws * self._share(1), np.float64)

    def _share(self, draws: int) -> float:
        """Say what one draw may spend of a history's epsilon, if the history has so many."""
        s = self.settings
        if s.per == "query":
            return min(s.epsilon, LARGEST_EPSILON)
        most = draws if s.max_queries == "own" else int(s.max_queries)
        share = accounting.per_draw(s.epsilon, most, s.composition, s.delta)  # type: ignore[arg-type]
        return min(share, LARGEST_EPSILON)

    def _replace(self, batch: Batch) -> Batch:
        """Draw other concepts for all phrases, and write the records with them."""
        if not len(batch):
            return batch
        slots = self._reader.slots(batch.query)
        if self.settings.prior == "none":
            concept = self._drawn(batch, slots, self._draws[batch.user[slots.record]])
        else:
            concept = self._grouped(batch, slots)
        query, category = written(self._field, self._reader, batch, slots, concept, self.settings.rebuild)
        new = batch.replace(query=query, category=category, user=self._labels.of(batch.user))
        return times.apply(self.settings.time, new)

    def _drawn(self, batch: Batch, slots: Slots, draws: IntArray) -> IntArray:
        levels, level = np.unique(draws, return_inverse=True)
        share = np.array([self._share(int(m)) for m in levels])[level]
        key = derive(self.key, "draws")
        return drawn(self._field, slots, batch.row, share, key)

    def _grouped(self, batch: Batch, slots: Slots) -> IntArray:
        """Let alike concepts of a history share a draw, and deal what was drawn to its slots by chance.

        Each domain of a history by itself: which domain a slot is of shows anyway, and must not change.
        """
        size, space = self.settings.group, self._field.space
        owner = batch.user[slots.record]
        part = owner * space.domains + space.candidates.domain[slots.concept]
        order = np.argsort(part, kind="stable")
        whole = np.split(order, np.flatnonzero(np.diff(part[order])) + 1)
        parts = [own[start:end] for own in whole for start, end in stretches(own.size)]
        found = [grouping.centroids(slots.concept[own], size, space) for own in parts]
        # each draw is named by a slot of its part, which needs none of its own now
        named = np.concatenate([own[: m.size] for own, (m, _) in zip(parts, found, strict=True)])
        middles = np.concatenate([middle for middle, _ in found])
        fewer = Slots(slots.record[named], slots.turn[named], middles)
        draws = np.bincount(owner[named])[owner[named]]
        new = np.split(self._drawn(batch, fewer, draws), np.cumsum([m.size for m, _ in found])[:-1])
        out = np.empty(slots.concept.size, np.int64)
        key = derive(self.key, "deal")
        for own, (_, sizes), concept in zip(parts, found, new, strict=True):
            chance = (batch.row[slots.record[own]] << 20) + slots.turn[own]
            out[own] = grouping.dealt(concept, sizes, key, chance)
        return out

    def facts(self, tally: State | None = None) -> dict[str, Any]:
        """State the scope and what is spent: nothing here is computed from anybody's searches.

        No table of weights was used whose integers spend more than their share of `epsilon`.
        """
        s, space = self.settings, self._field.space
        found: dict[str, Any] = {
            "unit": "history" if s.per == "history" else "phrase",
            "domain": s.root or ("WordNet's nouns" if not s.taxonomy else Path(s.taxonomy).name),
            "domains": space.domains,
            "smallest_domain": int(np.diff(space.candidates.members_start).min()),
            "concepts": int(space.candidates.members.size),
            "largest_similarity_gap": round(float((1 - space.least).max()), 6),
            "outside": list(_limits(s)),
        }
        if s.rebuild == "paper":
            return found | {"epsilon": None}
        return found | {
            "epsilon": s.epsilon,
            "per": s.per,
            "delta": self._delta,
            "delta_of_all_releases": self._spending.delta_after(self._delta),
            "spent_by_anyone_at_most": self._spending.after(self._most),
            "budget": s.budget or None,
        }

    @property
    def _delta(self) -> float:
        return self.settings.delta if self.settings.composition == "zcdp" else 0.0

    @property
    def _most(self) -> float | None:
        """What this release may cost anyone; with `per=query`, only the longest history could tell."""
        if self.settings.rebuild == "paper":
            return None
        if self.settings.per == "history":
            return self.settings.epsilon
        most = self.settings.max_queries
        return None if most == "own" else self.settings.epsilon * int(most)

    def book(self) -> pl.DataFrame:
        """Give what everyone has spent by now."""
        users = np.flatnonzero(self._amount > 0)
        amount = self._amount[users]
        if self.settings.rebuild == "paper":  # no promise: as if all that there is were spent
            amount = np.full(users.size, np.inf)
        return self._spending.book(users, amount, self._most, self._delta)

    @classmethod
    def merge_books(cls, books: list[pl.DataFrame]) -> pl.DataFrame:
        """Put together what workers' people have spent."""
        return Spending.merged(books)

    def miss_book(self) -> None:
        """Carry on knowing that earlier releases left a book which is not here."""
        self._spending.miss()

    def open_book(self, book: pl.DataFrame) -> IntArray:
        """Carry on with what earlier releases spent; whoever is not in this log is not in its truth."""
        self._spending.open(book)
        return np.empty(0, np.int64)

    def label_of(self, users: IntArray) -> IntArray:
        """Give the label that stands for each user in what leaves."""
        return self._labels.of(users)

    def erase(self, users: IntArray, rows: IntArray) -> None:
        """Drop what is held of theirs, and forget what they have spent: nobody will spend in their name."""
        self._held = self._held[self.forget(self._held, users, rows)]
        self._grow(users)
        self._draws[users] = 0
        self._amount[users] = 0
        self._spending.forget(users)

    def snapshot(self) -> State:
        """Give the held records and what everyone has drawn."""
        held = {f"held_{name}": np.asarray(array) for name, array in self._held.arrays().items()}
        spent = {"draws": self._draws, "amount": self._amount}
        return held | spent | self._snapshot_dropped()

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        self._held = Batch.of({name: state[f"held_{name}"] for name in Batch.COLUMNS}, self.texts)
        self._draws, self._amount = state["draws"].copy(), state["amount"].copy()
        self._reader.learn(self._held.query)
        self._restore_dropped(state)


def _promise(s: DpSemantic.Settings) -> str:
    """Word the promise of these settings."""
    if s.rebuild == "paper":
        return "none: words that the mapping removed are put back as they were (`rebuild=paper`)"
    bound = f"{s.epsilon:g}-differential privacy"
    if s.composition == "zcdp":
        bound = f"({s.epsilon:g}, {s.delta:g})-differential privacy"
    where = "of the same topic" if s.domain == "topic" else "of the stated domain"
    if s.per == "query":
        return f"{bound} of each mapped phrase, among the concepts {where}; m phrases spend m times it"
    return f"{bound} of a history's mapped concepts, among the concepts {where}"


def _limits(s: DpSemantic.Settings) -> tuple[str, ...]:
    """List what lies outside the promise of these settings."""
    limits = [
        "how many searches, phrases and clicked rows a person has"
        + (", and in which hours" if s.time == "coarsen" else ""),
        "that searches were left out because no phrase of them is known",
        "that two searches of the same second had the same words: they share one draw",
        "conclusions from what all people have in common",
        "several accounts of one person, which each have their own budget",
    ]
    if s.root:
        limits.insert(0, "that a search was about something below `root`: all others are left out")
    if s.overspent == "drop" and s.budget:
        limits.append("who was in earlier releases: people whose budget is spent are left out")
    if s.max_queries != "own" or s.per == "query":
        limits.append("the order of searches, which leave as they come")
    if s.domain == "topic":
        limits.insert(0, "the topic of each phrase")
    if s.rebuild == "form":
        limits.insert(0, "plurals, stop words and their order, which are put back")
    if s.rebuild == "paper":
        limits.insert(0, "words that no known phrase has, which are put back: names among them")
    return tuple(limits)
