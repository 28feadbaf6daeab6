"""What released histories still have in common with the originals, and how many people that gives away."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence

#: For each thing, the histories that hold it and how often.
Holders = Mapping[Hashable, Sequence[tuple[int, int]]]


def record_linkage(original: Sequence[Sequence[Hashable]], released: Sequence[Sequence[Hashable]]) -> float:
    """Give the percentage of released histories that lead back to their originals: RL of paper 003.

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
    holders = _holders(original)
    shares = (_share(place, Counter(history), holders) for place, history in enumerate(released))
    return 100.0 * math.fsum(shares) / len(original)


def _holders(histories: Sequence[Sequence[Hashable]]) -> Holders:
    """Turn histories round, so that only those with something in common are ever compared."""
    found: dict[Hashable, list[tuple[int, int]]] = defaultdict(list)
    for place, history in enumerate(histories):
        for thing, count in Counter(history).items():
            found[thing].append((place, count))
    return dict(found)


def _share(place: int, history: Counter[Hashable], holders: Holders) -> float:
    """Give the chance to name the right original when all that are equally good are equally likely."""
    common: Counter[int] = Counter()
    for thing, count in history.items():
        for other, theirs in holders.get(thing, ()):
            common[other] += min(count, theirs)
    best = max(common.values(), default=0)
    tied = sum(number == best for number in common.values())
    return 1.0 / tied if best and common[place] == best else 0.0


def semantic_remain(original: Sequence[str], released: Sequence[str], level: int) -> float:
    """Give the share of a history's categories at a level that are still there: SRP of paper 003, 0 to 1.

    Both are sequences of category paths, one for each query (or several). Paths are cut at `level`; shorter
    ones have nothing at that level and do not count. A category counts as often as both have it. `nan` when
    no path of the original reaches the level.

    >>> semantic_remain(["Arts/Music", "Arts/Film", "Games"], ["Arts/Music", "Games/Chess"], level=2)
    0.5
    """
    if level < 1:
        raise ValueError("level must be at least 1")
    before, after = (Counter(_at_level(side, level)) for side in (original, released))
    return (before & after).total() / before.total() if before else float("nan")


def _at_level(paths: Sequence[str], level: int) -> list[str]:
    names = (path.split("/") for path in paths)
    return ["/".join(parts[:level]) for parts in names if len(parts) >= level]
