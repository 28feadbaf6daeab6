"""What thesis 003 claims (a crowd of friends; microaggregation), beside the lines of its two studies."""

from __future__ import annotations

from functools import partial

from benchmarks.paper_002_text import near
from benchmarks.paper_003_claims import FOUR, LOST, below, bested, exposure, lost, spelled
from benchmarks.paper_003_crowd import BEST, CUTS, EXPONENTS, PENALTIES, READINGS
from benchmarks.paper_003_crowd import spelled as interval
from benchmarks.paper_003_crowd_claims import ALL, HOPS, WAYS
from benchmarks.paper_003_crowd_claims import Results as Crowd
from benchmarks.paper_003_figures import Results
from benchmarks.papers_rules import Claim, Paper, Stored, close, every_case, every_reading, of_their_data

COMMAND, CROWD_COMMAND = "python -m benchmarks.paper_003", "python -m benchmarks.paper_003_crowd"
claim, crowd_claim = partial(Claim, command=COMMAND), partial(Claim, command=CROWD_COMMAND)
PENALTY, UNEXPOSED, LINES = 0.03, 95.0, 55_666
LOSS_RATIO, LOSS_MEDIAN = "information_loss_ratio.queries_mean", "information_loss_ratio.queries_median"
#: How equals count in Table 4.1; the thesis does not say.
TIES = ("position", "first")


def paper(stored: Stored) -> Paper:
    """Read the lines of both chapters and judge the claims."""
    crowd, results = Crowd.load(stored("paper-003-crowd")), Results.load(stored("paper-003"))
    return Paper(
        "003",
        "Contributions to privacy in web search engines",
        {"Chapter 4, the crowd": "paper-003-crowd.md", "chapter 5, microaggregation": "paper-003.md"},
        words(crowd, results),
        [hops(crowd), unexposed(crowd), cut(crowd), penalty(crowd), *chapter_5(results)],
    )


def words(crowd: Crowd, results: Results) -> str:
    """Say in a few sentences what the thesis does and what we saw."""
    named = [crowd.value("linked 60-80", 100, way, "exact", "success") for way in READINGS]
    engine = " and ".join(spelled(None if one is None else 100 * one) for one in named)
    survived = {kind: results.value(kind, 5, LOST) for kind in FOUR}
    each = ", ".join(f"{kind} {spelled(value)}" for kind, value in survived.items())
    return f"""In chapter 4 friends submit each other's queries ([the crowd](../explanation/crowd.md)). Its
measure, PEL, compares what a person asks with what she submits; it does not see that a search engine which
can link a hundred queries of one author, and knows who is whose friend, names that author in {engine} of the
cases (in the two ways to read the thesis). In chapter 5 groups of k people share one history
([`microagg-semantic`](../explanation/microagg-semantic.md) and others). At k=5 this
loses, of the groups of people with alike interests: {each}."""


def hops(crowd: Crowd) -> Claim:
    """Section 4.7.3."""
    found = [
        value
        for reading in READINGS
        for exponent in EXPONENTS
        if (value := crowd.value("exponent", exponent, reading, "hops")) is not None
    ]
    here = f"{min(found):.2f} to {max(found):.2f}, by exponent and reading" if found else "–"
    return crowd_claim(
        "a query takes 3.59 hops", f"{HOPS}", here, every_reading(near(value, HOPS) for value in found),
        "The thesis gives no exponent for its network, and the hops follow from it: with a suitable one each "
        "reading comes near 3.59, so that this is no test.",
    )  # fmt: skip


def unexposed(crowd: Crowd) -> Claim:
    """Table 4.3."""
    found = [
        100 - value
        for reading in READINGS
        for exponent in EXPONENTS
        if (value := crowd.value("exponent, histories", exponent, reading, "exposed", "honest", "60"))
        is not None
    ]
    here = f"{min(found):.1f} to {max(found):.1f} %, by exponent and reading" if found else "–"
    return crowd_claim(
        "more than 95 % of the users keep more than 40 % uncertainty (PEL up to 60 %), with real histories",
        f"> {UNEXPOSED:.0f} %", here, every_reading(value > UNEXPOSED for value in found),
        "Our histories are made up. Whoever searches far more than others runs out of friends' trust and "
        "submits much herself.",
    )  # fmt: skip


def cut(crowd: Crowd) -> Claim:
    """Table 4.1: the interval θ is chosen for the highest variance of positions."""
    checks = {}
    for way in WAYS:
        for tie in TIES:
            spread = {at: crowd.deviation(at, way, tie) for at in map(interval, CUTS)}
            known = {at: value for at, value in spread.items() if value is not None}
            if interval(BEST) in known and len(known) > 1:
                checks[way, tie] = max(known, key=lambda at: known[at]) == interval(BEST)
    return crowd_claim(
        "θ = 80–60 % gives positions the highest variance", "80–60 %",
        f"so in {sum(checks.values())} of {len(checks)} readings", every_reading(checks.values()),
        "It depends on how people with equal counts are placed, which the thesis does not say.",
    )  # fmt: skip


def penalty(crowd: Crowd) -> Claim:
    """Table 4.4: the smallest penalty that exposes all selfish users."""
    least = {}
    for way in WAYS:
        found = crowd.over("penalty", PENALTIES, way, "exposed", "selfish", "60")
        enough = [at for at, value in found.items() if value >= ALL]
        if enough:
            least[way] = min(enough)
    here = " to ".join(f"{at}" for at in sorted(set(least.values()))) or "–"
    return crowd_claim(
        f"ζ = 0.03 is the smallest penalty that exposes all selfish users ({ALL:.0f} % or more)",
        f"{PENALTY}", here, every_reading(at == PENALTY for at in least.values()),
        "A selfish user submits nobody else's queries: a single one of her own that all friends refuse makes "
        "her PEL 100 %.",
    )  # fmt: skip


def chapter_5(results: Results) -> list[Claim]:
    """List the claims on microaggregation and on removals."""
    close_to, least = exposure(results)[0], lost(results)[0]
    ratios = [results.value("syntactic", k, LOSS_RATIO) for k in (3, 35)]
    left = [results.value("threshold", d, "rows") for d in (1, 20)]
    gone = [None if rows is None else 100 * (1 - rows) for rows in left]
    middle = [spelled(results.value("syntactic", k, LOSS_MEDIAN)) for k in (3, 35)]
    best = bested(results, "", "topic", LOST, below).checks
    about = results.about
    return [
        claim("1,000 users with 55,666 lines", f"{LINES:,}",
              f"{about['rows']:,} of {about['users']:,} people", of_their_data(),
              "Made up to be about as large."),
        claim("PEL is about 100/k (within a tenth of it, each k from 2 to 10; syntactic method)", "100/k",
              close_to.here, every_case(close_to.checks),
              "How far it is from 100/k depends on the log."),
        claim("10 % is lost at k=3 (ILR, syntactic method)", "10 %", spelled(ratios[0]), close(ratios[0], 10),
              f"It goes by the queries of a log, and ours are made up. The median over people is "
              f"{middle[0]}."),
        claim("50 % is lost at k=35", "50 %", spelled(ratios[1]), close(ratios[1], 50),
              f"As above; the median is {middle[1]}."),
        claim("semantic MDAV has the lowest information loss (IL) for every k from 2 to 7", "every k",
              f"{sum(least.checks)} of {len(least.checks)}; {least.here}", every_case(least.checks),
              f"IL goes by categories, and so does the topic method, which loses least for {sum(best)} of "
              f"{len(best)} k."),
        *(
            claim(f"Korolova's method removes {wanted} % of the queries at d={d}", f"{wanted} %",
                  spelled(value), close(value, wanted),
                  "The thesis names neither noise nor threshold. With those of that method's own formulas "
                  "1,000 people are too few." if d == 1 else "As above.")
            for d, wanted, value in ((1, 88, gone[0]), (20, 90, gone[1]))
        ),
    ]  # fmt: skip
