"""Writes docs/papers/paper-003-crowd.md and its figures from the lines of `benchmarks.paper_003_crowd`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks import paper_003_crowd_figures as figures
from benchmarks import paper_003_crowd_tables as ours
from benchmarks import paper_003_crowd_text as text
from benchmarks.paper_001_page import filled
from benchmarks.paper_003_crowd_claims import TABLES, Results

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "papers" / "paper-003-crowd.md"
#: What stands under each heading, above the thesis's statements.
SHOWN: dict[str, tuple[tuple[Callable[[Results], str], ...], tuple[str, ...]]] = {
    "Table 4.1": ((ours.table_1,), ()),
    "Figure 4.1, Table 4.5": ((ours.table_5,), ("figure-4-1",)),
    "Table 4.2": ((ours.table_2,), ()),
    "Table 4.3": ((ours.table_3,), ()),
    "Table 4.4": ((ours.table_4,), ()),
    "Figure 4.2": ((), ("figure-4-2",)),
    "Figure 4.3": ((), ("figure-4-3",)),
    "4.7.3, usability": ((ours.response,), ()),
}


def picture(name: str) -> str:
    """Show a figure."""
    return f"![{figures.CAPTIONS[name]}](figures-003-crowd/{name}.svg)"


def tables(results: Results) -> str:
    """Show all tables and figures of the thesis, with its statements and whether they hold."""
    parts = ["## The thesis's tables and figures"]
    for heading, claims in TABLES.items():
        words, pictures = SHOWN[heading]
        parts += [f"### {heading}", *(part(results) for part in words), *map(picture, pictures)]
        parts.append(ours.compared(results, claims))
    return "\n\n".join(parts)


def made(results: Results) -> str:
    """Write the page."""
    parts = [
        text.opening(results),
        text.found(results),
        text.engine(results),
        picture("engine"),
        text.friends(results),
        picture("colluding"),
        text.readings(results),
        tables(results),
        text.choices(results),
        picture("hops"),
        *(part(results) for part in (text.sizes, text.ours, text.again)),
    ]
    return filled("\n\n".join(parts)) + "\n"


def write(path: Path) -> None:
    """Draw and write the page; a quick run's goes to the folder `build`."""
    results = Results.load(path)
    page = PAGE if path.stem == "paper-003-crowd" else ROOT / "build" / path.stem / PAGE.name
    figures.draw(results, page.parent / "figures-003-crowd")
    page.write_text(made(results))
    print(f"wrote {page.relative_to(ROOT)} and its figures")
