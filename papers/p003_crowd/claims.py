"""Claims of paper 003, chapter 4 (the crowd), beside our figures."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from papers.common.render import near, number
from papers.common.verdicts import Claim, checked
from papers.p003_crowd.results import (
    AVERAGES,
    DEVIATIONS,
    EXPOSED,
    FRIENDS,
    HOPS,
    POSITIONS,
    PREVIOUS,
    PUNISHED,
    RESPONSE,
    THESIS_AVERAGE,
    THESIS_VARIANCE,
    Results,
)
from papers.p003_crowd.run import BEST, FLAT, NOTHING, PENALTIES, READINGS, SELFISH, SIZES, spelled

#: What the thesis's statements are set beside: two readings, and one of them in a flatter network.
WAYS = (*READINGS, FLAT)
#: From here on all, up to here few of the selfish count as exposed; more than this is most of their queries.
ALL, FEW, MOST = 95.0, 10.0, 0.5
#: Fewer exposed users than this, more or less, is noise.
NOISE = 1.0
SAME = "within a quarter"


def listed(values: dict[Any, float], digits: int = 2) -> str:
    """Return the first and the last of some numbers."""
    found = list(values.values())
    return f"{found[0]:.{digits}f} … {found[-1]:.{digits}f}" if found else "–"


def alike(says: str, found: dict[Any, float], wanted: dict[Any, float], digits: int = 2) -> Claim:
    """Check numbers of the thesis one by one."""
    return checked(says, listed(found, digits), [near(value, wanted[at]) for at, value in found.items()])


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
            checked(f"60–80 % has the highest variance, {words}", shown,
                    [(best or 0) > one for one in others]),
            checked(f"every cut spreads positions more than none, {words}",
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
        checked("ten deviations are larger than the previous protocol's", listed(deviation), wider),
    ]


def exposed(results: Results, reading: str) -> list[Claim]:
    """Table 4.2: histories of a log."""
    by_friends = results.friends("selfish", 0.0, reading, "exposed", "by_friends", "*", "60")
    falls = [after <= before + NOISE for before, after in pairwise(by_friends.values())]
    claims = [checked("the fewer friends, the more exposed users", listed(by_friends, 1), falls)]
    for limit, counts in EXPOSED.items():
        value = results.value("selfish", 0.0, reading, "exposed", "honest", limit)
        checks = [] if value is None else [near(10 * value, sum(counts))]
        claims.append(
            checked(f"{sum(counts):.1f} of 1,000 are exposed above {limit} % ({SAME})",
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
        checked("nearly 90 % expose less than 20 % (85 % or more)", number(few),
              [] if few is None else [few >= 85]),
        *(
            checked(f"more than 95 % are not exposed, {words}", number(None if one is None else 100 - one),
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
        checked(f"from ζ = 0.03 on all selfish users are exposed ({ALL:.0f} % or more)", listed(high, 1),
              [value >= ALL for value in high.values()]),
        checked(f"up to ζ = 0.01 few are ({FEW:.0f} % or less)", listed(low, 1),
              [value <= FEW for value in low.values()]),
        alike(f"eight shares of exposed honest users ({SAME})", honest,
              {at: pair[0] for at, pair in PUNISHED.items()}),
        checked("more honest users are exposed with ζ = 0.1 than with 0", listed(honest, 1), steps),
    ]  # fmt: skip


def crowded_out(results: Results, reading: str) -> list[Claim]:
    """Figure 4.2: histories of a log."""
    found = results.over("selfish", SELFISH, reading, "exposed", "honest", "60")
    steps = [after > before for before, after in pairwise(found.values())]
    return [checked("the more selfish users, the more honest ones are exposed", listed(found, 1), steps)]


def isolated(results: Results, reading: str) -> list[Claim]:
    """Figure 4.3."""
    claims = []
    for words, part, at in (("histories", "selfish", 0.1), ("synthetic queries", "penalty", 0.03)):
        found = results.friends(part, at, reading, "own", "selfish", "*")
        most = [value > MOST for value in found.values()]
        claims.append(checked(f"selfish users must submit most of their own, {words}", listed(found), most))
    return claims


def usable(results: Results, reading: str) -> list[Claim]:
    """Section 4.7.3."""
    hops = results.value("hops", 1000, reading, "hops")
    response = results.value("hops", 1000, reading, "response_ms")
    return [
        checked(f"{HOPS} hops ({SAME})", number(hops, 2), [] if hops is None else [near(hops, HOPS)]),
        checked(f"{RESPONSE} ms ({SAME})", number(response, 0),
              [] if response is None else [near(response, RESPONSE)]),
    ]  # fmt: skip


def sized(results: Results, reading: str) -> list[Claim]:
    """Section 4.7: networks of all sizes."""
    sizes = list(results.over("size, few", SIZES, reading, "hops").values())
    same = [near(value, sizes[0]) for value in sizes[1:]]
    return [
        checked(
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


def all_claims(results: Results, reading: str) -> list[Claim]:
    """Return the claims on all tables and figures in one reading."""
    return [claim for claims in TABLES.values() for claim in claims(results, reading)]
