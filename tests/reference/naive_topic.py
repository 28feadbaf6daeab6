"""Paper 003, section 5.4, from terms to the log that is shown: algorithms 2 to 6 put together, on lists."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from tests.reference.naive_microagg import algorithm6, classification, clusters, incidence


class Record(NamedTuple):
    """A query, the number by which equals are ordered, and the coin for one more copy."""

    query: str
    draw: int
    coin: int


def groups(users, categories, levels, k):
    """Group users, who come in the order in which ties are broken; `categories` gives a query's paths."""
    terms = [[path for record in own for path in categories[record.query]] for own in users]
    matrices = [classification(terms, level) for level in range(1, levels + 1)]
    return clusters(incidence(matrices), k, list(range(len(users))))


def quotas(sizes, ties):
    """Each user's number of queries by the number of users; the sum is the mean, halves up.

    The largest remainders get what is left.
    """
    total = int(Fraction(sum(sizes), len(sizes)) + Fraction(1, 2))
    exact = [Fraction(size, len(sizes)) for size in sizes]
    whole = [int(share) for share in exact]
    order = sorted(range(len(sizes)), key=lambda i: (whole[i] - exact[i], ties[i]))
    for i in order[: total - sum(whole)]:
        whole[i] += 1
    return whole


def history(people):
    """Algorithm 6 for every user of a group: the queries that stand for all of them."""
    ties = [min(record.draw for record in own) for own in people]
    total = sum(map(len, people))
    shown = []
    for own, quota in zip(people, quotas([*map(len, people)], ties), strict=True):
        names = sorted({record.query for record in own})
        codes = [names.index(record.query) for record in own]
        draws, coins = [record.draw for record in own], [record.coin for record in own]
        shown += [names[code] for code in algorithm6(codes, total, quota, draws, coins)]
    return shown
