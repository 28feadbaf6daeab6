"""Claims of paper 003, chapter 5, beside our figures; and the headline claims of both chapters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from statistics import fmean, median
from typing import Any, NamedTuple

from papers.common.index import Stored
from papers.common.render import near, number, with_unit
from papers.common.verdicts import (
    POINTS,
    Claim,
    checked,
    close,
    every_reading,
    of_their_data,
    stated,
)
from papers.p003.figures import MOST_LEVELS, TOPIC_KS
from papers.p003.results import Results, gaps
from papers.p003_crowd.claims import ALL, HOPS, WAYS
from papers.p003_crowd.results import Results as Crowd
from papers.p003_crowd.run import BEST, CUTS, EXPONENTS, PENALTIES, READINGS
from papers.p003_crowd.run import spelled as interval

#: The four aggregations of the thesis, and the k for which it compares them.
FOUR = ("semantic", "topic", "syntactic", "plain")
COMPARED_KS = (2, 3, 4, 5, 6, 7)
EXPOSED = "profile_exposure.queries_mean"
LOST = "partition_loss.loss_80"
#: Which part of 100/k counts as close, and which index as near 1.
CLOSE, HIGH_INDEX = 0.1, 0.9
#: A difference of indices that is not called one.
LEAST_GAP = 0.01


def over(results: Results, kind: str, column: str, ats: Iterable[int]) -> dict[int, float]:
    """Return a number at those of these k at which it was measured."""
    found = {at: results.value(kind, at, column) for at in ats}
    return {at: value for at, value in found.items() if value is not None}


def ends(values: dict[int, float], name: str = "k") -> str:
    """Return the first and the last of some numbers."""
    edges = sorted({min(values), max(values)}) if values else []
    return ", ".join(f"{values[at]:.1f} at {name} = {at}" for at in edges) or "–"


def met(says: str, value: float | None, wanted: float) -> Claim:
    """Check a number of the thesis, up to some points."""
    return checked(says, with_unit(value), [] if value is None else [abs(value - wanted) <= POINTS])


def bested(
    results: Results, says: str, kind: str, column: str, beats: Callable[[float, list[float]], bool]
) -> Claim:
    """Set one aggregation against the three others of the thesis, k by k."""
    checks, shown = [], {}
    for k in COMPARED_KS:
        found = {one: results.value(one, k, column) for one in FOUR}
        values = {one: value for one, value in found.items() if value is not None}
        if kind in values and len(values) == len(FOUR):
            checks.append(beats(values.pop(kind), list(values.values())))
            low, high = min(values.values()), max(values.values())
            shown[k] = f"{number(found[kind])} against {low:.1f} to {high:.1f} at k = {k}"
    edges = sorted({min(shown), max(shown)}) if shown else []
    return checked(says, "; ".join(shown[k] for k in edges) or "–", checks)


def below(one: float, others: list[float]) -> bool:
    """Whether a number is less than all others."""
    return one < min(others)


def above(one: float, others: list[float]) -> bool:
    """Whether a number is more than all others."""
    return one > max(others)


def exposure(results: Results) -> list[Claim]:
    """Figure 5.3."""
    found = over(results, "syntactic", EXPOSED, range(2, 11))
    close = [abs(value - 100 / k) <= CLOSE * 100 / k for k, value in found.items()]
    over_it, three = sum(value > 100 / k for k, value in found.items()), found.get(3)
    shown = f"{ends(found)}; above 100/k at {over_it} of {len(found)} k" if found else "–"
    return [
        checked("PEL is very close to 100/k", shown, close),
        checked("k = 3 is enough: at most 40 % exposed", with_unit(three), [three <= 40] if three else []),
    ]


def loss_ratio(results: Results) -> list[Claim]:
    """Figure 5.4."""
    column = "information_loss_ratio.queries_mean"
    found = over(results, "syntactic", column, results.ats("syntactic"))
    steps = [after > before - 1 for (_, before), (_, after) in pairwise(sorted(found.items()))]
    return [
        met("10 % is lost at k = 3", found.get(3), 10),
        met("50 % is lost at k = 35", found.get(35), 50),
        checked("the loss grows with k (dips of a point aside)", ends(found), steps),
    ]


def clusterings(results: Results) -> list[Claim]:
    """Figure 5.5."""
    claims = []
    for name in ("rand", "jaccard"):
        lines = {k: points for k in results.mined_ks if len(points := results.index(k, name)) > 1}
        checks = [points[-1][1] > points[0][1] and points[-1][1] >= HIGH_INDEX for points in lines.values()]
        shown = [f"{p[0][1]:.2f} to {p[-1][1]:.2f} (k = {k})" for k, p in sorted(lines.items())]
        says = f"{name.capitalize()}: closer to 1 with more groups, and near it at the end"
        claims.append(checked(says, ", ".join(shown[:: max(len(shown) - 1, 1)]) or "–", checks))
    return claims


def difference(results: Results) -> list[Claim]:
    """Figure 5.6."""
    claims = []
    for name in ("jaccard", "rand"):
        found = gaps(results, name)
        checks = [abs(found[-1][1]) < abs(found[0][1]) - LEAST_GAP] if len(found) > 1 else []
        shown = (
            ", ".join(f"{gap:.2f} with {groups:.0f} groups" for groups, gap in (found[0], found[-1]))
            if checks
            else "–"
        )
        claims.append(checked(f"{name.capitalize()}: k matters less with more groups", shown, checks))
    return claims


def frequencies(results: Results, column: str, kept: str, what: str) -> list[Claim]:
    """Figures 5.7 and 5.8."""
    still = over(results, "syntactic", kept, results.ats("syntactic"))
    ratios = {
        (k, place): pair[1] / pair[0]
        for k in results.ats("syntactic")
        for place, pair in enumerate(results.lines[f"syntactic {k}"][column])
    }
    far = max(ratios, key=lambda at: abs(ratios[at] - 1), default=None)
    furthest = (
        "–" if far is None else f"furthest: place {far[1] + 1} at k = {far[0]}, {ratios[far]:.2f} times"
    )
    tenths = (
        ", ".join(f"{10 * still[k]:.0f} of 10 at k = {k}" for k in sorted({min(still), max(still)}))
        if still
        else "–"
    )
    same = [kept >= 0.9 for kept in still.values()]
    return [
        checked(f"the same ten {what} stay the commonest (one may go)", tenths, same),
        checked("they come about as often as before", furthest, [near(r, 1) for r in ratios.values()]),
    ]  # fmt: skip


def reached(results: Results) -> list[Claim]:
    """Figure 5.10."""
    levels = {int(level): 100 * share for level, share in results.about["levels"].items()}
    deepest = max((level for level, share in levels.items() if share >= 50), default=0)
    return [
        met("57 % of queries are classified down to level 5", levels.get(5), 57),
        checked("more than half get to level 5", f"more than half get to level {deepest}", [deepest >= 5]),
    ]


def remain(results: Results) -> list[Claim]:
    """Figure 5.11."""
    found = {
        (kind, k, level): value
        for kind in ("topic", "topic five")
        for k in TOPIC_KS
        for level in range(1, MOST_LEVELS + 1)
        if (value := results.value(kind, k, f"semantic_remain.level_{level}")) is not None
    }

    def gain(level: int) -> float | None:
        one, five = found.get(("topic", 5, level)), found.get(("topic five", 5, level))
        return None if one is None or five is None else 100 * (five - one)

    margin = {at: value * at[1] for at, value in found.items()}
    least = f"least: {min(margin.values()):.2f} times 1/k" if margin else "–"
    flat, deep = gain(1), gain(5)
    return [
        checked("both are above 1/k at every level", least, [share > 1 for share in margin.values()]),
        checked("at level 1, five categories gain nothing (k = 5)", with_unit(flat, " points"),
              [] if flat is None else [abs(flat) <= 2]),
        checked("at level 5, k = 5, five gain about 10 points", with_unit(deep, " points"),
              [] if deep is None else [deep >= 1, 5 <= deep <= 15]),
    ]  # fmt: skip


def cost(results: Results) -> list[Claim]:
    """Figure 5.12."""
    one, five = (over(results, kind, "cpu_seconds", TOPIC_KS) for kind in ("topic", "topic five"))
    ratios = [five[k] / one[k] for k in five if one.get(k)]
    middle = median(ratios) if ratios else None  # what runs first in a process also loads the tree
    shown = "–" if middle is None else f"{middle:.1f} times, median of k = 2 to 5"
    return [checked("five categories take three times as long", shown, [near(middle, 3)] if middle else [])]


def lost(results: Results) -> list[Claim]:
    """Figure 5.13: the aggregations."""
    claims = [
        bested(results, "semantic loses least, for every k from 2 to 7", "semantic", LOST, below),
        bested(results, "plain is the worst of the four", "plain", LOST, above),
    ]
    for better, worse in (("topic", "syntactic"), ("syntactic", "plain")):
        pairs = {
            k: (one, two)
            for k in COMPARED_KS
            if (one := results.value(better, k, LOST)) is not None
            and (two := results.value(worse, k, LOST)) is not None
        }
        shown = [f"{one:.1f} against {two:.1f} at k = {k}" for k, (one, two) in sorted(pairs.items())]
        checks = [one < two for one, two in pairs.values()]
        edges = "; ".join(shown[:: max(len(shown) - 1, 1)]) or "–"
        claims.append(checked(f"{better} loses less than {worse}", edges, checks))
    return claims


def removed(results: Results) -> list[Claim]:
    """Figure 5.13: how much the removals take away."""

    def gone(kind: str, at: int, column: str) -> float | None:
        left = results.value(kind, at, column)
        return None if left is None else 100 * (1 - left)

    return [
        met("Korolova removes 88 % of the queries at d = 1", gone("threshold", 1, "rows"), 88),
        met("… and 90 % at d = 20", gone("threshold", 20, "rows"), 90),
        met("… and empties 46 % of the users at d = 1", gone("threshold", 1, "people_left"), 46),
        met("… 65 % at d = 5", gone("threshold", 5, "people_left"), 65),
        met("Poblete empties 10 % of the users at Kp = 30", gone("graph", 30, "people_left"), 10),
    ]  # fmt: skip


def kept(results: Results, column: str, best: str, worst: str | None) -> list[Claim]:
    """Figures 5.14 and 5.15: who keeps the ten commonest, on average over k."""
    found = {kind: over(results, kind, column, COMPARED_KS) for kind in FOUR}
    means = {kind: 100 * fmean(values.values()) for kind, values in found.items() if values}
    shown = ", ".join(f"{kind} {mean:.0f} %" for kind, mean in means.items()) or "–"
    claims = []
    for kind, words, sign in ((best, "keeps most", 1), (worst, "keeps least", -1)):
        if kind is not None:
            known = means if kind in means and len(means) == len(FOUR) else {}
            checks = [sign * (known[kind] - mean) > 0 for other, mean in known.items() if other != kind]
            claims.append(checked(f"{kind} {words} of the aggregations", shown, checks))
    aggregated = list(means.values())
    for kind, words, sign in (
        ("graph", "Poblete keeps more than these", 1),
        ("threshold", "Korolova keeps less", -1),
    ):
        values = [
            100 * v for v in over(results, kind, column, (at for at in results.ats(kind) if at >= 1)).values()
        ]
        checks = [sign * (v - mean) > 0 for v in values for mean in aggregated]
        claims.append(checked(words, f"{min(values):.0f} to {max(values):.0f} %" if values else "–", checks))
    return claims


def linked_by_queries(results: Results) -> list[Claim]:
    """Figure 5.16."""
    column = "record_linkage.queries"
    poblete = over(results, "graph", column, (at for at in results.ats("graph") if at > 5))
    return [
        met("Korolova: 25 % linked at d = 1", results.value("threshold", 1, column), 25),
        met("… almost 0 % at d = 20", results.value("threshold", 20, column), 0),
        checked("Poblete: around 63 % for Kp > 5", ends(poblete, "K"),
              [abs(value - 63) <= POINTS for value in poblete.values()]),
        bested(results, "plain is linked most of the four", "plain", column, above),
        bested(results, "semantic is linked no more than the others", "semantic", column,
               lambda one, others: one <= max(others)),
    ]  # fmt: skip


def linked_by_categories(results: Results) -> list[Claim]:
    """Figure 5.17."""
    column = "record_linkage.categories"
    return [
        bested(results, "semantic is linked least of the four", "semantic", column, below),
        checked("the three others are close to each other", *_close(results, column)),
    ]


def _close(results: Results, column: str) -> tuple[str, list[bool]]:
    """Return how far the three others of the thesis are apart, k by k."""
    ranges = {}
    for k in COMPARED_KS:
        found = [value for kind in FOUR[1:] if (value := results.value(kind, k, column)) is not None]
        if len(found) == len(FOUR[1:]):
            ranges[k] = min(found), max(found)
    shown = [f"{low:.1f} to {high:.1f} at k = {k}" for k, (low, high) in sorted(ranges.items())]
    return "; ".join(shown[:: max(len(shown) - 1, 1)]) or "–", [near(*pair) for pair in ranges.values()]


def exposed_by_queries(results: Results) -> list[Claim]:
    """Figure 5.18."""
    far = {
        (kind, k): abs(value * k / 100 - 1)
        for kind in FOUR
        for k, value in over(results, kind, EXPOSED, COMPARED_KS).items()
    }
    worst = max(far, key=lambda at: far[at], default=None)
    shown = "–" if worst is None else f"furthest: {worst[0]} at k = {worst[1]}, {100 * far[worst]:.0f} % off"
    removals = {kind: over(results, kind, EXPOSED, results.ats(kind)) for kind in ("threshold", "graph")}
    least = [v for kind in FOUR for v in over(results, kind, EXPOSED, COMPARED_KS).values()]
    return [
        checked("the aggregations are close to 100/k", shown, [value <= CLOSE for value in far.values()]),
        checked("Korolova exposes least of all", ends(removals["threshold"], "d"),
              [v < min(least) for v in removals["threshold"].values()] if least else []),
        checked("Poblete exposes most of all", ends(removals["graph"], "K"),
              [v > max(least) for at, v in removals["graph"].items() if at > 1] if least else []),
    ]  # fmt: skip


def exposed_by_categories(results: Results) -> list[Claim]:
    """Figure 5.19."""
    column = "profile_exposure.categories_mean"
    pairs = {
        (kind, k): (by_category, by_query)
        for kind in FOUR
        for k in COMPARED_KS
        if (by_category := results.value(kind, k, column)) is not None
        and (by_query := results.value(kind, k, EXPOSED)) is not None
    }
    at_five = [f"{kind} {one:.1f} against {two:.1f}" for (kind, k), (one, two) in pairs.items() if k == 5]
    poblete = over(results, "graph", column, (at for at in results.ats("graph") if at >= 2))
    shown = "; ".join(at_five) + " (k = 5)" if at_five else "–"
    lower = [one < two for one, two in pairs.values()]
    return [
        checked("PEL by categories is lower than by queries", shown, lower),
        bested(results, "plain is slightly the worst of the four", "plain", column, above),
        checked("Poblete: 93 to 95 %", ends(poblete, "K"), [88 <= one <= 100 for one in poblete.values()]),
    ]  # fmt: skip


FIGURES: dict[str, Callable[[Results], list[Claim]]] = {
    "5.3": exposure,
    "5.4": loss_ratio,
    "5.5": clusterings,
    "5.6": difference,
    "5.7": lambda results: frequencies(results, "top_queries", "top_preserved.queries_10", "queries"),
    "5.8": lambda results: frequencies(results, "top_words", "top_preserved.words_10", "words"),
    "5.10": reached,
    "5.11": remain,
    "5.12": cost,
    "5.13": lambda results: [*lost(results), *removed(results)],
    "5.14": lambda results: kept(results, "top_preserved.queries_10", "syntactic", None),
    "5.15": lambda results: kept(results, "top_preserved.categories_10", "semantic", "plain"),
    "5.16": linked_by_queries,
    "5.17": linked_by_categories,
    "5.18": exposed_by_queries,
    "5.19": exposed_by_categories,
}


def all_claims(results: Results) -> list[Claim]:
    """Return the claims on all figures."""
    return [claim for claims in FIGURES.values() for claim in claims(results)]


PENALTY, UNEXPOSED, LINES = 0.03, 95.0, 55_666
LOSS_RATIO, LOSS_MEDIAN = "information_loss_ratio.queries_mean", "information_loss_ratio.queries_median"
#: How equals count in Table 4.1; the thesis does not say.
TIES = ("position", "first")


claim, crowd_claim = partial(stated, study="p003"), partial(stated, study="p003_crowd")
TITLE = "Contributions to privacy in web search engines"
PAGES = {"Chapter 4, the crowd": "p003_crowd", "chapter 5, microaggregation": "p003"}


class Both(NamedTuple):
    """Results of both chapters."""

    crowd: Crowd
    groups: Results


def load(stored: Stored) -> Both:
    """Read the lines of both chapters."""
    return Both(Crowd.load(stored("p003_crowd")), Results.load(stored("p003")))


def summary(both: Both) -> dict[str, Any]:
    """Return the figures of the summary."""
    named = [both.crowd.value("linked 60-80", 100, way, "exact", "success") for way in READINGS]
    lost = {kind: both.groups.value(kind, 5, LOST) for kind in FOUR}
    return {
        "engine": " and ".join(with_unit(None if one is None else 100 * one) for one in named),
        "each": ", ".join(f"{kind} {with_unit(value)}" for kind, value in lost.items()),
    }


def headline(both: Both) -> list[Claim]:
    """Judge the headline claims."""
    crowd = both.crowd
    return [hops(crowd), unexposed(crowd), cut(crowd), penalty(crowd), *chapter_5(both.groups)]


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
    middle = [with_unit(results.value("syntactic", k, LOSS_MEDIAN)) for k in (3, 35)]
    best = bested(results, "", "topic", LOST, below).judged
    about = results.about
    return [
        claim("1,000 users with 55,666 lines", f"{LINES:,}",
              f"{about['rows']:,} of {about['users']:,} people", of_their_data(),
              "Made up to be about as large."),
        claim("PEL is about 100/k (within a tenth of it, each k from 2 to 10; syntactic method)",
              "100/k", close_to.here, close_to.judged,
              "How far it is from 100/k depends on the log."),
        claim("10 % is lost at k=3 (ILR, syntactic method)", "10 %", with_unit(ratios[0]),
              close(ratios[0], 10),
              f"It goes by the queries of a log, and ours are made up. The median over people is "
              f"{middle[0]}."),
        claim("50 % is lost at k=35", "50 %", with_unit(ratios[1]), close(ratios[1], 50),
              f"As above; the median is {middle[1]}."),
        claim("semantic MDAV has the lowest information loss (IL) for every k from 2 to 7", "every k",
              f"{least.judged.right} of {least.judged.checks}; {least.here}", least.judged,
              f"IL goes by categories, and so does the topic method, which loses least for {best.right} of "
              f"{best.checks} k."),
        *(
            claim(f"Korolova's method removes {wanted} % of the queries at d={d}", f"{wanted} %",
                  with_unit(value), close(value, wanted),
                  "The thesis names neither noise nor threshold. With those of that method's own formulas "
                  "1,000 people are too few." if d == 1 else "As above.")
            for d, wanted, value in ((1, 88, gone[0]), (20, 90, gone[1]))
        ),
    ]  # fmt: skip
