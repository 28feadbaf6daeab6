"""One sample of the counts a second, for the last ten minutes."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

#: How many samples are kept.
KEPT: Final = 600
Sample = tuple[float, int, int, int, int]


class Samples:
    """A ring of the latest counts; the oldest makes room for the newest."""

    def __init__(self, kept: int = KEPT) -> None:
        self._ring: deque[Sample] = deque(maxlen=kept)

    def add(self, now: float, status: Mapping[str, int]) -> None:
        """Note where the counts stand."""
        counts = (status["accepted"], status["released"], status["held"], status["queued"])
        self._ring.append((round(now, 3), *counts))

    def all(self) -> list[Sample]:
        """Give the samples, oldest first; any thread may ask."""
        return list(self._ring)
