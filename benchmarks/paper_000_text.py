"""The words of docs/papers/paper-000.md; every number comes from the run."""

from __future__ import annotations

from typing import Any

from benchmarks import paper_000_page as page
from benchmarks.paper_000_figures import SHOWN_K, Results
from benchmarks.paper_000_page import percent
from benchmarks.paper_000_statistics import kolmogorov_smirnov

MISSING = "not measured in this run"


def figure(name: str, what: str) -> str:
    """Show a figure; the words stand in where it cannot be seen."""
    return f"![{what}](figures-000/{name}.svg)"


def share(value: float | None) -> str:
    """Spell a share, or say that it is not there."""
    return MISSING if value is None else percent(value)


def text(results: Results) -> str:
    """Put the page together."""
    return "\n\n".join(part(results) for part in (opening, verdict, attacks, utility, live, closing)) + "\n"


def opening(results: Results) -> str:
    """Say what this is and how to make it again."""
    about = results.about
    machine = about["machine"]
    return f"""<!-- Written by `python -m benchmarks.paper_000`; do not edit by hand. -->
# Paper 000, measured again

"A Real-Time Query Log Protection Method for Web Search Engines" gives Algorithm 1 (our `swap`), three
attacks on it, and figures 6 to 14. This page repeats them on a made-up log of {about["records"]:,} searches
by {about["users_met"]:,} people, with the paper's numbers beside ours, for `swap` and for our own `cohort`.

```sh
python -m benchmarks.paper_000
```

It carries on where it was stopped; `--quick` takes a minute. Results: `benchmarks/results/paper-000.jsonl`.
Machine: {machine["processor"]}, {machine["cores"]} cores, shared with other work while this ran, so times
are upper bounds; `python -m benchmarks live` measures speed by itself. The log is made up and our taxonomy
is not the paper's, so levels mean the same only at level 1; what can be compared is the shape of curves,
and 1/k.

{page.headline(results)}"""


def verdict(results: Results) -> str:
    """Say what holds, what does not, and why."""
    return f"""## What holds, what does not, and why

{paper_attacks(results)}

{broken(results)}

{kept(results)}

{above_ninety(results)}

{test_says(results)}"""


def test_says(results: Results) -> str:
    """Judge the Kolmogorov-Smirnov comparison by what else passes it."""
    linked = results.linked("link-repeat", "swap")
    if not linked:
        return ""
    gap, p_value = kolmogorov_smirnov([1 / k for k in linked], list(linked.values()))
    times = max(value * k for k, value in linked.items())
    return f"""**The Kolmogorov–Smirnov test does not show what it is used for.** It asks whether a handful
of success rates looks like a sample of the values 1/k. With so few k it can hardly say no, and it says
nothing about a bound: `link-repeat`, up to {times:.0f} times above 1/k, passes as well (D={gap:.2f},
p={p_value:.2f})."""


def paper_attacks(results: Results) -> str:
    """Judge the paper's three attacks on `swap` against 1/k."""
    every = [
        (found["success"] * key[1], name, key)
        for key, attacks in results.attacks.items()
        for name, found in attacks.items()
        if key[0] == "swap" and name in page.THREE
    ]
    if not every:
        return ""
    above = [name for ratio, name, _ in every if ratio > 1]
    ratio, name, (_, k, level, _) = max(every)
    verdict = "Holds" if not above else "Does not hold everywhere"
    return f"""**{verdict}: the paper's three attacks stay below 1/k** on `swap`. Of {len(every)} trials
(attack, k, level), {len(above)} exceed it; the highest is `{name}` at k={k}, level {level}: {ratio:.2f} of
1/k."""


def broken(results: Results) -> str:
    """Show that 1/k does not bound other attackers of `swap`."""
    repeat, often = results.success("link-repeat", "swap", SHOWN_K), results.often("swap", SHOWN_K)
    times = results.success("link-time", "swap", SHOWN_K)
    return f"""**Does not hold: "at most 1/k".** An attacker who sees only the release does better. At
k={SHOWN_K}, level 1, `link-repeat` names the author of {share(repeat)} of all records, and of
{share(often and often["success"])} of those whose string one person asked five times or more; 1/k is
{percent(1 / SHOWN_K)}. Why: a user's tokens leave near her records, each repetition of a string is a new
draw around the same author, and "never the original" is evidence too. Times that are kept link sessions
across categories: `link-time` gets {share(times)}. The paper's proof counts one arrangement where it has to
count as many as the author has records waiting."""


def kept(results: Results) -> str:
    """Judge `cohort` against every attacker who sees only the release."""
    keys = [key for _, key in page.tried(results) if key[0] == "cohort"]
    trials = [
        one
        for key in keys
        for name, found in results.attacks[key].items()
        if name in page.RELEASE_ONLY and found["success"] is not None
        for one in (found, found.get("by_repeats", {}).get("5+"))
        if one
    ]
    failed = sum(not one["holds"] for one in trials)
    often = results.often("cohort", SHOWN_K, 1, "arrival")
    verdict = "Does not hold everywhere" if failed else "Holds"
    repeat = results.success("link-repeat", "cohort", SHOWN_K, 1, "arrival")
    return f"""**{verdict}: `cohort`, for every attacker who sees only the release.** A label is drawn anew
from the same k people, whoever wrote the record. Of {len(trials)} trials (attack, k, seating; all records,
and strings asked five times or more) {failed} lie above 1/k by their whole interval; one in forty would by
chance if all sat at 1/k. At k={SHOWN_K} `link-repeat` gets {share(repeat)} of all records and
{share(often and often["success"])} of the strings asked five times or more. What volumes, text and times
known from elsewhere still tell is printed below, with no bound."""


def above_ninety(results: Results) -> str:
    """Judge the paper's "less than 1 %" at large k."""
    three = [results.linked(name, "swap", level).get(100) for name in page.THREE for level in results.levels]
    best = max((value for value in three if value is not None), default=None)
    often = results.often("swap", 100)
    return f"""**Holds for the paper's attacks only: "less than 1 % above k=90".** At k=100 the best of the
three gets {share(best)}, `link-repeat` at level 1 {share(results.success("link-repeat", "swap", 100))}, and
{share(often and often["success"])} of the strings that one person asked five times or more."""


def attacks(results: Results) -> str:
    """Show what attackers achieve."""
    comparison, _ = page.compared(results)
    return f"""## Attacks

{figure("figure-stronger", "Stronger attacks on swap and cohort, against 1/k")}

Attackers who see only the release (95 % intervals, clustered by person and string):

{page.stronger(results)}

Attackers who know more: how much each person searched (`link-volume`), or a few searches of a target
(`link-background`); and who asks whether two records have one author (`link-pairs`, 50 % is chance). No
bound is claimed for these, by us or by the paper:

{page.unbounded(results)}

{figure("figure-06", "Figure 6: records linked by the paper's three attacks")}

Figure 6, `link-profile` on `swap` (the paper: 23.18 % at k=3, level 13, below 1 % above k=90); a dash: not
tried:

{page.grid(results, "link-profile")}

{wrong_words(results)}

{page.wrong(results)}

{figure("figure-07", "Figure 7: cumulative shares that the Kolmogorov-Smirnov test compares")}

{comparison}"""


def wrong_words(results: Results) -> str:
    """Say what a wrong belief costs the attacker, or gains."""
    line = results.wrong
    if line is None:
        return ""
    got = {(one["k"], one["level"]): one["link-profile"]["success"] for one in line["wrong"]}
    k, level = line["k"], line["level"]
    return f"""The paper says that the attack is best when the attacker's k and level are the true ones.
`link-profile` gets {percent(got[k, level])} then, {percent(got[k, 1])} at level 1, {percent(got[k, 13])} at
level 13, {percent(got[2 * k, level])} with twice the k, and {percent(got[k // 2, level])} with half of it:"""


def utility(results: Results) -> str:
    """Show what analysts keep."""
    first, deep = results.one("swap", SHOWN_K, 1), results.one("swap", SHOWN_K, 6)
    return f"""## Utility

{figure("figure-09", "Figure 9: share of what was read that has been released")}

{figure("figure-10", "Figure 10: earth mover's distance between original and released profiles")}

The paper adds up distances between each query and the one that took its place, and reports a loss of 42.03
% at level 1 and under 1 % from level 6. We take the exact earth mover's distance between the two profiles,
over the largest that the tree allows: {loss(first)} at level 1 and {loss(deep)} at level 6 (k={SHOWN_K}).
It falls with the level as the paper says. What is left at deep levels is not misplaced interest but records
that never left: the paper counts those apart, we compare with all that a person asked.

{page.cohort_grid(results)}

`swap` at level 1 keeps everyone's exact share of topics (divergence {topics(first)}): that is its use and
its leak. `cohort` mixes k people, and pays with the divergence above; `similar` seats like with like: less
divergence, and a lighter heaviest member, for a longer wait."""


def loss(line: dict[str, Any] | None) -> str:
    """Spell a profile loss."""
    return MISSING if line is None else percent(line["profile"]["loss"])


def topics(line: dict[str, Any] | None) -> str:
    """Spell a divergence of topics."""
    return MISSING if line is None else f"{line['profile']['topics']:.4f}"


def live(results: Results) -> str:
    """Show speed, delay, memory."""
    return f"""## Speed, delay, memory

{figure("figure-08", "Figure 8: records that a category holds at the end")}

{figure("figure-11", "Figure 11: microseconds per record of the methods")}

{figure("figure-12", "Figure 12: microseconds per record of the three attacks")}

{figure("figure-13", "Figure 13: mean delay in records")}

{figure("figure-14", "Figure 14: memory of the method")}

{costs(results)}"""


def costs(results: Results) -> str:
    """Say how speed, delay and memory compare with the paper's."""
    swaps = results.base("swap")
    micro = [one["microseconds_per_record"] for one in swaps]
    size = [one["method_bytes"] / 1e6 for one in swaps]
    deepest = max(results.levels)
    deep = [one for k in (3, 100) if (one := results.one("swap", k, deepest))]
    held = ", ".join(f"{one['final_held']:.0f} at k={one['k']}" for one in deep)
    return f"""One processor needs {min(micro):.2f} to {max(micro):.2f} µs per record over all settings of
`swap`, the paper 18.99 to 49.71. As in the paper, a category ends with more than k records at level 1,
delay grows with the level, and the method's arrays stay small ({min(size):.0f} to {max(size):.0f} MB).
Unlike there, |Q| at level {deepest} is {held}: most of our deep categories never see that many people, so
their records stay (figure 9)."""


def closing(results: Results) -> str:
    """Show Table 3 and what was left out."""
    added = results.about["added_categories"]
    total, rows = 0, []
    for level, paper in enumerate(page.PAPER_CATEGORIES, 1):
        total += added[str(level)]
        rows.append(
            [
                str(level),
                f"{paper:,}",
                f"{sum(page.PAPER_CATEGORIES[:level]):,}",
                f"{added[str(level)]:,}",
                f"{total:,}",
            ]
        )
    grid = page.table(["level", "paper, added", "paper, total", "here, added", "here, total"], rows)
    return f"""## Table 3: categories by level

{figure("table-3", "Table 3: categories that each level adds")}

{grid}

Our own attacks cost more than the paper's, so they were tried at k=3, 10 and 100 only; the paper's three
everywhere where the table of figure 6 has a number. [All figures as tables](paper-000-tables.md)."""
