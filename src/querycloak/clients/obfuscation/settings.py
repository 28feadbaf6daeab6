"""What can be chosen: the method, how many fakes, when they are sent, and which text feeds them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from querycloak.errors import ParameterError, UnknownName, UsageError

METHODS: Final = ("tmn", "usr", "hybrid", "shadow")
TIMINGS: Final = ("random", "burst", "regular")
#: Methods whose fakes a machine sends; the others keep to times at which people search.
BY_MACHINE: Final = ("tmn", "hybrid")
#: Methods whose fakes are other people's searches.
FROM_PEOPLE: Final = ("usr", "hybrid", "shadow")
MOST_FAKES: Final = 100.0


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One way to cover; `fakes` is per real search, and without it `usr` takes all that another one asked."""

    method: str
    fakes: float | None = None
    timing: str | None = None
    bag: str | None = None
    pool: str | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UnknownName(
                f"no way to cover is called `{self.method}`", hint=f"they are {', '.join(METHODS)}"
            )
        if self.fakes is not None and not (math.isfinite(self.fakes) and 0 <= self.fakes <= MOST_FAKES):
            raise ParameterError(
                f"`fakes` must be a number, at least 0, at most {MOST_FAKES:g}; got {self.fakes!r}"
            )
        if self.timing is not None and self.timing not in TIMINGS:
            raise ParameterError(f"`timing` must be one of {', '.join(TIMINGS)}; got {self.timing!r}")
        self._check_fit()

    def _check_fit(self) -> None:
        if self.timing is not None and self.method not in BY_MACHINE:
            raise UsageError(
                f"`{self.method}` sends fakes when people search, so it takes no timing",
                hint=f"{' and '.join(BY_MACHINE)} take one",
            )
        if self.bag is not None and self.method != "tmn":
            raise UsageError(
                f"`{self.method}` takes its fakes from other people, so it needs no bag of text",
                hint="`tmn` takes one",
            )
        if self.pool is not None and self.method not in FROM_PEOPLE:
            raise UsageError(
                f"`{self.method}` borrows from nobody, so it needs no pool",
                hint=f"{', '.join(FROM_PEOPLE)} take one",
            )

    @property
    def per_real(self) -> float:
        """How many fakes go with a real search."""
        return 1.0 if self.fakes is None else float(self.fakes)
