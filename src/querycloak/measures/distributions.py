"""How far two distributions lie apart."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence


def _normalised(weights: Sequence[float]) -> list[float]:
    if any(not weight >= 0 for weight in weights):  # NaN is not at least 0 either
        raise ValueError("weights must be numbers of at least 0")
    total = math.fsum(weights)
    if not 0 < total < math.inf:
        raise ValueError("weights must have a positive, finite sum")
    return [weight / total for weight in weights]


def jensen_shannon(p: Sequence[float], q: Sequence[float]) -> float:
    """Return the Jensen–Shannon divergence of two equally long sequences of weights: base 2, 0 to 1.

    >>> jensen_shannon([1, 0], [0, 3])
    1.0
    """
    if len(p) != len(q):
        raise ValueError(f"the sequences must be equally long; got {len(p)} and {len(q)}")
    pairs = list(zip(_normalised(p), _normalised(q), strict=True))
    total = math.fsum(_towards_middle(a, b) + _towards_middle(b, a) for a, b in pairs)
    return min(1.0, max(0.0, total / 2))


def _towards_middle(a: float, b: float) -> float:
    return a * math.log2(2 * a / (a + b)) if a > 0 else 0.0


def tree_emd(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """Return the exact earth mover's distance of two `{path: count}` on the tree of their paths.

    Each is normalised to 1 and every edge is 1 long, the one from the root to level 1 too. On a tree
    the least cost is the sum over all edges of the difference of the mass below them.

    >>> tree_emd({"Sports/Soccer": 4}, {"Sports/Tennis": 1})
    2.0
    """
    below: dict[str, list[float]] = defaultdict(list)
    for sign, counts in ((1.0, a), (-1.0, b)):
        weights = _normalised(list(counts.values()))
        for path, weight in zip(counts, weights, strict=True):
            for edge in _prefixes(path):
                below[edge].append(sign * weight)
    return math.fsum(abs(math.fsum(masses)) for masses in below.values())


def _prefixes(path: str) -> list[str]:
    names = path.split("/")
    return ["/".join(names[: depth + 1]) for depth in range(len(names))]


def largest_tree_emd(paths: Sequence[str]) -> float:
    """Return the largest distance that two distributions over these paths can have: the tree's diameter."""
    deepest: dict[str, int] = {}
    for path in paths:
        top = path.partition("/")[0]
        deepest[top] = max(deepest.get(top, 0), path.count("/") + 1)
    best = sorted(deepest.values(), reverse=True)[:2]
    return float(sum(best)) if len(best) == 2 else float(2 * max(best[0] - 1, 0) if best else 0)
