"""The thesis's tables of chapter 4 with our numbers beside them, for docs/papers/paper-003-crowd.md."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.paper_000_page import table
from benchmarks.paper_003_claims import number
from benchmarks.paper_003_crowd import (
    BEST,
    FEWER_TESTS,
    READINGS,
    TESTS,
    spelled,
)
from benchmarks.paper_003_crowd_claims import (
    AVERAGES,
    DEVIATIONS,
    EXPOSED,
    FRIENDS,
    HOPS,
    POSITIONS,
    PREVIOUS,
    PUNISHED,
    RESPONSE,
    TENTHS,
    WAYS,
    Results,
)
from benchmarks.paper_003_text import share
from querycloak.clients.crowd.outcome import ENGINE, LATENCY

SHOWN = 100  # queries of each user, and linked ones where there is room for one number


def both(results: Results, part: str, at: Any, *path: str, digits: int = 2) -> list[str]:
    """Spell a number in both readings."""
    return [number(results.value(part, at, reading, *path), digits) for reading in READINGS]


def shares(results: Results, part: str, at: Any, *path: str) -> list[str]:
    """Spell a share in both readings."""
    return [share(results.value(part, at, reading, *path)) for reading in READINGS]


def compared(results: Results, claims: Any, ways: Iterable[str] = WAYS) -> str:
    """Set statements of the thesis beside the readings."""
    sides = [claims(results, way) for way in ways]
    rows = [
        [same[0].says, *(cell for one in same for cell in (one.here, one.verdict))]
        for same in zip(*sides, strict=True)
    ]
    return table(["the thesis says", *(cell for way in ways for cell in (way, "verdict"))], rows)


def table_1(results: Results) -> str:
    """Table 4.1 beside ours."""
    rows = []
    for at, (average, variance) in POSITIONS.items():
        cells = [f"{average:.2f}", f"{variance:.2f}", f"{variance**0.5:.2f}"]
        for reading in READINGS:
            here, first = results.deviation(at, reading), results.deviation(at, reading, "first")
            cells += [
                number(results.value("cut", at, reading, "position", "10", "average"), 2),
                number(None if here is None else here**2, 2),
                number(here, 2),
                number(None if first is None else first**2, 2),
            ]
        rows.append([f"{at} %", *cells])
    head = ["average", "variance", "deviation"]
    columns = ["θ", *head, *(f"{one}, {r}" for r in READINGS for one in (*head, "equals after"))]
    return f"""Users with ten friends in {TESTS} networks of 1,000 with {SHOWN} queries each. Place 0 is that
of the one who submitted fewest; were all places alike, the average would be 5, the variance 10 and the
deviation 3.16.

{table(columns, rows)}

How equals count decides: where much is cut out, many submit none of an author's queries at all. Ours puts
half of the equals before; *equals after* is the variance if everybody comes before all of her equals. The
thesis does not say what it does."""


def table_5(results: Results) -> str:
    """Table 4.5 beside ours."""
    rows = []
    for many, average, deviation, previous in zip(FRIENDS, AVERAGES, DEVIATIONS, PREVIOUS, strict=True):
        at = spelled(BEST)
        here = [
            number(results.value("cut", at, reading, "position", str(many), column), 2)
            for column in ("average", "deviation")
            for reading in READINGS
        ]
        rows.append([
            str(many), f"{many / 2:.1f}", f"{average:.2f}", *here[:2], f"{deviation:.2f}", f"{previous:.2f}",
            *here[2:],
        ])  # fmt: skip
    head = [
        "friends",
        "ideal",
        "average, thesis",
        *READINGS,
        "deviation, thesis",
        "previous protocol",
        *READINGS,
    ]
    return table(head, rows)


def table_2(results: Results) -> str:
    """Table 4.2 beside ours."""
    rows = []
    for many in (*FRIENDS, 0):
        cells = []
        for limit, counts in EXPOSED.items():
            wanted = counts[many - 1] if many else sum(counts)
            cells.append(f"{wanted:g}" if many else f"{wanted:.1f}")
            for reading in READINGS:
                found = results.friends("selfish", 0.0, reading, "exposed", "by_friends", "*", limit)
                value = found.get(many) if many else (sum(found.values()) if found else None)
                cells.append(number(value))
        rows.append([str(many) if many else "all", *cells])
    head = [f"{limit} %, {who}" for limit in EXPOSED for who in ("thesis", *READINGS)]
    above = ", ".join(f"{10 * sum(TENTHS[int(limit) // 10 :]):.1f}" for limit in EXPOSED)
    counted_there = ", ".join(f"{sum(counts):.1f}" for counts in EXPOSED.values())
    people = results.value("selfish", 0.0, next(iter(READINGS)), "exposed", "people")
    return f"""Histories of the made-up log, {FEWER_TESTS} networks of 1,000; numbers of users. PEL is
undefined for somebody with one distinct query; it is defined for {number(people, 0)} of our 1,000.

{table(["friends", *head], rows)}

(The statements below are for 1,000 users with a defined PEL, so a little above the last row.) The
thesis's Tables 4.2 and 4.3 do not agree: by Table 4.3 {above} users are above 60, 70 and 80 %,
 by Table 4.2 {counted_there}."""


def table_3(results: Results) -> str:
    """Table 4.3 beside ours, for histories and synthetic queries."""
    rows = []
    for tenth, wanted in zip(range(10, 101, 10), TENTHS, strict=True):
        cells = [
            cell
            for part, at in (("selfish", 0.0), ("cut", spelled(BEST)))
            for cell in both(results, part, at, "exposed", "tenths", str(tenth))
        ]
        rows.append([f"{tenth}", f"{wanted:.2f}", *cells])
    head = [f"{what}, {reading}" for what in ("histories", "synthetic") for reading in READINGS]
    return f"""Users in percent; 10 is up to 10 % of the profile, 100 includes all that is above. Synthetic
queries: {SHOWN} of each, hers alone, where PEL is the share of her own among all that she submits.

{table(["exposed", "thesis", *head], rows)}"""


def table_4(results: Results) -> str:
    """Table 4.4 beside ours."""
    rows = []
    for penalty, wanted in PUNISHED.items():
        cells = []
        for kind, value in zip(("honest", "selfish"), wanted, strict=True):
            cells += [f"{value:g}", *both(results, "penalty", penalty, "exposed", kind, "60", digits=1)]
        rows.append([f"{penalty:.2f}", *cells])
    head = [f"{kind}, {who}" for kind in ("honest", "selfish") for who in ("thesis", *READINGS)]
    return f"""Exposed users in percent; {FEWER_TESTS} networks of 1,000, of which 10 % are selfish, with
{SHOWN} synthetic queries each.

{table(["ζ", *head], rows)}

A selfish user submits nobody else's queries, so that a single one of her own that she must submit makes her
PEL 100 %: that all are exposed takes one refusal by all of her friends, not isolation. Figure 4.3 says more.
The thesis lets each user repeat one query here, for which its PEL is undefined; ours is the share of her own
among all that she submits."""


def response(results: Results) -> str:
    """Say what is odd about the response time."""
    return f"""10,000 users with 1,000 queries each. Response time = 2 · hops · {LATENCY:.0f} ms +
{ENGINE:.0f} ms, as the thesis has it. But it takes the {LATENCY:.0f} ms for a round trip, and then doubles
them: with one round trip for each hop, its {HOPS} hops would take {HOPS * LATENCY + ENGINE:.0f} ms instead of
{RESPONSE:.0f}."""
