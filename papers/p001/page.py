"""Tables and figures of the page of paper 001; its words are in `page.md.j2`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from papers.common import render
from papers.common.render import listed, table
from papers.common.results import Line
from papers.common.verdicts import every_case
from papers.p001.results import (
    ALL_TARGETS,
    COLUMNS,
    GENERIC,
    KS,
    MS,
    PAPER_CHANCE,
    PAPER_FIRST,
    PAPER_ITERATIONS,
    PAPER_LOG,
    PAPER_TABLE_3,
    PAPER_TARGETS,
    SPECIFIC,
    Results,
    paper_5,
    paper_gaps,
)
from papers.p001.run import Study
from querycloak.synthetic.marketing import NO_CLICKS

SPELLED = {"distinct": "distinct terms", "logsize": "log size"}
number = partial(render.number, thousands=",")


def opening(results: Results) -> dict[str, Any]:
    """Return the settings that are not measured, one entry for each k and m."""
    every: dict[str, list[tuple[str, bool]]] = {}
    for plan in Study().plans():
        every.setdefault(f"greedy m={plan.m} k={plan.k}", []).append(
            (plan.target, plan.name in results.lines)
        )
    return {
        "missing": [
            f"{setting} ({', '.join(gone) if len(gone) < len(targets) else 'all'})"
            for setting, targets in every.items()
            if (gone := [target for target, known in targets if not known])
        ]
    }


def own_column(results: Results) -> dict[str, Any]:
    """Judge whether each target is best at what it aims at."""
    counts = {target: exceptions(results, target, PAPER_TARGETS) for target in COLUMNS[1:]}
    leads = [lead for _, bad in counts.values() for lead, _ in bad]
    tried = sum(n for n, _ in counts.values())
    return {
        "judged": every_case([True] * (tried - len(leads)) + [False] * len(leads)),
        "leads": leads,
        "small": sum(lead < 0.5 for lead in leads),
        "names": [f"`{target}` ({len(bad)} of {n})" for target, (n, bad) in counts.items() if bad],
    }


def _largest_gaps(results: Results, columns: tuple[str, ...]) -> dict[str, Any]:
    """Return the largest W and R of some columns, and the W of each."""
    found = [(column, largest(results, (column,), 1)) for column in columns]
    return {
        "worst": largest(results, columns, 1),
        "chance": largest(results, columns, 0),
        "each": [f"{spelled(column)} {one[0]:.1f}" for column, one in found if one],
    }


def generic(results: Results) -> dict[str, Any]:
    """Judge the paper's first result."""
    found = _largest_gaps(results, GENERIC)
    return found | {"judged": every_case([found["worst"][0] < 4.2] if found["worst"] else [])}


def specific(results: Results) -> dict[str, Any]:
    """Judge the paper's second result."""
    worst, chance = (largest(results, ("clicks",), place) for place in (1, 0))
    ranked = results.ranked("clicks", worst[3], worst[2], PAPER_TARGETS) if worst else []
    pair = "term frq. / clicks"
    return {
        "worst": worst,
        "chance": chance,
        "each": _largest_gaps(results, SPECIFIC)["each"],
        "judged": every_case([worst[0] > 40] if worst else []),
        "loser": [target for _, target in ranked if target != "random"][-1:][0] if ranked else "",
        "ours": results.about["correlations"][pair],
        "paper": PAPER_TABLE_3[pair],
    }


def most_distinct(results: Results) -> dict[str, Any]:
    """Judge which target keeps the most distinct terms."""
    first = {
        at: results.ranked("distinct", at[1], at[0], PAPER_TARGETS)[0] for at in results.settings(ALL_TARGETS)
    }
    return {
        "judged": every_case(winner == "random" for _, winner in first.values()),
        "ours": [
            (results.kept("distinct", "distinct", k, m) or 0.0) / best for (m, k), (best, _) in first.items()
        ],
    }


def second_largest(results: Results) -> dict[str, Any]:
    """Judge whether aiming at users gives the second largest log."""
    second = [
        results.ranked("logsize", k, m, PAPER_TARGETS)[1][1] for m, k in results.settings(PAPER_TARGETS)
    ]
    return {
        "judged": every_case(target == "users" for target in second),
        "others": sorted({f"`{target}`" for target in second if target != "users"}),
    }


def effect_of_m(results: Results) -> dict[str, Any]:
    """Judge how little m matters for k of 10 or more."""
    rows, every, large = [], [], [k for k in KS if k >= 10]
    for column in COLUMNS:
        paper = [abs(row[0] - row[1]) for k in large if (row := both(paper_5(column, k, m) for m in MS))]
        best = [abs(row[0] - row[1]) for k in large if (row := both(results.best(column, k, m) for m in MS))]
        rows.append([spelled(column), number(max(paper), 2), number(max(best, default=None), 2)])
        every += [
            (abs(row[0] - row[1]), target, column, k)
            for target in PAPER_TARGETS
            for k in large
            if (row := both(results.kept(target, column, k, m) for m in MS))
        ]
    judged = every_case(one[0] < 4 for one in every)
    return {"rows": rows, "every": every, "judged": judged, "most": max(every, default=None)}


def shares(results: Results) -> dict[str, Any]:
    """Compare our shares with the paper's."""
    ours, spans = results.about["correlations"], []
    for column in COLUMNS:
        rows = [both((results.best(column, k, m), paper_5(column, k, m))) for m in MS for k in KS]
        gaps = [row[0] - row[1] for row in rows if row]
        if gaps:
            spans.append(f"{spelled(column)} {min(gaps):+.1f} to {max(gaps):+.1f}")
    names = {name: f"term frq. / {name}" for name in ("clicks", "impressions", "revenue")}
    return {
        "spans": spans,
        "pairs": [f"{name} {ours[at]:.3f}, paper {PAPER_TABLE_3[at]:.3f}" for name, at in names.items()],
        "each": [made["occurrences"] / made["terms"] for made in (results.about, PAPER_LOG)],
    }


def log(results: Results) -> dict[str, Any]:
    """Set the two logs side by side."""
    about, paper = results.about, PAPER_LOG
    names = {
        "users": "users",
        "terms": "distinct terms",
        "user_terms": "a user's distinct terms, over all users",
        "occurrences": "occurrences of terms",
        "longest_history": "terms in the longest history",
        "pairs_of_terms_in_histories": "pairs of terms in histories",
    }
    rows = [[what, number(paper.get(name), 0), number(about[name], 0)] for name, what in names.items()]
    for what, whole in (("user", "users"), ("distinct term", "terms")):
        sides = [number(side["occurrences"] / side[whole]) for side in (paper, about)]
        rows.append([f"occurrences per {what}", *sides])
    return {"rows": rows}


def correlations(results: Results) -> dict[str, Any]:
    """Set Table 3 beside ours."""
    ours = results.about["correlations"]
    rows = [
        [name, f"{paper:.3f}{'' if name in PAPER_CHANCE else '*'}", number(ours.get(name), 3)]
        for name, paper in PAPER_TABLE_3.items()
    ]
    known = {name: value for name, value in ours.items() if name in PAPER_TABLE_3}
    same = sum((value > 0) == (PAPER_TABLE_3[name] > 0) for name, value in known.items())
    return {"rows": rows, "same": same, "known": len(known)}


def kept(results: Results) -> dict[str, Any]:
    """Set Table 5 beside ours."""
    rows = [
        [
            at(m, k),
            *(pair(paper_5(name, k, m), results.best(name, k, m), name) for name in COLUMNS),
            number(results.kept("distinct", "distinct", k, m), 2),
        ]
        for m in MS
        for k in KS
    ]
    head = ["paper / here, %", *(spelled(name) for name in COLUMNS), "distinct terms, target `distinct`"]
    return {"head": head, "rows": rows}


def runtime(results: Results) -> dict[str, Any]:
    """Count how often `fis` is the slowest target, and return the peak memory."""
    settings = results.settings(PAPER_TARGETS)
    found = [max(results.of_setting(m, k), key=lambda one: float(one["seconds"])) for m, k in settings]
    return {
        "settings": len(found),
        "slowest": sum(one["target"] == "fis" for one in found),
        "peak": max((one["peak_bytes"] for one in results.lines.values()), default=None),
    }


def first_iterations(results: Results) -> str:
    """Return run times beside the paper's first iteration."""
    rows = []
    for (m, k), paper in PAPER_FIRST.items():
        lines, fis = results.of_setting(m, k), results.line("fis", k, m)
        times = [f"{edge(one['seconds'] for one in lines):.1f} s" if lines else "–" for edge in (min, max)]
        rows.append([at(m, k), paper, *times, f"{fis['seconds']:.1f} s" if fis else "–",
                     str(fis["rounds"]) if fis else "–"])  # fmt: skip
    head = ["", "paper, first iteration", "here, whole run, fastest target", "slowest target", "`fis`",
            "rounds of `fis`"]  # fmt: skip
    return table(head, rows)


def iterations(results: Results) -> str:
    """Return our rounds beside the paper's iterations."""
    rows = []
    for m, (count, each) in PAPER_ITERATIONS.items():
        lines = [one for one in results.of_setting(m) if one["rounds"]]
        rounds = sum(one["rounds"] for one in lines)
        mean = number(rounds / len(lines)) if lines else "–"
        one = f"{sum(line['seconds'] for line in lines) / rounds:.2f} s" if rounds else "–"
        rows.append([f"m={m}", str(count), mean, each, one])
    head = ["mean over all k and targets", "paper, iterations", "here, rounds", "paper, each", "here, each"]
    return table(head, rows)


def deeper(results: Results) -> str:
    """Return m=4, which the paper leaves open."""
    rows = []
    for k in KS:
        sizes = [results.kept("logsize", "logsize", k, m) for m in (2, 3, 4)]
        line = results.line("logsize", k, 4)
        known = [f"{line['seconds']:.1f} s", str(line["rounds"])] if line else ["–", "–"]
        rows.append([f"k={k}", *(number(size) for size in sizes), *known, held(line)])
    head = ["`logsize`, % of the log kept", "m=2", "m=3", "m=4", "time at m=4", "rounds", "(k,4) checked"]
    return table(head, rows)


def held(line: Line | None) -> str:
    """Return what the independent check found."""
    if line is None or "holds" not in line:
        return "–"
    return "holds" if line["holds"] else "**fails**"


def checked(results: Results) -> dict[str, Any]:
    """Return which lines the audit counted again, and what it found."""
    rows, every = [], [one for one in results.lines.values() if "holds" in one]
    for m, k in sorted({(one["m"], one["k"]) for one in every}):
        here = [one for one in every if (one["m"], one["k"]) == (m, k)]
        times = [one["check_seconds"] for one in here]
        names = listed([f"`{one['target']}`" for one in here])
        holds = sum(one["holds"] for one in here)
        rows.append([at(m, k), names, f"{holds} of {len(here)}", f"{min(times):.2f} to {max(times):.2f} s"])
    return {"every": every, "rows": rows, "failed": [one["name"] for one in every if not one["holds"]]}


def pair(paper: float | None, ours: float | None, column: str) -> str:
    """Return the paper's number beside ours; the paper prints decimals for distinct terms only."""
    digits = 2 if column == "distinct" else 0
    return f"{number(paper, digits)} / {number(ours, digits or 1)}"


def spelled(column: str) -> str:
    """Return the name of a column as the page does."""
    return SPELLED.get(column, column)


def at(m: int, k: int) -> str:
    """Return the name of a setting."""
    return f"m={m}, k={k}"


def gap_table(results: Results, columns: tuple[str, ...]) -> str:
    """Return how far random, the worst other target, and fis stay behind the best."""
    rows = []
    for m in MS:
        for k in KS:
            cells = []
            for column in columns:
                paper, ours = paper_gaps(column, k, m), results.gaps(column, k, m)
                cells += [pair(paper and paper[i], ours and ours[i], column) for i in range(3)]
            rows.append([at(m, k), *cells])
    head = [f"{spelled(column)}, {kind}" for column in columns for kind in ("R", "W", "fis")]
    return table(["paper / here, points", *head], rows)


def exceptions(results: Results, target: str, among: tuple[str, ...]) -> tuple[int, list[tuple[float, str]]]:
    """Count where a target can be compared; list where another keeps more of its column, and how much."""
    settings, lost = results.settings(among), []
    for m, k in settings:
        found = results.ranked(target, k, m, among)
        lead = found[0][0] - next(value for value, name in found if name == target)
        if lead > 0:
            lost.append((lead, f"{at(m, k)}: `{found[0][1]}` keeps {lead:.3f} points more"))
    return len(settings), lost


def own_best(results: Results) -> str:
    """Return how often each target is best at its own column, and the exceptions."""
    rows = []
    for target in COLUMNS:
        count, lost = exceptions(results, target, ALL_TARGETS)
        names = "; ".join(name for _, name in lost) or ("none" if count else "–")
        rows.append([f"`{target}`", f"{count - len(lost)} of {count}", names])
    return table(["target", "best in", "exceptions"], rows)


def largest(results: Results, columns: tuple[str, ...], place: int) -> tuple[float, str, int, int] | None:
    """Return the largest R (0), W (1) or fis (2), and where it is."""
    found = [
        (gaps[place], column, m, k)
        for column in columns
        for m, k in results.settings(PAPER_TARGETS)
        if (gaps := results.gaps(column, k, m))
    ]
    return max(found, default=None)


def both(values: Iterable[float | None]) -> list[float]:
    """Return the values if all are there."""
    found = list(values)
    return [one for one in found if one is not None] if None not in found else []
