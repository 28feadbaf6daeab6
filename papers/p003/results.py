"""Results of the study of chapter 5 of paper 003."""

from __future__ import annotations

from functools import cached_property

from papers.common import results
from papers.common.results import Line

Points = list[tuple[float, float]]
#: What a release without any query stands for: it exposes nothing and keeps nothing.
EMPTY = {
    "profile_exposure": 0.0,
    "record_linkage": 0.0,
    "linked": 0.0,
    "top_preserved": 0.0,
    "semantic_remain": 0.0,
    "information_loss_ratio": 100.0,
}


class Results(results.Results):
    """Measures by method and k, and the clusterings of Figure 5.5 by k."""

    @cached_property
    def mining(self) -> dict[int, Line]:
        """Clusterings by k; k = 1 is the original from another start."""
        return {one["k"]: one for one in self.get("mining", "lines") or []}

    def value(self, kind: str, at: int, column: str) -> float | None:
        """Return one number of a line, or None where it was not measured or means nothing."""
        line = self.lines.get(f"{kind} {at}")
        if line is None:
            return None
        found = line.get(column)
        if found is None and not line["rows"]:
            found = EMPTY.get(column.partition(".")[0])
        return None if found is None else float(found)

    def ats(self, kind: str, most: float = float("inf")) -> list[int]:
        """Return the k, or what stands in its place, that were tried."""
        return sorted(
            one["at"] for one in self.lines.values() if one.get("kind") == kind and one["at"] <= most
        )

    def points(self, kind: str, column: str, most: float = float("inf"), scale: float = 1) -> Points:
        """Return a number over k, or over what stands in its place."""
        found = ((at, self.value(kind, at, column)) for at in self.ats(kind, most))
        return [(at, scale * value) for at, value in found if value is not None]

    def shares(self, kind: str, column: str, place: int) -> Points:
        """Return how often one of the ten commonest comes, for a thousand; k = 1 is the original."""
        rows = [(at, self.lines[f"{kind} {at}"][column]) for at in self.ats(kind)]
        known = [(at, row[place]) for at, row in rows if place < len(row)]
        return [(1.0, known[0][1][0]), *((at, pair[1]) for at, pair in known)] if known else []

    def index(self, k: int, name: str, own: bool = False) -> Points:
        """Return `rand` or `jaccard` over the number of groups; `own`: with the section's aggregation."""
        line = self.mining.get(k, {})
        found = (line.get("own", {}) if own else line).get(name, {})
        return sorted((float(groups), float(value)) for groups, value in found.items())

    @property
    def mined_ks(self) -> list[int]:
        """The k whose releases were clustered."""
        return sorted(k for k in self.mining if k > 1)


def by_lot(name: str, groups: float, people: int) -> float:
    """Return the index to expect of two partitions by lot, into groups of equal size."""
    together = max(people / groups - 1, 0) / (people - 1)
    return 1 - 2 * together * (1 - together) if name == "rand" else together / (2 - together)


def gaps(results: Results, name: str) -> Points:
    """Return the index at k = 3 less that at k = 50, over the number of groups."""
    large = dict(results.index(50, name))
    return [(groups, value - large[groups]) for groups, value in results.index(3, name) if groups in large]
