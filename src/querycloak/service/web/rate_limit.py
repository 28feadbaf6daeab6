"""Rate limit per token: each may send one second's worth of records at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import ceil

from querycloak.errors import Busy
from querycloak.rate_limit import TokenBucket


class RateLimiter:
    """One token bucket per token holder; the rate is in records per second, 0 for no limit."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._buckets: dict[str, TokenBucket] = {}

    def set_rate(self, rate: float) -> None:
        """Change the rate; all buckets start full."""
        if rate != self._rate:
            self._rate, self._buckets = rate, {}

    def take(self, name: str, records: int) -> None:
        """Take records out of a holder's bucket. Raise Busy with the time to wait if it has too few."""
        if not self._rate:
            return
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = TokenBucket(self._rate, burst=self._rate)
        wait = bucket.take(self._clock(), records)
        if wait:
            raise Busy("this token sends more records than its rate allows", retry_after=ceil(wait))
