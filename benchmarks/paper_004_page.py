"""Writes docs/papers/paper-004.md and its figures from the lines of `benchmarks.paper_004`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks import paper_004_figures as figures
from benchmarks import paper_004_text as text
from benchmarks.__main__ import RESULTS
from benchmarks.paper_001_page import filled
from benchmarks.paper_004_claims import TABLES
from benchmarks.paper_004_results import Results

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "papers" / "paper-004.md"
#: What stands under each heading, above the paper's statements.
SHOWN: dict[str, tuple[Callable[[Results], str] | None, str | None]] = {
    "Table 4": (text.table_4, None),
    "Table 5": (text.table_5, None),
    "Section 5.1: many functions together": (text.together, None),
    "Figure 2: structure": (None, "figure-2"),
    "Figure 3: topics": (None, "figure-3"),
    "Figure 4: people learned from": (text.learned_from, "figure-4"),
    "Section 5.2: a hybrid": (None, None),
}


def picture(name: str) -> str:
    """Show a figure."""
    return f"![{figures.CAPTIONS[name]}](figures-004/{name}.svg)"


def tables(results: Results) -> str:
    """Show all tables and figures of the paper, with its statements and whether they hold."""
    parts = ["## The paper's tables and figures", text.table_1(results)]
    for heading, claims in TABLES.items():
        words, shown = SHOWN[heading]
        parts.append(f"### {heading}")
        parts += [words(results)] if words else []
        parts += [picture(shown)] if shown else []
        parts.append(text.compared(claims(results)))
    return "\n\n".join(parts)


def made(results: Results) -> str:
    """Write the page."""
    parts = [
        text.opening(results),
        text.found(results),
        text.shadow(results),
        picture("ours"),
        tables(results),
        text.numbers(results),
        text.what_is_ours(results),
    ]
    return filled("\n\n".join(parts)) + "\n"


def write(path: Path) -> None:
    """Draw and write the page; that of a quick run, or of another file, goes to the folder `build`."""
    results = Results.load(path)
    page = PAGE if path == RESULTS / "paper-004.jsonl" else ROOT / "build" / path.stem / PAGE.name
    figures.draw(results, page.parent / "figures-004")
    page.write_text(made(results))
    print(f"wrote {page.relative_to(ROOT)} and its figures")
