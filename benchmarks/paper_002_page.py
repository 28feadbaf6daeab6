"""Writes docs/papers/paper-002.md and its figures from the lines that `benchmarks.paper_002` measured."""

from __future__ import annotations

from pathlib import Path

from benchmarks import paper_002_figures as figures
from benchmarks import paper_002_more as more
from benchmarks import paper_002_text as text
from benchmarks.paper_000_page import table
from benchmarks.paper_001_page import filled
from benchmarks.paper_002_figures import NUMBERS, Results
from benchmarks.paper_002_text import SETTINGS, number, ordering, over_one

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "papers" / "paper-002.md"
HEAD = ["ε", "SQC2, ε/m", "SQC1, ε/m", "NSQC, ε/m", "SQC2, ε each", "SQC1, ε each", "NSQC, ε each", "HBDP, ε",
        "HBDP, mε"]  # fmt: skip


def losses(results: Results, setting: str, column: str = "loss") -> str:
    """Write the utility loss of a setting for every ε and method."""
    rows = []
    for epsilon in results.epsilons(setting, "sqc1", "history"):
        cells = [
            number(results.value(setting, method, per, epsilon, column=column))
            for per in ("history", "query")
            for method in ("sqc2", "sqc1", "none")
        ]
        cells += [
            number(results.value(setting, one, "", epsilon, column=column)) for one in ("hbdp", "hbdp equal")
        ]
        rows.append([f"{epsilon:g}", *cells])
    return table(HEAD, rows)


def pictures(results: Results) -> str:
    """Show Figures 2 to 4, each with its table."""
    words = {
        "A": "**Setting A** (Figure 2): a query is replaced within its one of four topics; profiles have 19.",
        "B": "**Setting B** (Figure 3): it is replaced by anything below *Abstraction*; profiles have 19.",
        "C": "**Setting C** (Figure 4): anything below *Abstraction*; profiles have 4. Both axes are log.",
    }
    parts = ["## Figures 2, 3 and 4", text.legend(results)]
    for figure, (setting, _) in NUMBERS.items():
        picture = (
            f"![Figure {figure}: utility loss over ε, setting {setting}](figures-002/figure-{figure}.svg)"
        )
        parts += [words[setting], picture, losses(results, setting)]
    return "\n\n".join(parts)


def orderings(results: Results) -> str:
    """Write who is better than whom, for every setting and reading above ε = 1."""
    rows = []
    for setting in SETTINGS:
        for per, words in (("history", "ε/m"), ("query", "ε each")):
            cells = [ordering(results, setting, per, epsilon) for epsilon in over_one(results)]
            rows.append([f"{setting}, {words}", *cells])
    head = ["", *(f"ε = {epsilon:g}" for epsilon in over_one(results))]
    return f"""## The ordering for ε > 1

The paper finds SQC2 < SQC1 ≲ NSQC < HBDP in every setting. Ours, where `≈` means that the two differ by less
than three standard errors of the draws:

{table(head, rows)}

{text.ordered(results)}"""


def write(path: Path) -> None:
    """Draw and write the page; a quick run's goes to the folder `build`."""
    results = Results.load(path)
    page = PAGE if path.stem == "paper-002" else ROOT / "build" / path.stem / PAGE.name
    figures.draw(results, page.parent / "figures-002")
    parts = (
        text.opening, text.found, pictures, orderings, text.claims, more.why, more.where, more.unlisted,
        more.histograms, more.composed, more.logs, more.again,
    )  # fmt: skip
    page.write_text(filled("\n\n".join(part(results) for part in parts)) + "\n")
    print(f"wrote {page.relative_to(ROOT)} and its figures")
