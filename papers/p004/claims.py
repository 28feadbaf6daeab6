"""Claims of paper 004 (fakes that hide searches, an attack that learns) beside our figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from papers.common.index import Stored
from papers.common.render import near, percent
from papers.common.verdicts import (
    Claim,
    among_first,
    among_first_if_fed,
    checked,
    difference,
    of_their_data,
    stated,
)
from papers.p004.results import FULL_DRAWS, FULL_FUNCTIONS, OURS, PROPOSED, Floats, Mean, Results

claim = partial(stated, study="p004")
TITLE = "Quantifying Web-Search Privacy"
PAGES = {"The full page": "p004"}
SEARCHES = 73_984
#: Relations that compare pages, of which our log knows only those that were clicked on.
OF_PAGES = ("S_UrlTerms",)
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


def differs(says: str, mean: Mean | None) -> Claim:
    """Return a claim about a difference, judged by its interval."""
    return Claim(says, spelled(mean), difference(mean))


def spelled(mean: Mean | None) -> str:
    """Return a mean with its interval, or a dash where there is none."""
    return "–" if mean is None else str(mean)


def ranked(results: Results, method: str, paper: dict[str, int]) -> list[Claim]:
    """Set the order of our relations beside the paper's."""
    ours = results.importances(method)
    names, theirs = list(ours), list(paper)
    first = names[:FIRST]
    among = [name in first for name in theirs[:FIRST]] if ours else []
    rank = rank_correlation([paper[name] for name in paper], [ours[name] for name in paper]) if ours else None
    return [
        checked(f"{theirs[0]} is first", names[0] if ours else "–", [names[0] == theirs[0]] if ours else []),
        checked(
            f"the first four are {', '.join(theirs[:FIRST])} (in any order)", ", ".join(first) or "–", among
        ),
        checked(
            "the order of all 16 that the paper lists is like ours (rank correlation of 0.5 or more)",
            "–" if rank is None else f"{rank:.2f}",
            [] if rank is None else [rank >= 0.5],
        ),
    ]


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's rank correlation; equals share their ranks."""
    ranks = [_ranks(np.asarray(values, np.float64)) for values in (first, second)]
    if any(rank.std() == 0 for rank in ranks):
        return 0.0
    return float(np.corrcoef(*ranks)[0, 1])


def _ranks(values: Floats) -> Floats:
    below, most = (np.searchsorted(np.sort(values), values, side) for side in ("left", "right"))
    return np.asarray((below + most - 1) / 2)


def table_4(results: Results) -> list[Claim]:
    """Check what the functions against `usr` go by."""
    ours = results.importances("usr")
    second = list(ours.values())[1] if ours else 0.0
    return [
        *ranked(results, "usr", TABLE_4),
        checked(
            "time tells by far most: nothing else has half as much",
            f"the second has {second:.0f}" if ours else "–",
            [second < 50 and next(iter(ours)) == "D_Time"] if ours else [],
        ),
    ]


def table_5(results: Results) -> list[Claim]:
    """Check what the functions against `tmn` go by, and how that differs from `usr`."""
    tmn, usr = results.importances("tmn"), results.importances("usr")
    both = bool(tmn and usr)
    rises = [tmn[name] > usr[name] for name in RISES] if both else []
    falls = [tmn[name] < usr[name] for name in FALLS] if both else []
    shown = [f"{sum(found)} of {len(found)}" if both else "–" for found in (rises, falls)]
    return [
        *ranked(results, "tmn", TABLE_5),
        checked(f"more telling than against USR: {', '.join(RISES)}", shown[0], rises),
        checked(f"less telling than against USR: {', '.join(FALLS)}", shown[1], falls),
    ]


def aggregated(results: Results) -> list[Claim]:
    """Check section 5.1: whether functions do better together."""
    cases = [np.mean(np.array(line["each"]) > line["median"]) >= THIRDS for line in results.part("alone")]
    share = float(np.mean(cases)) if cases else None
    means = [line["mean"] - line["median"] for line in results.part("alone")]
    return [
        checked(
            f"in {percent(IN_CASES, 0)} of the cases the median does better than two thirds of the single"
            " functions (within a quarter)",
            "–" if share is None else f"{percent(share, 0)} of {len(cases)}",
            [] if share is None else [near(share, IN_CASES)],
        ),
        differs("the median is the better choice than the mean (error, mean less median)",
             Mean.of(np.array(means, np.float64))),
    ]  # fmt: skip


def over_deciles(results: Results, says: str, number: str) -> Claim:
    """Compare `tmn` and `usr` at each decile of people."""
    tmn, usr = (results.quantiles(method, number, DECILES) for method in ("tmn", "usr"))
    if tmn is None or usr is None:
        return checked(says, "–", [])
    above = (tmn > usr).tolist()
    return checked(says, f"at {sum(above)} of {len(above)} deciles", above)


def figure_2(results: Results) -> list[Claim]:
    """Check structure privacy: errors over pairs."""
    gaps = [results.quantiles(method, "relative error", DECILES[[0, 4, 8]]) for method in ("tmn", "usr")]
    gap = None if gaps[0] is None or gaps[1] is None else (gaps[0] - gaps[1]).tolist()
    return [
        differs("TMN protects structure better than USR (error, TMN less USR)",
             results.apart("tmn", "usr", "error")),
        differs("… in false negatives", results.apart("tmn", "usr", "false negatives")),
        differs("… in false positives", results.apart("tmn", "usr", "false positives")),
        over_deciles(results, "… across all users", "error"),
        differs("TMN's relative privacy is better (error, TMN less USR)",
             results.apart("tmn", "usr", "relative error")),
        over_deciles(results, "… across all users", "relative error"),
        checked("the gap grows from the 1st to the 5th and the 9th decile of users",
              "–" if gap is None else " … ".join(f"{one:.3f}" for one in gap),
              [] if gap is None else [a < b for a, b in pairwise(gap)]),
    ]  # fmt: skip


def figure_3(results: Results) -> list[Claim]:
    """Check semantic privacy: how unlike hers the clusters' topics are."""
    tmn, usr = (results.quantiles(method, "mean", PERCENTILES) for method in ("tmn", "usr"))
    better = None if tmn is None or usr is None else float(np.mean(usr > tmn))
    return [
        differs("TMN has the better worst case (TMN less USR)", results.apart("tmn", "usr", "worst")),
        over_deciles(results, "… across all users", "worst"),
        checked("over both clusters USR is better, for about 90 % of the users (within 5 points)",
              percent(better, 0),
              [] if better is None else [abs(better - BETTER_MEAN) <= ABOUT]),
        differs("… on average (mean over clusters, USR less TMN)", results.apart("usr", "tmn", "mean")),
        *(broken(results, method) for method in ("tmn", "usr")),
    ]  # fmt: skip


def broken(results: Results, method: str) -> Claim:
    """Check whether the attack breaks the privacy of most users."""
    found = {number: results.values(method, number) for number in ("error", "worst")}
    shares = {number: float(np.mean(values < BROKEN)) for number, values in found.items() if values.size}
    return checked(
        f"{method.upper()}: most users' privacy is broken, in structure and above all in topics"
        f" (below {BROKEN})",
        ", ".join(f"{number} {percent(share, 0)}" for number, share in shares.items()) or "–",
        [share > 0.5 for share in shares.values()],
    )


def figure_4(results: Results) -> list[Claim]:
    """Check the appendix: from how many people the attacker learns."""
    found: list[Claim] = []
    for method in ("tmn", "usr"):
        sized = results.sized(method)
        checks, most = [], 0.0
        if len(sized) > 1:
            middles = np.array([np.quantile(values, [0.05, 0.5, 0.95], axis=0) for values in sized.values()])
            moves = np.ptp(middles, axis=0)
            checks, most = (moves <= STEADY).ravel().tolist(), float(moves.max())
        found.append(
            checked(f"{method.upper()}: percentiles 5, 50 and 95 do not change with the people learned from"
                  f" (both errors; by {STEADY} at most)", f"by {most:.3f} at most" if checks else "–", checks)
        )  # fmt: skip
    return found


def proposed(results: Results) -> list[Claim]:
    """Check section 5.2's proposal: another person's queries, sent by a machine."""
    return [
        differs(f"a hybrid is harder to split than {other.upper()} (error, hybrid less {other.upper()})",
             results.apart(PROPOSED, other, "error"))
        for other in ("usr", "tmn")
    ]  # fmt: skip


def ours(results: Results) -> list[Claim]:
    """Check what we aimed at: `shadow` above both, in structure and in the worst case."""
    return [
        differs(f"`{OURS}` protects better than `{other}` in {words} (`{OURS}` less `{other}`)",
             results.apart(OURS, other, number))
        for number, words in (("error", "structure"), ("worst", "the worst case of topics"))
        for other in ("tmn", "usr")
    ]  # fmt: skip


#: Under which heading each statement stands.
TABLES: dict[str, Callable[[Results], list[Claim]]] = {
    "Table 4": table_4,
    "Table 5": table_5,
    "Section 5.1: many functions together": aggregated,
    "Figure 2: structure": figure_2,
    "Figure 3: topics": figure_3,
    "Figure 4: people learned from": figure_4,
    "Section 5.2: a hybrid": proposed,
}


def all_claims(results: Results) -> list[Claim]:
    """Return the claims on all tables and figures."""
    return [claim for claims in TABLES.values() for claim in claims(results)]


def load(stored: Stored) -> Results:
    """Read the lines."""
    return Results.load(stored("p004"))


def summary(results: Results) -> dict[str, Any]:
    """Return the figures of the summary."""
    return {
        name: results.apart("shadow", "tmn", number)
        for name, number in (("structure", "error"), ("worst", "worst"))
    }


def headline(results: Results) -> list[Claim]:
    """Judge the headline claims."""
    return [log(results), *features(results), *better(results)]


def log(results: Results) -> Claim:
    """Table 1."""
    about = results.about
    return claim(
        "100 users with 73,984 queries", f"{SEARCHES:,}",
        f"{about['searches']:,} of {about['users']} people", of_their_data(),
        "Made up; people as active as those are rarer in ours.",
    )  # fmt: skip


def features(results: Results) -> list[Claim]:
    """Table 4: what the functions go by, against USR."""
    ranks = list(results.importances("usr"))
    pages = (
        "The paper looked up eight pages for every query. A made-up log has an address only where somebody "
        "clicked, so that there is little to compare."
    )
    found = []
    for place, name in enumerate(list(TABLE_4)[:FIRST], 1):
        ours = ranks.index(name) + 1 if name in ranks else None
        first = 1 if place == 1 else FIRST
        words = "is the first" if first == 1 else f"is among the first {FIRST}"
        ahead = ", ".join(f"`{one}`" for one in ranks[: (ours or 1) - 1])
        why = f"Before it here: {ahead}." if ahead else "As in the paper."
        rule = among_first_if_fed if name in OF_PAGES else among_first
        found.append(
            claim(f"`{name}` {words} of the features", f"place {place}",
                  "–" if ours is None else f"place {ours}", rule(ours, first),
                  pages if name in OF_PAGES else why)
        )  # fmt: skip
    return found


def better(results: Results) -> list[Claim]:
    """Figures 2 and 3."""
    structure, worst = (results.apart("tmn", "usr", number) for number in ("error", "worst"))
    whole = [results.unsorted(method) for method in ("tmn", "usr")]
    before = " and ".join(f"{one.value:.3f}" if one else "–" for one in whole)
    cost = results.about["functions"], results.draws()
    return [
        claim("TMN protects structure better than USR (error, TMN less USR)", "better", spelled(structure),
              difference(structure),
              f"{cost[0]} linkage functions here, {FULL_FUNCTIONS} in the paper; draws of fakes: {cost[1]} "
              f"and {FULL_DRAWS}."),
        claim("TMN protects better in the worst case of topics (TMN less USR)", "better", spelled(worst),
              difference(worst),
              f"Before any attack the whole traces are {before} (TMN, USR) off in topics: the phrases of our "
              "made-up newspaper hide topics less than another person does."),
    ]  # fmt: skip
