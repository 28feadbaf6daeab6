"""Writes docs/papers/paper-003.md and its figures from the lines that `benchmarks.paper_003` measured."""

from __future__ import annotations

from pathlib import Path

from benchmarks import paper_003_figures as figures
from benchmarks import paper_003_text as text
from benchmarks.paper_000_page import table
from benchmarks.paper_001_page import filled
from benchmarks.paper_003_claims import FIGURES
from benchmarks.paper_003_figures import Results

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "papers" / "paper-003.md"
CAPTIONS = {
    "5.3": "Exposure (PEL) of the syntactic method beside 100/k",
    "5.4": "Information loss ratio (ILR) of the syntactic method",
    "5.5": "Rand and Jaccard indices of k-means before and after, over the number of groups",
    "5.6": "Both indices at k = 3 less those at k = 50",
    "5.7": "How often the ten commonest queries come, over k",
    "5.8": "How often the ten commonest words come, over k",
    "5.10": "Queries that are classified down to each level",
    "5.11": "What remains of people's categories (SRP), by level and k",
    "5.12": "Processor time of the topic method, with one category and with five",
    "5.13": "Information loss (IL): how unlike the groups of alike people are",
    "5.14": "How many of the ten commonest queries are kept",
    "5.15": "How many of the ten commonest categories are kept",
    "5.16": "Record linkage (RL) by queries",
    "5.17": "Record linkage (RL) by categories",
    "5.18": "Exposure (PEL) by queries",
    "5.19": "Exposure (PEL) by categories",
}
SECTIONS = {
    "## 5.3: by how queries look": ("5.3", "5.4", "5.5", "5.6", "5.7", "5.8"),
    "## 5.4: by topics": ("5.10", "5.11", "5.12"),
    "## 5.5: by meaning, beside all others": ("5.13", "5.14", "5.15", "5.16", "5.17", "5.18", "5.19"),
}


def shown(results: Results, number: str) -> str:
    """Show a figure, with the thesis's statements on it and whether they hold."""
    rows = [[claim.says, claim.here, claim.verdict] for claim in FIGURES[number](results)]
    parts = [
        f"**Figure {number}.** {CAPTIONS[number]}.",
        f"![Figure {number}: {CAPTIONS[number]}](figures-003/{figures.file_of(number)}.svg)",
        table(["the thesis says", "here", "verdict"], rows),
    ]
    if number in text.NOTES:
        parts.append(text.NOTES[number](results))
    return "\n\n".join(parts)


def pictures(results: Results) -> str:
    """Show all figures, section by section of the thesis."""
    return "\n\n".join(
        "\n\n".join([heading, *(shown(results, number) for number in numbers)])
        for heading, numbers in SECTIONS.items()
    )


def made(results: Results) -> str:
    """Write the page."""
    parts = (
        text.opening, text.found, text.methods, pictures, text.what_removals_remove, text.ours, text.again
    )  # fmt: skip
    return filled("\n\n".join(part(results) for part in parts)) + "\n"


def write(path: Path) -> None:
    """Draw and write the page; a quick run's goes to the folder `build`."""
    results = Results.load(path)
    page = PAGE if path.stem == "paper-003" else ROOT / "build" / path.stem / PAGE.name
    figures.draw(results, page.parent / "figures-003")
    page.write_text(made(results))
    print(f"wrote {page.relative_to(ROOT)} and its figures")
