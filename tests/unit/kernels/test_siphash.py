from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from querycloak.kernels.siphash import draw
from tests.reference import naive

KEY = bytes(range(16))


def test_the_naive_twin_gives_the_published_vector():
    assert naive.siphash(KEY, bytes(range(15))) == 0xA129CA6149BE45E5


@given(
    key=st.binary(min_size=16, max_size=32),
    purpose=st.integers(0, 2**63),
    ids=st.lists(st.integers(-(2**63), 2**63 - 1)),
)
def test_the_kernel_equals_its_twin(key, purpose, ids):
    array = np.array(ids, np.int64)
    words = [purpose.to_bytes(8, "little") + (i % 2**64).to_bytes(8, "little") for i in ids]
    assert draw(key, purpose, array).tolist() == [naive.siphash(key[:16], word) for word in words]


def test_draws_look_uniform():
    """Chi-square over 256 cells; with this fixed key it passes or fails for good (alarm rate 10⁻⁶)."""
    cells = np.bincount((draw(KEY, 1, np.arange(1 << 16)) >> np.uint64(56)).astype(int), minlength=256)
    assert ((cells - 256) ** 2 / 256).sum() < 368.0  # the 1 - 10⁻⁶ quantile of chi-square with 255 degrees
