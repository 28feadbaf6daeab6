"""Privacy accounting: the ε that several draws spend together, rounded up; the ε that one may spend, down.

Draws on one history add (`sequential`). For many draws of the exponential mechanism `zcdp` accounting is
tighter: a draw whose privacy loss has a range of at most η (the largest loss less the smallest, over all
outcomes) is η²/8-zCDP, and zCDP adds. OpenDP turns the sum into (ε, δ).

References: J. Dong, D. Durfee, R. Rogers, *Optimal differential privacy composition for exponential
mechanisms*, ICML 2020 (bounded range). M. Cesar, R. Rogers, *Bounding, concentrating, and truncating:
unifying privacy loss composition for data analytics*, ALT 2021 (η²/8).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from querycloak.errors import MissingExtra, ParameterError
from querycloak.log import IntArray

Composition = Literal["sequential", "zcdp"]

#: Covers the few last digits by which logarithms, roots and exponentials may be wrong.
_SLACK = 1e-12
_STEPS = 200


@cache
def library(purpose: str = "accounting by zCDP") -> Any:
    """Load the parts of OpenDP that we use, or say which extra brings it."""
    try:
        import opendp.combinators
        import opendp.domains
        import opendp.measurements
        import opendp.metrics
        import opendp.mod
    except ImportError:
        raise MissingExtra("dp", purpose) from None
    opendp.mod.enable_features("contrib")
    return opendp


def rounded_up(value: Fraction) -> float:
    """Return the smallest number of the machine that is not below."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def rounded_down(value: Fraction) -> float:
    """Return the largest number of the machine that is not above."""
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return the ε that ρ-zCDP means at δ, by OpenDP's own conversion.

    OpenDP converts mechanisms, not numbers: a Gaussian of variance 1/(2ρ) on whole numbers has exactly ρ. The
    one that is converted has no smaller ρ than the given one.
    """
    _check(rho, 1, delta)
    opendp = library()
    space = opendp.domains.atom_domain(T="i64"), opendp.metrics.absolute_distance(T="i64")
    scale = math.sqrt(1 / (2 * rho))
    for _ in range(_STEPS):
        noise = opendp.measurements.make_gaussian(*space, scale=scale)
        if noise.map(1) >= rho:
            return float(opendp.combinators.make_zCDP_to_approxDP(noise).map(1).epsilon(delta))
        scale = math.nextafter(scale, 0.0)
    raise ParameterError(f"ρ must be a number that noise can have; got {rho!r}")


@cache
def zcdp_share(epsilon: float, delta: float) -> float:
    """Return the largest ρ that OpenDP's conversion allows for ε at δ; it never spends more."""
    _check(epsilon, 1, delta)
    tail = math.log(1 / delta)
    low = (math.sqrt(tail + epsilon) - math.sqrt(tail)) ** 2  # ρ + 2√(ρ ln 1/δ) = ε, which is always safe
    while zcdp_epsilon(low, delta) > epsilon:
        low /= 2
    high = 2 * low
    while zcdp_epsilon(high, delta) <= epsilon:
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if not low < middle < high or high - low <= _SLACK * low:
            break
        if zcdp_epsilon(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def per_draw(
    epsilon: float, draws: int, composition: Composition = "sequential", delta: float = 0.0
) -> float:
    """Return the range η that each of so many draws on one history may have, so that all spend at most ε."""
    if composition == "sequential":
        _check(epsilon, draws)
        return rounded_down(Fraction(epsilon) / draws)
    _check(epsilon, draws, delta)
    share = zcdp_share(epsilon, delta)
    eta = math.sqrt(8 * share / draws)
    while Fraction(eta) ** 2 * draws > 8 * Fraction(share):
        eta = math.nextafter(eta, 0.0)
    return max(eta, rounded_down(Fraction(epsilon) / draws))  # for few draws, plain adding allows more


def total(eta: float, draws: int, composition: Composition = "sequential", delta: float = 0.0) -> float:
    """Return the ε that so many draws of range η on one history spend in all; at δ, by zCDP."""
    if composition == "sequential":
        _check(eta, draws)
        return rounded_up(Fraction(eta) * draws)
    _check(eta, draws, delta)
    plain = rounded_up(Fraction(eta) * draws)  # for few draws, adding them up says less
    return min(plain, zcdp_epsilon(rounded_up(Fraction(eta) ** 2 * draws / 8), delta))


def _check(epsilon: float, draws: int, delta: float | None = None) -> None:
    """Refuse what no budget can be: all bounds are open, NaN included."""
    if not 0 < epsilon < math.inf:
        raise ParameterError(f"ε must be a number above 0; got {epsilon!r}")
    if draws < 1:
        raise ParameterError(f"there must be at least 1 draw; got {draws!r}")
    if delta is not None and not 0 < delta < 1:
        raise ParameterError(f"δ must be between 0 and 1; got {delta!r}")


#: Similarity is computed for all pairs, so very long histories are cut into segments of at most this size.
_LONGEST_SEGMENT = 1000


def segments(slots: int) -> list[tuple[int, int]]:
    """Return so many slots in segments of about the same size."""
    parts = -(-slots // _LONGEST_SEGMENT)
    return list(pairwise(np.linspace(0, slots, parts + 1).astype(int).tolist())) if slots else []


def group_count(slots: int, size: int) -> int:
    """Return the number of groups of at least `size` of a segment of so many slots."""
    return max(slots // size, 1)


def draw_count(slots: IntArray, size: int) -> IntArray:
    """Return the number of draws of histories (or of their parts in one domain) with so many slots.

    It depends on the number of slots alone, never on their content.
    """
    sizes, number = np.unique(slots, return_inverse=True)
    draws = [sum(group_count(end - start, size) for start, end in segments(int(n))) for n in sizes]
    return np.array(draws, np.int64)[number]
