"""A token bucket grants a burst, then a steady rate."""

from __future__ import annotations

import pytest

from querycloak.rate_limit import TokenBucket


def test_a_burst_is_granted_and_then_the_rate():
    bucket = TokenBucket(rate=2.0, burst=3)
    assert [bucket.take(100.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert bucket.take(100.5) == 0.0
    assert bucket.take(100.5) > 0.0


def test_a_pause_fills_no_more_than_the_burst():
    bucket = TokenBucket(rate=2.0, burst=3)
    for _ in range(3):
        bucket.take(0.0)
    assert [bucket.take(1e6) == 0.0 for _ in range(4)] == [True, True, True, False]


def test_more_than_the_burst_is_granted_when_full_and_leaves_a_debt():
    bucket = TokenBucket(rate=10.0, burst=10)
    assert bucket.take(0.0, 25) == 0.0
    assert bucket.take(0.0, 1) == pytest.approx(1.6)
    assert bucket.take(1.5, 1) == pytest.approx(0.1)
    assert bucket.take(1.6, 1) == 0.0


def test_a_refused_request_takes_nothing_and_a_clock_that_goes_back_adds_nothing():
    bucket = TokenBucket(rate=1.0, burst=2)
    assert bucket.take(10.0, 2) == 0.0
    assert bucket.take(11.0, 2) == pytest.approx(1.0)
    assert bucket.take(5.0, 1) == 0.0
    assert bucket.take(5.0, 1) == pytest.approx(1.0)
