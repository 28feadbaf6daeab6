"""Results of the study of paper 004: numbers of users with intervals, and the cost of the full study."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from papers.common import results
from querycloak.intervals import t_point

Floats = npt.NDArray[np.float64]

#: The paper's two ways to cover, the one that it proposes, and ours.
PAPERS, PROPOSED, OURS = ("tmn", "usr"), "hybrid", "shadow"
METHODS = (*PAPERS, PROPOSED, OURS)
#: Numbers of a person by name, from the line of one draw of fakes.
NUMBERS: dict[str, Callable[[dict[str, Any]], float | None]] = {
    "error": lambda line: fmean(line["structure"]),
    "false negatives": lambda line: line["structure"][0],
    "false positives": lambda line: line["structure"][1],
    "relative error": lambda line: None if None in line["relative"] else fmean(line["relative"]),
    "relative false negatives": lambda line: line["relative"][0],
    "relative false positives": lambda line: line["relative"][1],
    "worst": lambda line: line["worst"],
    "mean": lambda line: line["mean"],
    "hours": lambda line: line["hours"],
    "area": lambda line: line["area"],
}
#: The paper's own study: functions and draws; its users are as many as ours.
FULL_FUNCTIONS, FULL_DRAWS = 60, 20


class Mean(NamedTuple):
    """A mean over users, and its 95 % interval (Student's)."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Floats) -> Mean | None:
        """Return the mean of two users or more."""
        if values.size < 2:
            return None
        reach = t_point(values.size - 1.0) * float(values.std(ddof=1)) / math.sqrt(values.size)
        middle = float(values.mean())
        return cls(middle, middle - reach, middle + reach)

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


class Results(results.Results):
    """Numbers by way to cover."""

    def people(self, method: str, number: str) -> dict[int, float]:
        """Return a number of each person, averaged over draws as in the paper."""
        found: dict[int, list[float]] = {}
        for line in self.part("attack", method):
            value = NUMBERS[number](line)
            if value is not None:
                found.setdefault(line["person"], []).append(value)
        return {person: fmean(values) for person, values in sorted(found.items())}

    def values(self, method: str, number: str) -> Floats:
        """Return a number of everybody, sorted."""
        return np.sort(np.array(list(self.people(method, number).values()), np.float64))

    def average(self, method: str, number: str) -> Mean | None:
        """Return the mean of a number over people."""
        return Mean.of(self.values(method, number))

    def apart(self, one: str, other: str, number: str) -> Mean | None:
        """Return by how much one way protects people better than the other: the same people, pair by pair."""
        first, second = self.people(one, number), self.people(other, number)
        return Mean.of(np.array([first[p] - second[p] for p in first.keys() & second.keys()], np.float64))

    def quantiles(self, method: str, number: str, at: Floats) -> Floats | None:
        """Return quantiles over people."""
        values = self.values(method, number)
        return np.quantile(values, at) if values.size else None

    def importances(self, method: str) -> dict[str, float]:
        """Return relations over the functions of all tenths; the first has 100."""
        each = [line["importances"] for line in self.part("learned", method)]
        if not each:
            return {}
        # every tenth's gains were scaled by its own first: the mean is scaled again
        means = {name: fmean(one[name] for one in each) for name in each[0]}
        most = max(means.values()) or 1.0
        return dict(sorted(((name, 100 * v / most) for name, v in means.items()), key=lambda p: -p[1]))

    def sized(self, method: str) -> dict[int, Floats]:
        """Give, by how many people one function learned from, both relative errors of everybody."""
        lines = list(self.part("sizes", method))
        sizes = sorted({int(size) for line in lines for size in line["relative"]})
        return {size: np.array([line["relative"][str(size)] for line in lines], np.float64) for size in sizes}

    def unsorted(self, method: str) -> Mean | None:
        """Return how far people's topics are from those of their whole traces."""
        lines = list(self.part("whole", method))
        return Mean.of(np.array(lines[0]["worst"], np.float64)) if lines else None

    def draws(self) -> int:
        """Return how many draws of fakes people were covered with, at most."""
        return 1 + max((line["draw"] for line in self.part("attack")), default=0)

    def attacked(self) -> dict[str, int]:
        """Return how many people were attacked, by way to cover."""
        return {method: len(self.people(method, "error")) for method in METHODS}

    def cpu_seconds(self) -> float:
        """Return the processor seconds of all units."""
        return sum(sum(line["cpu"].values()) for line in self.lines.values() if "cpu" in line)

    def full_hours(self) -> float | None:
        """Return the processor hours of the paper's study: two ways to cover, 60 functions, 20 draws.

        From what a pair took here to relate, and to score by one function; what a cut and reading took;
        and what it took to learn a function.
        """
        alone = list(self.part("alone"))
        units = [line for method in PAPERS for line in self.part("attack", method) if line["draw"] == 0]
        if not alone or not units:
            return None
        relate = sum(line["cpu"]["relate"] for line in alone) / sum(line["pairs"] for line in alone)
        pairs = sum(line["pairs"] for line in units)
        score = sum(line["cpu"]["score"] for line in units) / pairs
        function = max(0.0, score - relate) / self.about["functions"]
        own = sum(line["real"] * (line["real"] - 1) // 2 for line in units)
        many = own + FULL_DRAWS * (pairs - own)
        rest = FULL_DRAWS * sum(line["cpu"]["read"] + line["cpu"]["cut"] for line in units)
        learn = sum(line["cpu"]["learn"] for method in PAPERS for line in self.part("learned", method))
        learn *= FULL_FUNCTIONS / self.about["functions"]
        people = len(units) / len(PAPERS)
        whole = (many * (relate + FULL_FUNCTIONS * function) + rest) * self.about["users"] / people
        return (whole + learn) / 3600
