"""The later sections of docs/papers/paper-002.md: why, where else, and what was left open."""

from __future__ import annotations

import math

from benchmarks.paper_000_page import percent, table
from benchmarks.paper_002_exact import TYPICAL
from benchmarks.paper_002_figures import SPELLED, Results
from benchmarks.paper_002_methods import DELTA
from benchmarks.paper_002_text import EVERY, SETTINGS, number, over_one, ratio
from benchmarks.paper_002_workload import LOGS, MOST

LARGE = 80.0
CRITERIA = ("sqc2", "sqc1", "none")


def why(results: Results) -> str:
    """Give the probabilities that the weights make."""
    about = results.about
    draws = sorted({one["epsilon"] for one in results.exact})
    known = {(one["setting"], one["method"], one["epsilon"]): one for one in results.exact}
    rows = [
        [f"{setting}, {SPELLED[method]}", *(number(known[setting, method, e]["log"]) for e in draws)]
        for setting in SETTINGS
        for method in CRITERIA
    ]
    some = [
        [
            f"{name.partition('.')[0]}, {setting}",
            *(number(known[setting, "sqc2", e].get(name)) for e in draws),
        ]
        for name in TYPICAL
        for setting in SETTINGS
    ]
    weights = ", ".join(f"{math.exp(e / 2):,.2f} at {e:g}" for e in (0.1, 1.0, 10.0, 20.0))
    same = math.exp(5) / (math.exp(5) + about["below_abstraction"] - 1)
    head = ["ε of one draw", *(f"{epsilon:g}" for epsilon in draws)]
    return f"""## Why: what the weights allow

By eq. 3, 7 and 8 a concept's own weight is e^(ε/2) times that of the least similar one: {weights}.
*Disease* has {about["topics"]["disease.n.01"]} concepts that can be said, *Abstraction*
{about["below_abstraction"]:,}. So at ε = 10 for one draw, NSQC gives back the query itself with probability
{100 * same:.2f} % in B and C. A likeness of a half brings the square root of the weight, e^2.5 = 12 at ε =
10, to a few hundred concepts, against thirty thousand others.

The probability that a query stays in its topic of the profile, exactly, from the integer weights by which
`dp-semantic` draws, averaged over the log. The two columns on the left are what ε = 1 and 10 leave to one of
a hundred queries:

{table(head, rows)}

In B the queries of the log that are in none of the 19 topics stay there in nearly all draws: that is most
of the {number(known["B", "none", draws[0]]["log"])} with which it starts. For single queries, SQC2:

{table(head, some)}

The shares of the drawn queries agree with these probabilities (a test compares them)."""


def where(results: Results) -> str:
    """Show at which ε, and with which domain, the paper's picture appears."""
    rows = []
    for epsilon in results.epsilons("A", "sqc2", "query", 40):
        if epsilon >= 10:
            cells = [
                number(results.value(setting, method, "query", epsilon), 4)
                for setting in SETTINGS
                for method in CRITERIA
            ]
            rows.append([f"{epsilon:g}", *cells])
    head = [
        "ε of one query",
        *(f"{setting}, {name}" for setting in SETTINGS for name in ("SQC2", "SQC1", "NSQC")),
    ]
    joined = [
        [
            f"{epsilon:g}",
            *(number(results.value(s, m, "query", epsilon)) for s in EVERY[3:] for m in CRITERIA),
            number(results.value("A", "hbdp", "", epsilon)),
            number(results.value("D(q)=P 4", "hbdp", "", epsilon)),
        ]
        for epsilon in results.epsilons("B joined", "sqc2", "query")
    ]
    most, at, place = max(
        (ratio(results, setting, ("none", epsilon), ("sqc2", epsilon)), epsilon, setting)
        for setting in SETTINGS
        for epsilon in results.epsilons("A", "sqc2", "query", 30)
    )
    few, joined_c = results.value("D(q)=P 4", "hbdp", "", 10), results.value("C joined", "sqc2", "query", 10)
    times = (few or math.nan) / (joined_c or math.nan)
    names = [f"{s}, {name}" for s in ("B", "C") for name in ("SQC2", "SQC1", "NSQC")]
    return f"""## Where the paper's picture appears

**With a larger ε, in part.** Curves that fall steeply and lie apart are there between ε = 10 and 20 for
each query, which is about 1,000 to 2,000 for a history. NSQC loses at most {number(most, 1)} times what
SQC2 loses, at ε = {at:g} in {place}. Above that, NSQC meets SQC2 again: most queries come out as they went
in. (Grey: past the paper's range.)

![Utility loss over ε for each query, up to 40](figures-002/figure-beyond.svg)

{table(head, rows)}

**With a smaller domain.** Let B and C replace queries by concepts of the four topics only,
{results.about["in_the_four"]:,} instead of {results.about["below_abstraction"]:,}, with ε for each query.
The paper's eq. 4 and its text take all that is below *Abstraction*, so this is not what it describes. HBDP
over the same concepts is in the last columns:

{table(["ε of one query", *names, "B, HBDP", "C, HBDP"], joined)}

At ε = 10 both have the paper's ordering, C loses less than A, and A and C together about what B loses. So
this fits more of the paper's sentences than the settings as it describes them. But HBDP then loses
{number(times, 1)} times what SQC2 loses in C, not ten times, and no more in B than in A. None of our
variants fits all that the paper says."""


def unlisted(results: Results) -> str:
    """Compare profiles with and without everything else."""
    rows = []
    for setting in SETTINGS:
        for column, words in (("loss", "with"), ("listed", "without")):
            cells = [
                number(results.value(setting, method, per, 10, column=column))
                for method, per in (*((m, p) for p in ("history", "query") for m in CRITERIA),
                                    ("hbdp", ""), ("hbdp equal", ""))
            ]  # fmt: skip
            rows.append([f"{setting}, {words}", *cells])
    gone = [percent(results.value(s, "none", "history", 10, column="emptied"), 1) for s in "BC"]
    head = ["ε = 10", "SQC2, ε/m", "SQC1, ε/m", "NSQC, ε/m", "SQC2, ε each", "SQC1, ε each", "NSQC, ε each",
            "HBDP, ε", "HBDP, mε"]  # fmt: skip
    return f"""## Profiles without "everything else"

The paper does not say what becomes of a replacement that is in no topic of the profile. Above it counts, as
a topic of its own: its words on HBDP (more than twice as bad in B as in A, the same in C as in B) fit that
better. Without it a profile is made of those queries alone that are in one of the topics. A user who has
none left counts as a divergence of 1 ({gone[0]} of the users in B and {gone[1]} in C, NSQC with ε/m);
one who had none before is not counted.

{table(head, rows)}

The ordering is another one here: with few queries left of a hundred, profiles scatter, so HBDP, which has
many noisy counts, is below NSQC, and below all with ε/m, in B and C. In B, SQC2 is now below SQC1 at ε =
10. With D(q)=P and D(q)<P both ways give exactly 0."""


def histograms(results: Results) -> str:
    """Show what HBDP's choices change."""
    rows = []
    for setting in (*SETTINGS, "D(q)=P 4", "D(q)=P 19"):
        line = results.line(setting, "hbdp", "", 10)
        cells = [
            number(results.value(setting, method, "", epsilon))
            for method in ("hbdp", "hbdp ours", "hbdp topics", "hbdp equal", "hbdp equal max")
            for epsilon in (1, 10)
        ]
        rows.append([setting, f"{line['bins']:,}", f"{line['added']:.0f}", *cells])
    about = results.about
    most = about["queries_of_a_user"][2]
    head = ["", "counts of a user", "sum of the counts, times m, ε = 10"]
    head += [
        f"{name}, ε = {e}" for name in ("paper's", "2·max", "cut late", "mε", "mε, max") for e in (1, 10)
    ]
    return f"""## HBDP's choices

The paper takes the largest number of queries of any log as sensitivity (here {most}). Exchanging a history
moves the counts by up to twice that, and the maximum must not come from the data: *2·max* has {2 * MOST},
with {MOST} set beforehand. Both are so far past what the data holds that it makes no difference. The paper
does not say what it does with negative counts; we cut each at 0 before the profile is made. *Cut late* adds
noisy counts up by topic and cuts the sums: this changes the picture, since noise no longer adds up to an
even profile but to a random one. *mε*: the number m of queries is taken as known, as `dp-semantic` takes
it, so the sensitivity is 2m and the scale 2/ε. *mε, max* spends as much with the paper's sensitivity.

{table(head, rows)}

With D(q)=P and 19 topics, queries outside the 19 are in no count and in no profile. Noise is drawn exactly,
but not count by count: a sum of noisy zeros is drawn at once. The product uses OpenDP's noise; this is a
benchmark."""


def composed(results: Results) -> str:
    """Show zCDP and microaggregation."""
    ways = ("history", "zcdp", "group 2", "group 5", "group 10")
    wide = ("history", "group 2", "group 5", "group 10")
    rows, large = [], []
    for setting in SETTINGS:
        for method in ("sqc2", "sqc1"):
            name = f"{setting}, {SPELLED[method]}"
            cells = [number(results.value(setting, method, way, 10)) for way in ways]
            cells += [number(results.value(setting, method, f"middles {size}", 10)) for size in (2, 5, 10)]
            rows.append([name, *cells])
            large.append([name, *(number(results.value(setting, method, way, LARGE)) for way in wide)])
    each = "*ε of one draw, median*"
    shares = [number(results.value("A", "sqc2", way, 10, column="per_draw"), 2) for way in ways]
    rows.append([each, *shares, "–", "–", "–"])
    large.append([each, *(number(results.value("A", "sqc2", w, LARGE, column="per_draw"), 2) for w in wide)])
    groups = ("groups of 2", "groups of 5", "groups of 10")
    middles = ("middles of 2", "middles of 5", "middles of 10")
    tried = [
        (results.value(s, m, way, e) or 1) > (results.value(s, m, "history", e) or 0)
        for s in SETTINGS
        for m in ("sqc1", "sqc2")
        for way in ways[2:]
        for e in over_one(results)
    ]
    return f"""## Past the paper: zCDP and microaggregation

`composition=zcdp` adds up the draws of a history by zero-concentrated differential privacy, at δ = {DELTA:g}.
`prior=microagg-semantic`, the paper's future work, groups a history's queries by likeness and lets each group
share one draw, so that there are fewer draws and each may spend more. *Middles* shows what grouping alone
loses, with no draw at all and no privacy.

{table(["ε = 10 for a history", "ε/m", "zCDP", *groups, *middles], rows)}

**Does it pay? Not in the paper's range.** Grouping is worse than no grouping in {sum(tried)} of {len(tried)}
cases (1 < ε ≤ 10). Ten queries in a group allow a draw ten times as much, but that moves the probability to
stay in the topic by a few points at most (the table above, from 0.1 to 1), while ten draws instead of a
hundred make a profile scatter. zCDP costs nothing but the δ, and brings next to nothing at these ε.

It can pay where a draw is allowed enough to matter, far beyond. With ε = {LARGE:g} for a history, groups of
ten lose less than no groups:

{table([f"ε = {LARGE:g} for a history", "ε/m", *groups], large)}"""


def logs(results: Results) -> str:
    """Show other made-up logs."""
    words = {
        "usual": "as above",
        "apart": "users differ more",
        "alike": "users differ less",
        "listed": "no query outside the 19",
    }
    rows = [
        [
            f"{setting}, {words[log]}",
            *(number(results.value(setting, m, p, 10, log)) for p in ("history", "query") for m in CRITERIA),
            number(results.value(setting, "hbdp", "", 10, log)),
        ]
        for setting in SETTINGS
        for log in LOGS
    ]  # fmt: skip
    head = [
        "ε = 10",
        "SQC2, ε/m",
        "SQC1, ε/m",
        "NSQC, ε/m",
        "SQC2, ε each",
        "SQC1, ε each",
        "NSQC, ε each",
        "HBDP, ε",
    ]
    return f"""## Other made-up logs

How much users differ decides how much there is to lose. The orderings hardly change: only in B, SQC2 and SQC1
change places if users differ more.

{table(head, rows)}"""


def again(results: Results) -> str:
    """Say how to make the page again, and what differs from the paper."""
    about, machine = results.about, results.machine
    least, mean, most = about["queries_of_a_user"]
    return f"""## How to run it again

```sh
.venv/bin/python -m benchmarks.paper_002
```

It took {results.seconds:.0f} s on one core of two ({machine["processor"]}, shared with other work). It
carries on where it was stopped; `--quick` takes a quarter of a minute, `--only-draw` measures nothing.
Results: `benchmarks/results/paper-002.jsonl`. All randomness has fixed seeds.

## What differs from the paper

**The log is made up** (seed {about["seed"]}). A user has {least} to {most} queries, {mean:.0f} on average
(lognormal, cut). Her interests are drawn for herself: Dirichlet(½) over the four topics, and within each
over its subtopics and the rest of it. Within a subtopic the r-th concept is asked with a weight of 1/r, the
same for everybody. {100 * about["outside_the_19"]:.0f} % of the queries are in none of the 19 topics. A
query is one concept; mapping text to concepts is not part of this.

**The 19 topics** are the eight that the paper names and eleven more; it does not list them. They hold
{about["in_the_four"] - about["in_none_of_the_19"]:,} of the {about["in_the_four"]:,} concepts of the four
topics. Concepts without words of their own are never drawn, so domains are smaller than WordNet's. A
concept with several parents has all of its ancestors as subsumers and belongs to the deepest topic above
it.

**ρ in SQC2** counts everything else as a topic: a query in none of the 19 is replaced rather by others in
none.

**D(q)<P** uses the 23 topics together. One of these domains is a single concept, which is then released as
it is: the paper's "weaker guarantees", at their weakest."""
