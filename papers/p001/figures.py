"""Figures of paper 001."""

from __future__ import annotations

from pathlib import Path

from papers.common.figures import FigureFolder
from papers.p001.results import KS, Results, paper_5, paper_gaps

#: Colours for colour-blind readers (Okabe and Ito, Tol); markers and lines differ too.
LOOKS = {
    "random": ("#000000", "x", ":"),
    "fis": ("#999999", "d", "--"),
    "distinct": ("#882255", "v", "--"),
    "logsize": ("#0072B2", "o", "-"),
    "users": ("#56B4E9", "s", "--"),
    "bid": ("#D55E00", "^", "-"),
    "clicks": ("#009E73", "P", "-"),
    "impressions": ("#CC79A7", "*", "--"),
    "revenue": ("#E69F00", "D", "-"),
}


def by_target(folder: FigureFolder, results: Results, column: str, m: int, name: str, label: str) -> None:
    """Figures 1 and 2: what each target keeps of a column, over k, and what the paper's tables say."""
    figure, rows = folder.subplots(1, 7.2, 4.0)
    axes = rows[0][0]
    for target, (colour, marker, line) in LOOKS.items():
        found = [(k, value) for k in KS if (value := results.kept(target, column, k, m)) is not None]
        if found:
            axes.plot(*zip(*found, strict=True), ls=line, marker=marker, ms=5, color=colour, label=target)
    for title, line, points in (
        ("paper, best", "-", paper_curve(column, m, None)),
        ("paper, fis", "--", paper_curve(column, m, 2)),
        ("paper, worst target", "-.", paper_curve(column, m, 1)),
        ("paper, random", ":", paper_curve(column, m, 0)),
    ):
        axes.plot(*zip(*points, strict=True), ls=line, lw=2.5, alpha=0.35, color="#000000", label=title)
    axes.set(xscale="log", xlabel="k", ylabel=label, title=f"m = {m}", ylim=(0, None))
    axes.set_xticks(KS, labels=[str(k) for k in KS])
    axes.minorticks_off()
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right center", fontsize=7, handlelength=4)
    folder.save(figure, name)


def paper_curve(column: str, m: int, gap: int | None) -> list[tuple[int, float]]:
    """Return the paper's best of a column over k, or what lies a printed gap below it."""
    found = []
    for k in KS:
        best, gaps = paper_5(column, k, m), paper_gaps(column, k, m)
        if best is not None and gaps is not None:
            found.append((k, best - (gaps[gap] if gap is not None else 0)))
    return found


def draw(results: Results, path: Path) -> None:
    """Draw every figure."""
    folder = FigureFolder(path)
    by_target(folder, results, "logsize", 3, "figure-1", "log size kept (%)")
    by_target(folder, results, "clicks", 3, "figure-2", "estimated clicks kept (%)")
