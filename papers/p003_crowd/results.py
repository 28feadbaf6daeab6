"""Results of the study of the crowd, and the tables of chapter 4 of paper 003."""

from __future__ import annotations

from typing import Any

from papers.common import results
from papers.p003_crowd.run import CUTS, PENALTIES, spelled

FRIENDS = tuple(range(1, 11))
#: Table 4.1 by interval: average position and variance.
POSITIONS = dict(
    zip(
        map(spelled, CUTS),
        (
            (5.81, 8.34), (4.36, 11.54), (4.46, 11.37), (4.51, 10.71), (4.51, 12.5), (4.49, 10.13),
            (4.42, 10.12), (4.46, 10.21), (4.3, 9.67),
        ),
        strict=True,
    )
)  # fmt: skip
THESIS_AVERAGE, THESIS_VARIANCE = ({at: pair[i] for at, pair in POSITIONS.items()} for i in (0, 1))
#: Table 4.5 by number of friends: average position and deviation, and the previous protocol's deviation.
AVERAGES = (0.49, 0.97, 1.44, 1.89, 2.34, 2.78, 3.23, 3.64, 4.12, 4.51)
DEVIATIONS = (0.49, 0.87, 1.22, 1.55, 1.89, 2.21, 2.52, 2.83, 3.09, 3.51)
PREVIOUS = (0.01, 0.08, 0.72, 0.95, 1.21, 1.55, 2.15, 2.41, 2.40, 2.91)
#: Table 4.2: exposed users of 1,000 by number of friends, above 60, 70 and 80 %.
EXPOSED = {
    "60": (15.4, 12.6, 5.2, 4.67, 1, 1.3, 1.2, 0, 0, 0),
    "70": (15.1, 12, 4, 4, 1, 0, 0, 0, 0, 0),
    "80": (4.7, 4.7, 1.2, 2, 1, 0, 0, 0, 0, 0),
}
#: Table 4.3: users by tenths of exposure, in percent.
TENTHS = (81.31, 8.2, 2.22, 2.01, 1.13, 1.1, 1.47, 1.29, 1.01, 0.26)
#: Table 4.4 by penalty: exposed honest and selfish users, in percent.
PUNISHED = dict(
    zip(
        PENALTIES,
        ((2.4, 2), (2.3, 5), (2.2, 93), (2.2, 100), (2.4, 100), (2.56, 100), (2.89, 100), (2.89, 100)),
        strict=True,
    )
)
HOPS, RESPONSE = 3.59, 4205.4


class Results(results.Results):
    """Figures of a crowd by part of the study, setting and reading of the thesis."""

    def value(self, part: str, at: Any, reading: str, *path: str) -> float | None:
        """Return one number of a line, or None where it was not measured."""
        found = self.get(f"{part} {at} {reading}", *path)
        return None if found is None else float(found)

    def friends(self, part: str, at: Any, reading: str, *path: str) -> dict[int, float]:
        """Return a number for each number of friends for which there is one; `*` stands for it."""
        found = {
            many: self.value(part, at, reading, *(str(many) if key == "*" else key for key in path))
            for many in FRIENDS
        }
        return {many: value for many, value in found.items() if value is not None}

    def over(self, part: str, ats: Any, reading: str, *path: str) -> dict[Any, float]:
        """Return a number for all settings for which it was measured."""
        found = {at: self.value(part, at, reading, *path) for at in ats}
        return {at: value for at, value in found.items() if value is not None}

    def deviation(self, at: str, reading: str, rule: str = "position") -> float | None:
        """Return the deviation of users with ten friends; `first`: equals come after."""
        return self.value("cut", at, reading, rule, "10", "deviation")
