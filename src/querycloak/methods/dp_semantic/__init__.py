"""`dp-semantic`: replaces concepts of queries by similar ones, with differential privacy (paper 002)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from querycloak import accounting
from querycloak import settings as declared
from querycloak.dictionary import Dictionaries
from querycloak.errors import ParameterError
from querycloak.guarantee import Guarantee, Sentence
from querycloak.kernels.arrays import grown
from querycloak.keys import derive
from querycloak.log import Batch, FloatArray, IntArray
from querycloak.methods.dp_semantic import draws as drawing
from querycloak.methods.dp_semantic.audit import audits
from querycloak.methods.dp_semantic.channel import ConceptChannel, concept_spec, epsilon_per_draw
from querycloak.methods.shared import budget as budgets
from querycloak.methods.shared import readings
from querycloak.methods.shared.labels import LabelMethod, coarse_time_setting, labels_setting, unit_of
from querycloak.methods.shared.records import RecordProtector
from querycloak.protector import State, Traits
from querycloak.settings import setting
from querycloak.text.concept_space import ConceptModel

UNMAPPED = "no phrase of it is known, or none in the domain"
ALL_USED = "all of the person's draws are used"
_MANY = 1 << 60
_WAY_OUT = "lower `epsilon`, or leave them out with `overspent=drop`"
_LEAST_SHARE = 1e-9  # of epsilon for a draw: less has no effect


class DpSemantic(LabelMethod, RecordProtector):
    """Replace each noun phrase of a query by one of similar meaning, drawn by the exponential mechanism.

    Phrases are looked up in a taxonomy; for each, a concept is drawn with a chance that grows with its
    likeness. Each history has a budget `epsilon`, shared by all of its phrases.

    Guarantee: `epsilon`-differential privacy of a history's mapped concepts, among the concepts of the stated
    domain: replacing a whole history by other searches with as many phrases changes the probability of any
    release by at most a factor e^`epsilon`. Clicked pages and ranks are empty, and times are truncated to the
    hour, or empty.

    Limits: how many searches, phrases and clicked rows a user has, and in which hours; that searches were
    suppressed because none of their phrases is known; their topic, if `domain=topic`; conclusions from what
    all users have in common.

    Reference: "A Semantic-Preserving Differentially Private Method for Releasing Query Logs", section 3.
    """

    name = "dp-semantic"
    exempt: ClassVar[dict[str, str]] = {
        "memory_stays_bounded": "without `max_queries`, the number of a person's phrases is known at the end"
    }

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `dp-semantic`."""

        epsilon: float = budgets.epsilon_setting(5.0)
        per: str = setting(
            "history",
            choices=("history", "query"),
            stronger=("query", "history"),
            help="`epsilon` for a whole `history`, or for each phrase: then m of them spend m times it",
        )
        criterion: str = setting(
            "sqc2",
            choices=("sqc1", "sqc2", "none"),
            help="`sqc1`: by likeness; `sqc2`: by likeness within the topic; `none`: same or other",
        )
        domain: str = setting(
            "all",
            choices=("all", "topic"),
            stronger=("topic", "all"),
            help="replace by `all` concepts, or by those of the same `topic`, which then shows",
        )
        topics: str = readings.topics_setting()
        domain_topics: str = setting(
            "", help="the topics that are domains with `domain=topic`, if others than `topics`"
        )
        root: str = readings.root_setting()
        taxonomy: str = readings.taxonomy_setting()
        mapper: str = readings.mapper_setting()
        max_queries: int | str = setting(
            "own",
            kind=int,
            at_least=1,
            also=("own",),
            at_most=10**9,
            help="phrases of a person, each with its share of `epsilon` at once; `own`: as many as there are",
        )
        budget: float = budgets.budget_setting()
        overspent: str = setting(
            "refuse",
            choices=("refuse", "drop"),
            help="`refuse` a release for which someone's budget is too small, or `drop` their records",
        )
        composition: str = setting(
            "sequential",
            choices=("sequential", "zcdp"),
            help="how phrases add up: plainly, or by `zcdp` (extra `dp`): more for each, but with `delta`",
        )
        delta: float = setting(
            1e-6, at_least=1e-15, at_most=0.01, help="the chance that `zcdp` may fail with"
        )
        prior: str = setting(
            "none",
            choices=("none", "microagg-semantic"),
            help="`microagg-semantic`: `group` alike phrases of a history share one draw (an experiment)",
        )
        group: int = setting(3, at_least=2, help="phrases that share a draw with `prior`")
        rebuild: str = setting(
            "none",
            choices=("none", "form", "paper"),
            stronger=("paper", "form", "none"),
            help="put back nothing, plurals and stop words, or (`paper`) all removed words: no promise then",
        )
        time: str = coarse_time_setting()
        labels: str = labels_setting()

        def __post_init__(self) -> None:
            super().__post_init__()
            if self.prior != "none" and (self.max_queries != "own" or self.per == "query"):
                raise ParameterError(
                    "dp-semantic: `prior` needs to see whole histories",
                    hint="leave out `max_queries` and `per=query`",
                )
            if self.domain_topics and self.domain != "topic":
                raise ParameterError(
                    "dp-semantic: `domain_topics` are the domains of `domain=topic`", hint="set both, or none"
                )
            if self.max_queries != "own" and self.epsilon / int(self.max_queries) < _LEAST_SHARE:
                raise ParameterError(
                    "dp-semantic: too little of `epsilon` is left for each of so many `max_queries`",
                    hint="raise `epsilon` or lower `max_queries`",
                )
            if self.per == "query" and self.composition != "sequential":
                raise ParameterError(
                    "dp-semantic: `per=query` spends `epsilon` for each phrase, however it is added up",
                    hint="leave out `composition`",
                )

        @property
        def shares_known_at_end(self) -> bool:
            """Whether the share of a phrase is known only when all phrases of its user are."""
            return self.max_queries == "own" and self.per == "history"

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Dictionaries) -> None:
        super().__init__(settings, key, texts)
        self._model = ConceptModel(concept_spec(settings))
        self._readings = readings.CodedReadings(self._model.reader, texts.query, self._model.is_candidate)
        self._budget = self.source_state = budgets.PrivacyBudget(
            settings.budget, texts.user, self._spent, worst=self._most, delta=self._delta
        )
        self._users = 0  # the highest user code met, plus 1
        self._draws = np.zeros(0, np.int64)  # by user code
        self._amount = np.zeros(0)  # by user code: spent in this release

    @classmethod
    def traits(cls, settings: Settings) -> Traits:
        """Return the properties of `dp-semantic` with these settings."""
        return Traits(
            reads=frozenset({"user", "query", "time"}),
            rewrites=frozenset({"user", "query", "time", "category"}),
            empties=frozenset({"url", "rank"}) | frozenset({"time"} if settings.time == "drop" else ()),
            time_unit=unit_of(settings.time),
            replaces_words=True,
            needs_whole_log=settings.shares_known_at_end,
            fresh_labels=settings.labels == "fresh",
            needs_authors=True,
            user_independent=True,
            needs_user_independent_input=True,
            stored_state=budgets.STORED,
            budget=budgets.budget_of(settings.budget, settings.overspent),
            main_setting="epsilon",
            channel=ConceptChannel(settings),
        )

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Return the settings that the conformance suite tries."""
        return [
            cls.Settings(epsilon=5.0),
            cls.Settings(epsilon=2.0, criterion="sqc1", domain="topic", max_queries=3, rebuild="form"),
            cls.Settings(epsilon=1.0, criterion="none", per="query", max_queries=2, rebuild="paper"),
            cls.Settings(epsilon=8.0, prior="microagg-semantic", group=2, labels="fresh", time="drop"),
        ]

    @classmethod
    def promise(cls, settings: Settings) -> Guarantee:
        """Return the guarantee of `dp-semantic` with these settings."""
        limit = None if settings.max_queries == "own" else int(settings.max_queries)
        labels = ConceptModel(concept_spec(settings)).candidate_labels if settings.rebuild == "none" else None
        times = "empty" if settings.time == "drop" else "truncated to the hour"
        return Guarantee.of(
            Sentence(_statement(settings), audits(labels, limit)),
            Sentence(
                f"clicked pages and ranks are empty, and times are {times}", (), ("url", "rank", "time")
            ),
            limits=_limits(settings),
        )

    def check_ready(self) -> None:
        """Raise ParameterError for a domain of one concept, before a long log is read."""
        self._model.reader.check_ready()
        sizes = np.diff(self._model.space.candidates.members_start)
        if self.settings.domain == "topic" and int(sizes.min()) < 2:
            raise ParameterError(
                "dp-semantic: a topic has only one concept, so its phrases would be shown as they are",
                hint="leave that topic out of the list, or use `domain=all`",
            )

    def partition_key(self, batch: Batch) -> IntArray:
        """Keep all records of a user together."""
        return self.key_of_text(self.texts.user, batch.user)

    def push(self, batch: Batch) -> Batch:
        """Replace phrases at once if the share of each is known; else hold the records."""
        self._readings.learn(batch.query)
        sizes = self._readings.sizes(batch.query)
        self.drop(batch.row[sizes == 0], UNMAPPED)
        batch = batch[sizes > 0]
        if self.settings.shares_known_at_end:
            self._held.add(batch)
            return Batch.empty(self.texts)
        return self._replace(self._within_budget(batch))

    def close(self) -> Batch:
        """Replace what is held."""
        held = self._held.take()
        if not len(held):
            return held
        self._grow(held.user)
        people = np.unique(held.user)
        affordable = self._budget.affordable(people, np.full(people.size, self.settings.epsilon))
        if not affordable.all() and self.settings.overspent == "refuse":
            self._budget.raise_overspent(people, _WAY_OUT)
        stays = np.isin(held.user, people[affordable])
        self.drop(held.row[~stays], budgets.OVERSPENT)
        held = held[stays]
        np.add.at(self._draws, held.user, self._readings.sizes(held.query))
        self._amount[people[affordable]] += self.settings.epsilon
        # All are released at the end, one moment, so that their order is independent of their authors.
        return self._replace(held.replace(seq=np.zeros(len(held), np.int64)))

    def _grow(self, users: IntArray) -> None:
        self._users = max(self._users, int(users.max(initial=-1)) + 1)
        self._draws, self._amount = grown(self._draws, self._users), grown(self._amount, self._users)

    def _within_budget(self, batch: Batch) -> Batch:
        """Drop the records that the draws or the budget of their user no longer allow."""
        self._grow(batch.user)
        people, place = np.unique(batch.user, return_inverse=True)
        own = self.settings.max_queries
        most = np.full(people.size, _MANY if own == "own" else int(own))
        used, draws = self._draws[people], self._draws[people]
        need = self._readings.sizes(batch.query)
        affordable = np.minimum(most, self._affordable(people))
        taken = budgets.take_within_limit(place, need, draws, affordable)
        allowed = budgets.take_within_limit(place, need, used, most)
        if (allowed & ~taken).any() and self.settings.overspent == "refuse":
            self._budget.raise_overspent(np.unique(batch.user[allowed & ~taken]), _WAY_OUT)
        self.drop(batch.row[~allowed & ~taken], ALL_USED)
        self.drop(batch.row[allowed & ~taken], budgets.OVERSPENT)
        self._draws[people], self._amount[people] = draws, self._cost_of(draws)
        return batch[taken]

    def _affordable(self, users: IntArray) -> IntArray:
        """Return how many draws users can still afford; with zCDP all draws cost the whole ε."""
        left = self._budget.remaining(users)
        if self.settings.composition != "sequential":
            return np.where(left >= self.settings.epsilon, _MANY, 0)
        return np.floor(left / epsilon_per_draw(self.settings, 1)).clip(max=float(_MANY)).astype(np.int64)

    def _cost_of(self, draws: IntArray) -> FloatArray:
        if self.settings.composition != "sequential":
            return np.where(draws > 0, self.settings.epsilon, 0.0)
        return np.asarray(draws * epsilon_per_draw(self.settings, 1), np.float64)

    def _spent(self) -> tuple[IntArray, FloatArray]:
        """Return the users of the release and what each of them spends: without a guarantee, all there is."""
        users = np.flatnonzero(self._amount > 0)
        if self.settings.rebuild == "paper":
            return users, np.full(users.size, np.inf)
        return users, self._amount[users]

    def _replace(self, batch: Batch) -> Batch:
        """Draw other concepts for all phrases, and write the records with them."""
        if not len(batch):
            return batch
        slots = self._readings.concepts(batch.query)
        if self.settings.prior == "none":
            concept = self._drawn(batch, slots, self._draws[batch.user[slots.record]])
        else:
            concept = self._grouped(batch, slots)
        rebuild = self.settings.rebuild
        query, category = drawing.written(self._model, self._readings, batch, slots, concept, rebuild)
        return self._timed(self._labels.apply(batch.replace(query=query, category=category)))

    def _drawn(self, batch: Batch, slots: readings.ConceptSlots, draws: IntArray) -> IntArray:
        levels, level = np.unique(draws, return_inverse=True)
        share = np.array([epsilon_per_draw(self.settings, int(m)) for m in levels])[level]
        return drawing.drawn(self._model, slots, batch.row, share, derive(self.key, "draws"))

    def _grouped(self, batch: Batch, slots: readings.ConceptSlots) -> IntArray:
        """Draw once for similar concepts of a history, and assign the draws to its slots in random order.

        Each domain of a history by itself: which domain a slot is of shows anyway, and must not change.
        """
        size, space = self.settings.group, self._model.space
        owner = batch.user[slots.record]
        part = owner * space.domains + space.candidates.domain[slots.concept]
        order = np.argsort(part, kind="stable")
        whole = np.split(order, np.flatnonzero(np.diff(part[order])) + 1)
        parts = [own[start:end] for own in whole for start, end in accounting.segments(own.size)]
        found = [drawing.centroids(slots.concept[own], size, space) for own in parts]
        # each draw is named by a slot of its part, which needs none of its own now
        named = np.concatenate([own[: m.size] for own, (m, _) in zip(parts, found, strict=True)])
        middles = np.concatenate([middle for middle, _ in found])
        fewer = readings.ConceptSlots(slots.record[named], slots.turn[named], middles)
        draws = np.bincount(owner[named])[owner[named]]
        new = np.split(self._drawn(batch, fewer, draws), np.cumsum([m.size for m, _ in found])[:-1])
        out = np.empty(slots.concept.size, np.int64)
        key = derive(self.key, "deal")
        for own, (_, sizes), concept in zip(parts, found, new, strict=True):
            chance = (batch.row[slots.record[own]] << 20) + slots.turn[own]
            out[own] = drawing.dealt(concept, sizes, key, chance)
        return out

    def facts(self, tally: State | None = None) -> dict[str, Any]:
        """Return the scope and what is spent: nothing here is computed from the searches of users.

        No table of weights was used whose integers spend more than their share of `epsilon`.
        """
        s, space = self.settings, self._model.space
        found: dict[str, Any] = {
            "unit": "history" if s.per == "history" else "phrase",
            "domain": s.root or ("WordNet's nouns" if not s.taxonomy else Path(s.taxonomy).name),
            "domains": space.domains,
            "smallest_domain": int(np.diff(space.candidates.members_start).min()),
            "concepts": int(space.candidates.members.size),
            "largest_similarity_gap": round(float((1 - space.min_similarity).max()), 6),
            "outside": list(_limits(s)),
        }
        if s.rebuild == "paper":
            return found | {"epsilon": None}
        return found | {
            "epsilon": s.epsilon,
            "per": s.per,
            "delta": self._delta,
            "delta_of_all_releases": self._budget.delta_after(),
            "spent_by_anyone_at_most": self._budget.total_after(),
            "budget": s.budget or None,
        }

    @property
    def _delta(self) -> float:
        return self.settings.delta if self.settings.composition == "zcdp" else 0.0

    @property
    def _most(self) -> float | None:
        """The most that this release costs anyone; None if that depends on the longest history."""
        if self.settings.rebuild == "paper":
            return None
        if self.settings.per == "history":
            return self.settings.epsilon
        most = self.settings.max_queries
        return None if most == "own" else self.settings.epsilon * int(most)

    def erase(self, users: IntArray, rows: IntArray) -> None:
        """Drop the held records of these users, and what they have spent: their codes never return."""
        super().erase(users, rows)
        self._grow(users)
        self._draws[users] = self._amount[users] = 0
        self._budget.erase(users)

    def snapshot(self) -> State:
        """Return the held records, and the draws and spending of each user."""
        known = slice(self._users)
        spent = {"draws": self._draws[known].copy(), "amount": self._amount[known].copy()}
        return super().snapshot() | spent

    def restore(self, state: State) -> None:
        """Continue from a snapshot."""
        super().restore(state)
        self._draws, self._amount = state["draws"].copy(), state["amount"].copy()
        self._users = self._draws.size
        self._readings.learn(self._held.records().query)


def _statement(s: DpSemantic.Settings) -> str:
    if s.rebuild == "paper":
        return (
            "no guarantee of privacy: words that the mapping removed are put back unchanged (`rebuild=paper`)"
        )
    bound = f"{s.epsilon:g}-differential privacy"
    if s.composition == "zcdp":
        bound = f"({s.epsilon:g}, {s.delta:g})-differential privacy"
    where = "of the same topic" if s.domain == "topic" else "of the stated domain"
    if s.per == "query":
        return f"{bound} of each mapped phrase, among the concepts {where}; m phrases spend m times it"
    return f"{bound} of a history's mapped concepts, among the concepts {where}"


def _limits(s: DpSemantic.Settings) -> tuple[str, ...]:
    hours = ", and in which hours" if s.time == "coarsen" else ""
    limits = {
        "words outside the known phrases, names among them, which are put back": s.rebuild == "paper",
        "plurals, stop words and their order, which are put back": s.rebuild == "form",
        "the topic of each phrase": s.domain == "topic",
        "that a search was about something below `root`: all others are suppressed": s.root,
        f"how many searches, phrases and clicked rows a user has{hours}": True,
        "that searches were suppressed because none of their phrases is known": True,
        "that two searches of the same second had the same words: they share one draw": True,
        "conclusions from what all users have in common": True,
        "several accounts of one person, each with its own budget": True,
        "who was in earlier releases: users whose budget is spent are suppressed": (
            s.overspent == "drop" and s.budget
        ),
        "the order of searches, which are released as they come": not s.shares_known_at_end,
    }
    return tuple(limit for limit, applies in limits.items() if applies)
