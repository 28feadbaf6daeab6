"""Tables and figures of the page of paper 002; its words are in `page.md.j2`."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from papers.common.render import percent, table
from papers.p002.claims import sentences_of
from papers.p002.exact import TYPICAL
from papers.p002.mechanisms import DELTA
from papers.p002.results import CRITERIA, JOINED, LARGE, NAMES, SETTINGS, Results, compared, number
from papers.p002.workload import LOGS, MOST

METHOD_COLUMNS = [
    "SQC2, ε/m", "SQC1, ε/m", "NSQC, ε/m", "SQC2, ε each", "SQC1, ε each", "NSQC, ε each", "HBDP, ε",
    "HBDP, mε",
]  # fmt: skip
#: Methods with their reading of ε, in the order of these columns.
BY_COLUMN = [
    *((method, per) for per in ("history", "query") for method in CRITERIA), ("hbdp", ""), ("hbdp equal", "")
]  # fmt: skip


def cells(
    results: Results, setting: str, epsilon: float, log: str = "usual", column: str = "loss"
) -> list[str]:
    """Return one number of every method at one ε."""
    return [number(results.value(setting, method, per, epsilon, log, column)) for method, per in BY_COLUMN]


def ahead(results: Results, setting: str) -> str:
    """Return from which ε on a histogram that spends as much loses less than every criterion."""
    last = "none"
    for epsilon in reversed(results.epsilons(setting, "hbdp equal", "history")):
        others = [results.value(setting, method, "query", epsilon) or 0.0 for method in CRITERIA]
        if (results.value(setting, "hbdp equal", "", epsilon) or 1.0) >= min(others):
            break
        last = f"{epsilon:g}"
    return last


def found(results: Results) -> dict[str, Any]:
    """Return the figures of the main findings."""
    value, every = results.value, [*SETTINGS, *JOINED]
    low, high = (value("A", "sqc2", "history", e) for e in (0.1, 10.0))
    spent = [value("A", "sqc2", way, 10, column="per_draw") or math.nan for way in ("zcdp", "history")]
    pairs = [
        (value(s, m, "history", 10), value(s, m, "zcdp", 10)) for s in SETTINGS for m in ("sqc1", "sqc2")
    ]
    return {
        "zeros": [one["loss"] for one in results.within_topics()],
        "low": value("A", "sqc2", "history", 1.0) if low is None else low,
        "high": high,
        "each": [number(value(s, "sqc2", "query", 10)) for s in SETTINGS],
        "same": [number(value(s, "hbdp equal", "", 10)) for s in SETTINGS],
        "rough": [number(value(s, "hbdp equal max", "", 10)) for s in SETTINGS],
        "gains": [number(results.ratio(s, ("none", 10), ("sqc2", 10)), 1) for s in every],
        "more": number(spent[0] / spent[1], 1),
        "gained": max(plain - tight for plain, tight in pairs if plain is not None and tight is not None),
    }


def pictures(results: Results) -> dict[str, Any]:
    """Return the largest standard error in the main tables."""
    return {
        "error": max(
            float(one["loss_error"])
            for one in results.losses()
            if one["setting"] in SETTINGS and one["per"] in ("history", "query") and one["method"] in NAMES
        )
    }


def losses(results: Results, setting: str) -> str:
    """Return the utility loss of a setting for every ε and method."""
    epsilons = results.epsilons(setting, "sqc1", "history")
    return table(["ε", *METHOD_COLUMNS], ([f"{one:g}", *cells(results, setting, one)] for one in epsilons))


def ordering(results: Results, setting: str, per: str, epsilon: float) -> str:
    """Return the methods from the least loss to the largest, with the sign between each two."""
    lines = {name: results.line(setting, method, per, epsilon) for method, name in NAMES.items()}
    if None in lines.values():
        return "–"
    names = sorted(lines, key=lambda name: float(lines[name]["loss"]))
    signs = [compared(lines[a], lines[b]) for a, b in pairwise(names)]
    return " ".join(part for pair in zip(names, [*signs, ""], strict=True) for part in pair if part)


def orderings(results: Results) -> dict[str, Any]:
    """Return the ordering of the methods above ε = 1, and the figures that explain it."""
    value, epsilons = results.value, results.over_one()
    rows = [
        [f"{setting}, {words}", *(ordering(results, setting, per, epsilon) for epsilon in epsilons)]
        for setting in SETTINGS
        for per, words in (("history", "ε/m"), ("query", "ε each"))
    ]
    two = ("sqc2", "sqc1")
    return {
        "head": ["", *(f"ε = {epsilon:g}" for epsilon in epsilons)],
        "rows": rows,
        "out": [number(value("B", m, "query", 10, column="outside")) for m in two],
        "stay": [number(value("B", m, "query", 10, column="stay")) for m in two],
        "empty": [number(value(s, "blank", "", 0)) for s in SETTINGS],
        "drawn": [number(value(s, "none", "history", 10)) for s in SETTINGS],
        "even": number(value("B joined", "blank", "", 0)),
        "alone": [number(value("B", m, "query", 10, "listed")) for m in two],
    }


def sentences(results: Results) -> dict[str, Any]:
    """Return the paper's sentences with our figures and verdicts."""
    return {"rows": [[one.says, one.here, one.judged.on_page] for one in sentences_of(results)]}


def why(results: Results) -> dict[str, Any]:
    """Return the probabilities that the weights make."""
    draws = sorted({one["epsilon"] for one in results.exact})
    known = {(one["setting"], one["method"], one["epsilon"]): one for one in results.exact}
    return {
        "head": ["ε of one draw", *(f"{epsilon:g}" for epsilon in draws)],
        "rows": [
            [f"{setting}, {NAMES[method]}", *(number(known[setting, method, e]["log"]) for e in draws)]
            for setting in SETTINGS
            for method in CRITERIA
        ],
        "single": [
            [
                f"{name.partition('.')[0]}, {setting}",
                *(number(known[setting, "sqc2", e].get(name)) for e in draws),
            ]
            for name in TYPICAL
            for setting in SETTINGS
        ],
        "start": number(known["B", "none", draws[0]]["log"]),
        "weights": ", ".join(f"{math.exp(e / 2):,.2f} at {e:g}" for e in (0.1, 1.0, 10.0, 20.0)),
        "same": math.exp(5) / (math.exp(5) + results.about["below_abstraction"] - 1),
    }


def where(results: Results) -> dict[str, Any]:
    """Return at which ε, and with which domain, the paper's picture appears."""
    value = results.value
    criteria = [NAMES[method] for method in CRITERIA]
    rows = [
        [f"{e:g}", *(number(value(s, method, "query", e), 4) for s in SETTINGS for method in CRITERIA)]
        for e in results.epsilons("A", "sqc2", "query", 40)
        if e >= 10
    ]
    joined = [
        [
            f"{e:g}",
            *(number(value(s, m, "query", e)) for s in JOINED for m in CRITERIA),
            number(value("A", "hbdp", "", e)),
            number(value("D(q)=P 4", "hbdp", "", e)),
        ]
        for e in results.epsilons("B joined", "sqc2", "query")
    ]
    most, at, place = max(
        (results.ratio(setting, ("none", e), ("sqc2", e)), e, setting)
        for setting in SETTINGS
        for e in results.epsilons("A", "sqc2", "query", 30)
    )
    few, joined_c = value("D(q)=P 4", "hbdp", "", 10), value("C joined", "sqc2", "query", 10)
    return {
        "head": ["ε of one query", *(f"{setting}, {name}" for setting in SETTINGS for name in criteria)],
        "rows": rows,
        "joined_head": [
            "ε of one query",
            *(f"{s}, {n}" for s in "BC" for n in criteria),
            "B, HBDP",
            "C, HBDP",
        ],
        "joined": joined,
        "most": most,
        "at": at,
        "place": place,
        "times": (few or math.nan) / (joined_c or math.nan),
    }


def unlisted(results: Results) -> dict[str, Any]:
    """Compare profiles with and without everything else."""
    return {
        "rows": [
            [f"{setting}, {words}", *cells(results, setting, 10, column=column)]
            for setting in SETTINGS
            for column, words in (("loss", "with"), ("listed", "without"))
        ],
        "gone": [percent(results.value(s, "none", "history", 10, column="emptied"), 1) for s in "BC"],
    }


def histograms(results: Results) -> dict[str, Any]:
    """Return what the choices of HBDP change."""
    variants = {
        "hbdp": "paper's", "hbdp ours": "2·max", "hbdp topics": "cut late", "hbdp equal": "mε",
        "hbdp equal max": "mε, max",
    }  # fmt: skip
    rows = []
    for setting in (*SETTINGS, "D(q)=P 4", "D(q)=P 19"):
        line = results.line(setting, "hbdp", "", 10)
        values = [number(results.value(setting, method, "", e)) for method in variants for e in (1, 10)]
        rows.append([setting, f"{line['bins']:,}", f"{line['added']:.0f}", *values])
    head = ["", "counts of a user", "sum of the counts, times m, ε = 10"]
    return {
        "head": [*head, *(f"{name}, ε = {e}" for name in variants.values() for e in (1, 10))],
        "rows": rows,
    }


def composed(results: Results) -> dict[str, Any]:
    """Return what zCDP and microaggregation change."""
    sizes = (2, 5, 10)
    groups, middles = ([f"{kind} {size}" for size in sizes] for kind in ("group", "middles"))
    ways, wide = ["history", "zcdp", *groups], ["history", *groups]
    methods = [(setting, method) for setting in SETTINGS for method in ("sqc2", "sqc1")]

    def row(setting: str, method: str, ways: list[str], epsilon: float) -> list[str]:
        losses = (number(results.value(setting, method, way, epsilon)) for way in ways)
        return [f"{setting}, {NAMES[method]}", *losses]

    def per_draw(ways: list[str], epsilon: float) -> list[str]:
        found = (results.value("A", "sqc2", way, epsilon, column="per_draw") for way in ways)
        return ["*ε of one draw, median*", *(number(one, 2) for one in found)]

    names = [f"groups of {size}" for size in sizes]
    return {
        "head": ["ε = 10 for a history", "ε/m", "zCDP", *names, *(f"middles of {size}" for size in sizes)],
        "rows": [*(row(*at, ways + middles, 10) for at in methods), [*per_draw(ways, 10), "–", "–", "–"]],
        "large_head": [f"ε = {LARGE:g} for a history", "ε/m", *names],
        "large": [*(row(*at, wide, LARGE) for at in methods), per_draw(wide, LARGE)],
        "tried": [
            (results.value(s, m, way, e) or 1) > (results.value(s, m, "history", e) or 0)
            for s, m in methods
            for way in groups
            for e in results.over_one()
        ],
    }


def logs(results: Results) -> dict[str, Any]:
    """Return the losses on other logs."""
    words = {
        "usual": "as above",
        "apart": "users differ more",
        "alike": "users differ less",
        "listed": "no query outside the 19",
    }
    return {
        "rows": [
            [f"{setting}, {words[log]}", *cells(results, setting, 10, log)[:-1]]
            for setting in SETTINGS
            for log in LOGS
        ]
    }


def again(results: Results) -> dict[str, Any]:
    """Return how many queries users have."""
    least, mean, most = results.about["queries_of_a_user"]
    return {"least": least, "mean": mean, "most": most}
