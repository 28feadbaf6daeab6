"""`link-overlap`: who knows whole histories looks for the labels that have most in common with each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak import settings as declared
from querycloak.attacks.finding import NotApplicable
from querycloak.attacks.protocol import Attack, AttackerView, Identification
from querycloak.dictionary import Dictionary
from querycloak.settings import setting

IntArray = npt.NDArray[np.int64]
#: Two columns of equal length: each history that is looked for, and a label that it may be.
Pairs = tuple[IntArray, IntArray]

#: Pairs of histories that are looked at together, to bound memory.
ROOM = 1 << 22
#: Things that more labels have than this are left for later, in the hope that rarer ones decide.
CUTS = (64, 4096, np.iinfo(np.int64).max)
#: Of more equally good labels than this, so many are drawn at random: the expected success is the same.
MOST_TIED = 100
#: So that what is put together is never nothing.
NONE = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


class LinkOverlap(Attack):
    """Knows everybody's whole history, and names the label whose released history has most in common with it.

    This is the record linkage of paper 003. What two histories have in common is counted as it is, with
    repetitions: who asked a thing three times shares two of them with a label that has it twice. Nothing is
    divided by the size of a history. Of several labels that are equally good each is named with the same
    probability, so that t of them, one of them right, count 1/t. A history that has nothing in common with
    any label is not linked, and counts as a miss. With `on=categories` only interests are known.

    Paper 003 goes from released histories to people; this goes from people to labels, as the game
    asks. The function `querycloak.measures.record_linkage` goes the paper's way.

    Limits: no bound is claimed. Only what both histories spell alike counts. Where everybody has much in
    common with everybody (`on=categories`) hardly anything can be skipped, and the time grows with labels
    times people; so in a large log `targets` of them are drawn.
    """

    name = "link-overlap"
    game = "identification"
    knows = frozenset({"histories"})
    needs = frozenset({"user"})

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `link-overlap`."""

        on: str = setting(
            "queries",
            kind=str,
            choices=("queries", "terms", "categories"),
            help="what histories are compared by: whole queries, their terms, or categories",
        )
        targets: int = setting(
            10_000, kind=int, at_least=0, help="people to look for, at most, drawn at random; 0: all"
        )
        seed: int = setting(0, kind=int, at_least=0, help="what the attack's draws start from")

    def guess(self, view: AttackerView) -> Identification:
        """Name the best labels of each person."""
        chosen: Any = self.settings
        if "histories" not in view.knowledge:
            raise NotApplicable("the attacker knows no histories")
        draws = np.random.default_rng(chosen.seed)
        known = some_people(view.knowledge["histories"], chosen.targets, draws)
        people, labels, things = Dictionary(), Dictionary(), Dictionary()
        looked_for = coded(contents(known, chosen.on, "history"), people, things)
        shown = coded(contents(view.release, chosen.on, "release"), labels, things)
        everyone = known["user"].drop_nulls().unique(maintain_order=True)
        found = [drawn(tied, MOST_TIED, draws) for tied in closest(looked_for, shown)]
        who, label, many = (np.concatenate(part) for part in zip(NONE, *found, strict=True))
        table = {"user": people.decode(who), "label": labels.decode(label), "many": many}
        return identified(everyone, pl.DataFrame(table))


def some_people(histories: pl.DataFrame, targets: int, draws: np.random.Generator) -> pl.DataFrame:
    """Keep the histories of some people, drawn at random; of all where `targets` is 0."""
    people = histories.select("user").drop_nulls().unique().sort("user")
    if not targets or targets >= people.height:
        return histories
    chosen = people[np.sort(draws.permutation(people.height)[:targets])]
    return histories.join(chosen, on="user", how="semi", maintain_order="left")


def contents(frame: pl.DataFrame, on: str, side: str) -> pl.DataFrame:
    """Give what each history holds, one `user, thing` for each time that it holds it."""
    column = "category" if on == "categories" else "query"
    if column not in frame.columns or frame[column].null_count() == frame.height:
        raise NotApplicable(f"the {side} has no {column}")
    rows = frame.select("user", thing=pl.col(column)).drop_nulls()
    return in_terms(rows) if on == "terms" else rows


def in_terms(rows: pl.DataFrame, wanted: pl.Series | None = None) -> pl.DataFrame:
    """Split the queries of `user, thing` into terms, all or those that are wanted."""
    different = rows.select("thing").unique()
    split = different.with_columns(term=terms_of(different["thing"])).explode("term").drop_nulls()
    if wanted is not None:
        split = split.join(pl.DataFrame({"term": wanted}), on="term", how="semi")
    return rows.join(split, on="thing").select("user", thing=pl.col("term"))


def terms_of(queries: pl.Series) -> pl.Series:
    """Split queries at everything but letters and digits, as `querycloak.measures.marketing.terms` does."""
    return queries.str.to_lowercase().str.extract_all(r"[\p{L}\p{N}][\p{L}\p{M}\p{N}]*")


def coded(rows: pl.DataFrame, owners: Dictionary, things: Dictionary) -> Pairs:
    """Put `user, thing` into numbers."""
    return owners.encode(rows["user"]), things.encode(rows["thing"])


def closest(
    looked_for: Pairs, shown: Pairs, room: int = ROOM, cuts: tuple[int, ...] = CUTS
) -> Iterator[Pairs]:
    """Give for each history all labels with the greatest overlap; who has none with anyone is left out.

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

    def having(self, label: IntArray, item: IntArray) -> npt.NDArray[np.bool_]:
        """Say whether labels have things."""
        pair = label * self.items + item
        place = np.minimum(np.searchsorted(self.pairs, pair), self.pairs.size - 1)
        found: npt.NDArray[np.bool_] = self.pairs[place] == pair
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
        """Give the best labels of these histories, and the histories for which rare things do not decide."""
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
        item = self.wanted.item[_spans(self.wanted.starts[owners], sizes)]
        owner = np.repeat(owners, sizes)
        spread = np.diff(self.index.starts)[item]
        parts = [pl.DataFrame(schema={"pair": pl.Int64, "n": pl.Int64})]
        for part in pieces(spread, self.room):
            label = self.index.label[_spans(self.index.starts[item[part]], spread[part])]
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
            item = self.wanted.item[_spans(self.split[who[part]], sizes)]
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


def _spans(begin: IntArray, size: IntArray) -> IntArray:
    """List the places `begin, begin + 1, …` of spans of these sizes, one span after the other."""
    return np.arange(int(size.sum())) + np.repeat(begin - np.cumsum(size) + size, size)


def _runs(who: IntArray, value: IntArray) -> tuple[IntArray, IntArray]:
    """Find where equal neighbours begin, and give to each the largest value among them."""
    begins = np.flatnonzero(np.diff(who, prepend=-1))
    if not begins.size:
        return begins, value
    return begins, np.repeat(np.maximum.reduceat(value, begins), np.diff(begins, append=who.size))


def drawn(pairs: Pairs, most: int, draws: np.random.Generator) -> tuple[IntArray, IntArray, IntArray]:
    """Keep at most so many labels of each history, drawn at random where there are more, and count them all.

    Pairs come sorted by history; the third column says how many labels the history had.
    """
    who, label = pairs
    begins = np.flatnonzero(np.diff(who, prepend=-1))
    sizes = np.diff(begins, append=who.size)
    many = np.repeat(sizes, sizes)
    if sizes.max(initial=0) <= most:
        return who, label, many
    order = np.lexsort((draws.random(who.size), who))
    kept = np.sort(order[np.arange(who.size) - np.repeat(begins, sizes) < most])
    return who[kept], label[kept], many[kept]


def identified(everyone: pl.Series, found: pl.DataFrame) -> Identification:
    """Guess all labels of each person with equal weight, given as `user, label, many`."""
    named = found.group_by("user").agg("label", pl.col("many").first())
    each = pl.DataFrame({"user": everyone}).join(named, on="user", how="left", maintain_order="left")
    sizes = each["many"].fill_null(0).to_numpy().astype(np.int64)
    return Identification(each["user"], each["label"], sizes, figures(sizes))


def figures(sizes: IntArray) -> dict[str, Any]:
    """Say how many candidates people have: `candidates` in numbers, and the shares with one and with none."""
    some = sizes[sizes > 0]
    return {
        "median_candidates": float(np.median(sizes)),
        "share_with_one_candidate": float(np.mean(sizes == 1)),
        "share_not_found": float(np.mean(sizes == 0)),
        "candidates": {
            "smallest": int(some.min()) if some.size else None,
            "empty": float(np.mean(sizes == 0)),
            "median": float(np.median(some)) if some.size else None,
        },
    }
