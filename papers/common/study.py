"""A study measures one plan after the other and stores a line for each; a stopped run continues."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from benchmarks.common import machine

from papers.common.results import Line, read_lines


class Plan(Protocol):
    """One measurement. The name is the same in every run."""

    @property
    def name(self) -> str:
        """Name of the line that holds the result."""


@dataclass
class Study:
    """Base of the studies. Fields are the settings that `--set NAME=VALUE` can change.

    A study makes its workload when it is first needed: a run without anything to measure makes none.
    """

    name: ClassVar[str]
    quick: bool = False

    def identity(self) -> Line:
        """Return what all lines of a file must share, such as the seed; it is part of the first line."""
        return {}

    def about(self) -> Line:
        """Return the description of the log for the first line."""
        raise NotImplementedError

    def plans(self) -> Iterable[Plan]:
        """Return what to measure, the most informative first; a plan may come several times."""
        raise NotImplementedError

    def measure(self, plan: Any) -> Line:
        """Return the results of one plan."""
        raise NotImplementedError

    def verify(self, plan: Any, line: Line) -> None:
        """Raise SystemExit if a stored line cannot belong to this version of the code."""


def check_identity(study: Study, first: Line, path: Path) -> None:
    """Raise SystemExit if a file holds the lines of another study."""
    differing = [name for name, value in study.identity().items() if first["about"].get(name) != value]
    if differing:
        raise SystemExit(f"{path.name}: stored results have another {', '.join(differing)}; use --results")


def sweep(study: Study, path: Path, only: str = "", report: Callable[[str], None] = print) -> None:
    """Measure every plan that the file does not have yet and whose name contains `only`."""
    lines = read_lines(path)
    if lines:
        check_identity(study, lines[0], path)
    stored = {line.get("name"): line for line in lines}
    plans = {plan.name: plan for plan in study.plans()}
    waiting = [plan for name, plan in plans.items() if name not in stored and only in name]
    if not waiting:
        return
    for name, plan in plans.items():
        if name in stored:
            study.verify(plan, stored[name])
    begin, origin = time.perf_counter(), machine()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with path.open("a") as file:

        def append(line: Line) -> None:
            file.write(json.dumps(line) + "\n")
            file.flush()

        if not lines:
            append({"about": study.identity() | study.about(), "machine": origin})
        for number, plan in enumerate(waiting, 1):
            append({"name": plan.name} | study.measure(plan) | {"commit": origin["commit"]})
            minutes = (time.perf_counter() - begin) / 60
            report(
                f"{number} of {len(waiting)}: {plan.name}, {minutes:.1f} min, "
                f"about {minutes / number * (len(waiting) - number):.0f} to go"
            )
        seconds = round(time.perf_counter() - begin, 1)
        append({"name": None, "part": "time", "plans": len(waiting), "seconds": seconds})
