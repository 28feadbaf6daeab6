"""What paper 002 claims (queries replaced by meaning, with an ε), beside `benchmarks.paper_002`."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from benchmarks.paper_002_figures import Results
from benchmarks.paper_002_text import SETTINGS, compared, number, over_one
from benchmarks.papers_rules import Claim, Paper, Stored, every_case, of_their_data, similar

COMMAND = "python -m benchmarks.paper_002"
claim = partial(Claim, command=COMMAND)
At = tuple[str, float]  # a method and its ε
READINGS = {"history": "ε for a history, ε/m for a query", "query": "ε for each query, mε for a history"}
FOURFOLD = 4.0
#: The paper's ordering, pair by pair: the smaller loss, the larger, and the signs that fit.
PAIRS = (("sqc2", "sqc1", "<"), ("sqc1", "none", "<≈"), ("none", "hbdp", "<"))


def paper(stored: Stored) -> Paper:
    """Read the lines and judge the claims."""
    results = Results.load(stored("paper-002"))
    return Paper(
        "002",
        "A Semantic-Preserving Differentially Private Method for Releasing Query Logs",
        {"The full page": "paper-002.md"},
        words(results),
        [log(results), nothing_lost(results), *orderings(results), *fourfold(results)],
    )


def words(results: Results) -> str:
    """Say in a few sentences what the paper does and what we saw."""
    flat = [number(results.value("A", "sqc2", "history", epsilon)) for epsilon in (1, 10)]
    each = [number(results.value("A", "sqc2", "query", epsilon)) for epsilon in (1, 10)]
    return f"""Each query is replaced by another one of similar meaning, drawn with differential privacy (our
[`dp-semantic`](../explanation/dp-semantic.md)); the loss is the divergence (JSD) of people's topics before
and after. The paper does not say whether its ε is for a history, as its proposition promises, or for each
query, so we ran both. From ε = 1 to 10 the loss of SQC2 in setting A goes from {flat[0]} to {flat[1]} with ε
for a history, and from {each[0]} to {each[1]} with ε for each query, which spends about a hundred times as
much."""


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
    found = [
        one["loss"]
        for one in results.lines.values()
        if one["setting"].startswith("D(q)=P") and not one["method"].startswith("hbdp")
    ]
    zero = [loss == 0 for loss in found]
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
            for epsilon in over_one(results)
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
    """Say how many times as much is lost with one method and ε as with another."""
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
