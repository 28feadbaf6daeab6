"""Reproduces paper 004: users hide among fakes, and an attack that learns from others recognises them.

The paper's own study has 60 functions and 20 draws of fakes; the page states how many hours it takes:

    python -m papers p004 --set functions=60 --set draws=20 --results FILE

A unit is one user covered in one way, under one draw of fakes. It comes out the same whenever it is measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from papers.common import study
from papers.common.results import Line
from papers.p004.results import METHODS, PAPERS
from papers.p004.workload import TENTHS, TRAINING, Setup, Target, Traces, searches_of, share_with_topic
from querycloak.attacks.link_learned import relations_kernel, training

#: For so many users everything is measured before it is for the others.
FIRST_WAVE = 30


@dataclass(frozen=True)
class Plan:
    """One unit to measure, or what comes before it: `made` describes traces, `learned` functions."""

    part: str
    method: str
    person: int = 0  # for `learned` the tenth
    draw: int = 0

    @property
    def name(self) -> str:
        """Name of the line."""
        if self.part in ("made", "learned"):
            return f"{self.part} {self.method} {self.draw if self.part == 'made' else self.person}"
        return f"{self.part} {self.method} {self.person} {self.draw}"


@dataclass
class Study(study.Study):
    """Four ways to cover and the attack on each; `targets`, `draws` and `few` can be enlarged later."""

    name = "p004"
    users: int = 100
    functions: int = 5
    singles: int = 15
    seed: int = 4
    targets: int = 100
    draws: int = 1
    few: int = 10

    def __post_init__(self) -> None:
        if self.quick:
            self.users, self.functions, self.singles = 20, 2, 3
            self.targets, self.draws, self.few = 2, 2, 1
        self._target: Target | None = None
        self._sized: dict[tuple[str, int], Any] = {}

    @cached_property
    def traces(self) -> Traces:
        """The log and its covered traces."""
        return Traces(Setup(self.users, self.functions, self.singles, self.seed))

    def identity(self) -> Line:
        """Return all that a unit depends on."""
        return asdict(Setup(self.users, self.functions, self.singles, self.seed))

    def about(self) -> Line:
        """Describe the log."""
        log = self.traces.log
        each = searches_of(log)
        return {
            "searches": int(each.sum()),
            "mean": round(float(each.mean()), 2),
            "deviation": round(float(each.std(ddof=1)), 2),
            "least": int(each.min()),
            "most": int(each.max()),
            "with_topic": round(share_with_topic(log, self.traces.background(0)), 4),
        }

    def plans(self) -> Iterator[Plan]:
        """Yield what to measure: everything for some users first, so that a stopped run is of use."""
        for plan in self.units():
            yield from (Plan("made", plan.method, draw=draw) for draw in (TRAINING, plan.draw))
            if plan.part == "attack":
                yield Plan("learned", plan.method, plan.person % TENTHS)
            yield plan

    def units(self) -> Iterator[Plan]:
        """Yield the units."""
        targets = range(min(self.targets, self.users))
        yield from self._attacks(targets[:FIRST_WAVE])
        few = [person for person in range(self.users) if person % TENTHS == 0][: self.few]
        yield from (Plan("whole", method) for method in METHODS)
        for part in ("alone", "sizes"):
            yield from (Plan(part, method, person) for method in PAPERS for person in few)
        yield from self._attacks(targets[FIRST_WAVE:])

    def _attacks(self, targets: Iterable[int]) -> Iterator[Plan]:
        """Yield the attacks on some users, all draws of one way to cover one after the other."""
        draws = range(self.draws)
        return (Plan("attack", method, person, d) for person in targets for method in METHODS for d in draws)

    def measure(self, plan: Plan) -> Line:
        """Measure one unit, or describe traces or functions."""
        if plan.part == "made":
            found = {"draw": plan.draw, **self.traces.made(plan.method, plan.draw)}
            return {"part": plan.part, "method": plan.method} | found
        if plan.part == "learned":
            return {"part": plan.part, "method": plan.method, "tenth": plan.person} | self._learned(plan)
        target = self._at(plan)
        if plan.part == "attack":
            found = target.attack(plan.draw)
        elif plan.part == "whole":
            everybody = range(len(self.traces.people))
            found = {"worst": [Target(self.traces, plan.method, one).unsorted() for one in everybody]}
        elif plan.part == "alone":
            found = target.alone()
        else:
            key = (plan.method, target.tenth)
            if key not in self._sized:
                self._sized = {key: list(self.traces.sized(*key))}
            found = target.sizes(self._sized[key])
        return asdict(plan) | found

    def _learned(self, plan: Plan) -> Line:
        """Return the importances of the functions that attack a tenth."""
        found = self.traces.learned(plan.method, plan.person, self.functions)
        ranked = training.importances(found.functions, relations_kernel.NAMES)
        return {"importances": ranked, "cpu": {"learn": found.seconds}}

    def _at(self, plan: Plan) -> Target:
        """Return the target; it is kept from draw to draw, since its own pairs are scored once."""
        last = self._target
        if last is None or (last.method, last.person) != (plan.method, plan.person):
            self._target = last = Target(self.traces, plan.method, plan.person)
        return last

    def verify(self, plan: Plan, line: Line) -> None:
        """Raise SystemExit if fakes are not drawn as when the file was begun."""
        if plan.part == "made" and line["fingerprint"] != self.traces.fingerprint(plan.method, plan.draw):
            raise SystemExit(f"the fakes of {plan.method} are not those with which the file was begun")
