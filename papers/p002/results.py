"""Results of the study of paper 002: utility loss by setting, method, reading of ε, and ε."""

from __future__ import annotations

import math
from typing import Any

from papers.common import results
from papers.common.results import Line

SETTINGS = ("A", "B", "C")  # D(q) > P
JOINED = ("B joined", "C joined")  # a domain of the four topics alone, which the paper does not describe
CRITERIA = ("sqc2", "sqc1", "none")
NAMES = {"sqc2": "SQC2", "sqc1": "SQC1", "none": "NSQC", "hbdp": "HBDP"}
LARGE = 80.0  # of a history: the most at which no draw of the smallest history exceeds its limit


class Results(results.Results):
    """Utility losses by setting, method, `per` (the reading of ε) and ε."""

    @property
    def exact(self) -> list[Line]:
        """Exact probabilities of staying in a topic."""
        return self.get("exact", "lines") or []

    def losses(self) -> list[Line]:
        """Return the lines that have a utility loss."""
        return [one for one in self.lines.values() if "loss" in one]

    def line(self, setting: str, method: str, per: str, epsilon: float, log: str = "usual") -> Any:
        """Return a line, or None where it was not measured. A histogram has one reading of ε."""
        way = "history" if method.startswith("hbdp") or method == "blank" else per
        other = "" if log == "usual" else f" log={log}"
        return self.lines.get(f"{setting} {method} per={way} epsilon={epsilon:g}{other}")

    def value(
        self, setting: str, method: str, per: str, epsilon: float, log: str = "usual", column: str = "loss"
    ) -> float | None:
        """Return one number of a line."""
        found = self.line(setting, method, per, epsilon, log)
        return None if found is None else float(found.get(column, found["loss"]))

    def epsilons(self, setting: str, method: str, per: str, most: float = 10) -> list[float]:
        """Return the ε at which something was measured, by default within the paper's range."""
        return sorted(
            one["epsilon"]
            for one in self.losses()
            if (one["setting"], one["method"], one["per"], one["log"]) == (setting, method, per, "usual")
            and one["epsilon"] <= most
        )

    def points(self, setting: str, method: str, per: str, most: float = 10) -> list[tuple[float, float]]:
        """Return the utility loss over ε."""
        way = "history" if method == "hbdp" else per
        return [
            (epsilon, float(self.line(setting, method, way, epsilon)["loss"]))
            for epsilon in self.epsilons(setting, method, way, most)
        ]

    def over_one(self) -> list[float]:
        """Return the ε above 1."""
        return [epsilon for epsilon in self.epsilons("A", "sqc1", "history") if epsilon > 1]

    def within_topics(self) -> list[Line]:
        """Return the lines of the exponential mechanism where nothing may be lost: D(q)=P and D(q)<P."""
        return [
            one
            for one in self.losses()
            if one["setting"].startswith("D(q)") and not one["method"].startswith("hbdp")
        ]

    def ratio(self, setting: str, over: tuple[str, float], under: tuple[str, float]) -> float:
        """Return the ratio of the losses of two methods at two ε, with ε for each query."""
        above, below = (self.value(setting, method, "query", e) or math.nan for method, e in (over, under))
        return above / below


def number(value: float | None, digits: int = 3) -> str:
    """Return a number as text, or a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


def compared(first: Any, second: Any) -> str:
    """Return which of two lines loses less: `<`, `>`, or `≈` within three standard errors."""
    error = math.hypot(first["loss_error"], second["loss_error"])
    gap = second["loss"] - first["loss"]
    return "≈" if abs(gap) <= 3 * error else "<" if gap > 0 else ">"
