"""Token bucket: a rate limit with a burst."""

from __future__ import annotations


class TokenBucket:
    """Grants `rate` tokens a second, and up to `burst` at once after a pause."""

    __slots__ = ("_burst", "_filled", "_level", "_rate")

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst, self._level, self._filled = rate, burst, burst, 0.0

    def take(self, now: float, tokens: float = 1.0) -> float:
        """Take tokens and return 0.0, or take none and return the seconds until there are enough.

        More tokens than the burst are granted when the bucket is full, and the next caller waits longer.
        """
        self._level = min(self._burst, self._level + max(0.0, now - self._filled) * self._rate)
        self._filled = now
        missing = min(tokens, self._burst) - self._level
        if missing > 0.0:
            return missing / self._rate
        self._level -= tokens
        return 0.0
