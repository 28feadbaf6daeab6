"""Measures of paper 003 for each user, and over all users: exposure, information loss, meaning, linkage."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak.dictionary import Dictionary
from querycloak.errors import NotApplicable
from querycloak.kernels.arrays import information
from querycloak.kernels.overlap import closest
from querycloak.log import FloatArray, IntArray
from querycloak.measures.base import Kind, LogPair, Measure, Unit

#: Paper 003 calls a person exposed when more than this percentage of the history is.
EXPOSED: Final = 60.0
#: Sums that should be 100 may be so much above.
ROUNDING: Final = 1e-9
#: The deepest level that is looked at; paper 003 stops here too.
DEEPEST: Final = 5
#: Linkage compares histories with everybody's: of more people than this, so many are drawn.
MOST_LINKED: Final = 5000


def drawn(people: IntArray, most: int) -> IntArray:
    """Keep so many people at most, drawn at random, but the same ones each time."""
    if people.size <= most:
        return people
    return np.sort(np.random.default_rng(0).choice(people, most, replace=False))


@dataclass(frozen=True)
class Histories:
    """The people of the original with what they asked and what was released under their labels.

    `asked` and `shown` count how often a person has a thing in either log. Rows are sorted by person and then
    by thing; those without a count on one side have 0 there.
    """

    people: int
    things: pl.Series
    person: IntArray
    thing: IntArray
    asked: IntArray
    shown: IntArray

    @classmethod
    def of_lists(
        cls, original: Sequence[Sequence[Hashable]], released: Sequence[Sequence[Hashable]]
    ) -> Histories:
        """Return the histories of users whose i-th released history belongs to the i-th original."""
        lists, codes = [*original, *released], dict[Hashable, int]()
        place = np.repeat(np.arange(len(lists)), [len(one) for one in lists])
        thing = [codes.setdefault(thing, len(codes)) for one in lists for thing in one]
        kind = pl.String if all(isinstance(thing, str) for thing in codes) else pl.Object
        things, asked = pl.Series(list(codes), dtype=kind), place < len(original)
        person = np.where(asked, place, place - len(original))
        return cls._counted(len(original), things, person, np.array(thing, np.int64), asked)

    @classmethod
    def of(cls, pair: LogPair, column: str) -> Histories:
        """Count a column of both logs by person, or say why that cannot be done."""
        pair.both(column), pair.both("user")
        users, things = Dictionary(), Dictionary()
        who = users.encode(pair.original["user"])
        people = len(users.texts())
        label = users.encode(pair.label_owner())
        label = np.where(label < people, label, -1)
        if not np.any(label >= 0):
            need = "fresh ones need the truth" if pair.truth is None else "the truth names nobody behind them"
            raise NotApplicable(f"no label of the release is a user of the original; {need}")
        thing = [things.encode(frame[column]) for frame in (pair.original, pair.released)]
        person, asked = np.concatenate([who, label]), np.arange(who.size + label.size) < who.size
        return cls._counted(people, things.texts(), person, np.concatenate(thing), asked)

    @classmethod
    def _counted(
        cls, people: int, things: pl.Series, person: IntArray, thing: IntArray, asked: Any, shown: Any = None
    ) -> Histories:
        """Sum up counts by person and thing; rows without one of both (-1) are left out."""
        known, many = np.flatnonzero((person >= 0) & (thing >= 0)), max(things.len(), 1)
        pair, place = np.unique(person[known] * many + thing[known], return_inverse=True)
        sides = (side[known] for side in (asked, ~asked if shown is None else shown))
        counts = (np.bincount(place, side, minlength=pair.size).astype(np.int64) for side in sides)
        return cls(people, things, pair // many, pair % many, *counts)

    def totals(self, count: IntArray) -> IntArray:
        """Return the size of each person's history on one side."""
        return np.bincount(self.person, count, minlength=self.people).astype(np.int64)

    def entropies(self, count: IntArray) -> FloatArray:
        """Return the entropy in bits of each person's history on one side; 0 where it is empty."""
        there = np.flatnonzero(count)
        person = self.person[there]
        share = count[there] / self.totals(count)[person]
        return np.abs(np.bincount(person, -share * np.log2(share), minlength=self.people))

    def common(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return what people have in both logs: whose each thing is, and how often it is in either."""
        both = np.flatnonzero((self.asked > 0) & (self.shown > 0))
        return self.person[both], self.asked[both].astype(np.float64), self.shown[both].astype(np.float64)

    def searchers(self) -> IntArray:
        """Return the people who asked anything."""
        return np.flatnonzero(self.totals(self.asked))

    def at_level(self, level: int) -> Histories:
        """Return histories of categories cut at a level; those that do not reach it are left out."""
        names = pl.col("path").str.split("/")
        cut = pl.when(names.list.len() >= level).then(names.list.head(level).list.join("/"))
        table = self.things.rename("path").to_frame().select(path=cut)
        numbers = table.drop_nulls().unique(maintain_order=True).with_row_index("code")
        codes = table.join(numbers, on="path", how="left", maintain_order="left")["code"].cast(pl.Int64)
        thing = codes.fill_null(-1).to_numpy()[self.thing]
        return self._counted(self.people, numbers["path"], self.person, thing, self.asked, self.shown)


def profile_exposure(original: Sequence[Hashable], released: Sequence[Hashable]) -> float:
    """Return in percent how much of a person's history a released one exposes: PEL of paper 003.

    Both are sequences of queries, or of categories. It is the mutual information that the paper assumes,
    over the original's entropy. A query that is released no more often than it was asked points to itself;
    one that is released more often only in part; one that was never asked tells nothing. The sum is not
    bounded by 100. `nan` when the original has one distinct query or none, 0 when nothing is released.

    >>> round(profile_exposure(["jazz", "oboe"], ["jazz", "jazz"]), 3)
    18.872
    """
    return float(exposures(Histories.of_lists([original], [released]))[0])


def information_loss_ratio(original: Sequence[Hashable], released: Sequence[Hashable]) -> float:
    """Return in percent by how much the entropy of a person's history has changed: ILR of paper 003.

    Only how often things occur counts, not which things they are. More than 100 when a release is more than
    twice as varied; `nan` when the original has one distinct query or none.

    >>> round(information_loss_ratio(["jazz", "oboe", "lute"], ["jazz", "oboe"]), 3)
    36.907
    """
    return float(loss_ratios(Histories.of_lists([original], [released]))[0])


def semantic_remain(original: Sequence[str], released: Sequence[str], level: int) -> float:
    """Return the share of a history's categories at a level that are still there: SRP of paper 003, 0 to 1.

    Both are sequences of category paths, one for each query (or several). Paths are cut at `level`; shorter
    ones have nothing at that level and do not count. A category counts as often as both have it. `nan` when
    no path of the original reaches the level.

    >>> semantic_remain(["Arts/Music", "Arts/Film", "Games"], ["Arts/Music", "Games/Chess"], level=2)
    0.5
    """
    if level < 1:
        raise ValueError("level must be at least 1")
    return float(remaining(Histories.of_lists([original], [released]), level)[0])


def record_linkage(original: Sequence[Sequence[Hashable]], released: Sequence[Sequence[Hashable]]) -> float:
    """Return the percentage of released histories that lead back to their originals: RL of paper 003.

    The i-th released history belongs to the i-th original; a history is a sequence of queries, or of
    categories. Each released history is linked to the originals that have most in common with it, counted
    with repetitions and not divided by anything. Of t that tie, one of them right, it counts 1/t. One that
    has nothing in common with any original is not linked and counts 0.

    >>> record_linkage([["jazz", "oboe"], ["jazz"], ["chess"]], [["jazz"], ["jazz"], []])
    33.333333333333336
    """
    if len(original) != len(released):
        raise ValueError(f"the lists must be equally long; got {len(original)} and {len(released)}")
    if not original:
        return float("nan")
    shares = linked(Histories.of_lists(original, released), np.arange(len(original)))
    return 100.0 * math.fsum(shares.tolist()) / len(original)


def _kinds(pair: LogPair) -> Iterator[tuple[str, Histories]]:
    """Return histories of queries and, where both logs have them, of categories."""
    yield "queries", Histories.of(pair, "query")
    try:
        yield "categories", Histories.of(pair, "category")
    except NotApplicable:
        return


def exposures(histories: Histories) -> FloatArray:
    """Return each person's `profile_exposure`."""
    person, asked, shown = histories.common()
    sizes = (histories.totals(count)[person].astype(float) for count in (histories.asked, histories.shown))
    told = np.bincount(person, information(asked, shown, *sizes), histories.people)
    return _percent(told.astype(float), histories.entropies(histories.asked))


def loss_ratios(histories: Histories) -> FloatArray:
    """Return each person's `information_loss_ratio`."""
    before, after = map(histories.entropies, (histories.asked, histories.shown))
    return _percent(np.abs(before - after), before)


def remaining(histories: Histories, level: int) -> FloatArray:
    """Return each user's `semantic_remain`."""
    cut = histories.at_level(level)
    person, theirs, ours = cut.common()
    kept = np.bincount(person, np.minimum(theirs, ours), cut.people)
    reached = cut.totals(cut.asked)
    return np.where(reached > 0, kept / np.maximum(reached, 1), np.nan)


def _percent(part: FloatArray, whole: FloatArray) -> FloatArray:
    return np.where(whole > 0, 100.0 * part / np.where(whole > 0, whole, 1.0), np.nan)


def _by_kind(
    pair: LogPair, each: Callable[[Histories], FloatArray], figures: Callable[[FloatArray], dict[str, Any]]
) -> dict[str, Any]:
    """Measure people by queries and by categories; those of whom it is not defined do not count."""
    found: dict[str, Any] = {}
    for kind, histories in _kinds(pair):
        values = each(histories)
        known = values[~np.isnan(values)]
        if known.size:
            named = figures(known) | {"people": int(known.size)}
            found |= {f"{kind}_{name}": figure for name, figure in named.items()}
    if not found:
        raise NotApplicable("nobody has more than one distinct query in the original")
    return found


class ProfileExposure(Measure):
    """How much of people's histories the releases under their labels expose: PEL of paper 003.

    What is above 100 for a person counts as 100; `over_100` is the share of people of whom that is so.
    """

    name = "profile_exposure"
    help = (
        "percent of people's queries and categories exposed: mean and median (each person's clipped "
        "at 100, `over_100` says how many), and the share of people above 60 percent"
    )
    unit, kind = Unit.PERCENT, Kind.PRIVACY
    headline = "queries_mean"

    def __call__(self, pair: LogPair) -> dict[str, Any]:
        """Return the figures over users with two distinct queries or more."""
        return _by_kind(pair, exposures, _exposure_figures)


def _exposure_figures(raw: FloatArray) -> dict[str, Any]:
    shown = np.minimum(raw, 100.0)
    return {
        "mean": float(shown.mean()),
        "median": float(np.median(shown)),
        "above_60": float((raw > EXPOSED).mean()),
        "over_100": float((raw > 100.0 + ROUNDING).mean()),
    }


class InformationLossRatio(Measure):
    """By how much the variety of people's histories has changed: ILR of paper 003."""

    name = "information_loss_ratio"
    help = "percent by which the entropy of people's queries and categories has changed: mean and median"
    unit, kind = Unit.PERCENT, Kind.LOSS
    headline = "queries_mean"

    def __call__(self, pair: LogPair) -> dict[str, Any]:
        """Return the figures over users with two distinct queries or more."""
        return _by_kind(
            pair, loss_ratios, lambda lost: {"mean": float(lost.mean()), "median": float(np.median(lost))}
        )


class SemanticRemain(Measure):
    """The share of people's categories that is still there, level by level: SRP of paper 003.

    Categories that do not reach a level do not count there. Levels go down to 5, as in the paper.
    """

    name = "semantic_remain"
    help = "mean share of people's categories that are still there, for each level from 1 to 5"
    unit, kind = Unit.SHARE, Kind.USE
    headline = "level_1"

    def __call__(self, pair: LogPair) -> dict[str, Any]:
        """Average over the people who have categories at the level."""
        histories = Histories.of(pair, "category")
        found: dict[str, Any] = {}
        for level in range(1, DEEPEST + 1):
            shares = remaining(histories, level)
            known = shares[~np.isnan(shares)]
            if not known.size:
                break
            found[f"level_{level}"] = float(known.mean())
        return found


class RecordLinkage(Measure):
    """How many released histories lead back to the right person: RL of paper 003.

    Compares each released history with everybody's original one. Of more than 5,000 people, 5,000 are
    drawn, always the same ones; `people` says how many were linked, or could have been.
    """

    name = "record_linkage"
    help = "percent of released histories that lead back to their people, by queries and by categories"
    unit, kind = Unit.PERCENT, Kind.PRIVACY
    headline = "queries"

    def __call__(self, pair: LogPair) -> dict[str, Any]:
        """Link by queries and by categories."""
        found: dict[str, Any] = {}
        for kind, histories in _kinds(pair):
            targets = drawn(histories.searchers(), MOST_LINKED)
            share = linked(histories, targets)
            found |= {kind: float(100.0 * share.mean()), f"{kind}_people": int(targets.size)}
        return found


def linked(histories: Histories, targets: IntArray) -> FloatArray:
    """Return for each target the probability that the released history leads to them, ties shared."""
    sought = np.where(np.isin(histories.person, targets), histories.shown, 0)
    released, originals = (
        (np.repeat(histories.person, count), np.repeat(histories.thing, count))
        for count in (sought, histories.asked)
    )
    found = np.zeros(histories.people)
    for person, owner in closest(released, originals):
        ties = np.bincount(person, minlength=histories.people)
        own = person[owner == person]
        found[own] = 1.0 / ties[own]
    return found[targets]
