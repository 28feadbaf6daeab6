"""What many private steps spend together: never less than it says, and tight where it should be."""

from __future__ import annotations

import builtins
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querycloak import accounting
from querycloak.errors import MissingExtra, ParameterError

epsilons = st.floats(0.01, 50.0)
deltas = st.floats(1e-12, 0.1)
many = st.integers(1, 5000)
few = settings(max_examples=8)  # a search in OpenDP's conversion takes a tenth of a second


@given(epsilons, many)
def test_a_share_of_the_budget_never_exceeds_it(epsilon, draws):
    eta = accounting.per_draw(epsilon, draws)
    assert Fraction(eta) * draws <= Fraction(epsilon)
    assert accounting.total(eta, draws) <= epsilon
    assert eta == pytest.approx(epsilon / draws)


@pytest.mark.dp
@few
@given(epsilons, deltas, many)
def test_by_zcdp_the_draws_spend_at_most_what_was_asked(epsilon, delta, draws):
    eta = accounting.per_draw(epsilon, draws, "zcdp", delta)
    assert accounting.total(eta, draws, "zcdp", delta) <= epsilon
    assert accounting.total(eta, draws, "zcdp", delta) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.dp
@few
@given(epsilons, deltas)
def test_the_share_in_zcdp_is_safe_and_the_largest(epsilon, delta):
    rho = accounting.zcdp_share(epsilon, delta)
    assert accounting.zcdp_epsilon(rho, delta) <= epsilon < accounting.zcdp_epsilon(rho * 1.0001, delta)
    # Bun and Steinke's simple formula, ρ + 2√(ρ ln 1/δ), is never better than OpenDP's.
    assert epsilon <= (rho + 2 * math.sqrt(rho * math.log(1 / delta))) * (1 + 1e-9)


@pytest.mark.dp
@few
@given(epsilons, epsilons, deltas)
def test_more_budget_never_buys_less(one, other, delta):
    less, more = sorted((one, other))
    assert accounting.zcdp_share(less, delta) <= accounting.zcdp_share(more, delta)
    assert accounting.zcdp_share(less, delta) <= accounting.zcdp_share(less, min(0.5, 2 * delta))


@pytest.mark.dp
def test_more_draws_leave_less_for_each():
    shares = [accounting.per_draw(2.0, draws, "zcdp", 1e-6) for draws in (1, 2, 10, 100, 1000)]
    assert shares == sorted(shares, reverse=True)


@pytest.mark.dp
def test_few_draws_are_cheapest_by_adding_and_many_by_zcdp():
    for draws, better in ((1, "sequential"), (3, "sequential"), (100, "zcdp"), (1000, "zcdp")):
        by = {way: accounting.per_draw(1.0, draws, way, 1e-6) for way in ("sequential", "zcdp")}
        assert max(by, key=by.get) == better


@pytest.mark.dp
def test_advanced_composition_is_beaten_by_zcdp_for_draws_of_bounded_range():
    """Advanced composition: C. Dwork, G. Rothblum, S. Vadhan, FOCS 2010."""
    for eta, draws in ((0.1, 100), (0.01, 10_000), (0.5, 20)):
        advanced = math.sqrt(2 * draws * math.log(1e6)) * eta + draws * eta * math.expm1(eta)
        assert accounting.total(eta, draws, "zcdp", 1e-6) < advanced


def randomised_response(eta: float) -> list[tuple[float, float]]:
    """Two distributions on two outcomes whose losses lie η apart: the worst that a range of η allows."""
    found = []
    for shift in (0.1, 0.3, 0.5, 0.7, 0.9):  # the losses are shift·η and (shift − 1)·η
        up, down = math.exp(shift * eta), math.exp((shift - 1) * eta)
        q = (1 - down) / (up - down)
        found += [(q * up, q), ((1 - q) * down, 1 - q)]
    return found


@pytest.mark.dp
@pytest.mark.parametrize(("eta", "draws"), [(0.5, 12), (1.0, 8), (0.2, 40)])
def test_the_total_covers_the_worst_draws_exactly(eta, draws):
    """Sum δ over all outcomes of repeated worst draws: it must stay below the one that was paid for."""
    delta = 1e-4
    epsilon = accounting.total(eta, draws, "zcdp", delta)
    pairs = randomised_response(eta)
    for (p, q), (other_p, other_q) in zip(pairs[::2], pairs[1::2], strict=True):
        assert p + other_p == pytest.approx(1)
        ways = [math.comb(draws, hits) for hits in range(draws + 1)]
        ours = [w * p**k * other_p ** (draws - k) for k, w in enumerate(ways)]
        theirs = [w * q**k * other_q ** (draws - k) for k, w in enumerate(ways)]
        true = sum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(ours, theirs, strict=True))
        assert true <= delta


@pytest.mark.parametrize(
    ("epsilon", "draws", "delta"),
    [(0.0, 1, 0.1), (-1.0, 1, 0.1), (math.nan, 1, 0.1), (math.inf, 1, 0.1), (1.0, 0, 0.1), (1.0, 1, 0.0)],
)
def test_what_no_budget_can_be_is_refused(epsilon, draws, delta):
    with pytest.raises(ParameterError):
        accounting.per_draw(epsilon, draws, "zcdp", delta)


def test_without_the_extra_it_says_how_to_get_it(monkeypatch):
    accounting.library.cache_clear()
    real = builtins.__import__

    def missing(name, *rest):
        if name.startswith("opendp"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtra, match=r"querycloak\[dp\]"):
        accounting.total(0.1, 10, "zcdp", 1e-6)
    assert accounting.total(0.1, 10) == pytest.approx(1.0)
