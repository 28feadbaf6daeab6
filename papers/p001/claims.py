"""Headline claims of paper 001 ((k,m)-anonymity by deleting terms) beside our figures."""

from __future__ import annotations

from functools import partial
from typing import Any

from papers.common.index import Stored
from papers.common.verdicts import Claim, close, of_their_data, similar, stated
from papers.p001.page import at, number, spelled
from papers.p001.results import COLUMNS, PAPER_FIRST, PAPER_LOG, PAPER_TABLE_3, Results, paper_5

claim = partial(stated, study="p001")
TITLE = "Anonymous Search Histories Featuring Personalized Advertisement"
PAGES = {"The full page": "p001"}
#: The two settings of the headline, and the two whose first iteration is timed there; m and k.
SHARES, TIMED = ((2, 2), (3, 100)), ((2, 2), (3, 2))
#: Seconds of the paper's first iteration, as in `PAPER_FIRST`.
FIRST_SECONDS = {(2, 2): 10_558, (3, 2): 324_504}


def load(stored: Stored) -> Results:
    """Read the lines."""
    return Results.load(stored("p001"))


def summary(results: Results) -> dict[str, Any]:
    """Return the figures of the summary."""
    return {
        "checked": [one["holds"] for one in results.lines.values() if "holds" in one],
        "least": results.best("logsize", 100, 3),
        "most": results.best("logsize", 2, 2),
    }


def headline(results: Results) -> list[Claim]:
    """Judge the headline claims."""
    return [*log(results), *(one for m, k in SHARES for one in shares(results, m, k)), *times(results)]


def log(results: Results) -> list[Claim]:
    """The log of section 5.1."""
    about, paper = results.about, PAPER_LOG
    return [
        claim("367,803 users", f"{paper['users']:,}", f"{about['users']:,}", of_their_data(),
              "We made up as many."),
        claim("251,115 terms", f"{paper['terms']:,}", f"{about['terms']:,}", of_their_data(),
              "The words of our generator."),
        claim("5.5 million occurrences of terms", f"{paper['occurrences']:,}", f"{about['occurrences']:,}",
              of_their_data(), "The first searches of each made-up person, about one day's."),
    ]  # fmt: skip


def shares(results: Results, m: int, k: int) -> list[Claim]:
    """Table 5: what the best target keeps of each column."""
    found = []
    correlations = results.about["correlations"]
    tied = "; ".join(
        f"with {name} {correlations[pair]:.3f}, paper {PAPER_TABLE_3[pair]:.3f}"
        for name in COLUMNS[4:]
        if (pair := f"term frq. / {name}") in correlations
    )
    each = [made["occurrences"] / made["terms"] for made in (results.about, PAPER_LOG)]
    why = {
        "distinct": f"A term occurs {each[0]:.1f} times on average here, {each[1]:.1f} times in the paper.",
        "logsize": "Frequent terms hold more of our log.",
        "users": "Where more frequent terms stay, fewer histories end up empty.",
        "bid": f"Our marketing figures are made up: what a term earns goes more with its frequency "
        f"(correlation {tied}), and frequent terms stay.",
    }
    for column in COLUMNS:
        paper, ours = paper_5(column, k, m), results.best(column, k, m)
        assert paper is not None
        digits = 2 if column == "distinct" else 0
        found.append(
            claim(f"{at(m, k)}: {spelled(column)}, {number(paper, digits)} % kept",
                  f"{number(paper, digits)} %", f"{number(ours, digits or 1)} %", close(ours, paper),
                  why.get(column, "As above."))
        )  # fmt: skip
    return found


def times(results: Results) -> list[Claim]:
    """Section 5.2: how long the first iteration takes."""
    found = []
    for m, k in TIMED:
        slowest = max((one["seconds"] for one in results.of_setting(m, k)), default=None)
        paper = FIRST_SECONDS[m, k]
        faster = "" if slowest is None else f" The paper's takes {paper / slowest:,.0f} times as long."
        found.append(
            claim(f"the first iteration takes {PAPER_FIRST[m, k]} ({at(m, k)})", PAPER_FIRST[m, k],
                  "–" if slowest is None else f"{slowest:.1f} s (whole run, slowest target)",
                  similar(slowest, paper),
                  f"The paper has a database on an Opteron 2218; ours is compiled code.{faster}")
        )  # fmt: skip
    return found
