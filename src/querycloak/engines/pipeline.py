"""Several methods one after the other, behind the same protocol as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from querycloak.dictionary import Texts
from querycloak.errors import Refused, UsageError
from querycloak.kernels import siphash
from querycloak.kernels.distinct import distinct
from querycloak.kernels.order import within_moments
from querycloak.keys import derive, stage_key
from querycloak.log import COUNTS, NOTHING, Batch, IntArray
from querycloak.protector import ERASED, Protector, State
from querycloak.registry import METHODS
from querycloak.settings import assign

_ORDER = 1  # the purpose of the draws that break ties of order


@dataclass(frozen=True)
class Stage:
    """A method by name with its settings: what a user asked for, before any key or data is there."""

    method: str
    settings: Any

    def build(self, release_key: bytes, place: int, texts: Texts) -> Protector:
        """Make the method, keyed for its place in this release."""
        key = stage_key(release_key, place, self.method, self.settings.as_dict())
        protector: Protector = METHODS.get(self.method)(self.settings, key, texts)
        return protector


def parse_stages(methods: list[str], chosen: Mapping[str, str]) -> list[Stage]:
    """Give each `[METHOD.]NAME=VALUE` to its stage; without a prefix exactly one stage must have it."""
    if not methods:
        raise UsageError("no method was named", hint="`querycloak methods` lists them")
    if len(set(methods)) < len(methods):
        raise UsageError("a method is named twice", hint="one release runs each method once")
    _check_order(methods)
    kinds = {method: METHODS.get(method).Settings for method in methods}
    return [Stage(method, settings) for method, settings in assign(chosen, kinds).items()]


def _check_order(methods: list[str]) -> None:
    """Refuse a method that wants records in the order of their times behind one in which they may wait."""
    for place, method in enumerate(methods):
        waiting = [earlier for earlier in methods[:place] if METHODS.get(earlier).holds]
        if METHODS.get(method).wants_order and waiting:
            raise UsageError(
                f"`{method}` needs records in the order of their times, but in `{waiting[0]}` they may wait",
                hint=f"name `{method}` before `{waiting[0]}`",
            )


def _check_tables(stages: list[Protector]) -> None:
    """Refuse a method behind one whose result has no records left."""
    for stage, after in pairwise(stages):
        if stage.table:
            raise Refused(
                f"`{stage.name}` gives a table of counts, and `{after.name}` needs records",
                hint=f"name `{stage.name}` last",
            )


def _check_columns(stages: list[Protector]) -> None:
    """Refuse a method that changes what an earlier one's promise is about."""
    for place, stage in enumerate(stages):
        for after in stages[place + 1 :]:
            changed = sorted(stage.stands_on & (after.rewrites - after.empties))
            if changed:
                raise Refused(
                    f"`{after.name}` changes `{changed[0]}`, and that is what `{stage.name}` promises about",
                    hint="use one of them",
                )


def _check_alone(stages: list[Protector]) -> None:
    """Refuse a promise about one person more or less behind a method in which that moves others' records."""
    for place, stage in enumerate(stages):
        mixing = [before.name for before in stages[:place] if not before.each_alone]
        if stage.wants_alone and mixing:
            raise Refused(
                f"`{stage.name}` promises that one person more or less hardly matters, and in `{mixing[0]}` "
                "other people's records depend on it",
                hint=f"run `{stage.name}` without `{mixing[0]}`",
            )


class Pipeline:
    """Runs stages one after the other; what one hands back is what the next takes in."""

    def __init__(self, stages: list[Stage], release_key: bytes, texts: Texts, first: int = 0) -> None:
        """Build the stages; `first` is the place of the first one where others run elsewhere before it."""
        self.texts = texts
        self.stages = [stage.build(release_key, place, texts) for place, stage in enumerate(stages, first)]
        self._order_key = derive(release_key, "order")
        moving = [s.name for s in self.stages if s.holds and "user" in s.rewrites and not s.wants_people]
        moving += [s.name for s in self.stages if "user" in s.empties]
        asking = [s.name for s in self.stages if s.wants_people and s.name not in moving]
        moving = [name for name in moving if name not in asking]
        if asking and moving:
            raise Refused(
                f"`{asking[0]}` must know whose each record is, and `{moving[0]}` hides it",
                hint="use one of them",
            )
        _check_tables(self.stages)
        _check_columns(self.stages)
        _check_alone(self.stages)
        self._met = np.empty(0, np.int64)

    @property
    def reads(self) -> frozenset[str]:
        """Columns that a batch must carry."""
        return frozenset[str]().union(*(stage.reads for stage in self.stages))

    @property
    def per_row(self) -> bool:
        """Say whether rows of one search go separate ways."""
        return any(stage.per_row for stage in self.stages)

    @property
    def rewrites(self) -> frozenset[str]:
        """Columns whose released value comes from the batch."""
        return frozenset[str]().union(*(stage.rewrites for stage in self.stages))

    @property
    def empties(self) -> frozenset[str]:
        """Columns that leave empty."""
        return frozenset[str]().union(*(stage.empties for stage in self.stages))

    @property
    def table(self) -> bool:
        """Say whether the result is a table of counts instead of records."""
        return any(stage.table for stage in self.stages)

    def counts(self) -> pl.DataFrame:
        """Give the table of counts, ordered by its own texts: never as the input was."""
        found = self.stages[-1].counts()
        names = [name for name in COUNTS if name in found.columns]
        return found.select(names).sort([name for name in ("query", "category", "user") if name in names])

    def prepare(self) -> None:
        """Let every stage say which optional part it misses."""
        for stage in self.stages:
            stage.prepare()

    def push(self, batch: Batch) -> Batch:
        """Take records in; hand back what every stage lets go."""
        return self._through(0, batch)

    def advance(self, watermark: int) -> Batch:
        """Tell every stage that event time has moved on."""
        return self._each_then_on(lambda stage: stage.advance(watermark))

    def close(self) -> Batch:
        """End the input of every stage in turn."""
        return self._each_then_on(lambda stage: stage.close())

    def erase(self, users: IntArray, rows: IntArray) -> None:
        """Forget people in every stage: by the labels that stand for them there, and by their input rows.

        `rows` are those of their records that have not come out: the caller knows, since it still has them.
        """
        if stuck := [stage.name for stage in self.stages if not stage.erases]:
            raise Refused(
                f"`{stuck[0]}` cannot forget anybody with these settings",
                hint="wait until the release has ended, or use other settings",
            )
        self._met = np.setdiff1d(self._met, users)
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
        return self._in_order(batch.replace(seq=np.maximum(batch.seq, read)))

    def _each_then_on(self, call: Any) -> Batch:
        released = Batch.empty(self.texts)
        for place, stage in enumerate(self.stages):
            released += self._through(place + 1, self._left(stage, call(stage)))
        return self._in_order(released)

    def _through(self, start: int, batch: Batch) -> Batch:
        for stage in self.stages[start:]:
            batch = self._left(stage, stage.push(batch)) if len(batch) else batch
        return batch

    def _left(self, stage: Protector, batch: Batch) -> Batch:
        """Order what a stage hands back; what it may not show, the next one may not go by either."""
        hidden = sorted(stage.empties & {"rank", "url", "category"})
        if hidden and len(batch) and stage is not self.stages[-1]:
            batch = batch.replace(**{name: np.full(len(batch), NOTHING) for name in hidden})
        return self._in_order(batch, self.stages.index(stage) + 1)

    def _in_order(self, batch: Batch, stages: int | None = None) -> Batch:
        """Order by moment of release, then by time, then by a keyed hash: never by author.

        What has come through so many stages (all, if not said) may have an order of its own already.
        """
        waiting = [stage for stage in self.stages[:stages] if stage.holds]
        if waiting and waiting[-1].orders:
            return batch
        if len(batch) < 2 or bool(np.all(batch.seq[1:] > batch.seq[:-1])):
            return batch
        if bool(np.all(batch.seq[1:] >= batch.seq[:-1])):
            words = siphash.key_words(self._order_key)
            return batch[within_moments(batch.seq, batch.time, batch.row, *words, np.uint64(_ORDER))]
        ties = siphash.draw(self._order_key, _ORDER, batch.row)
        return batch[np.lexsort((ties, batch.time, batch.seq))]

    def ties(self, rows: IntArray) -> IntArray:
        """Give the numbers that decide between rows of one moment and time, to sort them elsewhere."""
        found = siphash.draw(self._order_key, _ORDER, rows)
        return (found ^ np.uint64(1 << 63)).view(np.int64)

    def meet(self, users: IntArray) -> None:
        """Remember whom the log is about, for the truth."""
        new = np.flatnonzero(np.bincount(users + 1)) - 1  # codes are dense
        self._met = distinct(np.concatenate([self._met, new]))

    def check_people(self) -> None:
        """Let every stage refuse settings that the people of the log cannot meet."""
        for stage in self.stages:
            stage.check_people(int(self._met.size))

    def _label_of(self, users: IntArray) -> IntArray:
        for stage in self.stages:
            users = stage.label_of(users)
        return users

    def spelled_labels(self, users: pl.Series) -> pl.Series:
        """Spell out the labels that stand for users."""
        return self.texts.user.decode(self._label_of(self.texts.user.encode(users)))

    def behind(self, labels: IntArray) -> pl.Series:
        """Spell out the users that labels stand for."""
        own = self._label_of(self._met)
        order = np.argsort(own)
        place = np.minimum(np.searchsorted(own[order], labels), max(own.size - 1, 0))
        return self.texts.user.decode(self._met[order][place])

    def drain_dropped(self) -> IntArray:
        """Hand over the rows that any stage dropped since the last call."""
        return np.concatenate([stage.drain_dropped() for stage in self.stages])

    def dropped(self) -> dict[str, dict[str, int]]:
        """Count what was dropped, by method and reason."""
        return {stage.name: dict(stage.dropped) for stage in self.stages}

    def snapshot(self) -> State:
        """Give the state of all stages."""
        parts = ((place, stage.snapshot()) for place, stage in enumerate(self.stages))
        return {f"{place}/{name}": array for place, state in parts for name, array in state.items()}

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        for place, stage in enumerate(self.stages):
            prefix = f"{place}/"
            own = {name[len(prefix) :]: array for name, array in state.items() if name.startswith(prefix)}
            stage.restore(own)

    def __iter__(self) -> Iterator[Protector]:
        return iter(self.stages)
