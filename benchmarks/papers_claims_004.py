"""What paper 004 claims (fakes that hide searches, an attack that learns), beside `benchmarks.paper_004`."""

from __future__ import annotations

from functools import partial

from benchmarks.paper_004_claims import FIRST, TABLE_4
from benchmarks.paper_004_results import FULL_DRAWS, FULL_FUNCTIONS, Mean, Results
from benchmarks.papers_rules import (
    Claim,
    Paper,
    Stored,
    among_first,
    among_first_if_fed,
    difference,
    of_their_data,
)

COMMAND = "python -m benchmarks.paper_004"
claim = partial(Claim, command=COMMAND)
SEARCHES = 73_984
#: Relations that compare pages, of which our log knows only those that were clicked on.
OF_PAGES = ("S_UrlTerms",)


def paper(stored: Stored) -> Paper:
    """Read the lines and judge the claims."""
    results = Results.load(stored("paper-004"))
    return Paper(
        "004",
        "Quantifying Web-Search Privacy",
        {"The full page": "paper-004.md"},
        words(results),
        [log(results), *features(results), *better(results)],
    )


def spelled(mean: Mean | None) -> str:
    """Spell a mean with its interval, or a dash where there is none."""
    return "–" if mean is None else str(mean)


def words(results: Results) -> str:
    """Say in a few sentences what the paper does and what we saw."""
    structure, worst = (results.apart("shadow", "tmn", number) for number in ("error", "worst"))
    return f"""Searches are hidden among fakes: phrases from feeds (TMN) or another person's searches (USR).
An attack learns on other people which two searches belong together, and sorts a trace into hers and the fakes
(our [`link-learned`](../explanation/link-learned.md)). Our own
[`shadow`](../explanation/obfuscation.md), a companion who searches when you do, protects better than TMN by
{spelled(structure)} in structure and by {spelled(worst)} in the worst case of topics (95 % intervals)."""


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
