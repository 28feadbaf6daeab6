"""Tables and figures of the page of paper 003, chapter 4; its words are in `page.md.j2`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from papers.common.render import number, percent, table
from papers.common.verdicts import Claim, Verdict, counted
from papers.p003_crowd.claims import MOST, TABLES, WAYS, all_claims, sized, usable
from papers.p003_crowd.figures import CAPTIONS, ENGINES
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
    TENTHS,
    Results,
)
from papers.p003_crowd.run import (
    ATTACKED_TESTS,
    BEST,
    COLLUDING,
    COPIES,
    EXPONENT,
    EXPONENTS,
    FEWER_TESTS,
    FLAT,
    FLAT_EXPONENT,
    LINKED,
    MOST_EXACT,
    NOTHING,
    READINGS,
    RENEWALS,
    SIZES,
    TESTS,
    spelled,
)
from querycloak.clients.crowd.attackers import TARGETS, VECTORS
from querycloak.clients.crowd.metrics import ENGINE, LATENCY
from querycloak.clients.crowd.rules import ProtocolSettings

SHOWN = 100  # queries of each user, and linked ones where there is room for one number
BACK, NO_BACK = READINGS
CUT, WHOLE = f"linked {spelled(BEST)}", f"linked {spelled(NOTHING)}"
NETWORK = ENGINES["knows the network"][0]
#: Tallies of two runs with other draws differed by so much.
TALLY_NOISE = 2
#: A difference that counts as one, where sizes of crowds are compared.
TENTH = 0.1
#: Shares of the equal one that differ by less are called equal.
EVEN = 0.02


def share(value: float | None) -> str:
    """Return a share in percent, or a dash where there is none."""
    return percent(value, 1)


def both(results: Results, part: str, at: Any, *path: str, digits: int = 2) -> list[str]:
    """Return a number in both readings."""
    return [number(results.value(part, at, reading, *path), digits) for reading in READINGS]


def shares(results: Results, part: str, at: Any, *path: str) -> list[str]:
    """Return a share in both readings."""
    return [share(results.value(part, at, reading, *path)) for reading in READINGS]


def strongest(results: Results, part: str, at: Any, reading: str) -> float | None:
    """Return what the better of the two engines that know the network achieves."""
    paths = (NETWORK, ENGINES["knows network and rules"][0])
    found = [value for path in paths if (value := results.value(part, at, reading, *path)) is not None]
    return max(found, default=None)


def engine_found(results: Results) -> dict[str, Any]:
    """Return what the engine finds out, with and without cuts."""
    cut, whole = ([strongest(results, part, SHOWN, way) for way in WAYS] for part in (CUT, WHOLE))
    steps = ", ".join(
        f"from {share(before)} to {share(after)} ({way})"
        for way, before, after in zip(WAYS, whole, cut, strict=True)
    )
    alone = shares(results, CUT, SHOWN, "engine", "linked", "success")
    return {"cut": cut, "whole": whole, "alone": alone, "steps": steps}


def measure_found(results: Results) -> dict[str, Any]:
    """Return whether PEL shows what the engine finds."""
    pel = [results.value("cut", spelled(BEST), reading, "exposed", "honest", "60") for reading in READINGS]
    named = [strongest(results, CUT, SHOWN, reading) for reading in READINGS]
    blind = all(
        one is not None and two is not None and one / 100 < two / 2
        for one, two in zip(pel, named, strict=True)
    )
    return {"pel": pel, "named": named, "blind": blind}


def readings_found(results: Results) -> dict[str, Any]:
    """Count the verdicts in each reading."""
    counts = {way: counted(all_claims(results, way)) for way in WAYS}
    most = max(one[Verdict.HOLDS] for one in counts.values())
    return {
        "tallies": "; ".join(
            f"*{way}*: {one[Verdict.HOLDS]} hold, {one[Verdict.PARTLY]} in part, {one[Verdict.FAILS]} do not"
            for way, one in counts.items()
        ),
        "later": "".join(
            f" {one[Verdict.MISSING]} wait for measurements ({way})."
            for way, one in counts.items()
            if one[Verdict.MISSING]
        ),
        "every": any(one[Verdict.HOLDS] == one.total() for one in counts.values()),
        "best": " and ".join(
            f"*{way}*" for way, one in counts.items() if one[Verdict.HOLDS] >= most - TALLY_NOISE
        ),
        "fits": "; ".join(
            f"{way} {(claim := usable(results, way)[0]).here}, {claim.judged.after_that}" for way in WAYS
        ),
        "equal": equality(results),
    }


def friends_found(results: Results) -> dict[str, Any]:
    """Return what friends learn."""
    least, most = COLLUDING[0], COLLUDING[-1]
    return {
        "one": shares(results, "colluding", least, "predecessor", "success", "success"),
        "seen": shares(results, "colluding", most, "predecessor", "seen"),
        "named": shares(results, "colluding", most, "predecessor", "of_all", "success"),
    }


def heavy_found(results: Results) -> dict[str, Any]:
    """Compare those who search most with the others."""
    heavy, rest = (
        [results.value("selfish", 0.0, reading, "own", who) for reading in READINGS]
        for who in ("heaviest tenth", "others")
    )
    more = all(
        one is not None and two is not None and one > two for one, two in zip(heavy, rest, strict=True)
    )
    real, synthetic, free = (
        both(results, part, at, "exposed", "honest", "60", digits=1)
        for part, at in (("selfish", 0.0), ("cut", spelled(BEST)), ("no trust", 0))
    )
    return {"heavy": heavy, "rest": rest, "more": more, "real": real, "synthetic": synthetic, "free": free}


def equality(results: Results) -> list[str] | None:
    """Return the readings in which an author and the friends submit equally much; None if not measured."""
    known = {
        reading: [
            results.value("equal", spelled(NOTHING), reading, "equal", who) for who in ("author", "friends")
        ]
        for reading in READINGS
    }
    if None in (value for side in known.values() for value in side):
        return None
    return [
        f"*{reading}*" for reading, side in known.items() if max(abs((one or 0) - 1) for one in side) <= EVEN
    ]


def readings(results: Results) -> dict[str, Any]:
    """Return the shares that each reading gives."""
    at = spelled(NOTHING)
    rows = [
        [who, *both(results, "equal", at, "equal", who)] for who in ("author", "friends", "their friends")
    ]
    far = [results.value("equal", at, reading, "equal", "their friends") for reading in READINGS]
    less = all(one is not None and one < 1 - EVEN for one in far)
    return {"rows": rows, "less": less, "equal": equality(results)}


def engine(results: Results) -> dict[str, Any]:
    """Return what the engine learns, by what it knows, and with vectors that are redrawn."""
    rows = []
    for interval in (NOTHING, BEST):
        for words, (path, _, _) in ENGINES.items():
            for way in WAYS:
                found = results.over(f"linked {spelled(interval)}", LINKED, way, *path)
                cells = [share(found.get(each)) for each in LINKED]
                rows.append([f"{spelled(interval)} %, {way}: {words}", *cells])
    anew = [[results.value("renew", at, reading, *NETWORK) for reading in READINGS] for at in RENEWALS]
    never = [results.value(CUT, SHOWN, reading, *NETWORK) for reading in READINGS]
    pairs = [(one, two) for line in anew for one, two in zip(line, never, strict=True)]
    redrawn = [[str(at), *map(share, line)] for at, line in zip(RENEWALS, anew, strict=True)]
    return {
        "head": ["θ, reading: engine", *(f"{each:,}" for each in LINKED)],
        "rows": rows,
        "single": shares(results, CUT, SHOWN, "engine", "single", "success"),
        "better": all(one is not None and two is not None and one > two for one, two in pairs),
        "renewed": [*redrawn, ["never", *map(share, never)]],
    }


def friends(results: Results) -> dict[str, Any]:
    """Return what colluding members learn."""
    columns = {
        "seen": ("seen",),
        "named, of those": ("success", "success"),
        "named, of all": ("of_all", "success"),
    }
    by_friends = ("predecessor", "by_friends")
    return {
        "head": ["collude", *(f"{what}, {reading}" for what in columns for reading in READINGS)],
        "rows": [
            [f"{100 * at:g} %", *(
                cell
                for path in columns.values()
                for cell in shares(results, "colluding", at, "predecessor", *path)
            )]
            for at in COLLUDING
        ],
        "ends": [
            [f"{many}", *shares(results, "colluding", COLLUDING[1], *by_friends, str(many), "success")]
            for many in (1, 2, 3, 5, 10)
        ],
    }  # fmt: skip


def compared(
    results: Results, claims: Callable[[Results, str], list[Claim]], ways: Iterable[str] = WAYS
) -> str:
    """Return statements of the thesis beside the readings."""
    sides = [claims(results, way) for way in ways]
    rows = [
        [same[0].says, *(cell for one in same for cell in (one.here, one.judged.on_page))]
        for same in zip(*sides, strict=True)
    ]
    return table(["the thesis says", *(cell for way in ways for cell in (way, "verdict"))], rows)


def tables(results: Results) -> dict[str, Any]:
    """Return the figures of the words between the tables."""
    return {
        "people": results.value("selfish", 0.0, BACK, "exposed", "people"),
        "above": ", ".join(f"{10 * sum(TENTHS[int(limit) // 10 :]):.1f}" for limit in EXPOSED),
        "counted_there": ", ".join(f"{sum(counts):.1f}" for counts in EXPOSED.values()),
    }


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
    return table(columns, rows)


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
    return table(["friends", *head], rows)


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
    return table(["exposed", "thesis", *head], rows)


def table_4(results: Results) -> str:
    """Table 4.4 beside ours."""
    rows = []
    for penalty, wanted in PUNISHED.items():
        cells = []
        for kind, value in zip(("honest", "selfish"), wanted, strict=True):
            cells += [f"{value:g}", *both(results, "penalty", penalty, "exposed", kind, "60", digits=1)]
        rows.append([f"{penalty:.2f}", *cells])
    head = [f"{kind}, {who}" for kind in ("honest", "selfish") for who in ("thesis", *READINGS)]
    return table(["ζ", *head], rows)


def lonely(results: Results, way: str) -> str:
    """Return the share of exposed users of a log who have one friend."""
    found = results.friends("selfish", 0.0, way, "exposed", "by_friends", "*", "60")
    return share(found[1] / sum(found.values())) if found else "–"


def choices(results: Results) -> dict[str, Any]:
    """Return what exponents and copies change."""
    powers = []
    for at in EXPONENTS:
        cells = both(results, "exponent", at, "hops")
        for part in ("exponent", "exponent, histories"):
            cells += both(results, part, at, "exposed", "honest", "60", digits=1)
        powers.append([f"{at:g}", *cells])
    off = {
        (at, reading): abs(value - HOPS)
        for reading in READINGS
        for at, value in results.over("exponent", EXPONENTS, reading, "hops").items()
    }
    best = min(off, key=lambda at: off[at], default=None)
    fits = "–" if best is None else f"{best[0]:g}, {best[1]}"
    shapes = [f"{what}, {r}" for what in ("hops", "exposed, synthetic, %", "histories, %") for r in READINGS]
    copies = []
    for at in (COPIES[0], ProtocolSettings.copies, COPIES[1]):
        where: tuple[str, Any] = ("cut", spelled(BEST)) if at == ProtocolSettings.copies else ("copies", at)
        cells = [
            *both(results, *where, "hops"),
            *both(results, *where, "position", "10", "average"),
            *both(results, *where, "position", "10", "deviation"),
            *both(results, *where, "exposed", "honest", "60", digits=1),
        ]
        copies.append([str(at), *cells])
    head = [f"{what}, {r}" for what in ("hops", "position", "deviation", "exposed, %") for r in READINGS]
    return {
        "fits": fits,
        "shapes": ["exponent", *shapes],
        "powers": powers,
        "head": ["copies", *head],
        "copies": copies,
    }


def sizes(results: Results) -> dict[str, Any]:
    """Return what the engine finds by size of the crowd."""
    rows = []
    for users in SIZES:
        cells = both(results, "size, few", users, "hops")
        for part in ("size, few", "size"):
            cells += shares(results, part, users, *NETWORK)
        rows.append([f"{users:,}", *cells])
    found = [
        list(results.over(part, SIZES, reading, *NETWORK).values())
        for part in ("size, few", "size")
        for reading in READINGS
    ]
    widest = max((max(line) - min(line) for line in found if line), default=None)
    head = [f"named of {each}, {reading}" for each in (3, SHOWN) for reading in READINGS]
    return {
        "head": ["users", *(f"hops, {reading}" for reading in READINGS), *head],
        "rows": rows,
        "widest": widest,
    }


def ours(results: Results) -> dict[str, Any]:
    """Return the exponents that were tried."""
    return {"exponents": ", ".join(f"{one:g}" for one in EXPONENTS)}
