"""Reproduces paper 002 on made-up histories: how well profiles survive when queries are replaced by meaning.

    python -m benchmarks.paper_002                measures, plots, and writes the page
    python -m benchmarks.paper_002 --quick        few users and settings, to see that it works
    python -m benchmarks.paper_002 --only-draw    measures nothing

Each result is one line of `results/paper-002.jsonl`; what is there already is not measured again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.__main__ import RESULTS, machine
from benchmarks.paper_002_exact import exact
from benchmarks.paper_002_methods import blank, drawn, histogram
from benchmarks.paper_002_workload import LOGS, USERS, Histories, World

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
BEYOND = (15.0, 20.0, 30.0, 40.0)  # of each draw: far past the paper, to see where its picture appears
CRITERIA = ("sqc1", "sqc2", "none")
WIDER = ("A", "B", "C")  # D(q) > P
EXACT = ("D(q)=P 4", "D(q)=P 19", "D(q)<P")  # nothing may be lost here
JOINED = ("B joined", "C joined")  # a domain of the four topics alone, which the paper does not describe
HBDP = ("hbdp", "hbdp ours", "hbdp topics", "hbdp equal", "hbdp equal max")
GROUPS = (2, 5, 10)
LARGE = 80.0  # of a history: the most that leaves no draw of the smallest history above what is allowed
RUNS, SEED, QUICK_USERS = 3, 2, 60


class Plan(NamedTuple):
    """One thing to measure."""

    setting: str
    method: str
    per: str
    epsilon: float
    log: str = "usual"

    @property
    def name(self) -> str:
        """Name it, the same in every run."""
        other = "" if self.log == "usual" else f" log={self.log}"
        return f"{self.setting} {self.method} per={self.per} epsilon={self.epsilon:g}{other}"


def plans(quick: bool) -> Iterator[Plan]:
    """List what to measure, the figures first."""
    epsilons = (1.0, 10.0) if quick else EPSILONS
    yield from (
        Plan(setting, method, per, epsilon)
        for setting in (*WIDER, *EXACT)
        for epsilon in epsilons
        for method in CRITERIA
        for per in ("history", "query")
    )
    for setting in (*WIDER, *EXACT[:2]):
        yield from (Plan(setting, method, "history", e) for e in epsilons for method in HBDP)
    yield from (Plan(setting, "blank", "history", 0.0) for setting in (*WIDER, *JOINED))
    last = epsilons[-1:]
    for setting in JOINED:
        yield from (Plan(setting, method, "query", e) for e in epsilons for method in CRITERIA)
    yield from (Plan(setting, method, "query", e) for setting in WIDER for e in BEYOND for method in CRITERIA)
    ways = ("zcdp", *(f"group {size}" for size in GROUPS), *(f"middles {size}" for size in GROUPS))
    for setting in WIDER:
        yield from (
            Plan(setting, method, way, e)
            for way in ways
            for e in (last if way.startswith("middles") else epsilons[-4:])
            for method in ("sqc1", "sqc2")
        )
    yield from (
        Plan(setting, method, way, LARGE)
        for setting in WIDER
        for method in ("sqc1", "sqc2")
        for way in ("history", *(f"group {size}" for size in GROUPS))
    )
    for log in list(LOGS)[1:]:
        yield from (
            Plan(setting, method, per, e, log)
            for setting in WIDER
            for e in last
            for method, per in [
                *((name, "history") for name in (*CRITERIA, "hbdp")),
                *((name, "query") for name in CRITERIA),
            ]
        )


def measured(world: World, histories: Histories, plan: Plan) -> dict[str, Any]:
    """Run one plan three times, and say how long it took."""
    begin = time.perf_counter()
    if plan.method == "blank":
        found = blank(world, histories, plan.setting)
    else:
        run = histogram if plan.method in HBDP else drawn
        found = run(world, histories, plan.setting, plan.method, plan.per, plan.epsilon, RUNS, plan.name)
    return {"name": plan.name} | plan._asdict() | found | {"seconds": round(time.perf_counter() - begin, 3)}


def sweep(path: Path, users: int, waiting: list[Plan]) -> None:
    """Measure every plan that the file does not have yet."""
    lines = [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []
    done = {line.get("name") for line in lines}
    waiting = [plan for plan in waiting if plan.name not in done]
    if not waiting:
        return
    begin, world = time.perf_counter(), World()
    logs = {name: Histories.of(world, users, SEED, name) for name in LOGS}
    with path.open("a") as file:
        if not lines:
            log = logs["usual"]
            about = world.about() | log.about(world) | {"runs": RUNS, "seed": SEED}
            file.write(json.dumps({"about": about, "machine": machine()}) + "\n")
            for line in exact(world, log):
                file.write(json.dumps(line) + "\n")
        for plan in waiting:
            line = measured(world, logs[plan.log], plan)
            file.write(json.dumps(line) + "\n")
            print(f"{plan.name}: {line['loss']:.4f} ({line['seconds']} s)", flush=True)
        taken = round(time.perf_counter() - begin, 1)
        file.write(json.dumps({"name": None, "part": "time", "plans": len(waiting), "seconds": taken}) + "\n")


def main() -> None:
    """Measure, then write the page and its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few users and settings")
    parser.add_argument("--only", help="plans whose names hold this")
    parser.add_argument("--only-draw", action="store_true", help="measure nothing")
    chosen = parser.parse_args()
    path = RESULTS / ("paper-002-quick.jsonl" if chosen.quick else "paper-002.jsonl")
    wanted = [plan for plan in plans(chosen.quick) if not chosen.only or chosen.only in plan.name]
    if not chosen.only_draw:
        sweep(path, QUICK_USERS if chosen.quick else USERS, wanted)
    from benchmarks import paper_002_page

    paper_002_page.write(path)


if __name__ == "__main__":
    main()
