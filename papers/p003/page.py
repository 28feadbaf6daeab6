"""Tables and figures of the page of paper 003, chapter 5; its words are in `page.md.j2`."""

from __future__ import annotations

import math
from typing import Any

from papers.common.render import number, percent, table, with_unit
from papers.common.verdicts import POINTS, Verdict, counted
from papers.p003.claims import (
    CLOSE,
    COMPARED_KS,
    EXPOSED,
    FIGURES,
    FOUR,
    HIGH_INDEX,
    LOST,
    all_claims,
    exposure,
    lost,
    over,
)
from papers.p003.figures import AGGREGATIONS, MOST_COMPARED, file_of
from papers.p003.mining import OWN_PEOPLE
from papers.p003.results import Results, by_lot
from papers.p003.run import DELTA, EPSILON

SHOWN_K = 5
#: A loss above this part of what lot would lose leaves little.
MOST_OF = 0.8
NAMES = {
    "semantic": "`microagg-semantic` (5.5)",
    "topic": "`microagg-topic` (5.4), first category",
    "topic five": "… first five categories",
    "syntactic": "`microagg-syntactic` (5.3)",
    "plain": "`microagg-plain` (5.5.2.2)",
    "threshold": "`threshold-dp`, d = 5 (Korolova)",
    "graph": "`graph-suppress`, K = 5 (Poblete)",
    "graph, no density": "… without its last step",
}
COLUMNS = {
    "IL": (LOST, 1.0, 1),
    "IL by lot": (f"{LOST}_by_chance", 1.0, 1),
    "PEL": (EXPOSED, 1.0, 1),
    "PEL, categories": ("profile_exposure.categories_mean", 1.0, 1),
    "RL": ("record_linkage.queries", 1.0, 1),
    "RL, categories": ("record_linkage.categories", 1.0, 1),
    "`link-overlap`": ("linked", 100.0, 1),
    "records": ("rows", 100.0, 1),
    "processor, s": ("cpu_seconds", 1.0, 2),
}


CAPTIONS = {
    "5.3": "Exposure (PEL) of the syntactic method beside 100/k",
    "5.4": "Information loss ratio (ILR) of the syntactic method",
    "5.5": "Rand and Jaccard indices of k-means before and after, over the number of groups",
    "5.6": "Both indices at k = 3 less those at k = 50",
    "5.7": "How often the ten commonest queries come, over k",
    "5.8": "How often the ten commonest words come, over k",
    "5.10": "Queries that are classified down to each level",
    "5.11": "What remains of people's categories (SRP), by level and k",
    "5.12": "Processor time of the topic method, with one category and with five",
    "5.13": "Information loss (IL): how unlike the groups of alike people are",
    "5.14": "How many of the ten commonest queries are kept",
    "5.15": "How many of the ten commonest categories are kept",
    "5.16": "Record linkage (RL) by queries",
    "5.17": "Record linkage (RL) by categories",
    "5.18": "Exposure (PEL) by queries",
    "5.19": "Exposure (PEL) by categories",
}
SECTIONS = {
    "5.3: by how queries look": ("5.3", "5.4", "5.5", "5.6", "5.7", "5.8"),
    "5.4: by topics": ("5.10", "5.11", "5.12"),
    "5.5: by meaning, beside all others": ("5.13", "5.14", "5.15", "5.16", "5.17", "5.18", "5.19"),
}


def share(value: float | None) -> str:
    """Return a share in percent, or a dash where there is none."""
    return percent(value, 1)


def opening(results: Results) -> dict[str, Any]:
    """Return the description of the log."""
    return {"about": results.about}


def tally(results: Results) -> dict[str, Any]:
    """Count the verdicts."""
    counts = counted(all_claims(results))
    return {
        "right": counts[Verdict.HOLDS],
        "partly": counts[Verdict.PARTLY],
        "wrong": counts[Verdict.FAILS],
        "waiting": counts[Verdict.MISSING],
        "missing": [kind for kind in AGGREGATIONS if not results.ats(kind)],
    }


def privacy(results: Results) -> dict[str, Any]:
    """Return the claim on exposure, and how often `link-overlap` is right, in multiples of 1/k."""
    ratios = [
        (k / 100 * linked, kind, int(k))
        for kind in AGGREGATIONS
        for k, linked in results.points(kind, "linked", scale=100)
    ]
    return {"claim": exposure(results)[0], "ratios": ratios}


def utility(results: Results) -> dict[str, Any]:
    """Return how much of the groups of similar users is left at one k."""
    known = ((kind, results.value(kind, SHOWN_K, LOST)) for kind in AGGREGATIONS)
    losses = {kind: value for kind, value in known if value is not None}
    best = min(losses, key=lambda kind: losses[kind], default="")
    ratio = "information_loss_ratio.queries_mean"
    early, late = (with_unit(results.value("syntactic", k, ratio)) for k in (3, 35))
    lot = results.value(best, SHOWN_K, f"{LOST}_by_chance") or 100.0
    return {"losses": losses, "best": best, "lot": lot, "early": early, "late": late}


def semantic(results: Results) -> dict[str, Any]:
    """Return the claim that the thesis's own method is the best."""
    return {"claim": lost(results)[0]}


def removals(results: Results) -> dict[str, Any]:
    """Return what is left when queries are removed."""
    rows = [results.value("threshold", d, "rows") for d in (1, 20)]
    people = [results.value("graph", k, "people_left") for k in (2, 30)]
    sides = zip((*rows, people[1]), (0.12, 0.10, 0.90), strict=True)
    fewer = all(here is not None and here < thesis for here, thesis in sides)
    return {"rows": rows, "people": people, "fewer": fewer}


def methods(results: Results) -> dict[str, Any]:
    """Set all methods side by side at one k."""
    rows = []
    for kind, name in NAMES.items():
        if results.ats(kind):
            found = [(results.value(kind, SHOWN_K, column), more) for column, *more in COLUMNS.values()]
            cells = (number(None if value is None else scale * value, int(n)) for value, (scale, n) in found)
            rows.append([name, *cells])
    return {"rows": rows}


def claim_table(results: Results, figure: str) -> str:
    """Return the thesis's statements on a figure and whether they hold."""
    rows = [[claim.says, claim.here, claim.judged.on_page] for claim in FIGURES[figure](results)]
    return table(["the thesis says", "here", "verdict"], rows)


def pictures(results: Results) -> dict[str, Any]:
    """Return the figures of the notes below some of the pictures."""
    people, yardsticks = results.about["users"], []
    for name in ("rand", "jaccard"):
        if best := dict(results.index(1, name)):
            groups = min(best, key=lambda one: abs(one - 100))
            lot = by_lot(name, groups, people)
            yardsticks.append(
                f"{name.capitalize()} {best[groups]:.2f}, by lot {lot:.2f}, with {groups:.0f} groups"
            )
    medians = [results.value("syntactic", k, "information_loss_ratio.queries_median") for k in (3, 35)]
    return {
        "about": results.about,
        "medians": [with_unit(one) for one in medians],
        "yardsticks": yardsticks,
        "own": [
            f"{name.capitalize()} {value:.2f} with {groups:.0f} groups"
            for name in ("rand", "jaccard")
            for groups, value in results.index(3, name, own=True)
        ],
        "rooms": [
            (lot - loss, kind, k)
            for kind in FOUR
            for k, loss in over(results, kind, LOST, COMPARED_KS).items()
            if (lot := results.value(kind, k, f"{LOST}_by_chance")) is not None
        ],
    }


def what_removals_remove(results: Results) -> dict[str, Any]:
    """Return what is left after each removal."""
    rows = []
    for kind, name, settings in (
        ("threshold", "d", (1, 5, 10, 20)), ("frequent", "people", (2, 3, 5, 10, 20)),
        ("graph", "K", (1, 2, 5, 10, 30)),
        ("graph, no density", "K", (1, 2, 5, 10, 30)), ("graph, density alone", "K", (0,)),
    ):  # fmt: skip
        for at in settings:
            if (line := results.lines.get(f"{kind} {at}")) is not None:
                least = f" (threshold {line['settings']['K']})" if kind == "threshold" else ""
                cells = [share(line[column]) for column in ("rows", "queries_left", "people_left")]
                rows.append([f"{kind}, {name} = {at}{least}", *cells])
    return {"about": results.about, "rows": rows, "odds": math.exp(EPSILON)}
