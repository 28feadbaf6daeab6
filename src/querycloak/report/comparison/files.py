"""Run a comparison and write its files: the page, and the same numbers as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from querycloak.compare.gate import Gate
from querycloak.compare.plan import make_plan
from querycloak.compare.recommend import Proposal
from querycloak.compare.result import ATTACKERS, CandidateResult, Comparison
from querycloak.compare.run import compare
from querycloak.engines.source import Progress, silent
from querycloak.errors import MissingExtra
from querycloak.files import check_outputs
from querycloak.formats import ReadOptions
from querycloak.log import Log
from querycloak.measures.base import ALL_USES, KEEP, USES
from querycloak.report import render
from querycloak.report.comparison import answers, chart, view

#: What a warning says when an extra is missing.
NO_PAGE: Final = "report.html was not written"
TITLE: Final = "Which protection keeps what, and what can still be linked"
#: The columns of the CSV.
COLUMNS: Final = ("candidate", "line", "kind", "name", "value", "low", "high", "bound", "holds", "note")
#: The files of a report.
FILES: Final = ("report.html", "comparison.md", "comparison.csv", "comparison.json")
#: The stops of the page's slider in percent, and the first one.
STOPS: Final = (0.5, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100)
START: Final = STOPS.index(10)


@dataclass(frozen=True)
class ComparisonReport:
    """A comparison, the files of its report, and what did not pass the gate, if there was one.

    `missing` is the reason why the page was not written.
    """

    comparison: Comparison
    folder: Path
    written: list[str]
    seconds: float
    faults: list[dict[str, str]] = field(default_factory=list)
    missing: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for `--json`."""
        rest = {"written": self.written, "seconds": round(self.seconds, 1), "faults": self.faults}
        return {"comparison": self.comparison.as_dict(), **rest}

    def write_picture(self, path: Path, *, keep: str, attacker: str) -> None:
        """Write the static picture of utility against linkage as SVG."""
        path.write_text(chart.svg(self.comparison, keep, attacker), "utf-8")

    def lines(self) -> list[str]:
        """Return a summary in a few lines."""
        lines = [*answers.summary(self.comparison), ""]
        lines += [f"gate: {one['candidate']}: {one['why']}" for one in self.faults]
        lines += [f"warning: {NO_PAGE}: {self.missing}"] if self.missing else []
        return [*lines, f"Done in {self.seconds:.0f} s. Look at {self.folder / self.written[0]}"]


def compare_files(
    log: str | Log,
    output: Path,
    *,
    gate: Path | None = None,
    progress: Progress = silent,
    reading: ReadOptions | None = None,
    **arguments: Any,
) -> ComparisonReport:
    """Run a comparison and write its report into a folder; `arguments` are those of `make_plan`."""
    started = time.monotonic()
    check_report(output, [log, gate])
    plan, limits = make_plan(**arguments), Gate.read(gate) if gate else None

    def report(done: int, total: int, rest: float) -> None:
        left = f"{rest / 60:.0f} min" if rest >= 90 else f"{rest:.0f} s"
        progress(f"about {left} left", done, total)

    found = compare(log, plan, output, reading=reading, progress=progress, report=report)
    written, missing = write_all(found, output)
    faults = limits.faults(found) if limits else []
    return ComparisonReport(found, output, written, time.monotonic() - started, faults, missing)


def check_report(folder: Path, inputs: Iterable[object]) -> None:
    """Raise UsageError if a file of a report, or of its proposal, would replace an input."""
    check_outputs([folder / name for name in ("private", "proposal.json", "frontier.svg", *FILES)], inputs)


def write_all(comparison: Comparison, folder: Path) -> tuple[list[str], str | None]:
    """Write all files of a report; return their names, and why there is no page if an extra is missing."""
    texts = {
        "comparison.md": markdown(comparison),
        "comparison.csv": csv_text(comparison),
        "comparison.json": comparison.as_json(),
    }
    missing = None
    try:
        texts = {"report.html": page(comparison), **texts}
    except MissingExtra as reason:
        missing = f"{reason.message}; {reason.hint}" if reason.hint else reason.message
        (folder / "report.html").unlink(missing_ok=True)  # one of an earlier run would show other numbers
    for name, text in texts.items():
        render.write_whole(folder / name, text.encode())
    return list(texts), missing


def write_proposal(proposal: Proposal, folder: Path) -> str | None:
    """Write the proposal and the report of everything that was tried; return why there is no page."""
    folder.mkdir(parents=True, exist_ok=True)
    _, missing = write_all(proposal.searched, folder)
    text = json.dumps(proposal.as_dict(), indent=1, ensure_ascii=False) + "\n"
    (folder / "proposal.json").write_text(text, "utf-8")
    return missing


def csv_text(comparison: Comparison) -> str:
    """Return the CSV text.

    `kind` is `linked` or `kept` (as in tables and charts), `attack`, `people` (quantiles of an attack over
    users), `measure` (as measured), `cost`, `failed` or `not run`.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n", restval="")
    writer.writeheader()
    for one in comparison.candidates:
        rows = [{"kind": "failed", "note": one.failed}] if one.failed else _rows(one)
        writer.writerows({"candidate": one.name, "line": one.series} | row for row in rows)
    for method in comparison.not_run:
        writer.writerow({"candidate": method["method"], "kind": "not run", "note": method["why"]})
    return out.getvalue()


def _rows(one: CandidateResult) -> Iterator[dict[str, Any]]:
    for attacker in ATTACKERS:
        row: dict[str, Any] = {"kind": "linked", "name": attacker}
        if found := one.linked(attacker):
            finding = one.findings[found.attack]
            yield row | {
                "value": found.success, "low": found.low, "high": found.high,
                "bound": finding.bound, "holds": finding.holds, "note": found.attack,
            }  # fmt: skip
        else:
            yield row | {"note": one.why_not_linked}
    for use in ALL_USES.values():
        share = one.kept(use.name)
        row = {"kind": "kept", "name": use.name}
        yield row | (share._asdict() if share else {"note": one.why_not_kept(use.name)})
    for label, finding in one.findings.items():
        yield {
            "kind": "attack", "name": label, "value": finding.success,
            "low": finding.low, "high": finding.high, "bound": finding.bound, "holds": finding.holds,
            "note": finding.not_applicable or f"share of {finding.n} {finding.unit}s",
        }  # fmt: skip
        for name in ("median_user", "worst_decile_user"):
            if (value := getattr(finding, name)) is not None:
                yield {"kind": "people", "name": f"{label}.{name}", "value": value}
    for name, measured in one.measures.items():
        note = measured.not_applicable or ""
        ends = {"value": measured.value, "low": measured.low, "high": measured.high}
        yield {"kind": "measure", "name": name, "note": note} | ends
    for name, value in structs.asdict(one.cost).items():
        yield {"kind": "cost", "name": name, "value": value}


def markdown(comparison: Comparison) -> str:
    """Return the report as Markdown."""
    return render.markdown(
        "comparison.md.j2",
        overview=view.overview(comparison),
        answers=view.answer_tables(comparison, ("release", "knowing")),
        stands_out=answers.stands_out(comparison),
        uses=USES,
        candidates=[view.candidate_texts(one) for one in comparison.succeeded],
        games=view.GAMES,
        verdicts=[
            [row["name"], row["audit"], *(f"{verdict}: {text}" for verdict, text in row["games"])]
            for row in view.verdict_rows(comparison)
        ],
        not_run=view.not_run(comparison),
    )


def page(comparison: Comparison) -> str:
    """Return the report as one HTML file that loads nothing; without scripts it has a static chart."""
    data = chart.chart_data(comparison)
    return render.html(
        "comparison.html.j2",
        TITLE,
        styles=[render.asset("comparison.css")],
        scripts=[_plotly(), render.asset("comparison.js")],
        comparison=comparison,
        view=view,
        answers=answers,
        first=answers.choose(comparison, STOPS[START] / 100, chart.USE, chart.ATTACKER),
        attacker=chart.ATTACKER,
        use=chart.USE,
        keep=KEEP,
        all_uses=ALL_USES.values(),
        stops=STOPS,
        start=START,
        chart=data,
        picture=chart.svg(comparison),
        steps=_steps(comparison),
    )


def _steps(comparison: Comparison) -> dict[str, Any]:
    """Return every answer that the page's controls can ask for: each holds from its limit on."""
    return {
        attacker: {
            use: [
                [limit, one.headline, one.reason, one.more]
                for limit, one in answers.steps(comparison, use, attacker)
            ]
            for use in KEEP
        }
        for attacker in answers.ATTACKER
    }


def _plotly() -> str:
    """Return Plotly's script; an end tag within its strings is written so that it does not end the script."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise MissingExtra("report", "the page of a comparison") from None
    return str(get_plotlyjs()).replace("</script", "<\\/script").replace("</SCRIPT", "<\\/SCRIPT")
