"""Statistics of the study of paper 000."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from papers.p000.statistics import kolmogorov_smirnov

NUMBERS = st.lists(st.floats(-5, 5), min_size=2, max_size=30)


@given(a=NUMBERS, b=NUMBERS)
def test_kolmogorov_smirnov_agrees_with_scipy(a, b):
    from scipy.special import kolmogorov
    from scipy.stats import ks_2samp

    gap, p_value = kolmogorov_smirnov(a, b)
    assert gap == pytest.approx(ks_2samp(a, b, method="asymp").statistic)
    limit = kolmogorov(gap * math.sqrt(len(a) * len(b) / (len(a) + len(b))))
    assert p_value == pytest.approx(float(limit), abs=1e-9)


def test_kolmogorov_smirnov_needs_values():
    with pytest.raises(ValueError):
        kolmogorov_smirnov([], [1.0])
