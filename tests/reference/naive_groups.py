"""Microaggregation on plain lists: quotas, the middle of a group, its made-up history (003, 5.5)."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import floor

from tests.reference.naive_mdav import delta


def quotas(shares):
    """Largest remainders; of equal ones the first. The sum is rounded, a half upwards."""
    whole = [floor(share) for share in shares]
    order = sorted(range(len(shares)), key=lambda i: (whole[i] - shares[i], i))
    for i in order[: floor(sum(shares) + Fraction(1, 2)) - sum(whole)]:
        whole[i] += 1
    return whole


def middle(parent, categories):
    """Step 1 of 5.5.1.3: the category nearest to all others, each as often as it comes."""
    count = Counter(categories)
    far = {c: sum((w * delta(parent, c, other) for other, w in count.items()), Fraction(0)) for c in count}
    return min(sorted(count), key=far.get)


def sorted_by_distance(parent, own, centre):
    """Equation 5.15: a category's distance to the middle, times how often this person has it."""
    count = Counter(own)
    return sorted(own, key=lambda c: (count[c] * delta(parent, centre, c), c))


def history(parent, people):
    """Steps 1 and 2: the categories that stand for these people, each given as the list of her categories."""
    centre = middle(parent, [c for own in people for c in own])
    quota = quotas([Fraction(len(own), len(people)) for own in people])
    return [
        c
        for own, most in zip(people, quota, strict=True)
        for c in sorted_by_distance(parent, own, centre)[:most]
    ]


def shared(rows, k):
    """Give the labels whose history fewer than k labels have; rows are (label, everything else)."""
    histories = {}
    for label, *cells in rows:
        histories.setdefault(label, Counter())[tuple(cells)] += 1
    same = Counter(frozenset(history.items()) for history in histories.values())
    return {label for label, history in histories.items() if same[frozenset(history.items())] < k}


def far(rows, most):
    """Give the labels whose topics are further than this from everybody's; rows are (label, topic)."""
    everybody = Counter(topic for _, topic in rows)
    own = {label: Counter(t for other, t in rows if other == label) for label, _ in rows}

    def apart(mine):
        pairs = ((Fraction(mine[t], mine.total()), Fraction(n, len(rows))) for t, n in everybody.items())
        return sum((abs(a - b) for a, b in pairs), Fraction(0)) / 2

    return {label for label, mine in own.items() if apart(mine) > most}
