"""Slow twins of the kernels behind the stronger attacks, built from dicts and loops."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise


def window_sums(
    labels: Sequence[int], categories: Sequence[int], place: int, scale: float, reach: int, barred: bool
) -> dict[int, float]:
    """Sum exp(-distance / scale) of each label near a place, in the order in which they are met."""
    sums: dict[int, float] = {}
    for near in range(max(0, place - reach), min(len(labels), place + reach + 1)):
        if categories[near] == categories[place] and not (barred and labels[near] == labels[place]):
            sums[labels[near]] = sums.get(labels[near], 0.0) + math.exp(-abs(near - place) / scale)
    return sums


def settled(
    labels: Sequence[int],
    categories: Sequence[int],
    group: Sequence[int],
    *,
    scale: float,
    reach: int,
    steady: float,
    spread: float,
    rounds: int,
) -> list[dict[int, float]]:
    """Expectation–maximisation over one group of places: what each believes about its author."""
    base = [_scaled(window_sums(labels, categories, place, scale, reach, True)) for place in group]
    if len(group) < 2:
        return base
    belief = [dict(one) for one in base]
    cluster = [0]
    for before, after in pairwise(group):
        cluster.append(cluster[-1] + (after - before > reach))
    rare = _rarities(labels, categories, group, base, steady)
    for _ in range(rounds):
        belief = _voted(labels, categories, group, base, belief, cluster, rare, reach, spread)
    return belief


def _scaled(weights: dict[int, float]) -> dict[int, float]:
    total = sum(weights.values())
    return {who: weight / total for who, weight in weights.items()} if total else {}


def _rarities(labels, categories, group, base, steady):  # type: ignore[no-untyped-def]
    """A label is as rare as in the category of the first record that it is a candidate of."""
    count = Counter(zip(categories, labels, strict=True))
    size = Counter(categories)
    rare: dict[int, float] = {}
    for place, candidates in zip(group, base, strict=True):
        for who in candidates:
            share = (count[categories[place], who] + steady) / size[categories[place]]
            rare.setdefault(who, 1 / share)
    return rare


def _voted(labels, categories, group, base, belief, cluster, rare, reach, spread):  # type: ignore[no-untyped-def]
    total: dict[int, float] = defaultdict(float)
    close: dict[tuple[int, int], float] = defaultdict(float)
    for number, one in zip(cluster, belief, strict=True):
        for who, sure in one.items():
            total[who] += sure
            close[number, who] += sure
    renewed = []
    for r, place in enumerate(group):
        times = Counter(
            labels[near]
            for near in range(max(0, place - reach), min(len(labels), place + reach + 1))
            if categories[near] == categories[place]
        )
        weights = {}
        for who, weight in base[r].items():
            here = close[cluster[r], who]
            near = (here - belief[r][who]) * (1 - 1 / times[who])
            weights[who] = weight * (spread + (total[who] - here + near) * rare[who])
        renewed.append(_scaled(weights))
    return renewed


def sessions(
    times: Sequence[int], words: Sequence[set[int]], frequency: Sequence[float], gap: float, chance: float
) -> list[set[int]]:
    """Join each record to the last one with a common word, unless too late or likely by chance."""
    sets = [{i} for i in range(len(times))]
    last: dict[int, int] = {}
    for i in sorted(range(len(times)), key=lambda i: (times[i], i)):
        for word in sorted(words[i]):
            j = last.get(word)
            last[word] = i
            if j is None or times[i] - times[j] > gap or (times[i] - times[j]) * frequency[word] > chance:
                continue
            merged = sets[i] | sets[j]
            for member in merged:
                sets[member] = merged
    return sets
