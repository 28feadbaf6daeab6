"""What stands for a group in `microagg-semantic` with `similarity=embedding`, query by query."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

from tests.reference.naive_groups import quotas


def apart(a, b) -> float:
    """1 - cosine; 1 where one has no direction."""
    length = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return 1 - sum(x * y for x, y in zip(a, b, strict=True)) / length if length else 1.0


def mean(vectors) -> list[float]:
    """The mean of vectors, each as often as it comes."""
    return [sum(column) / len(vectors) for column in zip(*vectors, strict=True)]


def history(people, vector_of) -> Counter:
    """Give the queries that stand for a group: of each person her quota, by distance times how often."""
    everything = [query for own in people for query in own]
    middle = mean([vector_of[query] for query in everything])
    most = quotas([Fraction(len(own), len(people)) for own in people])
    chosen = Counter()
    for own, quota in zip(people, most, strict=True):
        count = Counter(own)
        cost = {query: round(count[query] * apart(vector_of[query], middle), 9) for query in count}
        chosen.update(sorted(own, key=lambda query: (cost[query], query))[:quota])
    return chosen
