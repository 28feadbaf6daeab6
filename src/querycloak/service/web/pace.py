"""How many records each token may send: a bucket that fills at a steady rate."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import ceil

from querycloak.errors import Busy


class Pace:
    """One bucket for each holder of a token; a second's worth may come at once."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self._clock = rate, clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str, records: int) -> None:
        """Let so many records pass, or say when they may come again.

        A request larger than a second's worth passes when the bucket is full, and the next waits longer.
        """
        if not self.rate:
            return
        now = self._clock()
        level, since = self._buckets.get(name, (self.rate, now))
        level = min(self.rate, level + (now - since) * self.rate)
        needed = min(records, self.rate)
        if level < needed:
            self._buckets[name] = (level, now)
            wait = ceil((needed - level) / self.rate)
            raise Busy("this token sends more records than it may", retry_after=wait)
        self._buckets[name] = (level - records, now)
