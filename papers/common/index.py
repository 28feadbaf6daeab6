"""The page `docs/papers/index.md`: every headline claim of the five papers with its verdict."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from papers.common.render import blocks, environment, fill, page_name, table
from papers.common.verdicts import BOLD, IN_INDEX, RULES, Claim, Verdict

#: The studies, by the names of their packages; the index has a section for each paper.
STUDIES = ("p000", "p001", "p002", "p003", "p003_crowd", "p004")
PAPERS = ("p000", "p001", "p002", "p003", "p004")
WORDS = tuple(dict.fromkeys(IN_INDEX.values()))
#: Returns the file with the stored lines of a study, by its name.
Stored = Callable[[str], Path]


@dataclass(frozen=True)
class Paper:
    """One paper: what it does and what we measured in a few sentences, its pages by label, its claims."""

    number: str
    title: str
    pages: dict[str, str]
    summary: str
    claims: list[Claim]

    @property
    def heading(self) -> str:
        """Heading of the section."""
        return f"Paper {self.number}: {self.title}"

    @property
    def anchor(self) -> str:
        """Address of the section within the page."""
        kept = (c for c in self.heading.lower() if c.isalnum() or c in "- ")
        return "".join(kept).replace(" ", "-")

    @property
    def links(self) -> str:
        """Links to the paper's pages."""
        return " · ".join(f"[{label}]({page}.md)" for label, page in self.pages.items())


def paper(study: str, stored: Stored) -> Paper:
    """Judge the headline claims of one paper from the stored lines."""
    module = import_module(f"papers.{study}.claims")
    results = module.load(stored)
    summary = environment().get_template(f"{study}/summary.md.j2").render(module.summary(results))
    pages = {label: page_name(page) for label, page in module.PAGES.items()}
    return Paper(study[1:4], module.TITLE, pages, summary, module.headline(results))


def papers(stored: Stored) -> list[Paper]:
    """Judge the headline claims of all papers."""
    return [paper(study, stored) for study in PAPERS]


def counts(claims: list[Claim]) -> list[str]:
    """Return the number of claims, and of each verdict."""
    found = Counter(claim.judged.in_index for claim in claims)
    return [str(len(claims)), *(str(found[word]) for word in WORDS)]


def opening(found: list[Paper]) -> dict[str, Any]:
    """Count the verdicts."""
    every = [claim for one in found for claim in one.claims]
    rows = [[f"[{one.number}](#{one.anchor})", *counts(one.claims)] for one in found]
    refuted = [claim.says for claim in every if claim.judged.verdict is Verdict.REFUTED]
    return {"rows": [*rows, ["all", *counts(every)]], "refuted": refuted}


def row(claim: Claim) -> list[str]:
    """Return the cells of one claim."""
    word = claim.judged.in_index
    shown = f"**{word}**" if word in BOLD else word
    return [claim.says, claim.paper, claim.here, shown, claim.judged.rule, claim.why, f"`{claim.command}`"]


def claim_table(one: Paper) -> str:
    """Return the table of a paper's claims."""
    head = ["claim", "paper", "here", "verdict", "rule", "why", "command"]
    return table(head, map(row, one.claims), numbers=False)


def rules(found: list[Paper]) -> dict[str, Any]:
    """List the rules with their docstrings."""
    return {"rules": {name: " ".join((rule.__doc__ or "").split()) for name, rule in RULES.items()}}


def text(found: list[Paper], quick: bool = False) -> str:
    """Return the page."""
    module = sys.modules[__name__]
    return fill(blocks("common/index.md.j2", module, found, quick=quick)) + "\n"
