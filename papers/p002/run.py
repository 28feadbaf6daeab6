"""Reproduces paper 002 on synthetic histories: how profiles change when queries are replaced by meaning."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from papers.common import study
from papers.common.results import Line
from papers.p002.exact import exact
from papers.p002.mechanisms import blank, drawn, histogram
from papers.p002.results import JOINED, LARGE, SETTINGS
from papers.p002.workload import LOGS, Histories, World

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
BEYOND = (15.0, 20.0, 30.0, 40.0)  # of each draw: far past the paper, to see where its picture appears
CRITERIA = ("sqc1", "sqc2", "none")
EXACT = ("D(q)=P 4", "D(q)=P 19", "D(q)<P")  # nothing may be lost here
HBDP = ("hbdp", "hbdp ours", "hbdp topics", "hbdp equal", "hbdp equal max")
GROUPS = (2, 5, 10)
RUNS = 3


class Plan(NamedTuple):
    """One thing to measure."""

    setting: str
    method: str
    per: str
    epsilon: float
    log: str = "usual"

    @property
    def name(self) -> str:
        """Name of the line."""
        if self.method == "exact":
            return "exact"
        other = "" if self.log == "usual" else f" log={self.log}"
        return f"{self.setting} {self.method} per={self.per} epsilon={self.epsilon:g}{other}"


def plans(quick: bool) -> Iterator[Plan]:
    """Yield what to measure, the figures first."""
    epsilons = (1.0, 10.0) if quick else EPSILONS
    yield Plan("", "exact", "", 0.0)
    yield from (
        Plan(setting, method, per, epsilon)
        for setting in (*SETTINGS, *EXACT)
        for epsilon in epsilons
        for method in CRITERIA
        for per in ("history", "query")
    )
    for setting in (*SETTINGS, *EXACT[:2]):
        yield from (Plan(setting, method, "history", e) for e in epsilons for method in HBDP)
    yield from (Plan(setting, "blank", "history", 0.0) for setting in (*SETTINGS, *JOINED))
    last = epsilons[-1:]
    for setting in JOINED:
        yield from (Plan(setting, method, "query", e) for e in epsilons for method in CRITERIA)
    yield from (
        Plan(setting, method, "query", e) for setting in SETTINGS for e in BEYOND for method in CRITERIA
    )
    ways = ("zcdp", *(f"group {size}" for size in GROUPS), *(f"middles {size}" for size in GROUPS))
    for setting in SETTINGS:
        yield from (
            Plan(setting, method, way, e)
            for way in ways
            for e in (last if way.startswith("middles") else epsilons[-4:])
            for method in ("sqc1", "sqc2")
        )
    yield from (
        Plan(setting, method, way, LARGE)
        for setting in SETTINGS
        for method in ("sqc1", "sqc2")
        for way in ("history", *(f"group {size}" for size in GROUPS))
    )
    for log in list(LOGS)[1:]:
        yield from (
            Plan(setting, method, per, e, log)
            for setting in SETTINGS
            for e in last
            for method, per in [
                *((name, "history") for name in (*CRITERIA, "hbdp")),
                *((name, "query") for name in CRITERIA),
            ]
        )


@dataclass
class Study(study.Study):
    """Utility loss of all mechanisms over ε."""

    name = "p002"
    users: int = 1000
    seed: int = 2

    def __post_init__(self) -> None:
        if self.quick:
            self.users = 60

    @cached_property
    def world(self) -> World:
        """WordNet's concepts and the settings of the paper."""
        return World()

    @cached_property
    def logs(self) -> dict[str, Histories]:
        """The synthetic histories, by name of the log."""
        return {name: Histories.of(self.world, self.users, self.seed, name) for name in LOGS}

    def identity(self) -> Line:
        """Return users, runs and seed."""
        return {"users": self.users, "runs": RUNS, "seed": self.seed}

    def about(self) -> Line:
        """Return the sizes of topics and log."""
        return self.world.about() | self.logs["usual"].about(self.world)

    def plans(self) -> Iterator[Plan]:
        """Yield what to measure."""
        return plans(self.quick)

    def measure(self, plan: Plan) -> Line:
        """Run one plan three times."""
        begin, world, histories = time.perf_counter(), self.world, self.logs[plan.log]
        if plan.method == "exact":
            return {"part": "exact", "lines": list(exact(world, histories))}
        if plan.method == "blank":
            found = blank(world, histories, plan.setting)
        else:
            run = histogram if plan.method in HBDP else drawn
            found = run(world, histories, plan.setting, plan.method, plan.per, plan.epsilon, RUNS, plan.name)
        return plan._asdict() | found | {"seconds": round(time.perf_counter() - begin, 3)}
