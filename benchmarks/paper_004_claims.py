"""What paper 004 says, and whether it is so in the lines that were measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from benchmarks.paper_000_page import percent
from benchmarks.paper_002_text import near
from benchmarks.paper_003_claims import Claim
from benchmarks.paper_004 import OURS, PROPOSED
from benchmarks.paper_004_results import Floats, Mean, Results

#: Tables 4 and 5: what the functions go by.
TABLE_4 = {
    "D_Time": 100, "D_QueryTermWeight": 24, "S_UrlTerms": 22, "D_EditDistance": 20, "S_LandPagTerms2": 17,
    "S_LandPagTerms1": 16, "S_LandPagTerms3": 15, "D_QueryCharacterLen": 13, "S_QueryTerms": 11,
    "D_QueryTermLen": 8, "D_TreeDistance": 7, "D_NumberClicks": 5, "S_SameDaytime": 4, "D_SpellingErrors": 4,
    "S_LandPagAdultTerms": 4, "S_SpellingError1": 1,
}  # fmt: skip
TABLE_5 = {
    "D_QueryTermWeight": 100, "D_Time": 56, "D_EditDistance": 32, "D_TreeDistance": 31, "S_LandPagTerms3": 26,
    "S_LandPagTerms1": 20, "S_LandPagTerms2": 19, "D_NumberClicks": 18, "D_QueryTermLen": 14,
    "S_UrlTerms": 12, "D_QueryCharacterLen": 10, "D_SpellingErrors": 7, "S_SpellingError1": 6,
    "S_Level2Cat": 4, "S_SpellingError2": 4, "S_LandPagAdultTerms": 4,
}  # fmt: skip
#: Relations that the paper's Table 5 has higher than Table 4, by half or more; and those that it has lower.
RISES = ("D_QueryTermWeight", "D_EditDistance", "D_TreeDistance", "S_LandPagTerms3", "D_NumberClicks",
         "D_QueryTermLen", "D_SpellingErrors", "S_SpellingError1")  # fmt: skip
FALLS = ("D_Time", "S_UrlTerms")
FIRST = 4
#: The median does better than two thirds of the functions, in this share of the cases.
THIRDS, IN_CASES = 2 / 3, 0.61
#: Share of users for whom `usr` has the better mean over clusters; how far off counts as about as many.
BETTER_MEAN, ABOUT = 0.9, 0.05
#: What changes less with the number of people learned from does not fluctuate.
STEADY = 0.05
#: Less than half of what chance would leave is called broken.
BROKEN = 0.25
DECILES = np.arange(0.1, 0.95, 0.1)
PERCENTILES = np.arange(0.01, 1.0, 0.01)


class Told(NamedTuple):
    """A statement about a difference, judged by its interval."""

    says: str
    difference: Mean | None

    @property
    def here(self) -> str:
        """Show the difference."""
        return "–" if self.difference is None else str(self.difference)

    @property
    def verdict(self) -> str:
        """Say whether the difference is above 0, below, or neither can be told."""
        if self.difference is None:
            return "not measured yet"
        if self.difference.low > 0:
            return "holds"
        return "**does not hold**" if self.difference.high < 0 else "cannot be told"


Statement = Claim | Told


def ranked(results: Results, method: str, paper: dict[str, int]) -> list[Statement]:
    """Set the order of our relations beside the paper's."""
    ours = results.importances(method)
    names, theirs = list(ours), list(paper)
    first = names[:FIRST]
    among = [name in first for name in theirs[:FIRST]] if ours else []
    rank = rank_correlation([paper[name] for name in paper], [ours[name] for name in paper]) if ours else None
    return [
        Claim(f"{theirs[0]} is first", names[0] if ours else "–", [names[0] == theirs[0]] if ours else []),
        Claim(
            f"the first four are {', '.join(theirs[:FIRST])} (in any order)", ", ".join(first) or "–", among
        ),
        Claim(
            "the order of all 16 that the paper lists is like ours (rank correlation of 0.5 or more)",
            "–" if rank is None else f"{rank:.2f}",
            [] if rank is None else [rank >= 0.5],
        ),
    ]


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Give Spearman's rank correlation; equals share their ranks."""
    ranks = [_ranks(np.asarray(values, np.float64)) for values in (first, second)]
    if any(rank.std() == 0 for rank in ranks):
        return 0.0
    return float(np.corrcoef(*ranks)[0, 1])


def _ranks(values: Floats) -> Floats:
    below, most = (np.searchsorted(np.sort(values), values, side) for side in ("left", "right"))
    return np.asarray((below + most - 1) / 2)


def table_4(results: Results) -> list[Statement]:
    """Check what the functions against `usr` go by."""
    ours = results.importances("usr")
    second = list(ours.values())[1] if ours else 0.0
    return [
        *ranked(results, "usr", TABLE_4),
        Claim(
            "time tells by far most: nothing else has half as much",
            f"the second has {second:.0f}" if ours else "–",
            [second < 50 and next(iter(ours)) == "D_Time"] if ours else [],
        ),
    ]


def table_5(results: Results) -> list[Statement]:
    """Check what the functions against `tmn` go by, and how that differs from `usr`."""
    tmn, usr = results.importances("tmn"), results.importances("usr")
    both = bool(tmn and usr)
    rises = [tmn[name] > usr[name] for name in RISES] if both else []
    falls = [tmn[name] < usr[name] for name in FALLS] if both else []
    shown = [f"{sum(found)} of {len(found)}" if both else "–" for found in (rises, falls)]
    return [
        *ranked(results, "tmn", TABLE_5),
        Claim(f"more telling than against USR: {', '.join(RISES)}", shown[0], rises),
        Claim(f"less telling than against USR: {', '.join(FALLS)}", shown[1], falls),
    ]


def aggregated(results: Results) -> list[Statement]:
    """Check section 5.1: whether functions do better together."""
    cases = [np.mean(np.array(line["each"]) > line["median"]) >= THIRDS for line in results.part("alone")]
    share = float(np.mean(cases)) if cases else None
    means = [line["mean"] - line["median"] for line in results.part("alone")]
    return [
        Claim(
            f"in {percent(IN_CASES, 0)} of the cases the median does better than two thirds of the single"
            " functions (within a quarter)",
            "–" if share is None else f"{percent(share, 0)} of {len(cases)}",
            [] if share is None else [near(share, IN_CASES)],
        ),
        Told("the median is the better choice than the mean (error, mean less median)",
             Mean.of(np.array(means, np.float64))),
    ]  # fmt: skip


def over_deciles(results: Results, says: str, number: str) -> Claim:
    """Compare `tmn` and `usr` at each decile of people."""
    tmn, usr = (results.quantiles(method, number, DECILES) for method in ("tmn", "usr"))
    if tmn is None or usr is None:
        return Claim(says, "–", [])
    above = (tmn > usr).tolist()
    return Claim(says, f"at {sum(above)} of {len(above)} deciles", above)


def figure_2(results: Results) -> list[Statement]:
    """Check structure privacy: errors over pairs."""
    gaps = [results.quantiles(method, "relative error", DECILES[[0, 4, 8]]) for method in ("tmn", "usr")]
    gap = None if gaps[0] is None or gaps[1] is None else (gaps[0] - gaps[1]).tolist()
    return [
        Told("TMN protects structure better than USR (error, TMN less USR)",
             results.apart("tmn", "usr", "error")),
        Told("… in false negatives", results.apart("tmn", "usr", "false negatives")),
        Told("… in false positives", results.apart("tmn", "usr", "false positives")),
        over_deciles(results, "… across all users", "error"),
        Told("TMN's relative privacy is better (error, TMN less USR)",
             results.apart("tmn", "usr", "relative error")),
        over_deciles(results, "… across all users", "relative error"),
        Claim("the gap grows from the 1st to the 5th and the 9th decile of users",
              "–" if gap is None else " … ".join(f"{one:.3f}" for one in gap),
              [] if gap is None else [a < b for a, b in pairwise(gap)]),
    ]  # fmt: skip


def figure_3(results: Results) -> list[Statement]:
    """Check semantic privacy: how unlike hers the clusters' topics are."""
    tmn, usr = (results.quantiles(method, "mean", PERCENTILES) for method in ("tmn", "usr"))
    better = None if tmn is None or usr is None else float(np.mean(usr > tmn))
    return [
        Told("TMN has the better worst case (TMN less USR)", results.apart("tmn", "usr", "worst")),
        over_deciles(results, "… across all users", "worst"),
        Claim("over both clusters USR is better, for about 90 % of the users (within 5 points)",
              percent(better, 0),
              [] if better is None else [abs(better - BETTER_MEAN) <= ABOUT]),
        Told("… on average (mean over clusters, USR less TMN)", results.apart("usr", "tmn", "mean")),
        *(broken(results, method) for method in ("tmn", "usr")),
    ]  # fmt: skip


def broken(results: Results, method: str) -> Claim:
    """Check whether the attack breaks the privacy of most users."""
    found = {number: results.values(method, number) for number in ("error", "worst")}
    shares = {number: float(np.mean(values < BROKEN)) for number, values in found.items() if values.size}
    return Claim(
        f"{method.upper()}: most users' privacy is broken, in structure and above all in topics"
        f" (below {BROKEN})",
        ", ".join(f"{number} {percent(share, 0)}" for number, share in shares.items()) or "–",
        [share > 0.5 for share in shares.values()],
    )


def figure_4(results: Results) -> list[Statement]:
    """Check the appendix: from how many people the attacker learns."""
    found: list[Statement] = []
    for method in ("tmn", "usr"):
        sized = results.sized(method)
        checks, most = [], 0.0
        if len(sized) > 1:
            middles = np.array([np.quantile(values, [0.05, 0.5, 0.95], axis=0) for values in sized.values()])
            moves = np.ptp(middles, axis=0)
            checks, most = (moves <= STEADY).ravel().tolist(), float(moves.max())
        found.append(
            Claim(f"{method.upper()}: percentiles 5, 50 and 95 do not change with the people learned from"
                  f" (both errors; by {STEADY} at most)", f"by {most:.3f} at most" if checks else "–", checks)
        )  # fmt: skip
    return found


def proposed(results: Results) -> list[Statement]:
    """Check section 5.2's proposal: another person's queries, sent by a machine."""
    return [
        Told(f"a hybrid is harder to split than {other.upper()} (error, hybrid less {other.upper()})",
             results.apart(PROPOSED, other, "error"))
        for other in ("usr", "tmn")
    ]  # fmt: skip


def ours(results: Results) -> list[Statement]:
    """Check what we aimed at: `shadow` above both, in structure and in the worst case."""
    return [
        Told(f"`{OURS}` protects better than `{other}` in {words} (`{OURS}` less `{other}`)",
             results.apart(OURS, other, number))
        for number, words in (("error", "structure"), ("worst", "the worst case of topics"))
        for other in ("tmn", "usr")
    ]  # fmt: skip


#: Under which heading each statement stands.
TABLES: dict[str, Callable[[Results], list[Statement]]] = {
    "Table 4": table_4,
    "Table 5": table_5,
    "Section 5.1: many functions together": aggregated,
    "Figure 2: structure": figure_2,
    "Figure 3: topics": figure_3,
    "Figure 4: people learned from": figure_4,
    "Section 5.2: a hybrid": proposed,
}


def counted(results: Results) -> dict[str, int]:
    """Count the verdicts of all statements of the paper."""
    counts = {
        "holds": 0, "in part": 0, "**does not hold**": 0, "cannot be told": 0, "not measured yet": 0
    }  # fmt: skip
    for claims in TABLES.values():
        for claim in claims(results):
            counts[claim.verdict.partition(" (")[0]] += 1
    return counts
