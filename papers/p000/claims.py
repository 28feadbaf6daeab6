"""Headline claims of paper 000 (swapping users within categories) beside our figures."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from papers.common.index import Stored
from papers.common.render import percent
from papers.common.verdicts import (
    Claim,
    accepts,
    as_fast,
    below,
    bound,
    close,
    control,
    every_case,
    of_their_data,
    similar,
    stated,
)
from papers.p000.page import interval
from papers.p000.results import PAPER_CATEGORIES, RELEASE_ONLY, SHOWN_K, THREE, Results
from papers.p000.statistics import of_rates

claim = partial(stated, study="p000")


#: The paper's headline figures: microseconds, percent, and the two numbers of its test.
FASTEST, MEAN, SLOWEST = 18.99, 33.68, 49.71
BEST_ATTACK, SIMPLEST_ATTACK, FLAT_LOSS, CLASSIFIED = 23.18, 18.36, 42.03, 98.0
GAP, P_VALUE = 0.08, 0.9977
#: A control for the test: success rates that are too high everywhere, also at more k than we tried.
TOO_HIGH, TENS = 1.5, [3, *range(10, 201, 10)]
#: Table 3 up to here is in the headline.
SHOWN_LEVELS = 7


TITLE = "A Real-Time Query Log Protection Method for Web Search Engines"
PAGES = {"The full page": "p000", "all figures as tables": "p000_tables"}


class Both(NamedTuple):
    """Results of this study, and of paper 003's, which classifies a log."""

    swap: Results
    classified: float


def load(stored: Stored) -> Both:
    """Read the lines."""
    from papers.p003.results import Results as OfThree

    levels = OfThree.load(stored("p003")).about["levels"]
    return Both(Results.load(stored("p000")), levels["1"])


def summary(both: Both) -> dict[str, Any]:
    """Return the figures of the summary."""
    results, trials = both.swap, of_the_three(both.swap)
    often = results.often("swap", SHOWN_K)
    return {
        "k": SHOWN_K,
        "under": sum(success < 1 / k for success, k in trials),
        "trials": len(trials),
        "repeat": results.success("link-repeat", "swap", SHOWN_K),
        "often": often and often["success"],
        "kept": results.success("link-repeat", "cohort", SHOWN_K, 1, "arrival"),
    }


def headline(both: Both) -> list[Claim]:
    """Judge the headline claims."""
    results = both.swap
    return [
        *promise(results),
        *attacks(results),
        *goodness(results),
        *speed(results),
        *utility(results),
        *categories(results),
        claim("98 % of the queries are classified", f"{CLASSIFIED:.0f} %", percent(both.classified),
              of_their_data(),
              "Our made-up queries are made of words of our own tree, so that nearly all are classified; "
              "that says nothing of a real log. Our share is that of the log of paper 003.",
              study="p003"),
    ]  # fmt: skip


def of_the_three(results: Results) -> list[tuple[float, int]]:
    """Return what the paper's attacks achieve on `swap`, each with its k."""
    return [
        (found["success"], key[1])
        for key, attacks in results.attacks.items()
        for name, found in attacks.items()
        if key[0] == "swap" and name in THREE
    ]


def against_promise(results: Results) -> list[tuple[dict[str, Any], int]]:
    """Return what attackers of ours who see only the release achieve, on all and on repeated records."""
    return [
        (one, key[1])
        for key, attacks in results.attacks.items()
        for name, found in attacks.items()
        if key[0] == "swap" and name in RELEASE_ONLY[len(THREE) :] and found["success"] is not None
        for one in (found, found.get("by_repeats", {}).get("5+"))
        if one
    ]


def promise(results: Results) -> list[Claim]:
    """Theorem 1."""
    trials = against_promise(results)
    above = sum(one["low"] > 1 / k for one, k in trials)
    shown = results.attacks.get(("swap", SHOWN_K, 1, None), {}).get("link-repeat")
    here = f"`link-repeat` {interval(shown)} at k={SHOWN_K}; " if shown else ""
    return [
        claim("Theorem 1: a released record's author is found with probability 1/k at most",
              "≤ 1/k for every attacker",
              f"{here}above 1/k in {above} of {len(trials)} trials of our attacks",
              bound([one["low"] for one, _ in trials], [1 / k for _, k in trials]),
              "The proof counts one arrangement where it has to count as many as the author has records "
              "waiting. "
              "[Ten records are enough to see it](../explanation/swap.md#why-the-papers-bound-is-wrong)."),
    ]  # fmt: skip


def attacks(results: Results) -> list[Claim]:
    """Figure 6."""
    trials = of_the_three(results)
    profile, chance = (results.success(name, "swap", 3, 13) for name in ("link-profile", "link-random"))
    large = {least: [100 * success for success, k in trials if k >= least] for least in (90, 100)}
    repeat = results.success("link-repeat", "swap", 100)
    other = "Another log and another tree of categories; we cannot say which of them makes the difference."
    return [
        claim("the paper's three attacks stay below 1/k, at every k and level", "all",
              f"{sum(success < 1 / k for success, k in trials)} of {len(trials)}",
              every_case(success < 1 / k for success, k in trials),
              "Said of these three only: attacks that the paper does not try stand above."),
        claim("its best attack links 23.18 %, at k=3 and level 13", f"{BEST_ATTACK} %",
              f"{percent(profile)} (`link-profile`)",
              close(profile and 100 * profile, BEST_ATTACK), other),
        claim("its simplest attack links 18.36 % there", f"{SIMPLEST_ATTACK} %",
              f"{percent(chance)} (`link-random`)", close(chance and 100 * chance, SIMPLEST_ATTACK),
              "As above."),
        *(
            claim(f"the three link less than 1 % from k={least} on", "< 1 %",
                  f"{max(found):.2f} % at most" if found else "–", below(found, 1),
                  "Said of these three only: `link-repeat`, which sees no more than they do, links "
                  f"{percent(repeat)} at k=100, level 1." if least == 90 else "As above.")
            for least, found in large.items()
        ),
    ]  # fmt: skip


def goodness(results: Results) -> list[Claim]:
    """Figure 7: the Kolmogorov-Smirnov test of the success rates against the values 1/k."""
    linked = results.linked("link-profile", "swap", 13)
    gap, p_value = _tested(linked)
    found = {len(ks): _tested({k: TOO_HIGH / k for k in ks})[1] for ks in (list(linked), TENS) if ks}
    p_values = {count: value for count, value in found.items() if value is not None}
    spelled = ", ".join(f"{value:.2f} with {count} values of k" for count, value in p_values.items())
    return [
        claim("Kolmogorov–Smirnov: the success rates are D = 0.08 away from 1/k", f"{GAP}",
              "–" if gap is None else f"{gap:.2f} (`link-profile`, level 13)", similar(gap, GAP),
              f"With {len(linked)} values of k, D is a multiple of 1/{len(linked) or 1}; 0.08 takes 12 or "
              "more."),
        claim("the test accepts that they follow 1/k", f"p = {P_VALUE}",
              "–" if p_value is None else f"p = {p_value:.4f}", accepts(p_value),
              "With so few values it can hardly say no."),
        claim("that test shows that success follows 1/k", "accepted, so shown",
              f"success of {TOO_HIGH}/k at every k: p = {spelled}", control(p_values.values()),
              "Rates that are half as high again as 1/k, at every k, pass as well: the test cannot show that "
              "something stays below 1/k."),
    ]  # fmt: skip


def _tested(linked: dict[int, float]) -> tuple[float | None, float | None]:
    """Return D and p of success rates by k against 1/k."""
    if not linked:
        return None, None
    return of_rates(linked)


def speed(results: Results) -> list[Claim]:
    """Figure 11."""
    swaps = results.base("swap")
    flat = results.one("swap", 3)
    fastest = flat and flat["microseconds_per_record"]
    every = [one["microseconds_per_record"] for one in swaps]
    mean = sum(every) / len(every) if every else None
    slow = max((one["microseconds_per_record"] for one in swaps if one["k"] == 190), default=None)
    why = (
        "Compiled code on another machine; reading and encoding of text are not in ours, and the machine did "
        "other work too."
    )

    def micro(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f} µs"

    return [
        claim("18.99 µs for each query, at k=3 and level 1", f"{FASTEST} µs", micro(fastest),
              as_fast(fastest, FASTEST), why),
        claim("which is 52,659 queries per second", f"{1e6 / FASTEST:,.0f}",
              f"{1e6 / fastest:,.0f}" if fastest else "–", as_fast(fastest, FASTEST), "As above."),
        claim("33.68 µs on average over all settings", f"{MEAN} µs", micro(mean), as_fast(mean, MEAN),
              "As above."),
        claim("49.71 µs at k=190", f"{SLOWEST} µs", f"{micro(slow)} (slowest level)", as_fast(slow, SLOWEST),
              "As above."),
    ]  # fmt: skip


def utility(results: Results) -> list[Claim]:
    """Figure 10."""
    loss = {(one["k"], one["level"]): 100 * one["profile"]["loss"] for one in results.base("swap")}
    flat, deep = loss.get((SHOWN_K, 1)), {at: value for at, value in loss.items() if at[1] >= 6}
    under = sum(value < 1 for value in deep.values())
    worst = max(deep, key=lambda at: deep[at], default=None)
    fine = {k for k, _ in deep} - {k for (k, _), value in deep.items() if value >= 1}
    small = f"It is so for k up to {max(fine)}. " if fine else ""
    return [
        claim("42.03 % of the utility is lost at level 1", f"{FLAT_LOSS} %",
              "–" if flat is None else f"{flat:.2f} % (k={SHOWN_K})", close(flat, FLAT_LOSS),
              "The paper adds up distances between a query and the one in its place; ours is the exact earth "
              "mover's distance of the two profiles, over the largest possible on our tree."),
        claim("less than 1 % is lost from level 6 on, whatever k", "< 1 %",
              "–" if worst is None else f"below 1 % in {under} of {len(deep)} settings; most: "
              f"{deep[worst]:.2f} % at k={worst[0]}, level {worst[1]}", below(deep.values(), 1),
              f"{small}With larger k more records of deep categories never leave; the paper counts those "
              "apart, ours are part of the loss."),
    ]  # fmt: skip


def categories(results: Results) -> list[Claim]:
    """Table 3."""
    added = {int(level): count for level, count in results.about["added_categories"].items()}

    def up_to(level: int) -> int:
        return sum(count for at, count in added.items() if at <= level)

    def counted(level: int, says: str, why: str) -> Claim:
        paper = sum(PAPER_CATEGORIES[:level])
        return claim(says, f"{paper:,}", f"{up_to(level):,}", similar(up_to(level), paper), why)

    deepest, last = len(PAPER_CATEGORIES), sum(PAPER_CATEGORIES)
    tops = "Our tree was made with as many top categories, so this says little."
    smaller = "Our tree is smaller, and our log meets a part of it."
    return [
        counted(1, f"{PAPER_CATEGORIES[0]} categories at level 1", tops),
        *(
            counted(level, f"{sum(PAPER_CATEGORIES[:level]):,} up to level {level}",
                    smaller if level == 2 else "As above.")
            for level in range(2, SHOWN_LEVELS + 1)
        ),
        counted(deepest, f"{last:,} in all, at depth {deepest}", "As above."),
    ]  # fmt: skip
