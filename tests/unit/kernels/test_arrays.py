"""Distinct numbers and membership, as numpy says."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from querycloak.kernels.arrays import among, distinct

NUMBERS = st.lists(st.integers(-5, 5)).map(lambda found: np.array(found, np.int64))


@given(NUMBERS, NUMBERS)
def test_they_are_what_numpy_says(values, some):
    assert distinct(values).tolist() == np.unique(values).tolist()
    assert among(values, some).tolist() == np.isin(values, some).tolist()
