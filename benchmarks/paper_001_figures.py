"""Paper 001's numbers, the lines that `benchmarks.paper_001` measured, and both side by side."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.paper_000_figures import Pen
from benchmarks.paper_000_page import LARGEST_FIGURE, table
from querycloak.synthetic.marketing import NO_CLICKS

KS, MS = (2, 5, 10, 20, 40, 100), (2, 3)
COLUMNS = ("distinct", "logsize", "users", "bid", "clicks", "impressions", "revenue")
GENERIC, SPECIFIC = COLUMNS[:3], COLUMNS[3:]
#: What the paper aims at; it has no target for distinct terms, we have.
PAPER_TARGETS = ("random", "fis", *COLUMNS[1:])
ALL_TARGETS = ("random", "fis", *COLUMNS)
SPELLED = {"distinct": "distinct terms", "logsize": "log size"}

At = tuple[int, int]  # m and k

#: Section 5.1, and the largest history of section 5.2.
PAPER_LOG = {
    "users": 367_803,
    "queries": 1_846_134,
    "terms": 251_115,
    "occurrences": 5_501_825,
    "longest_history": 495,
}
#: Table 3; those in `PAPER_CHANCE` are not significant at the 0.01 level.
PAPER_TABLE_3 = {
    "term frq. / user frq.": 0.761,
    "term frq. / bid": 0.001,
    "term frq. / clicks": 0.024,
    "term frq. / impressions": 0.111,
    "term frq. / revenue": 0.002,
    "user frq. / bid": 0.002,
    "user frq. / clicks": 0.031,
    "user frq. / impressions": 0.151,
    "user frq. / revenue": 0.003,
    "bid / clicks": -0.003,
    "bid / impressions": 0.002,
    "bid / revenue": 0.579,
    "clicks / impressions": 0.400,
    "clicks / revenue": 0.040,
    "impressions / revenue": 0.020,
}
PAPER_CHANCE = {
    "term frq. / bid",
    "term frq. / revenue",
    "user frq. / bid",
    "user frq. / revenue",
    "bid / clicks",
    "bid / impressions",
}
#: Table 5, in percent, in the order of `COLUMNS`.
PAPER_TABLE_5: dict[At, tuple[float, ...]] = {
    (2, 2): (10.88, 45, 95, 51, 85, 85, 61),
    (2, 10): (2.12, 29, 87, 33, 75, 71, 41),
    (2, 20): (1.09, 26, 83, 29, 71, 67, 36),
    (2, 40): (0.56, 23, 78, 25, 68, 63, 33),
    (2, 100): (0.18, 19, 70, 20, 61, 58, 27),
    (3, 2): (10.86, 37, 95, 42, 78, 76, 55),
    (3, 10): (2.12, 25, 87, 31, 71, 67, 43),
    (3, 20): (1.11, 23, 83, 28, 68, 64, 39),
    (3, 40): (0.56, 21, 78, 24, 65, 62, 35),
    (3, 100): (0.18, 18, 70, 19, 61, 57, 30),
}
#: Tables 6 and 7: R, W, fis for each of `COLUMNS`. Table 6 prints the headings of log size and users the
#: other way round: read as printed, random would keep 19 - 28 percent of the log at m=2, k=100.
PAPER_TABLES_6_7: dict[At, tuple[tuple[float, float, float], ...]] = {
    (2, 2): ((0, 4.16, 4.08), (13, 2, 0), (2, 0, 0), (20, 13, 12), (28, 15, 8), (31, 9, 6), (20, 5, 5)),
    (2, 10): ((0, 0.92, 0.90), (11, 2, 0), (12, 1, 0), (17, 13, 11), (34, 28, 13), (32, 14, 8), (16, 5, 5)),
    (2, 20): ((0, 0.40, 0.39), (11, 2, 1), (17, 1, 0), (16, 12, 11), (35, 33, 15), (32, 15, 9), (16, 5, 5)),
    (2, 40): ((0, 0.16, 0.15), (11, 2, 1), (21, 2, 0), (14, 11, 9), (38, 36, 18), (31, 16, 9), (15, 5, 5)),
    (2, 100): ((0, 0.00, 0.14), (11, 2, 1), (28, 2, 0), (13, 9, 7), (37, 37, 19), (30, 16, 10), (15, 5, 5)),
    (3, 2): ((0, 4.18, 4.07), (10, 3, 0), (2, 0, 0), (15, 14, 11), (32, 31, 12), (29, 16, 7), (21, 12, 10)),
    (3, 10): ((0, 0.88, 0.77), (10, 2, 0), (12, 1, 0), (16, 14, 11),
             (39, 40, 21), (34, 19, 11), (22, 12, 12)),
    (3, 20): ((0, 0.31, 0.27), (10, 2, 1), (17, 1, 0), (15, 13, 11),
             (40, 41, 24), (34, 19, 12), (21, 12, 12)),
    (3, 40): ((0, 0.16, 0.14), (10, 2, 1), (21, 2, 0), (14, 11, 9), (40, 41, 25), (33, 20, 12), (19, 11, 11)),
    (3, 100): ((0, 0.02, 0.00), (10, 2, 1), (28, 2, 0), (13, 9, 7), (39, 40, 25), (32, 19, 12), (19, 10, 10)),
}  # fmt: skip
#: Section 5.2: hours, minutes and seconds of the first iteration, by m and k.
PAPER_FIRST: dict[At, str] = {
    (2, 2): "2 h 55 m 58 s",
    (3, 2): "90 h 08 m 24 s",
    (2, 5): "7 m 41 s",
    (3, 5): "48 m 45 s",
}
PAPER_ITERATIONS = {2: (6.7, "4 min"), 3: (4.8, "13 min")}  # how many on average, and the time of one


def paper_5(column: str, k: int, m: int) -> float | None:
    """Give the paper's Table 5 entry, or None where it has none."""
    row = PAPER_TABLE_5.get((m, k))
    return row[COLUMNS.index(column)] if row else None


def paper_gaps(column: str, k: int, m: int) -> tuple[float, float, float] | None:
    """Give the paper's R, W and fis of Tables 6 and 7, or None where it has none."""
    row = PAPER_TABLES_6_7.get((m, k))
    return row[COLUMNS.index(column)] if row else None


@dataclass(frozen=True)
class Results:
    """One run: what the log was, and the line of each setting by (optimise, target, k, m)."""

    about: dict[str, Any]
    machine: dict[str, Any]
    lines: dict[tuple[str, str, int, int], dict[str, Any]]
    missing: list[str]

    @classmethod
    def load(cls, path: Path, expected: Iterable[str]) -> Results:
        """Read the lines of a run; what was to be measured and is not there is missing."""
        first, *rest = (json.loads(text) for text in path.read_text().splitlines())
        lines = {(one["optimise"], one["target"], one["k"], one["m"]): one for one in rest}
        return cls(first["about"], first["machine"], lines, absent(expected, {one["name"] for one in rest}))

    def line(self, target: str, k: int, m: int, optimise: str = "greedy") -> dict[str, Any] | None:
        """Give the line of a setting, or None where it was not measured."""
        return self.lines.get((optimise, target, k, m))

    def kept(self, target: str, column: str, k: int, m: int, optimise: str = "greedy") -> float | None:
        """Give in percent what a setting keeps of a column."""
        line = self.line(target, k, m, optimise)
        return float(line["kept"][column]) if line else None

    def ranked(
        self, column: str, k: int, m: int, among: Iterable[str], optimise: str = "greedy"
    ) -> list[tuple[float, str]]:
        """List what each target keeps of a column, the most first; empty unless all were measured."""
        found = [(self.kept(target, column, k, m, optimise), target) for target in among]
        known = [(value, target) for value, target in found if value is not None]
        return sorted(known, key=lambda one: -one[0]) if len(known) == len(found) else []

    def best(self, column: str, k: int, m: int) -> float | None:
        """Give the most that any target of the paper keeps of a column."""
        found = self.ranked(column, k, m, PAPER_TARGETS)
        return found[0][0] if found else None

    def gaps(self, column: str, k: int, m: int) -> tuple[float, float, float] | None:
        """Give how far random, the worst other target, and fis stay behind the best, in points."""
        found = self.ranked(column, k, m, PAPER_TARGETS)
        if not found:
            return None
        by_target = {target: value for value, target in found}
        worst = min(value for value, target in found if target != "random")
        best = found[0][0]
        return best - by_target["random"], best - worst, best - by_target["fis"]

    def settings(self, among: Iterable[str], optimise: str = "greedy") -> list[At]:
        """List the m and k, of the paper's m, at which all these targets were measured."""
        targets = list(among)
        return [
            (m, k) for m in MS for k in KS if all(self.line(target, k, m, optimise) for target in targets)
        ]


def absent(expected: Iterable[str], there: set[str]) -> list[str]:
    """Name what was to be measured and is not there, one entry for each way, k and m."""
    every: dict[str, list[tuple[str, bool]]] = {}
    for name in expected:
        how, target, k, m = name.split()
        every.setdefault(f"{how} {m} {k}", []).append((target, name in there))
    return [
        f"{setting} ({', '.join(gone) if len(gone) < len(targets) else 'all'})"
        for setting, targets in every.items()
        if (gone := [target for target, known in targets if not known])
    ]


#: Colours that people who see few colours can tell apart (Okabe and Ito, Tol); markers and lines differ too.
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


def by_target(pen: Pen, results: Results, column: str, m: int, name: str, label: str) -> None:
    """Figures 1 and 2: what each target keeps of a column, over k, and what the paper's tables say."""
    figure, rows = pen.sheet(1, 7.2, 4.0)
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
    pen.keep(figure, name)


def paper_curve(column: str, m: int, gap: int | None) -> list[tuple[int, float]]:
    """Give the paper's best of a column over k, or what lies a printed gap below it."""
    found = []
    for k in KS:
        best, gaps = paper_5(column, k, m), paper_gaps(column, k, m)
        if best is not None and gaps is not None:
            found.append((k, best - (gaps[gap] if gap is not None else 0)))
    return found


def draw(results: Results, folder: Path) -> None:
    """Draw every figure; none may be too large for a page."""
    pen = Pen(folder)
    by_target(pen, results, "logsize", 3, "figure-1", "log size kept (%)")
    by_target(pen, results, "clicks", 3, "figure-2", "estimated clicks kept (%)")
    heavy = [file.name for file in folder.glob("*.svg") if file.stat().st_size > LARGEST_FIGURE]
    if heavy:
        raise SystemExit(f"figures above {LARGEST_FIGURE:,} bytes: {', '.join(sorted(heavy))}")


def number(value: float | None, digits: int = 1) -> str:
    """Spell a number, or a dash where there is none."""
    return "–" if value is None else f"{value:,.{digits}f}"


def pair(paper: float | None, ours: float | None, column: str) -> str:
    """Set the paper's number beside ours; the paper prints decimals for distinct terms only."""
    digits = 2 if column == "distinct" else 0
    return f"{number(paper, digits)} / {number(ours, digits or 1)}"


def spelled(column: str) -> str:
    """Name a column as the page does."""
    return SPELLED.get(column, column)


def at(m: int, k: int) -> str:
    """Name a setting."""
    return f"m={m}, k={k}"


def listed(words: list[str]) -> str:
    """Put words into a sentence."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words) or "none"


def gap_table(results: Results, columns: tuple[str, ...]) -> str:
    """Write how far random, the worst other target, and fis stay behind the best."""
    rows = []
    for m in MS:
        for k in KS:
            cells = []
            for column in columns:
                paper, ours = paper_gaps(column, k, m), results.gaps(column, k, m)
                cells += [pair(paper and paper[i], ours and ours[i], column) for i in range(3)]
            rows.append([at(m, k), *cells])
    head = [f"{spelled(column)}, {kind}" for column in columns for kind in ("R", "W", "fis")]
    return table(["paper / here, points", *head], rows)


def log(results: Results) -> str:
    """Set the two logs side by side."""
    about, paper = results.about, PAPER_LOG
    rows = [
        ["users", "users"],
        ["terms", "distinct terms"],
        ["user_terms", "a user's distinct terms, over all users"],
        ["occurrences", "occurrences of terms"],
        ["longest_history", "terms in the longest history"],
        ["pairs_of_terms_in_histories", "pairs of terms in histories"],
    ]
    body = [[what, number(paper.get(name), 0), number(about[name], 0)] for name, what in rows]
    for what, part, whole in (
        ("occurrences per user", "occurrences", "users"),
        ("occurrences per distinct term", "occurrences", "terms"),
    ):
        body.append([what, number(paper[part] / paper[whole]), number(about[part] / about[whole])])
    return f"""## The log

{table(["", "paper (AltaVista, one day)", "here (made up)"], body)}

The paper has {paper["queries"]:,} searches; ours are the first few searches of each made-up person, so that
a history is about as large as one day's. No history here is nearly as long as the paper's longest one."""


def correlations(results: Results) -> str:
    """Table 3."""
    ours = results.about["correlations"]
    rows = []
    for name, paper in PAPER_TABLE_3.items():
        star = "" if name in PAPER_CHANCE else "*"
        rows.append([name, f"{paper:.3f}{star}", number(ours.get(name), 3)])
    known = {name: value for name, value in ours.items() if name in PAPER_TABLE_3}
    same = [name for name, value in known.items() if (value > 0) == (PAPER_TABLE_3[name] > 0)]
    return f"""## Table 3: what goes with what

Pearson's correlation of two figures of a term; `*`: significant in the paper at the 0.01 level.

{table(["", "paper", "here"], rows)}

{len(same)} of {len(known)} have the paper's sign. Like Yahoo's, our made-up file has no clicks for
{100 * NO_CLICKS:.0f} % of the terms. The paper leaves those terms out of the correlations with clicks and
revenue; here they count as 0."""


def exceptions(
    results: Results, target: str, among: tuple[str, ...], optimise: str = "greedy"
) -> tuple[int, list[tuple[float, str]]]:
    """Count where a target can be compared; list where another keeps more of its column, and how much."""
    settings, lost = results.settings(among, optimise), []
    for m, k in settings:
        found = results.ranked(target, k, m, among, optimise)
        lead = found[0][0] - next(value for value, name in found if name == target)
        if lead > 0:
            lost.append((lead, f"{at(m, k)}: `{found[0][1]}` keeps {lead:.3f} points more"))
    return len(settings), lost


def own_best(results: Results, optimise: str) -> str:
    """Write how often each target is best at its own column, and the exceptions."""
    rows, among = [], ALL_TARGETS if optimise == "greedy" else COLUMNS
    for target in COLUMNS:
        count, lost = exceptions(results, target, among, optimise)
        names = "; ".join(name for _, name in lost) or ("none" if count else "–")
        rows.append([f"`{target}`", f"{count - len(lost)} of {count}", names])
    return table(["target", "best in", "exceptions"], rows)


def largest(results: Results, columns: tuple[str, ...], place: int) -> tuple[float, str, int, int] | None:
    """Find the largest R (0), W (1) or fis (2), and where it is."""
    found = [
        (gaps[place], column, m, k)
        for column in columns
        for m, k in results.settings(PAPER_TARGETS)
        if (gaps := results.gaps(column, k, m))
    ]
    return max(found, default=None)


def both(values: Iterable[float | None]) -> list[float]:
    """Give the values if all are there."""
    found = list(values)
    return [one for one in found if one is not None] if None not in found else []


def memory(results: Results) -> str:
    """Give the peak of the process."""
    peak = max((one["peak_bytes"] for one in results.lines.values()), default=None)
    if peak is None:
        return ""
    return f"The process held {peak / 1e9:.1f} GB at most, with the making of the log and the checks."


def greedy_lines(results: Results, m: int, k: int | None = None) -> list[dict[str, Any]]:
    """Give the greedy lines of an m, and of a k where one is given."""
    return [
        one
        for (how, _, one_k, one_m), one in results.lines.items()
        if how == "greedy" and one_m == m and k in (None, one_k)
    ]


def slowest(results: Results) -> str:
    """Say how often `fis` is the slowest target, as in the paper."""
    settings = results.settings(PAPER_TARGETS)
    found = [max(greedy_lines(results, m, k), key=lambda one: float(one["seconds"])) for m, k in settings]
    count = sum(one["target"] == "fis" for one in found)
    return f"`fis` is the slowest target, as in the paper, in {count} of {len(found)} settings."
