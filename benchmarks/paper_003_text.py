"""The sections of docs/papers/paper-003.md, with their numbers filled in."""

from __future__ import annotations

import math
from collections.abc import Callable

from benchmarks.paper_000_page import table
from benchmarks.paper_003 import DELTA, EPSILON
from benchmarks.paper_003_claims import (
    CLOSE,
    COMPARED_KS,
    EXPOSED,
    FOUR,
    HIGH_INDEX,
    LOST,
    POINTS,
    Claim,
    counted,
    exposure,
    lost,
    number,
    over,
)
from benchmarks.paper_003_figures import AGGREGATIONS, MOST_COMPARED, Results, by_lot
from benchmarks.paper_003_mining import OWN_PEOPLE

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


def percent(value: float | None, digits: int = 1) -> str:
    """Spell a percentage, or a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f} %"


def share(value: float | None) -> str:
    """Spell a share as a percentage."""
    return percent(None if value is None else 100 * value)


def holds(claim: Claim) -> str:
    """Say a verdict in a sentence that begins with *That*."""
    if not claim.checks:
        return "is not measured yet"
    return f"holds {claim.verdict}" if claim.verdict.startswith("in part") else claim.verdict.strip("*")


def opening(results: Results) -> str:
    """Say what this is."""
    about = results.about
    once, words = share(about["once"]), share(about["words"])
    return f"""<!-- Written by `python -m benchmarks.paper_003`; do not edit by hand. -->
# Paper 003, chapter 5, measured again

The thesis "Contributions to privacy in web search engines" puts users in groups of k, lets each group share
one history, and asks what such a log still exposes and what it is still good for. It groups them by how
queries look (5.3), by topics (5.4) and by meaning (5.5), and compares this with a plain grouping and with
two methods that remove queries. This page repeats its figures with our methods. The thesis has 1,000 users
of the AOL log with 55,666 lines; we do not use that log. **Ours is made up**: {about["users"]:,} people with
{about["rows"]:,} records (`querycloak generate`, seed {about["seed"]}; people with at least {about["least"]}
records). {once} of the records have a query that comes only once, and {words} have several words (thesis:
61 % are complex). [What is ours](#what-is-ours) and not the thesis's stands at the end."""


def found(results: Results) -> str:
    """Say what we found, in five paragraphs."""
    parts = (tally, privacy, utility, semantic, removals)
    return "\n\n".join(["## What we found", *(part(results) for part in parts)])


def tally(results: Results) -> str:
    """Count the verdicts."""
    counts = counted(results)
    right, partly, wrong, wait = counts.values()
    missing = [kind for kind in AGGREGATIONS if not results.ats(kind)]
    later = f" {wait} more wait for measurements." if wait else ""
    later += f" Not measured yet: {'; '.join(missing)}." if missing else ""
    return f"""**Of {right + partly + wrong} statements of the thesis, {right} hold on our log, {partly} hold
in part, {wrong} do not.** They stand beside their figures.{later}"""


def privacy(results: Results) -> str:
    """Say whether the privacy is as stated."""
    claim = exposure(results)[0]
    ratios = [
        (k / 100 * linked, kind, int(k))
        for kind in AGGREGATIONS
        for k, linked in results.points(kind, "linked", scale=100)
    ]
    seen = ""
    if ratios:
        most, kind, k = max(ratios)
        seen = f""" Over all aggregations and k, `link-overlap` names the right person at most {most:.2f}
times as often as one in k ({kind}, k = {k})."""
    return f"**That the syntactic method exposes 100/k {holds(claim)}**: {claim.here}.{seen}"


def utility(results: Results) -> str:
    """Say how much of the groups of alike people is left at one k."""
    known = ((kind, results.value(kind, SHOWN_K, LOST)) for kind in AGGREGATIONS)
    losses = {kind: value for kind, value in known if value is not None}
    if not losses:
        return f"**What is left of groups of alike people at k = {SHOWN_K}** is not measured yet."
    best = min(losses, key=lambda kind: losses[kind])
    lot = results.value(best, SHOWN_K, f"{LOST}_by_chance") or 100.0
    words = "little survives" if losses[best] > MOST_OF * lot else "some survive"
    early, late = (
        percent(results.value("syntactic", k, "information_loss_ratio.queries_mean")) for k in (3, 35)
    )
    return f"""**Of groups of people with alike interests {words}.** At k = {SHOWN_K} the least loss is
{losses[best]:.1f} % ({best}), where groups by lot lose {lot:.1f} %. The information loss ratio of the
syntactic method is {early} at k = 3 and {late} at k = 35 (thesis: 10 and 50 %)."""


def semantic(results: Results) -> str:
    """Say whether the thesis's own method is the best."""
    claim = lost(results)[0]
    told = f": {claim.here}" if claim.checks else ""
    return f"**That the semantic method loses least {holds(claim)}**{told}."


def removals(results: Results) -> str:
    """Say what is left when queries are removed."""
    rows = [results.value("threshold", d, "rows") for d in (1, 20)]
    people = [results.value("graph", k, "people_left") for k in (2, 30)]
    sides = zip((*rows, people[1]), (0.12, 0.10, 0.90), strict=True)
    fewer = all(here is not None and here < thesis for here, thesis in sides)
    title = "The removals take more here than in the thesis" if fewer else "The removals, beside the thesis"
    return f"""**{title}.** `threshold-dp` leaves {share(rows[0])} of the records at d = 1 and
{share(rows[1])} at d = 20 (thesis: 12 and 10 %). `graph-suppress` leaves something to {share(people[0])} of
the people at K = 2 and to {share(people[1])} at K = 30 (thesis: 90 %). [Why](#what-the-removals-remove)."""


def methods(results: Results) -> str:
    """Set all methods side by side at one k."""
    rows = []
    for kind, name in NAMES.items():
        if results.ats(kind):
            found = [(results.value(kind, SHOWN_K, column), more) for column, *more in COLUMNS.values()]
            cells = (number(None if value is None else scale * value, int(n)) for value, (scale, n) in found)
            rows.append([name, *cells])
    return f"""## All methods on the same log at k = {SHOWN_K}

In percent; 100/k is {100 / SHOWN_K:.0f}. *IL by lot* is what groups lose that have nothing to do with each
other: only what IL is below that has been kept. RL finds the person of each released history, `link-overlap`
the history of each person. *Records* is the size of the release, of the original's. A dash: nothing is left
to measure, or not measured. `threshold-dp` and `graph-suppress` have no k; what they are set to here is not
comparable with the k of the others.

{table(["", *COLUMNS], rows)}"""


def own_clusterings(results: Results) -> str:
    """Explain Figure 5.5: what could be reached at best, and what lot gives."""
    people, parts = results.about["users"], []
    for name in ("rand", "jaccard"):
        best = dict(results.index(1, name))
        if best:
            groups = min(best, key=lambda one: abs(one - 100))
            lot = by_lot(name, groups, people)
            parts.append(
                f"{name.capitalize()} {best[groups]:.2f}, by lot {lot:.2f}, with {groups:.0f} groups"
            )
    if not parts:
        return "The clusterings are not measured yet."
    own = [
        f"{name.capitalize()} {value:.2f} with {groups:.0f} groups"
        for name in ("rand", "jaccard")
        for groups, value in results.index(3, name, own=True)
    ]
    small = f""" Crosses: the same for {min(OWN_PEOPLE, people)} people, with histories made by the section's
own aggregation as the means of groups; at k = 3, {", ".join(own)}."""
    end = small if own else ""
    return f"""Two yardsticks are ours. Dashed: k-means of the original against k-means of the same original
from another start. Dotted: two partitions by lot, of equal sizes. {"; ".join(parts)}. With many groups
nearly all pairs of people are apart on both sides, and Rand counts them: where lot comes near 1 too, being
near 1 says little.{end}"""


def where_reached(results: Results) -> str:
    """Say what is behind Figure 5.10."""
    return f"""Our tree of categories is not the Open Directory, and our classifier gives each query one
category. So what is said of level 5 in Figure 5.11 is about {share(results.about["levels"].get("5"))} of the
queries."""


def middles(results: Results) -> str:
    """Add medians to Figure 5.4."""
    column = "information_loss_ratio.queries_median"
    early, late = (percent(results.value("syntactic", k, column)) for k in (3, 35))
    return f"These are means over people; the medians are {early} at k = 3 and {late} at k = 35."


def by_chance(results: Results) -> str:
    """Say how much room there is in Figure 5.13."""
    rooms = [
        (lot - loss, kind, k)
        for kind in FOUR
        for k, loss in over(results, kind, LOST, COMPARED_KS).items()
        if (lot := results.value(kind, k, f"{LOST}_by_chance")) is not None
    ]
    room = ""
    if rooms:
        (most, first, at), (least, last, there) = max(rooms), min(rooms)
        room = f""" Up to k = 7, {first} at k = {at} is furthest below it, by {most:.1f} points, and {last} at
k = {there} least, by {least:.1f}."""
    return f"""The grey band, ours, is what the same groups lose once people are shuffled: with 80 groups,
chance alone is far from 100 %.{room} Dotted on the right: the same for each removal. Where all is removed
there is nothing to cluster, and no point."""


def what_removals_remove(results: Results) -> str:
    """Explain the removals."""
    about, rows = results.about, []
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
    most = 100 * about["users"] / about["rows"]
    return f"""### What the removals remove

**Korolova** (`threshold`). The thesis names neither the noise nor the threshold. Ours follow from that
method's formulas for ε = ln {math.exp(EPSILON):.0f} and δ = {DELTA:g}: noise of scale d/ε, and a threshold
above which a query of one person hardly ever comes. {about["users"]:,} people are few for that. And only the
d searches that count can be shown (`output=log`): at d = 1 that is at most {most:.1f} % of the records,
whatever the threshold, so that the thesis must have counted or shown more. The noise is not seeded. A
yardstick without noise is `frequent`: all records of queries that so many people asked (`frequent-only`).

**Poblete** (`graph`). Kp is a number of documents that a search engine returns. A log has no such lists: ours
counts the URLs that somebody clicked on, which are far fewer. This is why ours removes far more, and why a
Kp of 30 means something else here. *Density* is the last step: no two released queries may lead to the same
URL.

{table(["left, of all", "records", "different queries", "people"], rows)}"""


def ours(results: Results) -> str:
    """Say what is ours, not the thesis's."""
    return f"""## What is ours

**The log**, and with it the categories: our taxonomy and our `lexical` classifier, the same before and after,
instead of the Open Directory. IL, SRP and all that is *by categories* rest on it.

**More than the thesis has**: `link-overlap`, what lot would give (5.5, 5.13),
another start of k-means (5.5), k up to {MOST_COMPARED} where the thesis compares up to {max(COMPARED_KS)}.
Statements are checked for the thesis's k.

**What is kept of the commonest** (5.14, 5.15) is the share of the ten commonest that are still among the ten
commonest; the thesis does not say how it counts. In 5.15 it calls Korolova the best and Poblete the worst;
we take it to mean the other way round. In 5.19 it says that results are lower than *using categories*; we
take it to mean queries.

**The first five categories** steer the grouping (5.11); what remains is measured by the one category that the
classifier gives. The thesis draws time over levels (5.12); ours uses all of them at once.

**A release without queries** counts as exposing nothing, linking nobody and keeping nothing. It has no IL.

**Verdicts are computed.** A number of the thesis is met within {POINTS:.0f} points; *close to 100/k* is
within {100 * CLOSE:.0f} % of it; *about* is within a quarter of the larger; *near 1* is {HIGH_INDEX:g} or
more. *In part* says how many of the k, or of the methods and k, a statement holds for. The thesis prints
curves without numbers, so only its words can be set beside ours."""


def again(results: Results) -> str:
    """Say how to run it again."""
    machine = results.machine
    return f"""## How to run it again

```sh
.venv/bin/python -m benchmarks.paper_003
```

It took {results.seconds / 60:.0f} minutes on {machine["cores"]} cores ({machine["processor"]}, shared with
other work). It carries on where it was stopped; `--quick` takes few people and settings, `--only-draw`
measures nothing. Results: `benchmarks/results/paper-003.jsonl`. Seeds are fixed, except for the noise of
`threshold-dp`. Processor times were taken once each, while the machine did other work too: read them as
ratios."""


#: What stands below some of the figures, beside the statements.
NOTES: dict[str, Callable[[Results], str]] = {
    "5.4": middles,
    "5.5": own_clusterings,
    "5.7": lambda _: "Places only: the texts of queries and words are not shown. k = 1 is the original.",
    "5.10": where_reached,
    "5.13": by_chance,
    "5.14": lambda _: "Of ten queries, one more or less is ten points.",
}
