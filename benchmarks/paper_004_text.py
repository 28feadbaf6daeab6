"""The words of docs/papers/paper-004.md; every number in them, and every turn, comes from the lines."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

from benchmarks.paper_000_page import table
from benchmarks.paper_003_claims import number
from benchmarks.paper_004 import METHODS, OURS, PAPERS
from benchmarks.paper_004_claims import TABLE_4, TABLE_5, Statement, counted, ours
from benchmarks.paper_004_results import FULL_DRAWS, FULL_FUNCTIONS, NUMBERS, Mean, Results
from benchmarks.paper_004_study import ACTIVE, LESSONS, TENTHS

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
    "holds": "hold", "in part": "hold in part", "**does not hold**": "do not hold",
    "cannot be told": "cannot be told", "not measured yet": "are not measured yet",
}  # fmt: skip
#: Percentiles of fewer people than this say little.
FEW = 20
_DAYS = 92


def opening(results: Results) -> str:
    """Say what this page is."""
    about = results.about
    return f"""<!-- Written by `python -m benchmarks.paper_004`; do not edit by hand. -->
# Paper 004, measured again

Paper 004 hides people's searches among fakes, lets an attack learn on others which two searches belong
together, and asks what privacy is left. This page repeats its Tables 1, 4 and 5 and Figures 2 to 4 with
[our obfuscations](../explanation/obfuscation.md) and
[our form of its attack](../explanation/link-learned.md). The paper has 100 active users of the AOL log;
**ours are made up**: {about["users"]} people with {ACTIVE[0]} to {ACTIVE[1]:,} searches each
(`querycloak generate`, seed {about["seed"]}). [What is ours](#what-is-ours-and-not-the-papers) and not the
paper's stands at the end.

{extent(results)}"""


def extent(results: Results) -> str:
    """Say how much was measured."""
    attacked, users = results.attacked(), results.about["users"]
    if set(attacked.values()) == {users}:
        start = f"All {users} are attacked."
    else:
        each = ", ".join(f"{many} ({method})" for method, many in attacked.items())
        start = f"Attacked so far, of {users}: {each}."
    draws = f"{results.draws()} {plural('draw', results.draws())}"
    return f"""{start} Each is covered with {draws} of as many fakes as she has searches, and attacked by
{results.about["functions"]} functions."""


def plural(word: str, many: int) -> str:
    """Add an s where there are several."""
    return word if many == 1 else word + "s"


def found(results: Results) -> str:
    """Say in short what came out."""
    counts = counted(results)
    named = ", ".join(f"{many} {COUNTED[verdict]}" for verdict, many in counts.items() if many)
    return f"""## What we found

{first(results)}

**Of the paper's {sum(counts.values())} statements {named}.** Each stands below under its table or figure.
A difference is that of the same people under two ways to cover, with its 95 % interval; where 0 lies within,
it cannot be told.

{ours_in_short(results)}"""


def first(results: Results) -> str:
    """Say which of the paper's two ways protects better here."""
    structure, topics = (results.apart("tmn", "usr", name) for name in ("error", "worst"))
    if structure is None or topics is None:
        return "**Too little is measured so far to compare TMN and USR.**"
    sides = [f"in {words} {side(one)} (TMN less USR: {one.value:.3f}, {one.low:.3f} to {one.high:.3f})"
             for words, one in (("structure", structure), ("worst-case topics", topics))]  # fmt: skip
    whole = all(one.low > 0 for one in (structure, topics))
    start = "TMN protects better than USR, as the paper says" if whole else (
        "That TMN protects better than USR is not what we see throughout"
    )  # fmt: skip
    return f"**{start}**: {'; '.join(sides)}. {unsorted(results)}"


def unsorted(results: Results) -> str:
    """Say what topics are left to an attacker who sorts nothing."""
    found = {method: results.unsorted(method) for method in METHODS}
    shown = ", ".join(f"{one.value:.3f} (`{method}`)" for method, one in found.items() if one is not None)
    if not shown:
        return ""
    tmn, usr, worst = found["tmn"], found["usr"], results.apart("tmn", "usr", "worst")
    same = tmn and usr and worst and (tmn.value - usr.value) * worst.value > 0
    more = " Already there TMN and USR differ the same way, before any attack." if same else ""
    return f"""For comparison: somebody who sorts nothing, and takes the whole trace for hers, is off by
{shown} in topics.{more}"""


def side(difference: Mean) -> str:
    """Say which way a difference goes."""
    if difference.low > 0:
        return "it does"
    return "it protects less" if difference.high < 0 else "neither is told to be better"


def ours_in_short(results: Results) -> str:
    """Say whether `shadow` does what it aims at."""
    statements = ours(results)
    good = [one for one in statements if one.verdict == "holds"]
    if any(one.verdict == "not measured yet" for one in statements):
        return f"**`{OURS}`, our own way, is not measured yet.**"
    start = f"**`{OURS}`, our own way, does what it aims at**" if len(good) == len(statements) else (
        f"**`{OURS}`, our own way, does not do all it aims at**: {len(good)} of {len(statements)} aims"
    )  # fmt: skip
    return f"{start}. [More](#shadow-at-an-equal-number-of-fakes)."


def table_1(results: Results) -> str:
    """Table 1 beside ours."""
    about = results.about
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
    return f"""### Table 1

{table(["", "paper", "here"], rows)}

73,984 searches of 100 users are 739.84 for each, not 828.62. Ours are fewer: among made-up people, as in
AOL's log, the more active are the rarer."""


def importances(results: Results, method: str, paper: dict[str, int]) -> str:
    """Table 4 or 5 beside ours: the paper's 16 relations, and others that are among our first ten."""
    found = results.importances(method)
    names = [*paper, *(name for name in list(found)[:10] if name not in paper)]
    places = {name: place for place, name in enumerate(found, 1)}
    rows = [
        [f"`{name}`", f"{paper[name]}" if name in paper else "not listed",
         f"{found[name]:.0f}" if found else "–", f"{places[name]}" if found else "–"]
        for name in names
    ]  # fmt: skip
    return table(["relation", "paper", "here", "our place"], rows)


def table_4(results: Results) -> str:
    """Show Table 4."""
    return importances(results, "usr", TABLE_4)


def table_5(results: Results) -> str:
    """Show Table 5."""
    return f"""{importances(results, "tmn", TABLE_5)}

{mistakes(results)}"""


def mistakes(results: Results) -> str:
    """Say why pages count little here, and mistakes much where they do."""
    found = list(results.importances("tmn"))
    pages = """A made-up log has an address only where somebody clicked, while the paper looked up eight pages
for every query: relations of pages and addresses tell less here."""
    if not found or not found[0].startswith(("S_Spelling", "D_Spelling")):
        return pages
    return f"""{pages} What tells our `tmn` first is that its phrases are never mistyped: made-up people make
mistakes as often as AOL's did, and the made-up newspaper has none."""


def together(results: Results) -> str:
    """Show how functions do alone and together."""
    rows = []
    for method in ("tmn", "usr"):
        lines = list(results.part("alone", method))
        cells = [
            number(fmean(fmean(line["each"]) for line in lines) if lines else None, 3),
            *(number(fmean(line[way] for line in lines) if lines else None, 3)
              for way in ("median", "mean", "majority")),
        ]  # fmt: skip
        rows.append([f"`{method}`", f"{len(lines)}", *cells])
    return f"""{results.about["singles"]} functions, each alone and all together; mean error over people.

{table(["", "people", "alone", "median", "mean", "majority"], rows)}"""


def learned_from(results: Results) -> str:
    """Say of how many people the figure is."""
    many = {method: len(list(results.part("sizes", method))) for method in PAPERS}
    people = " and ".join(f"{count} ({method})" for method, count in many.items())
    few = """ Of so few, percentiles 5 and 95 are nearly the least and the most, and move with a single
person."""
    return f"One function each, which attacks {people} people.{few if max(many.values()) <= FEW else ''}"


def numbers(results: Results) -> str:
    """Show all numbers of all ways to cover."""
    rows = [
        [SPELLED.get(name, name), *(str(results.average(method, name) or "–") for method in METHODS)]
        for name in NUMBERS
    ]
    return f"""## All numbers

Means over people with 95 % intervals; more is more private, the area under the curve aside, where 0.5 is
chance and 1 tells all pairs. In structure 0.5 is chance.

{table(["", *(f"`{method}`" for method in METHODS)], rows)}

{cuts(results)}"""


def cuts(results: Results) -> str:
    """Say where the scores tell more than the clusters do."""
    wasted = []
    for method in METHODS:
        area, error = (results.average(method, name) for name in ("area", "error"))
        if area is not None and error is not None and area.value > 1 - error.value + 0.1:
            wasted.append(f"`{method}`")
    if not wasted:
        return "The clusters tell about as much as the scores of pairs do."
    return f"""The scores tell more than the clusters for {", ".join(wasted)}: a cut of the graph into two by
the paper's equation 1 finds other things than fakes too, such as early and late, or two topics. An attacker
with a better use of the same scores would do better than this page says."""


def shadow(results: Results) -> str:
    """Compare ours with the paper's two."""
    return f"""## `shadow` at an equal number of fakes

Ours, against the paper's two, each with an attacker who learned on it. What we aimed at:

{compared(ours(results), "aim")}

{behind(results)}"""


def behind(results: Results) -> str:
    """Say in which numbers `shadow` protects less than one of the paper's two."""
    worse = [
        f"{SPELLED.get(name, name)} against `{other}`, by {-apart.value:.3f}"
        for name in NUMBERS
        for other in PAPERS
        if name != "area" and (apart := results.apart(OURS, other, name)) is not None and apart.high < 0
    ]
    return f"Where it protects less: {'; '.join(worse)}." if worse else "In no number does it protect less."


def compared(statements: Sequence[Statement], head: str = "the paper says") -> str:
    """Set statements beside our figures."""
    rows = [[one.says, one.here, one.verdict] for one in statements]
    return table([head, "here", "verdict"], rows)


def what_is_ours(results: Results) -> str:
    """Say where the study differs from the paper's."""
    about = results.about
    hours = results.full_hours()
    full = (
        "is not known before a part of the run is done"
        if hours is None
        else f"""takes about {hours:.0f}
hours of one processor core, by the processor times of this run"""
    )
    return f"""## What is ours and not the paper's

- **The log.** Made-up people and pages; the paper drops searches without a landing page, we keep all.

- **Fakes.** As many as searches for everybody, also for `usr`, whose other person gives all that she asked
in the paper: here as many of her searches as are needed, and a second person's if she has too few. TMN's
newspaper is made up.

- **Who attacks whom.** People are cut into {TENTHS} parts; the attacker of one learns from the others, on
fakes that he drew himself, from the first {LESSONS} real searches of each. Each function learns from ten
people, drawn. The paper has {FULL_FUNCTIONS} functions and {FULL_DRAWS} draws of USR's fakes; here they are
{about["functions"]} and {results.draws()}.

- **Figure 4** shows one function that learned from all people of a set.

- **Clusters.** The paper uses CLUTO; we minimise the same sum ourselves.

- **Verdicts are computed.** A difference is judged by its interval; *in part* says for how many of several
checks a statement holds. Limits were set before the numbers that they judge were looked at, but while the run
had begun: what is *about* 90 % was then narrowed from ten points to five.

## How to run it again

```sh
.venv/bin/python -m benchmarks.paper_004
.venv/bin/python -m benchmarks.paper_004 --functions {FULL_FUNCTIONS} --draws {FULL_DRAWS} --work FILE
```

The first is this page: {results.seconds() / 60:.0f} minutes of processor time so far. The second, the paper's
full study of {about["users"]} users for its two ways to cover, {full}; all four ways take about twice that.
Both carry on where they were stopped, say how far they are, and give the same numbers whenever a unit is
measured; `--quick` takes few people and functions, `--only-draw` measures nothing. Results:
`benchmarks/results/paper-004.jsonl`. Processor: {results.machine["processor"]}."""
