"""Claims of paper 002 (queries replaced by meaning, with an ε) beside our figures: page and headline."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from papers.common.index import Stored
from papers.common.render import near
from papers.common.verdicts import Claim, every_case, of_their_data, similar, stated
from papers.p002.results import JOINED, SETTINGS, Results, compared, number

claim = partial(stated, study="p002")
TITLE = "A Semantic-Preserving Differentially Private Method for Releasing Query Logs"
PAGES = {"The full page": "p002"}
At = tuple[str, float]  # a method and its ε
READINGS = {"history": "ε for a history, ε/m for a query", "query": "ε for each query, mε for a history"}
FOURFOLD = 4.0
#: The paper's ordering, pair by pair: the smaller loss, the larger, and the signs that fit.
PAIRS = (("sqc2", "sqc1", "<"), ("sqc1", "none", "<≈"), ("none", "hbdp", "<"))


def sentences_of(results: Results) -> list[Claim]:
    """Judge the paper's sentences on its figures."""

    def at(setting: str, method: str, epsilon: float = 10, log: str = "usual") -> float:
        found = results.value(setting, method, "query", epsilon, log)
        return math.nan if found is None else found

    def row(says: str, holds: bool, *values: float | str) -> Claim:
        here = ", ".join(one if isinstance(one, str) else f"{one:.3f}" for one in values)
        return Claim(says, here, every_case([holds]))

    a, b, c, b_joined, c_joined = (at(setting, "sqc2") for setting in (*SETTINGS, *JOINED))
    blunt, plain = at("A", "none"), at("A", "sqc1")
    lost, early = [one["loss"] for one in results.within_topics()], at("B", "hbdp", 1)
    same, few = at("D(q)=P 19", "hbdp"), at("D(q)=P 4", "hbdp")
    noise = {setting: at(setting, "hbdp") for setting in SETTINGS}
    alone = {setting: at(setting, "hbdp", log="listed") for setting in SETTINGS}
    only = "… if the domain of B and C is the four topics alone"
    flat = [results.value("A", "sqc2", "history", epsilon) or 0.0 for epsilon in (1, 10)]
    return [
        row("D(q)=P and D(q)<P: exactly 0 for SQC1, SQC2, NSQC", not any(lost), max(lost)),
        row("D(q)=P: HBDP is not 0 (19 topics, 4 topics)", min(same, few) > 0, same, few),
        row("… and similar to NSQC in A", near(same, blunt), same, blunt),
        row("A: the loss falls from ε = 1 to 10; ε/m, SQC2", flat[1] < 0.98 * flat[0], *flat),
        row("… ε each, SQC2", a < 0.98 * at("A", "sqc2", 1), at("A", "sqc2", 1), a),
        row("NSQC loses roughly 4 times as much as SQC2 (A)", near(4 * a, blunt), blunt, a),
        row("A: SQC1 is not very different from NSQC", near(plain, blunt), plain, blunt),
        row("B loses more than A (SQC2)", b > a, b, a),
        row("HBDP loses more than twice as much in B as in A", noise["B"] > 2 * noise["A"], noise["B"],
            noise["A"]),
        row("B: HBDP hardly improves from ε = 1 to 10", near(early, noise["B"]), early, noise["B"]),
        row("C loses less than A and than B (SQC2: A, B, C)", c < min(a, b), a, b, c),
        row(only, c_joined < min(a, b_joined), a, b_joined, c_joined),
        row("A and C together lose about as much as B (SQC2)", near(a + c, b), f"{a:.3f} + {c:.3f}", b),
        row(only, near(a + c_joined, b_joined), f"{a:.3f} + {c_joined:.3f}", b_joined),
        row("HBDP loses about as much in C as in B", near(noise["C"], noise["B"]), noise["C"], noise["B"]),
        row("… if no query is outside the 19 topics", near(alone["C"], alone["B"]), alone["C"], alone["B"]),
        row("C: HBDP loses ten times as much as SQC2", noise["C"] > 10 * c, noise["C"], c),
        row(only, few > 10 * c_joined, few, c_joined),
    ]  # fmt: skip


def load(stored: Stored) -> Results:
    """Read the lines."""
    return Results.load(stored("p002"))


def summary(results: Results) -> dict[str, Any]:
    """Return the figures of the summary."""
    flat, each = (
        [number(results.value("A", "sqc2", per, epsilon)) for epsilon in (1, 10)]
        for per in ("history", "query")
    )
    return {"flat": flat, "each": each}


def headline(results: Results) -> list[Claim]:
    """Judge the headline claims."""
    return [log(results), nothing_lost(results), *orderings(results), *fourfold(results)]


def log(results: Results) -> Claim:
    """The log of the paper."""
    about = results.about
    return claim(
        "1,000 users with about 100 queries each, ε from 0.1 to 10",
        "1,000 × 100",
        f"{about['users']:,} × {about['queries'] / about['users']:.0f}, the same ε",
        of_their_data(),
        "Made up to be as large.",
    )


def nothing_lost(results: Results) -> Claim:
    """Check the scenario in which queries are replaced within the topics of the profile."""
    zero = [one["loss"] == 0 for one in results.within_topics() if one["setting"].startswith("D(q)=P")]
    return claim(
        "with D(q)=P the divergence is exactly 0 (SQC1, SQC2, NSQC; all ε)",
        "0",
        f"0 in {sum(zero)} of {len(zero)} measurements",
        every_case(zero),
        "By design: the topic of every query stays, and the release shows it.",
    )


def in_order(results: Results, setting: str, per: str, epsilon: float) -> list[bool]:
    """Check the three pairs of the paper's ordering; a difference is one of three standard errors."""
    found: list[bool] = []
    for small, large, signs in PAIRS:
        lines: list[Any] = [results.line(setting, method, per, epsilon) for method in (small, large)]
        if None in lines:
            return []
        found.append(compared(*lines) in signs)
    return found


def orderings(results: Results) -> list[Claim]:
    """Check SQC2 < SQC1 ≲ NSQC < HBDP for ε above 1, in both readings of ε."""
    why = {
        "history": "With ε/m for a draw, the most and the least probable replacement hardly differ: the "
        "criteria are alike but for chance, and in B and C the histogram's even profile loses less than "
        "scattered draws.",
        "query": "In B, SQC1 prefers neighbouring topics to the rest, and the divergence sees that; in B and "
        "C the histogram loses no more than NSQC.",
    }
    found = []
    for per, reading in READINGS.items():
        cells = {
            (setting, epsilon): checks
            for setting in SETTINGS
            for epsilon in results.over_one()
            if (checks := in_order(results, setting, per, epsilon))
        }
        whole = {at: all(checks) for at, checks in cells.items()}
        by_setting = ", ".join(
            f"{setting} {sum(fits)} of {len(fits)}"
            for setting in SETTINGS
            if (fits := [fit for at, fit in whole.items() if at[0] == setting])
        )
        pairs = [sum(checks[place] for checks in cells.values()) for place in range(len(PAIRS))]
        here = (
            f"{by_setting}; of {len(cells)}: SQC2 < SQC1 in {pairs[0]}, SQC1 ≲ NSQC in {pairs[1]}, "
            f"NSQC < HBDP in {pairs[2]}"
        )
        found.append(
            claim(f"for ε > 1: SQC2 < SQC1 ≲ NSQC < HBDP in every setting ({reading})", "A, B and C", here,
                  every_case(whole.values()), why[per])
        )  # fmt: skip
    return found


def gain(results: Results, setting: str, per: str, over: At, under: At) -> float | None:
    """Return how many times as much is lost with one method and ε as with another."""
    more, less = (results.value(setting, method, per, epsilon) for method, epsilon in (over, under))
    return more / less if more is not None and less else None


def fourfold(results: Results) -> list[Claim]:
    """Check the fourfold gain, which can be read in two ways; the best setting and reading of ε counts."""
    joined = gain(results, "C joined", "query", ("none", 10), ("sqc2", 10))
    own = math.exp(10 / 2)
    kinds: list[tuple[str, At, At, str]] = [
        ("NSQC loses about 4 times what SQC2 loses, at ε = 10 in the best case", ("none", 10), ("sqc2", 10),
         f"It is {number(joined, 1)} times in C if queries are replaced by concepts of the four topics only, "
         "which is not what the paper describes."),
        ("SQC2 loses about 4 times less at ε = 10 than at 1, in the best case", ("sqc2", 1), ("sqc2", 10),
         f"At ε = 10 for one draw a concept's own weight is {own:.0f} times the least, against hundreds of "
         "other concepts."),
    ]  # fmt: skip
    found = []
    for says, over, under, because in kinds:
        gains = {
            (setting, per): times
            for setting in SETTINGS
            for per in READINGS
            if (times := gain(results, setting, per, over, under)) is not None
        }
        best = max(gains, key=lambda at: gains[at]) if gains else None
        here = "–" if best is None else f"{gains[best]:.1f} times (setting {best[0]}, {READINGS[best[1]]})"
        most = None if best is None else gains[best]
        found.append(claim(says, "4 times", here, similar(most, FOURFOLD), because))
    return found
