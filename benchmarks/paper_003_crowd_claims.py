"""What thesis 003 says of its crowd in chapter 4, and whether it is so in the lines that were measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.paper_002_text import near
from benchmarks.paper_003_claims import Claim, number
from benchmarks.paper_003_crowd import BEST, CUTS, FLAT, NOTHING, PENALTIES, READINGS, SELFISH, SIZES, spelled

#: What the thesis's statements are set beside: two readings, and one of them in a flatter network.
WAYS = (*READINGS, FLAT)
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
#: From here on all, up to here few of the selfish count as exposed; more than this is most of their queries.
ALL, FEW, MOST = 95.0, 10.0, 0.5
#: Fewer exposed users than this, more or less, is noise.
NOISE = 1.0
SAME = "within a quarter"


@dataclass(frozen=True)
class Results:
    """One run: what the log was, and the lines by name."""

    about: dict[str, Any]
    machine: dict[str, Any]
    lines: dict[str, dict[str, Any]]
    seconds: float

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read the lines of a run."""
        return cls.of([json.loads(text) for text in path.read_text().splitlines()])

    @classmethod
    def of(cls, lines: list[dict[str, Any]]) -> Results:
        """Sort the lines of a run, of which many may be missing so far."""
        first, *rest = lines
        named = {one["name"]: one for one in rest if one.get("name")}
        seconds = sum(one["seconds"] for one in rest if one.get("part") == "time")
        return cls(first["about"], first["machine"], named, seconds)

    def value(self, part: str, at: Any, reading: str, *path: str) -> float | None:
        """Give one number of a line, or None where it was not measured."""
        found: Any = self.lines.get(f"{part} {at} {reading}")
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        return None if found is None else float(found)

    def friends(self, part: str, at: Any, reading: str, *path: str) -> dict[int, float]:
        """Give a number for each number of friends for which there is one; `*` stands for it."""
        found = {
            many: self.value(part, at, reading, *(str(many) if key == "*" else key for key in path))
            for many in FRIENDS
        }
        return {many: value for many, value in found.items() if value is not None}

    def over(self, part: str, ats: Any, reading: str, *path: str) -> dict[Any, float]:
        """Give a number for all settings for which it was measured."""
        found = {at: self.value(part, at, reading, *path) for at in ats}
        return {at: value for at, value in found.items() if value is not None}

    def deviation(self, at: str, reading: str, rule: str = "position") -> float | None:
        """Give the deviation of users with ten friends; `first`: with everybody before all of her equals."""
        return self.value("cut", at, reading, rule, "10", "deviation")


def listed(values: dict[Any, float], digits: int = 2) -> str:
    """Spell the first and the last of some numbers."""
    found = list(values.values())
    return f"{found[0]:.{digits}f} … {found[-1]:.{digits}f}" if found else "–"


def alike(says: str, found: dict[Any, float], wanted: dict[Any, float], digits: int = 2) -> Claim:
    """Check numbers of the thesis one by one."""
    return Claim(says, listed(found, digits), [near(value, wanted[at]) for at, value in found.items()])


def cuts(results: Results, reading: str) -> list[Claim]:
    """Table 4.1."""
    average = results.over("cut", POSITIONS, reading, "position", "10", "average")
    claims = [
        alike(f"nine average positions ({SAME})", average, THESIS_AVERAGE),
    ]
    for rule, words in (("position", "equals half before"), ("first", "equals after")):
        deviation = results.over("cut", POSITIONS, reading, rule, "10", "deviation")
        variance = {at: value**2 for at, value in deviation.items()}
        best, none = (variance.get(spelled(at)) for at in (BEST, NOTHING))
        others = [value for at, value in variance.items() if at != spelled(BEST)] if best else []
        more = [value for at, value in variance.items() if at != spelled(NOTHING)] if none else []
        widest = max(variance, key=lambda at: variance[at], default=None)
        shown = "–" if best is None else f"{best:.1f}; most: {variance[widest]:.1f} at {widest} %"
        claims += [
            alike(f"nine variances ({SAME}), {words}", variance, THESIS_VARIANCE, 1),
            Claim(f"60–80 % has the highest variance, {words}", shown, [(best or 0) > one for one in others]),
            Claim(f"every cut spreads positions more than none, {words}",
                  f"none: {number(none)}", [one > (none or 0) for one in more]),
        ]  # fmt: skip
    return claims


def positions(results: Results, reading: str) -> list[Claim]:
    """Figure 4.1 and Table 4.5."""
    at = spelled(BEST)
    average = results.friends("cut", at, reading, "position", "*", "average")
    deviation = results.friends("cut", at, reading, "position", "*", "deviation")
    wider = [value > PREVIOUS[many - 1] for many, value in deviation.items()]
    return [
        alike(f"average positions are near the ideal ({SAME})", average, {k: k / 2 for k in FRIENDS}),
        alike(f"ten average positions ({SAME})", average, dict(zip(FRIENDS, AVERAGES, strict=True))),
        alike(f"ten deviations ({SAME})", deviation, dict(zip(FRIENDS, DEVIATIONS, strict=True))),
        Claim("ten deviations are larger than the previous protocol's", listed(deviation), wider),
    ]


def exposed(results: Results, reading: str) -> list[Claim]:
    """Table 4.2: histories of a log."""
    by_friends = results.friends("selfish", 0.0, reading, "exposed", "by_friends", "*", "60")
    falls = [after <= before + NOISE for before, after in pairwise(by_friends.values())]
    claims = [Claim("the fewer friends, the more exposed users", listed(by_friends, 1), falls)]
    for limit, counts in EXPOSED.items():
        value = results.value("selfish", 0.0, reading, "exposed", "honest", limit)
        checks = [] if value is None else [near(10 * value, sum(counts))]
        claims.append(
            Claim(f"{sum(counts):.1f} of 1,000 are exposed above {limit} % ({SAME})",
                  number(None if value is None else 10 * value), checks)
        )  # fmt: skip
    return claims


def tenths(results: Results, reading: str) -> list[Claim]:
    """Table 4.3: histories of a log."""
    found = [results.value("selfish", 0.0, reading, "exposed", "tenths", str(at)) for at in (10, 20)]
    few = None if None in found else sum(one or 0 for one in found)
    kept = results.value("selfish", 0.0, reading, "exposed", "honest", "60")
    synthetic = results.value("cut", spelled(BEST), reading, "exposed", "honest", "60")
    return [
        Claim("nearly 90 % expose less than 20 % (85 % or more)", number(few),
              [] if few is None else [few >= 85]),
        *(
            Claim(f"more than 95 % are not exposed, {words}", number(None if one is None else 100 - one),
                  [] if one is None else [one < 5])
            for words, one in (("histories", kept), ("synthetic queries", synthetic))
        ),
    ]  # fmt: skip


def punished(results: Results, reading: str) -> list[Claim]:
    """Table 4.4."""
    honest = results.over("penalty", PENALTIES, reading, "exposed", "honest", "60")
    selfish = results.over("penalty", PENALTIES, reading, "exposed", "selfish", "60")
    high = {at: value for at, value in selfish.items() if at >= 0.03}
    low = {at: value for at, value in selfish.items() if at <= 0.01}
    steps = [honest[PENALTIES[-1]] > honest[0.0]] if {0.0, PENALTIES[-1]} <= set(honest) else []
    return [
        Claim(f"from ζ = 0.03 on all selfish users are exposed ({ALL:.0f} % or more)", listed(high, 1),
              [value >= ALL for value in high.values()]),
        Claim(f"up to ζ = 0.01 few are ({FEW:.0f} % or less)", listed(low, 1),
              [value <= FEW for value in low.values()]),
        alike(f"eight shares of exposed honest users ({SAME})", honest,
              {at: pair[0] for at, pair in PUNISHED.items()}),
        Claim("more honest users are exposed with ζ = 0.1 than with 0", listed(honest, 1), steps),
    ]  # fmt: skip


def crowded_out(results: Results, reading: str) -> list[Claim]:
    """Figure 4.2: histories of a log."""
    found = results.over("selfish", SELFISH, reading, "exposed", "honest", "60")
    steps = [after > before for before, after in pairwise(found.values())]
    return [Claim("the more selfish users, the more honest ones are exposed", listed(found, 1), steps)]


def isolated(results: Results, reading: str) -> list[Claim]:
    """Figure 4.3."""
    claims = []
    for words, part, at in (("histories", "selfish", 0.1), ("synthetic queries", "penalty", 0.03)):
        found = results.friends(part, at, reading, "own", "selfish", "*")
        most = [value > MOST for value in found.values()]
        claims.append(Claim(f"selfish users must submit most of their own, {words}", listed(found), most))
    return claims


def usable(results: Results, reading: str) -> list[Claim]:
    """Section 4.7.3."""
    hops = results.value("hops", 1000, reading, "hops")
    response = results.value("hops", 1000, reading, "response_ms")
    return [
        Claim(f"{HOPS} hops ({SAME})", number(hops, 2), [] if hops is None else [near(hops, HOPS)]),
        Claim(f"{RESPONSE} ms ({SAME})", number(response, 0),
              [] if response is None else [near(response, RESPONSE)]),
    ]  # fmt: skip


def sized(results: Results, reading: str) -> list[Claim]:
    """Section 4.7: networks of all sizes."""
    sizes = list(results.over("size, few", SIZES, reading, "hops").values())
    same = [near(value, sizes[0]) for value in sizes[1:]]
    return [
        Claim(
            "it works alike in networks of 1,000 to 10,000,000 (hops)", listed(dict(enumerate(sizes))), same
        )
    ]


TABLES: dict[str, Callable[[Results, str], list[Claim]]] = {
    "Table 4.1": cuts,
    "Figure 4.1, Table 4.5": positions,
    "Table 4.2": exposed,
    "Table 4.3": tenths,
    "Table 4.4": punished,
    "Figure 4.2": crowded_out,
    "Figure 4.3": isolated,
    "4.7.3, usability": usable,
}


def counted(results: Results, reading: str) -> dict[str, int]:
    """Count the verdicts of all statements in one reading."""
    counts = {"holds": 0, "in part": 0, "**does not hold**": 0, "not measured yet": 0}
    for claims in TABLES.values():
        for claim in claims(results, reading):
            counts[claim.verdict.partition(" (")[0]] += 1
    return counts
