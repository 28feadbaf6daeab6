"""Paper 001's tables, and the results of our study by target, k and m."""

from __future__ import annotations

from collections.abc import Iterable

from papers.common import results
from papers.common.results import Line

KS, MS = (2, 5, 10, 20, 40, 100), (2, 3)
COLUMNS = ("distinct", "logsize", "users", "bid", "clicks", "impressions", "revenue")
GENERIC, SPECIFIC = COLUMNS[:3], COLUMNS[3:]
#: What the paper aims at; it has no target for distinct terms, we have.
PAPER_TARGETS = ("random", "fis", *COLUMNS[1:])
ALL_TARGETS = ("random", "fis", *COLUMNS)
At = tuple[int, int]  # m and k

#: Section 5.1, and the largest history of section 5.2.
PAPER_LOG = {
    "users": 367_803,
    "queries": 1_846_134,
    "terms": 251_115,
    "occurrences": 5_501_825,
    "longest_history": 495,
}
#: Table 3; those in `PAPER_CHANCE` are not significant at the 0.01 level.
PAPER_TABLE_3 = {
    "term frq. / user frq.": 0.761,
    "term frq. / bid": 0.001,
    "term frq. / clicks": 0.024,
    "term frq. / impressions": 0.111,
    "term frq. / revenue": 0.002,
    "user frq. / bid": 0.002,
    "user frq. / clicks": 0.031,
    "user frq. / impressions": 0.151,
    "user frq. / revenue": 0.003,
    "bid / clicks": -0.003,
    "bid / impressions": 0.002,
    "bid / revenue": 0.579,
    "clicks / impressions": 0.400,
    "clicks / revenue": 0.040,
    "impressions / revenue": 0.020,
}
PAPER_CHANCE = {
    "term frq. / bid",
    "term frq. / revenue",
    "user frq. / bid",
    "user frq. / revenue",
    "bid / clicks",
    "bid / impressions",
}
#: Table 5, in percent, in the order of `COLUMNS`.
PAPER_TABLE_5: dict[At, tuple[float, ...]] = {
    (2, 2): (10.88, 45, 95, 51, 85, 85, 61),
    (2, 10): (2.12, 29, 87, 33, 75, 71, 41),
    (2, 20): (1.09, 26, 83, 29, 71, 67, 36),
    (2, 40): (0.56, 23, 78, 25, 68, 63, 33),
    (2, 100): (0.18, 19, 70, 20, 61, 58, 27),
    (3, 2): (10.86, 37, 95, 42, 78, 76, 55),
    (3, 10): (2.12, 25, 87, 31, 71, 67, 43),
    (3, 20): (1.11, 23, 83, 28, 68, 64, 39),
    (3, 40): (0.56, 21, 78, 24, 65, 62, 35),
    (3, 100): (0.18, 18, 70, 19, 61, 57, 30),
}
#: Tables 6 and 7: R, W, fis for each of `COLUMNS`. Table 6 prints the headings of log size and users the
#: other way round: read as printed, random would keep 19 - 28 percent of the log at m=2, k=100.
PAPER_TABLES_6_7: dict[At, tuple[tuple[float, float, float], ...]] = {
    (2, 2): ((0, 4.16, 4.08), (13, 2, 0), (2, 0, 0), (20, 13, 12), (28, 15, 8), (31, 9, 6), (20, 5, 5)),
    (2, 10): ((0, 0.92, 0.90), (11, 2, 0), (12, 1, 0), (17, 13, 11), (34, 28, 13), (32, 14, 8), (16, 5, 5)),
    (2, 20): ((0, 0.40, 0.39), (11, 2, 1), (17, 1, 0), (16, 12, 11), (35, 33, 15), (32, 15, 9), (16, 5, 5)),
    (2, 40): ((0, 0.16, 0.15), (11, 2, 1), (21, 2, 0), (14, 11, 9), (38, 36, 18), (31, 16, 9), (15, 5, 5)),
    (2, 100): ((0, 0.00, 0.14), (11, 2, 1), (28, 2, 0), (13, 9, 7), (37, 37, 19), (30, 16, 10), (15, 5, 5)),
    (3, 2): ((0, 4.18, 4.07), (10, 3, 0), (2, 0, 0), (15, 14, 11), (32, 31, 12), (29, 16, 7), (21, 12, 10)),
    (3, 10): ((0, 0.88, 0.77), (10, 2, 0), (12, 1, 0), (16, 14, 11),
             (39, 40, 21), (34, 19, 11), (22, 12, 12)),
    (3, 20): ((0, 0.31, 0.27), (10, 2, 1), (17, 1, 0), (15, 13, 11),
             (40, 41, 24), (34, 19, 12), (21, 12, 12)),
    (3, 40): ((0, 0.16, 0.14), (10, 2, 1), (21, 2, 0), (14, 11, 9), (40, 41, 25), (33, 20, 12), (19, 11, 11)),
    (3, 100): ((0, 0.02, 0.00), (10, 2, 1), (28, 2, 0), (13, 9, 7), (39, 40, 25), (32, 19, 12), (19, 10, 10)),
}  # fmt: skip
#: Section 5.2: hours, minutes and seconds of the first iteration, by m and k.
PAPER_FIRST: dict[At, str] = {
    (2, 2): "2 h 55 m 58 s",
    (3, 2): "90 h 08 m 24 s",
    (2, 5): "7 m 41 s",
    (3, 5): "48 m 45 s",
}
PAPER_ITERATIONS = {2: (6.7, "4 min"), 3: (4.8, "13 min")}  # how many on average, and the time of one


def paper_5(column: str, k: int, m: int) -> float | None:
    """Return the paper's Table 5 entry, or None where it has none."""
    row = PAPER_TABLE_5.get((m, k))
    return row[COLUMNS.index(column)] if row else None


def paper_gaps(column: str, k: int, m: int) -> tuple[float, float, float] | None:
    """Return the paper's R, W and fis of Tables 6 and 7, or None where it has none."""
    row = PAPER_TABLES_6_7.get((m, k))
    return row[COLUMNS.index(column)] if row else None


class Results(results.Results):
    """What each target keeps of each column, in percent."""

    def line(self, target: str, k: int, m: int) -> Line | None:
        """Return the line of a setting, or None where it was not measured."""
        return self.lines.get(f"greedy {target} k={k} m={m}")

    def of_setting(self, m: int, k: int | None = None) -> list[Line]:
        """Return the lines of an m, and of a k where one is given."""
        return [one for one in self.lines.values() if one["m"] == m and k in (None, one["k"])]

    def kept(self, target: str, column: str, k: int, m: int) -> float | None:
        """Return what a target keeps of a column."""
        line = self.line(target, k, m)
        return float(line["kept"][column]) if line else None

    def ranked(self, column: str, k: int, m: int, among: Iterable[str]) -> list[tuple[float, str]]:
        """Return what each target keeps of a column, the most first; empty unless all were measured."""
        found = [(self.kept(target, column, k, m), target) for target in among]
        known = [(value, target) for value, target in found if value is not None]
        return sorted(known, key=lambda one: -one[0]) if len(known) == len(found) else []

    def best(self, column: str, k: int, m: int) -> float | None:
        """Return the most that any target of the paper keeps of a column."""
        found = self.ranked(column, k, m, PAPER_TARGETS)
        return found[0][0] if found else None

    def gaps(self, column: str, k: int, m: int) -> tuple[float, float, float] | None:
        """Return how far random, the worst other target, and fis stay behind the best, in points."""
        found = self.ranked(column, k, m, PAPER_TARGETS)
        if not found:
            return None
        by_target = {target: value for value, target in found}
        worst = min(value for value, target in found if target != "random")
        best = found[0][0]
        return best - by_target["random"], best - worst, best - by_target["fis"]

    def settings(self, among: Iterable[str]) -> list[At]:
        """Return the m and k, of the paper's m, at which all these targets were measured."""
        targets = list(among)
        return [(m, k) for m in MS for k in KS if all(self.line(target, k, m) for target in targets)]
