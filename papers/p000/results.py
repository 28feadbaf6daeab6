"""Results of the study of paper 000, and the paper's Table 3."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from papers.common import results
from papers.common.results import Line

#: The paper's own attacks.
THREE = ("link-random", "link-frequent", "link-profile")
RELEASE_ONLY = (*THREE, "link-window", "link-repeat", "link-time")
UNBOUNDED = ("link-volume", "link-pairs", "link-background")
#: The k of the figures and sentences that have room for one.
SHOWN_K = 10
#: Categories that each level adds in the paper's Table 3.
PAPER_CATEGORIES = [16, 537, 5523, 21786, 36806, 35543, 39998, 26914, 16863, 7863, 2143, 441, 72]
Key = tuple[str, int, int, str | None]  # method, k, level, assign


class Results(results.Results):
    """Measures and attacks by (method, k, level, assign)."""

    @cached_property
    def measured(self) -> dict[Key, Line]:
        """Measures of each setting."""
        return {_key(one): one for one in self.part("base")}

    @cached_property
    def attacks(self) -> dict[Key, dict[str, Any]]:
        """Success of each attack on each setting."""
        found: dict[Key, dict[str, Any]] = {}
        for one in self.lines.values():
            found.setdefault(_key(one), {}).update(one.get("attacks", {}))
        return found

    @property
    def wrong(self) -> Line | None:
        """Attackers who assume another k or level."""
        return next(self.part("wrong"), None)

    def base(self, method: str, assign: str | None = None) -> list[Line]:
        """Return the measures of a method, by level and k."""
        keys = (key for key in self.measured if (key[0], key[3]) == (method, assign))
        return [self.measured[key] for key in sorted(keys, key=lambda key: key[1:3])]

    def one(self, method: str, k: int, level: int = 1, assign: str | None = None) -> Any:
        """Return the measures of one setting, or None where there are none."""
        return self.measured.get((method, k, level, assign))

    def success(
        self, name: str, method: str, k: int, level: int = 1, assign: str | None = None
    ) -> float | None:
        """Return an attack's share of right guesses, or None where it was not tried."""
        found = self.attacks.get((method, k, level, assign), {}).get(name)
        return found["success"] if found else None

    def often(self, method: str, k: int, level: int = 1, assign: str | None = None) -> Any:
        """Return the success of `link-repeat` on strings that one user asked five times or more."""
        found = self.attacks.get((method, k, level, assign), {}).get("link-repeat") or {}
        return found.get("by_repeats", {}).get("5+")

    def linked(self, name: str, method: str, level: int = 1, assign: str | None = None) -> dict[int, float]:
        """Return an attack's success by k, where it was tried."""
        found = {k: self.success(name, method, k, level, assign) for k in self.ks}
        return {k: value for k, value in found.items() if value is not None}

    @property
    def ks(self) -> list[int]:
        """The k that were tried."""
        return sorted({one["k"] for one in self.base("swap")})

    @property
    def levels(self) -> list[int]:
        """The levels that were tried."""
        return sorted({one["level"] for one in self.base("swap")})


def _key(line: Line) -> Key:
    return line["method"], line["k"], line["level"], line["assign"]
