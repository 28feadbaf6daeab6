"""Writes docs/papers/index.md: every headline claim of the five papers with its verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from benchmarks import (
    papers_claims_000,
    papers_claims_001,
    papers_claims_002,
    papers_claims_003,
    papers_claims_004,
)
from benchmarks.paper_001_page import filled
from benchmarks.papers_rules import RULES, Claim, Paper, Stored, Verdict

MODULES = (papers_claims_000, papers_claims_001, papers_claims_002, papers_claims_003, papers_claims_004)
#: A verdict that a reader should not miss is printed bold.
LOUD = (Verdict.NOT_REPRODUCED, Verdict.REFUTED)


def papers(stored: Stored) -> list[Paper]:
    """Judge all claims from the stored lines."""
    return [module.paper(stored) for module in MODULES]


def grid(head: list[str], rows: Iterable[list[str]], numbers: bool = False) -> str:
    """Write a Markdown table of words, or of numbers behind a first column."""
    ruler = ["---", *["---:" if numbers else "---"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ruler, *rows])


def opening(found: list[Paper], quick: bool) -> str:
    """Say what this is, and count the verdicts."""
    counts = [Counter(claim.judged.verdict for claim in one.claims) for one in found]
    total = sum(counts, Counter())
    rows = [
        [f"[{one.number}](#{anchor(one)})", str(len(one.claims)), *(str(count[v]) for v in Verdict)]
        for one, count in zip(found, counts, strict=True)
    ]
    rows.append(["all", str(total.total()), *(str(total[verdict]) for verdict in Verdict)])
    refuted = [claim.says for one in found for claim in one.claims if claim.judged.verdict is Verdict.REFUTED]
    parts = [
        "<!-- Written by `python -m benchmarks.papers`; do not edit by hand. -->\n"
        "# The five papers, claim by claim",
        """QueryCloak builds on five papers. This page sets each of their headline claims beside what we
measured, with a verdict. Every figure and every verdict is computed from stored results;
[the rules](#how-verdicts-are-made) stand at the end. **No real log is used**: ours are made up, so
percentages need not be the papers'. What a paper says of its own log may still be true of it; *not
reproduced* says no more than that ours shows something else.""",
        grid(["paper", "claims", *(str(verdict) for verdict in Verdict)], rows, numbers=True),
    ]
    if quick:
        parts.insert(1, "**A quick run**: small logs and few settings, so that its verdicts say little.")
    if refuted:
        parts.append(
            "*Refuted* is said only of what a paper claims whatever the log, and what is false: "
            + "; ".join(f"“{says}”" for says in refuted)
            + "."
        )
    return "\n\n".join(parts)


def heading(one: Paper) -> str:
    """Name a paper's section."""
    return f"Paper {one.number}: {one.title}"


def anchor(one: Paper) -> str:
    """Give the address of a paper's section within the page."""
    kept = (c for c in heading(one).lower() if c.isalnum() or c in "- ")
    return "".join(kept).replace(" ", "-")


def row(claim: Claim) -> list[str]:
    """Write one claim."""
    verdict = claim.judged.verdict
    shown = f"**{verdict}**" if verdict in LOUD else str(verdict)
    return [claim.says, claim.paper, claim.here, shown, claim.judged.rule, claim.why, f"`{claim.command}`"]


def section(one: Paper, where: str) -> str:
    """Show a paper: a few sentences, where to read more, and its claims."""
    links = " · ".join(f"[{label}]({page_of(page, where)})" for label, page in one.pages.items())
    head = ["claim", "paper", "here", "verdict", "rule", "why", "command"]
    return f"## {heading(one)}\n\n{one.words}\n\n{links}\n\n{grid(head, map(row, one.claims))}"


def page_of(page: str, where: str) -> str:
    """Give the link to a full page; `where` names the folder of a quick run's, with `{}` for the study."""
    return where.format(page.removesuffix(".md").removesuffix("-tables")) + page


def rules() -> str:
    """Print the rules."""
    lines = [f"- *{name}*: {' '.join((rule.__doc__ or '').split())}" for name, rule in RULES.items()]
    return (
        "## How verdicts are made\n\n"
        + "\n\n".join(lines)
        + """

The limits of *close* and *similar* come from the full pages. All rules were written when the figures were
in sight, so that a verdict near its limit says little."""
    )


def again() -> str:
    """Say how to make the page again."""
    return """## How to see it again

```sh
make papers                                        # what is stored, and all pages: half a minute
.venv/bin/python -m benchmarks.papers --pages-only # measures nothing, whatever is missing
.venv/bin/python -m benchmarks.papers --quick      # small logs and few settings, pages into `build`
```

The command of a claim, with `.venv/bin/` before it, does the same for one study. A study measures what its
file in `benchmarks/results/` lacks: move that file away, and it measures all of it anew. The pages of
papers 002 to 004 say how long that took."""


def text(found: list[Paper], where: str = "") -> str:
    """Put the page together; `where` is where a quick run's full pages are."""
    parts = [opening(found, bool(where)), *(section(one, where) for one in found), rules(), again()]
    return filled("\n\n".join(parts)) + "\n"
