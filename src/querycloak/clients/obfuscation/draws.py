"""Keyed draws: a person's fakes follow from the secret and her name, whatever the order of the file."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from querycloak.kernels import siphash
from querycloak.keys import derive
from querycloak.log import IntArray

FloatArray = npt.NDArray[np.float64]
_SINGLES = 256


class Draws:
    """A row of random numbers that only who has the key can continue, or guess backwards."""

    def __init__(self, key: bytes, *purpose: str) -> None:
        self._key = derive(key, *purpose)
        self._asked = 0
        self._singles: list[float] = []

    def words(self, size: int) -> npt.NDArray[np.uint64]:
        """Draw 64-bit numbers."""
        self._asked += 1
        return siphash.draw(self._key, self._asked, np.arange(size))

    def uniform(self, size: int) -> FloatArray:
        """Draw numbers from 0 up to, but never, 1."""
        return (self.words(size) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, limit: Any, size: int) -> IntArray:
        """Draw whole numbers from 0 to limit - 1; the limit may be one for all or an array."""
        drawn: IntArray = (self.uniform(size) * limit).astype(np.int64)
        return drawn

    def order(self, size: int) -> IntArray:
        """Draw an order of so many things."""
        return np.argsort(self.words(size), kind="stable")

    def whole(self, mean: float) -> int:
        """Round to a neighbouring whole number by chance, so that the mean comes out."""
        return int(mean) + int(self.one() < mean - int(mean))

    def one(self) -> float:
        """Draw a single number from 0 up to 1; cheap, since they are drawn in stock."""
        if not self._singles:
            self._singles = self.uniform(_SINGLES).tolist()
        return self._singles.pop()

    def pick(self, size: int) -> int:
        """Draw a single whole number from 0 to size - 1."""
        return int(self.one() * size)
