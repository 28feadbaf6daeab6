"""Keyed pseudorandom stream: the dummy searches of a user depend on the secret and the name only."""

from __future__ import annotations

from typing import Any

import numpy as np

from querycloak.kernels import siphash
from querycloak.kernels.siphash import Words
from querycloak.keys import derive
from querycloak.log import FloatArray, IntArray

_SINGLES = 256


class KeyedStream:
    """Keyed pseudorandom stream (SipHash), unpredictable without the key."""

    def __init__(self, key: bytes, *purpose: str) -> None:
        self._key = derive(key, *purpose)
        self._calls = 0
        self._singles: list[float] = []

    def words(self, size: int) -> Words:
        """Draw 64-bit numbers."""
        self._calls += 1
        return siphash.draw(self._key, self._calls, np.arange(size))

    def uniform(self, size: int) -> FloatArray:
        """Draw numbers in [0, 1)."""
        return (self.words(size) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, limit: Any, size: int) -> IntArray:
        """Draw integers from 0 to limit - 1; the limit is a number or an array."""
        drawn: IntArray = (self.uniform(size) * limit).astype(np.int64)
        return drawn

    def order(self, size: int) -> IntArray:
        """Draw a permutation."""
        return np.argsort(self.words(size), kind="stable")

    def whole(self, mean: float) -> int:
        """Round at random to a neighbouring integer, with this mean."""
        return int(mean) + int(self.one() < mean - int(mean))

    def one(self) -> float:
        """Draw one number in [0, 1); they are drawn in blocks."""
        if not self._singles:
            self._singles = self.uniform(_SINGLES).tolist()
        return self._singles.pop()

    def pick(self, size: int) -> int:
        """Draw one integer from 0 to size - 1."""
        return int(self.one() * size)
