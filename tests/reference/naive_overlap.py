"""Record linkage on plain lists, slowly: every history is compared with every other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

History = Sequence[Hashable]


def overlap(one: History, other: History) -> int:
    """Count what two histories have in common, by crossing out."""
    left, common = list(other), 0
    for thing in one:
        if thing in left:
            left.remove(thing)
            common += 1
    return common


def best(history: History, others: Mapping[Any, History]) -> set[Any]:
    """Name those of the others that have most in common with a history; nobody where nobody has anything."""
    common = {name: overlap(history, other) for name, other in others.items()}
    most = max(common.values(), default=0)
    return {name for name, number in common.items() if number == most and most > 0}


def record_linkage(original: Sequence[History], released: Sequence[History]) -> Fraction:
    """RL of paper 003, as a share."""
    everyone = dict(enumerate(original))
    linked = [best(history, everyone) for history in released]
    shares = [Fraction(place in found, max(len(found), 1)) for place, found in enumerate(linked)]
    return sum(shares, Fraction(0)) / len(original)


def histories(users: Sequence[Any], things: Sequence[Hashable]) -> dict[Any, list[Hashable]]:
    """Collect what each user has."""
    found: dict[Any, list[Hashable]] = {}
    for user, thing in zip(users, things, strict=True):
        found.setdefault(user, []).append(thing)
    return found


def holding_all(known: History, others: Mapping[Any, History]) -> set[Any]:
    """Name those that hold all of these."""
    return {name for name, other in others.items() if not Counter(set(known)) - Counter(set(other))}
