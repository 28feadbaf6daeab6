"""The nearest vectors by direction, in Python's own whole numbers."""

from __future__ import annotations


def by_nearness(wanted, vectors) -> list[int]:
    """Order vectors by their product with one; of equal ones the first comes first."""
    products = [sum(int(a) * int(b) for a, b in zip(wanted, one, strict=True)) for one in vectors]
    return sorted(range(len(products)), key=lambda i: (-products[i], i))
