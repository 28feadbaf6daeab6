"""Several methods one after the other, behind the same protocol as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak.dictionary import Dictionaries
from querycloak.errors import DataError, Refused, UsageError
from querycloak.guarantee import Guarantee
from querycloak.kernels import siphash
from querycloak.kernels.arrays import distinct
from querycloak.kernels.order import within_moments
from querycloak.keys import derive, stage_key
from querycloak.log import COUNTS, MISSING, Batch, IntArray
from querycloak.protector import ERASED, Labels, Protector, State, Traits
from querycloak.registry import METHODS
from querycloak.settings import assign

#: Limit of a release without a named source.
OTHER_RELEASES: Final = (
    "other releases of the same users: they can be intersected with this one, and what they reveal adds up; "
    "without `--source` none is known"
)
#: Limit of a method whose state is bound to the ledger.
ROLLED_BACK: Final = (
    "older stored state that was put back together with the ledger: only `verify --ledger` with a later "
    "certificate shows it"
)
_ORDER = 1  # the purpose of the draws that break ties of order


@dataclass(frozen=True)
class Stage:
    """A method by name with its settings: what a user asked for, before any key or data is there."""

    method: str
    settings: Any

    @cached_property
    def traits(self) -> Traits:
        """The properties of the method with these settings."""
        found: Traits = METHODS.get(self.method).traits(self.settings)
        return found

    def promise(self) -> Guarantee:
        """Return the guarantee of the method with these settings."""
        found: Guarantee = METHODS.get(self.method).promise(self.settings)
        return found

    def weaker_settings(self, users: int) -> str:
        """Return settings that would release something from a log of so many users, for a hint."""
        found: str = METHODS.get(self.method).weaker_settings(self.settings, users)
        return found

    def limits(self, source: str | None) -> list[str]:
        """Return the limits of the guarantee for a release with or without a named source."""
        own, kept = list(self.promise().does_not_protect_against), self.traits.stored_state
        if source is not None:
            return [*own, ROLLED_BACK] if kept is not None else own
        return own if self.traits.labels is Labels.NONE and kept is None else [*own, OTHER_RELEASES]

    @property
    def label_policy(self) -> str:
        """The setting `labels`: `keep` or `fresh`; empty for a method without it."""
        policy = getattr(self.settings, "labels", "")
        return policy if policy in ("keep", "fresh") else ""

    @property
    def replaces_users(self) -> bool:
        """Whether no user id of the input of this stage comes out of it as a label."""
        if self.label_policy:
            return self.label_policy == "fresh"
        return self.traits.is_table or "user" in self.traits.rewrites | self.traits.empties

    def build(self, release_key: bytes, place: int, texts: Dictionaries) -> Protector:
        """Make the method, keyed for its place in this release."""
        key = stage_key(release_key, place, self.method, self.settings.as_dict())
        protector: Protector = METHODS.get(self.method)(self.settings, key, texts)
        return protector


def parse_stages(methods: list[str], chosen: Mapping[str, Any], *, labels: str = "fresh") -> list[Stage]:
    """Return the stages with their `[METHOD.]NAME=VALUE` settings; a name without prefix must be unique.

    `labels` is the label policy of the last method that has one, unless the settings choose another. Earlier
    methods keep labels by default: privacy budgets, and Spark, need the users themselves.
    """
    if not methods:
        raise UsageError("no method was named", hint="`querycloak methods` lists them")
    if len(set(methods)) < len(methods):
        raise UsageError("a method is named twice", hint="one release runs each method once")
    kinds = {method: METHODS.get(method).Settings for method in methods}
    stages = [Stage(method, settings) for method, settings in assign(chosen, kinds).items()]
    named = {name.rpartition(".")[::2] for name in chosen}
    for place, stage in reversed(list(enumerate(stages))):
        if stage.label_policy and not named & {(stage.method, "labels"), ("", "labels")}:
            earlier = any(later.label_policy or later.replaces_users for later in stages[place + 1 :])
            policy = "keep" if earlier else labels
            stages[place] = Stage(stage.method, replace(stage.settings, labels=policy))
    check_composition(stages)
    return stages


def check_kept_labels(stages: Sequence[Stage], source: str | None) -> None:
    """Raise Refused if a release without a named source would show the log's own user ids."""
    keeping = [stage for stage in stages if stage.label_policy == "keep"]
    if keeping and not source and not any(stage.replaces_users for stage in stages):
        raise Refused(
            f"`{keeping[-1].method}`: `labels=keep` shows users under the same labels in every release, and "
            "no source is named",
            hint="name the log's source with `--source NAME`, or use `labels=fresh`",
        )


def certified_stages(document: Mapping[str, Any]) -> list[Stage]:
    """Return the stages that a certificate names; raise if one is not installed or has other settings."""
    parts = document["methods"]
    try:
        return [
            Stage(part["method"], METHODS.get(part["method"]).Settings(**part["settings"])) for part in parts
        ]
    except TypeError:
        raise DataError("the certificate names a setting that its method does not have") from None


def check_live(stages: Sequence[Stage]) -> None:
    """Raise UsageError if a method cannot run on a log without end."""
    for stage in stages:
        own = stage.traits
        if own.needs_whole_log or own.is_table or own.creates_rows:
            raise UsageError(
                f"`{stage.method}` needs the whole log, and a live one never ends",
                hint="use it with `querycloak protect` on a file",
            )
        if own.budget is not None and own.budget.when_spent == "refuse":
            raise UsageError(
                f"`{stage.method}` would stop the stream when a user's budget is spent",
                hint="use `overspent=drop`",
            )


def check_composition(stages: Sequence[Stage]) -> None:
    """Raise Refused or UsageError if the methods cannot follow each other in this order."""
    for place, stage in enumerate(stages):
        for before in stages[:place]:
            _check_after(before, stage)
        if stage.traits.needs_authors:
            hiding = [s for s in stages if s is not stage and s.traits.labels.hides_authors]
            if hiding:
                raise Refused(
                    f"`{stage.method}` must know whose each record is, and `{hiding[0].method}` hides it",
                    hint="use one of them",
                )


def _check_after(before: Stage, stage: Stage) -> None:
    first, then = before.traits, stage.traits
    if then.needs_time_order and first.buffers_records:
        raise UsageError(
            f"`{stage.method}` needs records in time order, but `{before.method}` may hold them",
            hint=f"name `{stage.method}` before `{before.method}`",
        )
    if first.is_table:
        raise Refused(
            f"`{before.method}` gives a table of counts, and `{stage.method}` needs records",
            hint=f"name `{before.method}` last",
        )
    changed = sorted(first.promised_columns & (then.rewrites - then.empties))
    if changed:
        raise Refused(
            f"`{stage.method}` changes the column `{changed[0]}`, and the guarantee of `{before.method}` "
            "is about it",
            hint="use one of them",
        )
    if then.needs_user_independent_input and not first.user_independent:
        raise Refused(
            f"`{stage.method}` gives user-level differential privacy, but after `{before.method}` one user's "
            "records depend on other users",
            hint=f"run `{stage.method}` without `{before.method}`",
        )


def ordered_counts(found: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of a table of counts, ordered by its own texts."""
    names = [name for name in COUNTS if name in found.columns]
    return found.select(names).sort([name for name in ("query", "category", "user") if name in names])


class Pipeline:
    """Runs stages one after the other; what one hands back is what the next takes in."""

    def __init__(self, stages: list[Stage], release_key: bytes, texts: Dictionaries, first: int = 0) -> None:
        """Build the stages; `first` is the place of the first one where others run elsewhere before it."""
        check_composition(stages)
        self.texts = texts
        self._order_key = derive(release_key, "order")
        self._users = np.empty(0, np.int64)
        built = [stage.build(release_key, place, texts) for place, stage in enumerate(stages, first)]
        self.use(built, [stage.traits for stage in stages])

    def use(self, stages: list[Protector], traits: list[Traits]) -> None:
        """Run these instances, which have these traits."""
        self.stages, self.traits = stages, traits
        #: Columns that a batch must have, columns whose released value comes from the batch, and empty ones.
        self.reads, self.rewrites, self.empties = (
            frozenset[str]().union(*(getattr(one, name) for one in traits))
            for name in ("reads", "rewrites", "empties")
        )
        #: Whether rows of one search are treated separately.
        self.per_row = any(one.unit == "row" for one in traits)
        #: Whether the result is a table of counts instead of records.
        self.table = any(one.is_table for one in traits)

    def counts(self) -> pl.DataFrame:
        """Return the table of counts, ordered by its own texts: never as the input was."""
        return ordered_counts(self.stages[-1].counts())

    def check_ready(self) -> None:
        """Raise MissingExtra if a stage lacks an optional part."""
        for stage in self.stages:
            stage.check_ready()

    def push(self, batch: Batch) -> Batch:
        """Take records in; hand back what every stage lets go."""
        return self._through(0, batch)

    def advance(self, watermark: int) -> Batch:
        """Advance event time in every stage."""
        return self._each_then_on(lambda stage: stage.advance(watermark))

    def close(self) -> Batch:
        """End the input of every stage in turn."""
        return self._each_then_on(lambda stage: stage.close())

    def erase(self, users: IntArray, rows: IntArray) -> None:
        """Forget people in every stage: by the labels that stand for them there, and by their input rows.

        `rows` are those of their records that have not come out: the caller knows, since it still has them.
        """
        self._users = np.setdiff1d(self._users, users)
        for stage in self.stages:
            stage.erase(users, rows)
            users = stage.label_of(users)

    def discard(self, rows: IntArray, reason: str) -> None:
        """Drop records that have not come out, for another reason than an erasure."""
        before = [stage.dropped[ERASED] for stage in self.stages]
        self.erase(np.empty(0, np.int64), rows)
        for stage, count in zip(self.stages, before, strict=True):
            stage.dropped[reason] += stage.dropped[ERASED] - count
            stage.dropped[ERASED] = count
            stage.dropped += Counter()  # forget reasons that nothing was dropped for

    def close_at(self, read: int) -> Batch:
        """End the input after so many rows: all that is left goes at that moment, and is ordered so."""
        batch = self.close()
        return self._release_order(batch.replace(seq=np.maximum(batch.seq, read)))

    def _each_then_on(self, call: Any) -> Batch:
        released = Batch.empty(self.texts)
        for place, stage in enumerate(self.stages):
            released += self._through(place + 1, self._after_stage(place, call(stage)))
        return self._release_order(released)

    def _through(self, start: int, batch: Batch) -> Batch:
        for place, stage in enumerate(self.stages[start:], start):
            batch = self._after_stage(place, stage.push(batch)) if len(batch) else batch
        return batch

    def _after_stage(self, place: int, batch: Batch) -> Batch:
        """Order what a stage hands back; what it may not show, the next one may not go by either."""
        hidden = sorted(self.traits[place].empties & {"rank", "url", "category"})
        if hidden and len(batch) and place + 1 < len(self.stages):
            batch = batch.replace(**{name: np.full(len(batch), MISSING) for name in hidden})
        return self._release_order(batch, place + 1)

    def _release_order(self, batch: Batch, stages: int | None = None) -> Batch:
        """Order by moment of release, then by time, then by a keyed hash: never by author.

        What has come through so many stages (all, if not said) may have an order of its own already.
        """
        buffering = [one for one in self.traits[:stages] if one.buffers_records]
        if buffering and buffering[-1].sets_release_order:
            return batch
        if len(batch) < 2 or bool(np.all(batch.seq[1:] > batch.seq[:-1])):
            return batch
        if bool(np.all(batch.seq[1:] >= batch.seq[:-1])):
            words = siphash.key_words(self._order_key)
            return batch[within_moments(batch.seq, batch.time, batch.row, *words, np.uint64(_ORDER))]
        ties = siphash.draw(self._order_key, _ORDER, batch.row)
        return batch[np.lexsort((ties, batch.time, batch.seq))]

    def ties(self, rows: IntArray) -> IntArray:
        """Return the numbers that decide between rows of one moment and time, to sort them elsewhere."""
        found = siphash.draw(self._order_key, _ORDER, rows)
        return (found ^ np.uint64(1 << 63)).view(np.int64)

    def register_users(self, users: IntArray) -> None:
        """Remember whom the log is about, for the truth."""
        new = np.flatnonzero(np.bincount(users + 1)) - 1  # codes are dense
        self._users = distinct(np.concatenate([self._users, new]))

    def check_user_count(self) -> None:
        """Raise if a stage cannot work with the number of users of the log."""
        for stage in self.stages:
            stage.check_user_count(int(self._users.size))

    def _label_of(self, users: IntArray) -> IntArray:
        return reduce(lambda codes, stage: stage.label_of(codes), self.stages, users)

    def labels_of_users(self, users: pl.Series) -> pl.Series:
        """Spell out the labels that stand for users."""
        return self.texts.user.decode(self._label_of(self.texts.user.encode(users)))

    def users_of_labels(self, labels: IntArray) -> pl.Series:
        """Spell out the users that labels stand for."""
        own = self._label_of(self._users)
        order = np.argsort(own)
        place = np.minimum(np.searchsorted(own[order], labels), max(own.size - 1, 0))
        return self.texts.user.decode(self._users[order][place])

    def drain_dropped(self) -> IntArray:
        """Hand over the rows that any stage dropped since the last call."""
        return np.concatenate([stage.drain_dropped() for stage in self.stages])

    def dropped(self) -> dict[str, dict[str, int]]:
        """Count what was dropped, by method and reason."""
        return {stage.name: dict(stage.dropped) for stage in self.stages}

    def snapshot(self) -> State:
        """Return the state of all stages."""
        parts = ((place, stage.snapshot()) for place, stage in enumerate(self.stages))
        return {f"{place}/{name}": array for place, state in parts for name, array in state.items()}

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        for place, stage in enumerate(self.stages):
            own = [name for name in state if name.startswith(f"{place}/")]
            stage.restore({name.removeprefix(f"{place}/"): state[name] for name in own})

    def __iter__(self) -> Iterator[Protector]:
        return iter(self.stages)
