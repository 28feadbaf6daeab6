"""Equation 1 of paper 004 with plain loops, and its least value over all cuts of a few events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

LEAST = 1e-6


def objective(links: Sequence[Sequence[float]], labels: Sequence[int]) -> float:
    everything = range(len(labels))
    total = 0.0
    for part in set(labels):
        members = [event for event in everything if labels[event] == part]
        to_all = sum(max(links[q][other], LEAST) for q in members for other in everything)
        inside = sum(max(links[q][other], LEAST) for q in members for other in members)
        total += len(members) ** 2 * to_all / inside
    return total


def cuts(size: int, parts: int) -> Iterator[list[int]]:
    """Give every cut into so many parts once: a new part always has the next number."""

    def grow(labels: list[int]) -> Iterator[list[int]]:
        if len(labels) == size:
            if max(labels) == parts - 1:
                yield labels
            return
        for part in range(min(max(labels, default=-1) + 1, parts - 1) + 1):
            yield from grow([*labels, part])

    return grow([])


def least(links: Sequence[Sequence[float]], parts: int) -> float:
    return min(objective(links, labels) for labels in cuts(len(links), parts))
