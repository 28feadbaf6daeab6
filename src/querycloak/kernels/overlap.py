"""Exact search for the histories with the largest overlap, counted with repetitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from querycloak.kernels.arrays import spans
from querycloak.log import Flags, IntArray

#: Two columns of equal length: each history that is looked for, and a label that it may be.
Pairs = tuple[IntArray, IntArray]

#: Pairs of histories that are looked at together, to bound memory.
ROOM = 1 << 22
#: Things that more labels have than this are left for later, in the hope that rarer ones decide.
CUTS = (64, 4096, np.iinfo(np.int64).max)


def closest(looked_for: Pairs, shown: Pairs, room: int = ROOM, cuts: Sequence[int] = CUTS) -> Iterator[Pairs]:
    """Return for each history all labels with the greatest overlap; who has none with anyone is left out.

    Exact, without looking at every pair: rare things are looked up first. A label that shares none of
    them shares at most the other, frequent things, so once a better label is known, only those that were met
    can win. Histories that rare things do not decide are looked up again, with a later cut; the last cuts
    nothing off.
    """
    index, wanted = _sides(looked_for, shown)
    left = np.flatnonzero(np.diff(wanted.starts) > 0)
    for cut in cuts:
        search = _Search.of(index, wanted, cut, room)
        unsure = [np.empty(0, np.int64)]
        for piece in pieces(search.cost[left], room):
            tied, later = search.settle(left[piece])
            yield tied
            unsure.append(later)
        left = np.concatenate(unsure)


@dataclass(frozen=True)
class _Wanted:
    """What each history holds, its rarest things first: those of h are `item[starts[h]:starts[h + 1]]`."""

    starts: IntArray
    item: IntArray


@dataclass(frozen=True)
class _Index:
    """Which labels have a thing (`label[starts[i]:starts[i + 1]]`), and all pairs of a label and a thing."""

    starts: IntArray
    label: IntArray
    pairs: IntArray
    labels: int

    @property
    def items(self) -> int:
        return self.starts.size - 1

    def having(self, label: IntArray, item: IntArray) -> Flags:
        """Return a mask of the labels that have the things."""
        pair = label * self.items + item
        place = np.minimum(np.searchsorted(self.pairs, pair), self.pairs.size - 1)
        found: Flags = self.pairs[place] == pair
        return found


def _sides(looked_for: Pairs, shown: Pairs) -> tuple[_Index, _Wanted]:
    """Number what labels have; the n-th time that a history has a thing is a thing of its own.

    So the number of things in common is the size of the intersection with repetitions.
    """
    many = 1 + int(max(looked_for[1].max(initial=-1), shown[1].max(initial=-1)))
    label, thing, nth = _numbered(*shown, many)
    deep = 1 + int(nth.max(initial=-1))
    names, item = np.unique(thing * deep + nth, return_inverse=True)
    order = np.argsort(item, kind="stable")
    starts = _starts(item, names.size)
    labels = 1 + int(label.max(initial=-1))
    index = _Index(starts, label[order], np.sort(label * names.size + item), labels)
    return index, _wanted(*_numbered(*looked_for, many), deep, names, index)


def _wanted(
    owner: IntArray, thing: IntArray, nth: IntArray, deep: int, names: IntArray, index: _Index
) -> _Wanted:
    """Keep the things that any label has, the rarest first."""
    owners = 1 + int(owner.max(initial=-1))
    name = thing * deep + nth
    place = np.searchsorted(names, name)
    met = np.flatnonzero((nth < deep) & (place < names.size))
    met = met[names[place[met]] == name[met]]
    owner, item = owner[met], place[met]
    order = np.lexsort((item, np.diff(index.starts)[item], owner))
    return _Wanted(_starts(owner, owners), item[order])


def _numbered(owner: IntArray, thing: IntArray, many: int) -> tuple[IntArray, IntArray, IntArray]:
    """Sort by owner and thing, and count from 0 how often each owner has had each thing."""
    both = np.sort(owner * many + thing)
    begins = np.flatnonzero(np.diff(both, prepend=-1))
    nth = np.arange(both.size) - np.repeat(begins, np.diff(begins, append=both.size))
    return both // max(many, 1), both % max(many, 1), nth


def _starts(code: IntArray, codes: int) -> IntArray:
    return np.concatenate([[0], np.cumsum(np.bincount(code, minlength=codes))])


@dataclass(frozen=True)
class _Search:
    """One look at the index: things up to `split` are looked up, the `rest` of a history is only bounded."""

    index: _Index
    wanted: _Wanted
    split: IntArray
    rest: IntArray
    cost: IntArray
    room: int

    @classmethod
    def of(cls, index: _Index, wanted: _Wanted, cut: int, room: int) -> _Search:
        """Divide every history at things that more than `cut` labels have."""
        spread = np.diff(index.starts)[wanted.item]
        rare = np.concatenate([[0], np.cumsum(spread <= cut)])
        many = np.concatenate([[0], np.cumsum(np.where(spread <= cut, spread, 0))])
        split = wanted.starts[:-1] + np.diff(rare[wanted.starts])
        return cls(index, wanted, split, wanted.starts[1:] - split, np.diff(many[wanted.starts]), room)

    def settle(self, owners: IntArray) -> tuple[Pairs, IntArray]:
        """Return the best labels of these histories, and the histories that rare things do not decide."""
        who, label, common = self._met(owners)
        begins, best = _runs(who, common)
        first = np.flatnonzero(common == best)
        first = first[np.flatnonzero(np.diff(who[first], prepend=-1))]
        # One label looked at in full says what the others must reach; most of them cannot.
        reached = common[first] + self._more(who[first], label[first])
        sizes = np.diff(begins, append=who.size)
        bound = np.repeat(np.where(reached > self.rest[who[first]], reached, np.iinfo(np.int64).max), sizes)
        able = common + self.rest[who] >= bound
        who, label = who[able], label[able]
        common = common[able] + self._more(who, label)
        tied = common == _runs(who, common)[1]
        return (who[tied], label[tied]), owners[~np.isin(owners, who)]

    def _met(self, owners: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Count the rare things that these histories share with each label, for all labels that share any."""
        sizes = (self.split - self.wanted.starts[:-1])[owners]
        item = self.wanted.item[spans(self.wanted.starts[owners], sizes)]
        owner = np.repeat(owners, sizes)
        spread = np.diff(self.index.starts)[item]
        parts = [pl.DataFrame(schema={"pair": pl.Int64, "n": pl.Int64})]
        for part in pieces(spread, self.room):
            label = self.index.label[spans(self.index.starts[item[part]], spread[part])]
            pair = np.repeat(owner[part], spread[part]) * self.index.labels + label
            parts.append(pl.DataFrame({"pair": pair}).group_by("pair").agg(n=pl.len().cast(pl.Int64)))
        met = pl.concat(parts).group_by("pair").agg(pl.col("n").sum()).sort("pair")
        pair, labels = met["pair"].to_numpy(), max(self.index.labels, 1)
        return pair // labels, pair % labels, met["n"].to_numpy()

    def _more(self, who: IntArray, label: IntArray) -> IntArray:
        """Count the frequent things that pairs of a history and a label share."""
        found = np.zeros(who.size, np.int64)
        for part in pieces(self.rest[who], self.room):
            sizes = self.rest[who[part]]
            item = self.wanted.item[spans(self.split[who[part]], sizes)]
            has = self.index.having(np.repeat(label[part], sizes), item)
            pair = np.repeat(np.arange(sizes.size), sizes)
            found[part] = np.bincount(pair[has], minlength=sizes.size)
        return found


def pieces(cost: IntArray, room: int) -> Iterator[slice]:
    """Cut a row of things into pieces that cost at most `room`, or hold one thing."""
    total = np.cumsum(cost)
    start = 0
    while start < cost.size:
        before = int(total[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(total, before + room, side="right")))
        yield slice(start, stop)
        start = stop


def _runs(who: IntArray, value: IntArray) -> tuple[IntArray, IntArray]:
    """Find where equal neighbours begin, and give to each the largest value among them."""
    begins = np.flatnonzero(np.diff(who, prepend=-1))
    if not begins.size:
        return begins, value
    return begins, np.repeat(np.maximum.reduceat(value, begins), np.diff(begins, append=who.size))
