"""Rate limits: one second's worth at once, then the rate."""

from __future__ import annotations

from contextlib import suppress

import pytest

from querycloak.errors import Busy
from querycloak.service.web.rate_limit import RateLimiter


def test_a_second_worth_may_come_at_once_and_then_the_rate_holds() -> None:
    now = 0.0
    limiter = RateLimiter(10, clock=lambda: now)
    limiter.take("a", 10)
    with pytest.raises(Busy) as caught:
        limiter.take("a", 5)
    assert caught.value.retry_after == 1
    limiter.take("b", 10)  # each token has its own
    now = 0.5
    limiter.take("a", 5)
    with pytest.raises(Busy):
        limiter.take("a", 1)


def test_over_a_long_time_nobody_sends_more_than_the_rate() -> None:
    now, sent = 0.0, 0
    limiter = RateLimiter(10, clock=lambda: now)
    while now < 100:
        for size in (3, 25):
            with suppress(Busy):
                limiter.take("a", size)
                sent += size
        now += 0.25
    assert 900 <= sent <= 10 * 100 + 10 + 25


def test_without_a_rate_everything_passes() -> None:
    RateLimiter(0).take("a", 10**9)


def test_a_new_rate_applies_at_once() -> None:
    limiter = RateLimiter(10, clock=lambda: 0.0)
    limiter.take("a", 10)
    limiter.set_rate(20)
    limiter.take("a", 20)
    with pytest.raises(Busy):
        limiter.take("a", 1)
