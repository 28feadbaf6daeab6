"""Reproduces paper 001 on a synthetic log: what `km` keeps for advertising, by target, k and m."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from papers.common import study
from papers.common.results import Line
from papers.p001.results import COLUMNS, KS, MS
from papers.p001.workload import USERS, Workload
from querycloak.methods.km import deletion
from querycloak.methods.km.audit import rare

CHECKED_KS = (2, 100)


class Plan(NamedTuple):
    """A target at one k and m."""

    target: str
    k: int
    m: int

    @property
    def name(self) -> str:
        """Name of the line."""
        return f"greedy {self.target} k={self.k} m={self.m}"


@dataclass
class Study(study.Study):
    """`km` for every target, k and m of the paper, and for m=4."""

    name = "p001"
    users: int = USERS
    seed: int = 3

    def __post_init__(self) -> None:
        if self.quick:
            self.users = 40_000

    @cached_property
    def work(self) -> Workload:
        """The log and the worth of its terms."""
        return Workload.of(self.users, self.seed)

    def identity(self) -> Line:
        """Return the seed; the number of users is that of the histories that are not empty."""
        return {"seed": self.seed}

    def about(self) -> Line:
        """Return the size of the log and the correlations of Table 3."""
        return self.work.about

    def plans(self) -> Iterator[Plan]:
        """Yield the settings of the paper, then those of a larger m."""
        ks = (2, 10) if self.quick else KS
        yield from (Plan(target, k, m) for m in MS for k in ks for target in deletion.TARGETS)
        yield from (Plan("logsize", k, 4) for k in ks)

    def measure(self, plan: Plan) -> Line:
        """Run one setting; `random` is the mean of two runs, as in the paper."""
        work, (target, k, m) = self.work, plan
        begin = time.perf_counter()
        outcome = deletion.greedy(target, k, m, work.entries, work.values.get(target))
        seconds = time.perf_counter() - begin
        kept = [work.retention(outcome.kept)]
        if target == "random":
            turned = replace(work.entries, draw=~work.entries.draw)
            again = deletion.rule_for(target, k, m, turned, None).run(turned)
            kept.append(work.retention(again.kept))
        line = plan._asdict() | {
            "kept": {name: sum(one[name] for one in kept) / len(kept) for name in COLUMNS},
            "seconds": round(seconds, 2),
            "rounds": outcome.rounds,
            "by_size": {str(size): count for size, count in outcome.by_size.items()},
            "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }
        if k in CHECKED_KS:
            left = work.entries[outcome.kept]
            begin = time.perf_counter()
            bad = rare(left.history, left.term, np.zeros(len(left), np.int64), k, m)
            line |= {"holds": not bool(bad.any()), "check_seconds": round(time.perf_counter() - begin, 2)}
        return line
