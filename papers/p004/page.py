"""Tables and figures of the page of paper 004; its words are in `page.md.j2`."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

from papers.common.render import number, table
from papers.common.verdicts import Claim, Verdict, counted
from papers.p004.claims import TABLE_4, TABLE_5, TABLES, all_claims, ours
from papers.p004.figures import CAPTIONS
from papers.p004.results import FULL_DRAWS, FULL_FUNCTIONS, METHODS, NUMBERS, OURS, PAPERS, Results
from papers.p004.workload import ACTIVE, LESSONS, TENTHS

#: How the numbers of a person are called.
SPELLED = {
    "error": "structure: error",
    "relative error": "relative: error",
    "worst": "semantic: worst case",
    "mean": "semantic: mean over clusters",
    "hours": "hours of the day: worst case",
    "area": "area under the curve of pairs",
}
#: How verdicts are called where they are counted.
COUNTED = {
    Verdict.HOLDS: "hold",
    Verdict.PARTLY: "hold in part",
    Verdict.FAILS: "do not hold",
    Verdict.OPEN: "cannot be told",
    Verdict.MISSING: "are not measured yet",
}
#: Percentiles of fewer people than this say little.
FEW = 20
_DAYS = 92


def opening(results: Results) -> dict[str, Any]:
    """Return how much was measured."""
    attacked = results.attacked()
    return {
        "whole": set(attacked.values()) == {results.about["users"]},
        "attacked": ", ".join(f"{many} ({method})" for method, many in attacked.items()),
        "draws": results.draws(),
    }


def comparison(results: Results) -> dict[str, Any]:
    """Compare the paper's two ways, attacked and before any attack."""
    before = {method: results.unsorted(method) for method in METHODS}
    tmn, usr, topics = before["tmn"], before["usr"], results.apart("tmn", "usr", "worst")
    return {
        "structure": results.apart("tmn", "usr", "error"),
        "topics": topics,
        "unsorted": ", ".join(f"{one.value:.3f} (`{method}`)" for method, one in before.items() if one),
        "same": bool(tmn and usr and topics and (tmn.value - usr.value) * topics.value > 0),
    }


def tally(results: Results) -> dict[str, Any]:
    """Count the verdicts of the paper's claims and of our aims."""
    counts, aims = counted(all_claims(results)), ours(results)
    return {
        "total": counts.total(),
        "named": ", ".join(f"{counts[one]} {words}" for one, words in COUNTED.items() if counts[one]),
        "aims": {verdict.name: many for verdict, many in _every(aims).items()},
        "aimed": len(aims),
    }


def _every(claims: Sequence[Claim]) -> dict[Verdict, int]:
    return dict.fromkeys(Verdict, 0) | counted(claims)


def compared(claims: Sequence[Claim], head: str = "the paper says") -> str:
    """Return claims beside our figures."""
    return table([head, "here", "verdict"], [[one.says, one.here, one.judged.on_page] for one in claims])


def shadow(results: Results) -> dict[str, Any]:
    """Return in which numbers `shadow` protects less than one of the paper's two."""
    worse = [
        f"{SPELLED.get(name, name)} against `{other}`, by {-apart.value:.3f}"
        for name in NUMBERS
        for other in PAPERS
        if name != "area" and (apart := results.apart(OURS, other, name)) is not None and apart.high < 0
    ]
    return {"worse": worse}


def tables(results: Results) -> dict[str, Any]:
    """Return Table 1 beside ours, and the figures of the words between the tables."""
    about, first = results.about, list(results.importances("tmn"))[:1]
    tmn = next((line["fakes"] for line in results.part("made", "tmn") if line["draw"] >= 0), None)
    rows = [
        ["users", "100", f"{about['users']}"],
        ["searches", "73,984", f"{about['searches']:,}"],
        ["searches of a user", "828.62 (± 133.54)", f"{about['mean']:.2f} (± {about['deviation']:.2f})"],
        ["searches of a user in a day", "8", f"{about['mean'] / _DAYS:.1f}"],
        ["with a category", "99.2 %", f"{100 * about['with_topic']:.1f} %"],
        ["TMN's fakes", "90,851", "–" if tmn is None else f"{sum(tmn):,}"],
        ["TMN's fakes for a user", "908.51 (± 394.81)",
         "–" if tmn is None else f"{fmean(tmn):.2f} (± {stdev(tmn):.2f})"],
    ]  # fmt: skip
    many = {method: len(list(results.part("sizes", method))) for method in PAPERS}
    return {
        "rows": rows,
        "by_mistakes": any(name.startswith(("S_Spelling", "D_Spelling")) for name in first),
        "together": [_together(results, method) for method in PAPERS],
        "people": " and ".join(f"{count} ({method})" for method, count in many.items()),
        "few": max(many.values()) <= FEW,
    }


def importances(results: Results, method: str, paper: dict[str, int]) -> str:
    """Return Table 4 or 5 beside ours: the paper's 16 relations, and others that are among our first ten."""
    found = results.importances(method)
    names = [*paper, *(name for name in list(found)[:10] if name not in paper)]
    places = {name: place for place, name in enumerate(found, 1)}
    rows = [
        [f"`{name}`", f"{paper[name]}" if name in paper else "not listed",
         f"{found[name]:.0f}" if found else "–", f"{places[name]}" if found else "–"]
        for name in names
    ]  # fmt: skip
    return table(["relation", "paper", "here", "our place"], rows)


def _together(results: Results, method: str) -> list[str]:
    """Return the mean errors of functions alone and together."""
    lines = list(results.part("alone", method))
    alone = fmean(fmean(line["each"]) for line in lines) if lines else None
    ways = (fmean(line[way] for line in lines) if lines else None for way in ("median", "mean", "majority"))
    return [f"`{method}`", f"{len(lines)}", number(alone, 3), *(number(one, 3) for one in ways)]


def numbers(results: Results) -> dict[str, Any]:
    """Return all numbers, and the ways to cover whose scores show more than the clusters."""
    wasted = []
    for method in METHODS:
        area, error = (results.average(method, name) for name in ("area", "error"))
        if area is not None and error is not None and area.value > 1 - error.value + 0.1:
            wasted.append(f"`{method}`")
    rows = [
        [SPELLED.get(name, name), *(str(results.average(method, name) or "–") for method in METHODS)]
        for name in NUMBERS
    ]
    return {"head": ["", *(f"`{method}`" for method in METHODS)], "rows": rows, "wasted": wasted}


def what_is_ours(results: Results) -> dict[str, Any]:
    """Return the hours of the full study."""
    return {"hours": results.full_hours()}
