"""Tables and figures of the page of paper 000; its words are in `page.md.j2`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from papers.common.render import MISSING, blocks, percent, table
from papers.common.results import Line
from papers.common.verdicts import every_case
from papers.p000.results import PAPER_CATEGORIES, RELEASE_ONLY, SHOWN_K, THREE, UNBOUNDED, Key, Results
from papers.p000.statistics import of_rates, tested

#: The template has the line breaks of the page.
FILLED = False


def share(value: float | None) -> str:
    """Return a share in percent, or that it is missing."""
    return MISSING if value is None else percent(value)


def interval(found: dict[str, Any]) -> str:
    """Return a success with its interval."""
    if found["success"] is None:
        return "–"
    return f"{percent(found['success'])} ({100 * found['low']:.2f}–{100 * found['high']:.2f})"


def headline(results: Results) -> str:
    """Return the paper's headline numbers beside ours."""
    swaps, get = results.base("swap"), results.one
    mean = sum(o["microseconds_per_record"] for o in swaps) / len(swaps)
    at_190 = [o["microseconds_per_record"] for o in swaps if o["k"] == 190]
    every = [results.linked(name, "swap", level) for name in THREE for level in results.levels]
    above = [share for linked in every for k, share in linked.items() if k >= 100]
    flat, cohort = get("swap", 3), get("cohort", SHOWN_K, assign="arrival")
    by_topic, deeper = get("swap", SHOWN_K, 1), get("swap", SHOWN_K, 6)

    def micro(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f} µs"

    def deep(name: str) -> str:
        return percent(results.success(name, "swap", 3, 13))

    def loss(line: dict[str, Any] | None) -> str:
        return percent(line["profile"]["loss"]) if line else "–"

    return table(
        ["", "paper", "`swap` here", f"`cohort` here, k={SHOWN_K}"],
        [
            ["time per record, k=3, level 1", "18.99 µs", micro(flat and flat["microseconds_per_record"]),
             micro(cohort and cohort["microseconds_per_record"])],
            ["the same, mean of all settings", "33.68 µs", micro(mean), ""],
            ["the same, k=190, slowest level", "49.71 µs", micro(max(at_190, default=None)), ""],
            ["`link-profile`, k=3, level 13", "23.18 %", deep("link-profile"), ""],
            ["`link-random`, k=3, level 13", "18.36 %", deep("link-random"), ""],
            ["best of the three, k ≥ 100", "< 1 %", percent(max(above, default=None)), ""],
            [f"profile loss, level 1, k={SHOWN_K}", "42.03 %", loss(by_topic), loss(cohort)],
            [f"profile loss, level 6, k={SHOWN_K}", "< 1 %", loss(deeper), ""],
            ["categories in use", "194,505", f"{sum(results.about['added_categories'].values()):,}", ""],
        ],
    )  # fmt: skip


def of_the_three(results: Results) -> list[tuple[float, str, Key]]:
    """Return what the paper's attacks achieve on `swap`, in multiples of 1/k, with attack and setting."""
    return [
        (found["success"] * key[1], name, key)
        for key, attacks in results.attacks.items()
        for name, found in attacks.items()
        if key[0] == "swap" and name in THREE
    ]


def paper_attacks(results: Results) -> dict[str, Any]:
    """Judge the paper's three attacks on `swap` against 1/k."""
    trials = of_the_three(results)
    ratio, name, (_, k, level, _) = max(trials, default=(0.0, "", ("swap", 0, 0, None)))
    judged = every_case(one <= 1 for one, _, _ in trials)
    return {"trials": trials, "judged": judged, "ratio": ratio, "name": name, "k": k, "level": level}


def broken(results: Results) -> dict[str, Any]:
    """Compare other attackers of `swap` with 1/k."""
    return {
        "repeat": results.success("link-repeat", "swap", SHOWN_K),
        "often": results.often("swap", SHOWN_K),
        "times": results.success("link-time", "swap", SHOWN_K),
    }


def kept(results: Results) -> dict[str, Any]:
    """Judge `cohort` against every attacker who sees only the release."""
    trials = [
        one
        for _, key in tried(results)
        if key[0] == "cohort"
        for name, found in results.attacks[key].items()
        if name in RELEASE_ONLY and found["success"] is not None
        for one in (found, found.get("by_repeats", {}).get("5+"))
        if one
    ]
    return {
        "judged": every_case(one["holds"] for one in trials),
        "repeat": results.success("link-repeat", "cohort", SHOWN_K, 1, "arrival"),
        "often": results.often("cohort", SHOWN_K, 1, "arrival"),
    }


def above_ninety(results: Results) -> dict[str, Any]:
    """Judge the paper's "less than 1 %" at large k."""
    three = [results.linked(name, "swap", level).get(100) for name in THREE for level in results.levels]
    best = max((value for value in three if value is not None), default=None)
    return {"best": best, "often": results.often("swap", 100)}


def control(results: Results) -> dict[str, Any]:
    """Run the Kolmogorov-Smirnov test on an attack that is far above 1/k."""
    linked = results.linked("link-repeat", "swap")
    gap, p_value = of_rates(linked) if linked else (0.0, 1.0)
    times = max((value * k for k, value in linked.items()), default=0.0)
    return {"linked": linked, "gap": gap, "p_value": p_value, "times": times}


def test_table(results: Results) -> str:
    """Return the paper's Kolmogorov-Smirnov comparison, repeated."""
    rows = [["paper", "", "0.08", "0.9977"]]
    for (name, level), linked in tested(results).items():
        gap, p_value = of_rates(linked)
        rows.append([f"`{name}`, level {level}", str(len(linked)), f"{gap:.2f}", f"{p_value:.4f}"])
    return table(["", "k tried", "D", "p-value"], rows)


def grid(results: Results, name: str) -> str:
    """Return what an attack achieves on `swap`, k by level."""
    rows = [
        [f"k={k}", percent(1 / k), *(percent(results.success(name, "swap", k, at)) for at in results.levels)]
        for k in results.ks
    ]
    return table(["", "1/k", *(f"level {level}" for level in results.levels)], rows)


def cohort_grid(results: Results) -> str:
    """Return what `cohort` costs and what the paper's attacks achieve on it."""
    rows = []
    for assign in ("arrival", "similar"):
        for one in results.base("cohort", assign):
            facts = one["facts"]
            linked = [results.success(name, "cohort", one["k"], 1, assign) for name in THREE]
            rows.append([
                f"{assign}, k={one['k']}",
                percent(max((share for share in linked if share is not None), default=None)),
                percent(1 / one["k"]),
                percent(one["release_rate"]),
                f"{one['delay_mean']:,.0f}",
                percent(one["profile"]["loss"]),
                f"{one['profile']['topics']:.3f}",
                percent(facts.get("largest_share_of_one_member_median"), 1),
            ])  # fmt: skip
    head = ["", "best of the three", "1/k", "released", "mean delay, records", "profile loss",
            "topic divergence", "heaviest member's share, median"]  # fmt: skip
    return table(head, rows)


def tried(results: Results) -> list[tuple[str, Key]]:
    """Return the releases on which our own attacks were tried."""
    keys = [key for key, found in results.attacks.items() if "link-repeat" in found]
    keys.sort(key=lambda key: (key[0] != "swap", key[2], key[3] or "", key[1]))
    return [
        (f"`{method}` k={k}, {a or f'level {level}'}", (method, k, level, a)) for method, k, level, a in keys
    ]


def stronger(results: Results) -> str:
    """Return what attackers who see only the release achieve, against 1/k."""
    rows = []
    for name, key in tried(results):
        found = results.attacks[key]
        seen = {a: found[a] for a in RELEASE_ONLY if a in found and found[a]["success"] is not None}
        often = results.often(*key)
        holds = all(one["holds"] for one in [*seen.values(), *([often] if often else [])])
        best = max(seen, key=lambda a: seen[a]["success"])
        ours = [interval(seen[a]) if a in seen else "–" for a in RELEASE_ONLY[3:]]
        rest = [interval(often) if often else "–", f"`{best}`", "yes" if holds else "**no**"]
        rows.append([name, percent(1 / key[1]), *ours, *rest])
    names = [f"`{name}`" for name in RELEASE_ONLY[3:]]
    head = ["release", "1/k", *names, "`link-repeat`, strings asked 5+ times", "best of all six", "1/k holds"]
    return table(head, rows)


def unbounded(results: Results) -> str:
    """Return what attackers achieve for whom no bound is claimed."""
    rows = []
    for name, key in tried(results):
        found = [results.attacks[key].get(a) for a in UNBOUNDED]
        rows.append([name, *("–" if one is None else interval(one) for one in found)])
    return table(["release", *(f"`{a}`" for a in UNBOUNDED)], rows)


def wrong(results: Results) -> dict[str, Any]:
    """Compare attackers who assume another k or level."""
    line = results.wrong
    if line is None:
        return {"line": None}
    rows = [
        [f"k={o['k']}, level {o['level']}", *(percent(o[name]["success"]) for name in THREE)]
        for o in line["wrong"]
    ]
    return {
        "line": line,
        "got": {(one["k"], one["level"]): one["link-profile"]["success"] for one in line["wrong"]},
        "k": line["k"],
        "level": line["level"],
        "head": [
            f"attacker's belief (true: k={line['k']}, level {line['level']})",
            *(f"`{a}`" for a in THREE),
        ],
        "rows": rows,
    }


def utility(results: Results) -> dict[str, Any]:
    """Return the measures of `swap` at two levels."""
    return {"first": results.one("swap", SHOWN_K, 1), "deep": results.one("swap", SHOWN_K, 6)}


def live(results: Results) -> dict[str, Any]:
    """Return speed, memory and the final number of held records."""
    swaps, deepest = results.base("swap"), max(results.levels)
    deep = [one for k in (3, 100) if (one := results.one("swap", k, deepest))]
    return {
        "micro": [one["microseconds_per_record"] for one in swaps],
        "size": [one["method_bytes"] / 1e6 for one in swaps],
        "deepest": deepest,
        "held": ", ".join(f"{one['final_held']:.0f} at k={one['k']}" for one in deep),
    }


def closing(results: Results) -> dict[str, Any]:
    """Return Table 3 beside ours."""
    added = [results.about["added_categories"][str(level)] for level in range(1, len(PAPER_CATEGORIES) + 1)]
    rows = [
        [str(at), *(f"{n:,}" for side in (PAPER_CATEGORIES, added) for n in (side[at - 1], sum(side[:at])))]
        for at in range(1, len(added) + 1)
    ]
    return {"rows": rows}


#: Figure, what it shows, what the paper says about it, and how to spell one cell.
MEASURES: list[tuple[str, str, str, Callable[[Line], str]]] = [
    ("8", "mean number of records that a category still holds at the end",
     "higher for low levels, tends to k for deep ones",
     lambda o: "–" if o["method"] == "cohort" else f"{o['final_held']:.1f}"),
    ("9", "share of records released by the end", "tends to 100 % at any level",
     lambda o: percent(o["release_rate"])),
    ("10", "mean profile loss", "42.03 % at level 1, under 1 % from level 6, whatever k",
     lambda o: percent(o["profile"]["loss"])),
    ("11", "microseconds per record", "18.99 at k=3 and level 1, 49.71 at k=190, 33.68 on average",
     lambda o: f"{o['microseconds_per_record']:.2f}"),
    ("13", "mean delay in records",
     "grows with the level, then stays: under 40,000 up to level 6, under 80,000 above",
     lambda o: f"{o['delay_mean']:,.0f}"),
    ("14", "megabytes of arrays that the method holds", "grows with the categories in use, times k",
     lambda o: f"{o['method_bytes'] / 1e6:.1f}"),
]  # fmt: skip


def by_k(results: Results, cell: Callable[[Line], str]) -> str:
    """Return a measure by k: `swap` at each level, `cohort` with both assignments."""
    rows = []
    for k in results.ks:
        swaps = [results.one("swap", k, level) for level in results.levels]
        cohorts = [results.one("cohort", k, 1, assign) for assign in ("arrival", "similar")]
        rows.append([f"k={k}", *("–" if one is None else cell(one) for one in swaps + cohorts)])
    head = ["", *(f"level {level}" for level in results.levels), "cohort, arrival", "cohort, similar"]
    return table(head, rows)


def attack_times(results: Results) -> str:
    """Return what the attacks cost at level 1; the paper shows no numbers, only that the first is fastest."""
    rows = []
    for k in results.ks:
        found = [results.attacks.get(("swap", k, 1, None), {}).get(name) for name in THREE]
        rows.append([f"k={k}", *("–" if f is None else f"{1e6 * f['seconds'] / f['n']:.2f}" for f in found)])
    return table(["level 1", *(f"`{name}`" for name in THREE)], rows)


def tables(results: Results) -> str:
    """Return the page with every figure as a table."""
    return blocks("p000/tables.md.j2", sys.modules[__name__], results) + "\n"


MORE = {"tables": tables}
