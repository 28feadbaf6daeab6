"""What paper 001 claims ((k,m)-anonymity by deleting terms), beside the lines of `benchmarks.paper_001`."""

from __future__ import annotations

from functools import partial

from benchmarks.paper_001_figures import (
    COLUMNS,
    PAPER_FIRST,
    PAPER_LOG,
    PAPER_TABLE_3,
    Results,
    at,
    greedy_lines,
    number,
    paper_5,
    spelled,
)
from benchmarks.papers_rules import Claim, Paper, Stored, close, of_their_data, similar

COMMAND = "python -m benchmarks.paper_001"
claim = partial(Claim, command=COMMAND)
#: The two settings of the headline, and the two whose first iteration is timed there; m and k.
SHARES, TIMED = ((2, 2), (3, 100)), ((2, 2), (3, 2))
#: Seconds of the paper's first iteration, as in `PAPER_FIRST`.
FIRST_SECONDS = {(2, 2): 10_558, (3, 2): 324_504}


def paper(stored: Stored) -> Paper:
    """Read the lines and judge the claims."""
    results = Results.load(stored("paper-001"), [])
    return Paper(
        "001",
        "Anonymous Search Histories Featuring Personalized Advertisement",
        {"The full page": "paper-001.md"},
        words(results),
        [*log(results), *(one for m, k in SHARES for one in shares(results, m, k)), *times(results)],
    )


def words(results: Results) -> str:
    """Say in a few sentences what the paper does and what we saw."""
    checked = [one["holds"] for one in results.lines.values() if "holds" in one]
    least, most = (results.best("logsize", k, m) for m, k in ((3, 100), (2, 2)))
    return f"""Terms are deleted until every combination of up to m terms that a history holds is in k
histories, and the order of deletion spares what advertising lives on (our [`km`](../explanation/km.md)). An
audit that shares no code with it finds the promise kept in {sum(checked)} of {len(checked)} releases. What
is left, {number(least)} % of the log at m=3, k=100 and {number(most)} % at m=2, k=2, depends on the log; the
paper's shares are set beside those of our made-up one, whose frequent terms hold more of it."""


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
        slowest = max((one["seconds"] for one in greedy_lines(results, m, k)), default=None)
        paper = FIRST_SECONDS[m, k]
        faster = "" if slowest is None else f" The paper's takes {paper / slowest:,.0f} times as long."
        found.append(
            claim(f"the first iteration takes {PAPER_FIRST[m, k]} ({at(m, k)})", PAPER_FIRST[m, k],
                  "–" if slowest is None else f"{slowest:.1f} s (whole run, slowest target)",
                  similar(slowest, paper),
                  f"The paper has a database on an Opteron 2218; ours is compiled code.{faster}")
        )  # fmt: skip
    return found
