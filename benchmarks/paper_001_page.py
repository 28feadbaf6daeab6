"""Writes docs/papers/paper-001.md and its figures from the lines that `benchmarks.paper_001` measured."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks import paper_001_figures as figures
from benchmarks.paper_000_page import table
from benchmarks.paper_001_figures import (
    ALL_TARGETS,
    COLUMNS,
    GENERIC,
    KS,
    MS,
    PAPER_TARGETS,
    SPECIFIC,
    Results,
    at,
    both,
    exceptions,
    gap_table,
    greedy_lines,
    largest,
    listed,
    memory,
    number,
    own_best,
    pair,
    paper_5,
    slowest,
    spelled,
)

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "papers" / "paper-001.md"
MISSING = "not measured in this run"


def kept(results: Results) -> str:
    """Table 5, and how often a target is best at what it aims at."""
    rows = []
    for m in MS:
        for k in KS:
            cells = [pair(paper_5(name, k, m), results.best(name, k, m), name) for name in COLUMNS]
            rows.append([at(m, k), *cells, number(results.kept("distinct", "distinct", k, m), 2)])
    head = ["paper / here, %", *(spelled(name) for name in COLUMNS), "distinct terms, target `distinct`"]
    return f"""## Table 5: what the best target keeps

For each column the best outcome of the paper's eight targets, all by the greedy order. The paper has no
target for distinct terms; ours stands in the last column. The paper has no k=5 in this table.

{table(head, rows)}

How often a target is best, of all nine, at the column it is named after:

{own_best(results, "greedy")}"""


def target_gaps(results: Results) -> str:
    """Tables 6 and 7."""
    return f"""## Tables 6 and 7: what the choice of a target is worth

Points of the original log by which the best outcome beats `random` (R, the mean of two runs), the worst
other target (W) and `fis`; the paper's eight targets, greedy.

Table 6. The paper prints log size and users with their headings exchanged: as printed, `random` would lose
28 points of a log of which the best keeps 19 (m=2, k=100). We set them right. Its distinct terms at m=2,
k=100 are as printed (W below fis, which cannot be: `fis` is one of the others).

{gap_table(results, GENERIC)}

Table 7:

{gap_table(results, SPECIFIC[:2])}

{gap_table(results, SPECIFIC[2:])}

## Figures 1 and 2: over k

Broad grey lines are the paper's, worked out from its Tables 5 to 7.

![Figure 1: log size kept by each target over k, m=3](figures-001/figure-1.svg)

![Figure 2: estimated clicks kept by each target over k, m=3](figures-001/figure-2.svg)"""


def runtime(results: Results) -> str:
    """Say what it costs."""
    rows = []
    for (m, k), paper in figures.PAPER_FIRST.items():
        lines, fis = greedy_lines(results, m, k), results.line("fis", k, m)
        times = [f"{edge(one['seconds'] for one in lines):.1f} s" if lines else "–" for edge in (min, max)]
        rows.append([at(m, k), paper, *times, f"{fis['seconds']:.1f} s" if fis else "–",
                     str(fis["rounds"]) if fis else "–"])  # fmt: skip
    head = ["", "paper, first iteration", "here, whole run, fastest target", "slowest target", "`fis`",
            "rounds of `fis`"]  # fmt: skip
    return f"""## Runtime

{table(head, rows)}

{iterations(results)}

{slowest(results)} The paper's second iteration at m=2, k=2 takes 9 m 25 s, and (2,3) starting from (2,2)
takes 6 h 35 m 22 s. We always go that way: terms that too few have, then pairs until none is left to
break, then triples. A round is one look at all histories at one size, so ours at m=3 hold those at m=2.
The paper's machine is a two-core
Opteron 2218 with 8 GB and a database; ours did other work too. {memory(results)}

{deeper(results)}"""


def iterations(results: Results) -> str:
    """Compare rounds with the paper's iterations."""
    rows = []
    for m, (count, each) in figures.PAPER_ITERATIONS.items():
        lines = [one for one in greedy_lines(results, m) if one["rounds"]]
        rounds = sum(one["rounds"] for one in lines)
        mean = number(rounds / len(lines)) if lines else "–"
        one = f"{sum(line['seconds'] for line in lines) / rounds:.2f} s" if rounds else "–"
        rows.append([f"m={m}", str(count), mean, each, one])
    head = ["mean over all k and targets", "paper, iterations", "here, rounds", "paper, each", "here, each"]
    return table(head, rows)


def deeper(results: Results) -> str:
    """Show m=4, which the paper leaves open."""
    rows = []
    for k in KS:
        sizes = [results.kept("logsize", "logsize", k, m) for m in (2, 3, 4)]
        line = results.line("logsize", k, 4)
        known = [f"{line['seconds']:.1f} s", str(line["rounds"])] if line else ["–", "–"]
        rows.append([f"k={k}", *(number(size) for size in sizes), *known, held(line)])
    head = ["`logsize`, % of the log kept", "m=2", "m=3", "m=4", "time at m=4", "rounds", "(k,4) checked"]
    return f"""The paper leaves larger m open. At m=4:

{table(head, rows)}"""


def held(line: dict[str, Any] | None) -> str:
    """Spell what the independent check found."""
    if line is None or "holds" not in line:
        return "–"
    return "holds" if line["holds"] else "**fails**"


def checked(results: Results) -> str:
    """Say which lines an independent audit counted again, and what it found."""
    rows, every = [], [one for one in results.lines.values() if "holds" in one]
    for m, k in sorted({(one["m"], one["k"]) for one in every}):
        here = [one for one in every if (one["m"], one["k"]) == (m, k)]
        times = [one["check_seconds"] for one in here]
        names = listed([f"`{one['target']}`" for one in here])
        holds = sum(one["holds"] for one in here)
        rows.append([at(m, k), names, f"{holds} of {len(here)}", f"{min(times):.2f} to {max(times):.2f} s"])
    failed = [one["name"] for one in every if not one["holds"]]
    verdict = f"**These do not: {listed(failed)}.**" if failed else f"All {len(every)} hold."
    return f"""## The independent check

After a run, the code that audits releases lists every combination of up to m terms that is left, sorts
and counts them. It shares no code with the deletion. It was run on {len(every)} of
{len(results.lines)} lines (those in the table; of `random`, the first of its two runs).
{verdict if every else ""}

{table(["", "targets", "hold", "time of one check"], rows)}"""


def verdict(results: Results) -> str:
    """Say what holds, what does not, and why."""
    parts = (own_words, generic_words, specific_words, random_words, second_words, m_words, share_words)
    return "## What holds, what does not, and why\n\n" + "\n\n".join(part(results) for part in parts)


def judged(fine: int, count: int) -> str:
    """Put a count of settings into a verdict."""
    if not count:
        return f"Cannot be said ({MISSING})"
    return "Holds" if fine == count else "Does not hold" if not fine else "Does not hold everywhere"


def own_words(results: Results) -> str:
    """Judge whether each target is best at what it aims at."""
    counts = {target: exceptions(results, target, PAPER_TARGETS) for target in COLUMNS[1:]}
    tried, leads = sum(n for n, _ in counts.values()), [one for _, bad in counts.values() for one in bad]
    won, small = tried - len(leads), sum(lead < 0.5 for lead, _ in leads)
    names = [f"`{target}` ({len(bad)} of {n})" for target, (n, bad) in counts.items() if bad]
    more = ""
    if leads:
        more = f"""Another target is better for {listed(names)}, by up to {max(leads)[0]:.3f} points, and
        in {small} of {len(leads)} cases by less than the half point that the paper's rounding hides."""
    return f"""**{judged(won, tried)}: each target is best at its own column.** It is in {won} of {tried}
cases (target, m, k), of the paper's eight. {more} A greedy order does not promise it."""


def generic_words(results: Results) -> str:
    """Judge the paper's first result."""
    worst, chance = largest(results, GENERIC, 1), largest(results, GENERIC, 0)
    if not worst or not chance:
        return f"**Distinct terms, log size, users**: {MISSING}."
    found = [(column, largest(results, (column,), 1)) for column in GENERIC]
    each = [f"{spelled(column)} {one[0]:.1f}" for column, one in found if one]
    return f"""**{judged(int(worst[0] < 4.2), 1)}: for distinct terms, log size and users the best and the
worst target differ by less than 4.2 points** (`random` left out).
The largest here: {listed(each)}. `random` stays up to {chance[0]:.1f} points behind the best
({spelled(chance[1])}, {at(*chance[2:])}), in the paper up to 28 (users; see below, Table 6)."""


def specific_words(results: Results) -> str:
    """Judge the paper's second result."""
    worst, chance = largest(results, ("clicks",), 1), largest(results, ("clicks",), 0)
    if not worst or not chance:
        return f"**Clicks**: {MISSING}."
    gap, _, m, k = worst
    loser = [one for one in results.ranked("clicks", k, m, PAPER_TARGETS) if one[1] != "random"][-1][1]
    found = [(column, largest(results, (column,), 1)) for column in SPECIFIC]
    name = "term frq. / clicks"
    ours, paper = results.about["correlations"][name], figures.PAPER_TABLE_3[name]
    each = [f"{column} {one[0]:.1f}" for column, one in found if one]
    return f"""**{judged(int(gap > 40), 1)}: the wrong target costs more than 40 points of the clicks.** Here
it costs up to {gap:.1f} (`{loser}`, {at(m, k)}; in the paper `bid` is the worst), and `random` up to
{chance[0]:.1f}. The largest W of each column: {listed(each)}. The more clicks go with a term's frequency,
the more of them stays with any target that keeps frequent terms: their correlation is {ours:.3f} here,
{paper:.3f} in the paper."""


def random_words(results: Results) -> str:
    """Judge who keeps the most distinct terms."""
    settings = results.settings(ALL_TARGETS)
    won, ours = 0, []
    for m, k in settings:
        best, winner = results.ranked("distinct", k, m, PAPER_TARGETS)[0]
        won += winner == "random"
        ours.append((results.kept("distinct", "distinct", k, m) or 0.0) / best)
    more = (
        f"Our target `distinct` keeps {min(ours):.1f} to {max(ours):.1f} times the best of them."
        if ours
        else ""
    )
    return f"""**{judged(won, len(settings))}: of the paper's targets, `random` keeps the most distinct
terms**, in {won} of {len(settings)} settings. {more}"""


def second_words(results: Results) -> str:
    """Judge whether aiming at users gives the second largest log."""
    settings = results.settings(PAPER_TARGETS)
    first_two = [results.ranked("logsize", k, m, PAPER_TARGETS)[:2] for m, k in settings]
    others = sorted({f"`{two[1][1]}`" for two in first_two if two[1][1] != "users"})
    won = sum(two[1][1] == "users" for two in first_two)
    more = f"Otherwise the second is {listed(others)}." if others else ""
    return f"""**{judged(won, len(settings))}: aiming at users gives the second largest log**, in {won} of
{len(settings)} settings. {more}"""


def m_words(results: Results) -> str:
    """Judge how little m matters for k of 10 or more."""
    rows, every, large = [], [], [k for k in KS if k >= 10]
    for column in COLUMNS:
        paper = [abs(row[0] - row[1]) for k in large if (row := both(paper_5(column, k, m) for m in MS))]
        best = [abs(row[0] - row[1]) for k in large if (row := both(results.best(column, k, m) for m in MS))]
        rows.append([spelled(column), number(max(paper), 2), number(max(best, default=None), 2)])
        for target in PAPER_TARGETS:
            for k in large:
                if row := both(results.kept(target, column, k, m) for m in MS):
                    every.append((abs(row[0] - row[1]), target, column, k))
    if not every:
        return f"**The effect of m**: {MISSING}."
    most, target, column, k = max(every)
    fine = sum(one[0] < 4 for one in every)
    return f"""**{judged(fine, len(every))}: for k ≥ 10, m=2 and m=3 differ by less than 4 points.** They do
in {fine} of {len(every)} cases (target, column, k); the largest difference is {most:.1f} points
({spelled(column)} with target `{target}`, k={k}). By column, the largest difference of the best outcomes:

{table(["k ≥ 10, points", "paper's Table 5", "here"], rows)}

The paper's own rounded table has differences of 4 points, in log size too, where its text says under 1."""


def share_words(results: Results) -> str:
    """Say why shares are not the paper's."""
    ours, paper, spans = results.about["correlations"], figures.PAPER_TABLE_3, []
    for column in COLUMNS:
        rows = [both((results.best(column, k, m), paper_5(column, k, m))) for m in MS for k in KS]
        gaps = [row[0] - row[1] for row in rows if row]
        if gaps:
            spans.append(f"{spelled(column)} {min(gaps):+.1f} to {max(gaps):+.1f}")
    names = [f"term frq. / {name}" for name in ("clicks", "impressions", "revenue")]
    pairs = [f"{name.split(' / ')[1]} {ours[name]:.3f}, paper {paper[name]:.3f}" for name in names]
    each = [made["occurrences"] / made["terms"] for made in (results.about, figures.PAPER_LOG)]
    return f"""**Shares are not the paper's.** Ours minus the paper's, in points:
{"; ".join(spans) if spans else MISSING}. Our log and our advertising figures are made up, and their heads and
tails are not those of a real log: a term occurs {each[0]:.1f} times on average (paper {each[1]:.1f}), the
longest history has {results.about["longest_history"]} terms (paper {figures.PAPER_LOG["longest_history"]}),
and a term's frequency goes with what it earns (correlation with {"; ".join(pairs)}). Where
frequent terms hold more of the log or of the clicks, more is left. So do not expect our shares on a
real log. What can be compared is which target wins, what k costs and what m costs."""


def opening(results: Results) -> str:
    """Say what this is and how to make it again."""
    about, machine = results.about, results.machine
    gone = f"\n\nNot measured yet, and a dash below: {'; '.join(results.missing)}." if results.missing else ""
    return f"""<!-- Written by `python -m benchmarks.paper_001`; do not edit by hand. -->
# Paper 001, measured again

"Anonymous Search Histories Featuring Personalized Advertisement" deletes terms from histories until every
combination of up to m terms that a history holds is in k of them, and asks what is left for advertising.
Our `km` does the same. This page repeats Tables 3 and 5 to 7, Figures 1 and 2 and the runtimes on a made-up
log of {about["users"]:,} people, with the paper's numbers beside ours.

```sh
python -m benchmarks.paper_001
```

It carries on where it was stopped; `--quick` takes a minute, `--only-draw` measures nothing. Results:
`benchmarks/results/paper-001.jsonl`. Machine: {machine["processor"]}, {machine["cores"]} cores, shared with
other work, so times are upper bounds. Shares are in percent of the original log, differences in points of
it. A dash: not measured, or not in the paper.{gone}"""


def filled(text: str) -> str:
    """Fill the lines of paragraphs; tables, headings, figures and blocks stay as they are."""
    lines = textwrap.TextWrapper(110, break_long_words=False, break_on_hyphens=False)
    as_is = ("|", "#", "![", "<!--", "```")
    return "\n\n".join(
        block if block.startswith(as_is) else lines.fill(" ".join(block.split()))
        for block in text.split("\n\n")
    )


def write(path: Path, expected: Iterable[str]) -> None:
    """Draw and write the page; a quick run's goes to the folder `build`."""
    results = Results.load(path, expected)
    page = PAGE if path.stem == "paper-001" else ROOT / "build" / path.stem / PAGE.name
    figures.draw(results, page.parent / "figures-001")
    parts = (opening, verdict, figures.log, figures.correlations, kept, target_gaps, runtime, checked)
    page.write_text(filled("\n\n".join(part(results) for part in parts)) + "\n")
    print(f"wrote {page.relative_to(ROOT)} and its figures")
