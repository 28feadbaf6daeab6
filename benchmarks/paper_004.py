"""Reproduces paper 004: people hide among fakes, and an attack that learns from others tells them apart.

    python -m benchmarks.paper_004                measures, plots, and writes the page
    python -m benchmarks.paper_004 --quick        few people and functions, to see that it works
    python -m benchmarks.paper_004 --only-draw    measures nothing
    python -m benchmarks.paper_004 --functions 60 --draws 20 --work FILE    the paper's own study: the page
                                                  says how many hours it takes

Each finished unit (a person covered in one way, under one draw of fakes) is one line of
`results/paper-004.jsonl`, or of the file that `--work` names. What is there already is not measured again,
and comes out the same whenever it is measured: a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.__main__ import RESULTS, machine
from benchmarks.paper_004_study import HIS_OWN, TENTHS, Setup, Study, Target, searches_of, share_with_topic
from querycloak.attacks.link_learned import relations, training

#: The paper's two ways to cover, the one that it proposes, and ours.
PAPERS, PROPOSED, OURS = ("tmn", "usr"), "hybrid", "shadow"
METHODS = (*PAPERS, PROPOSED, OURS)
#: For so many people everything is measured before it is for the others.
FIRST_WAVE = 30


@dataclass(frozen=True)
class Plan:
    """One unit to measure."""

    part: str
    method: str
    person: int
    draw: int = 0

    @property
    def name(self) -> str:
        """Name it, the same in every run."""
        return f"{self.part} {self.method} {self.person} {self.draw}"


@dataclass(frozen=True)
class Extent:
    """How much of a study is run; more of it can be run later."""

    targets: int = 100
    draws: int = 1
    few: int = 10


def plans(extent: Extent, users: int) -> Iterator[Plan]:
    """List what to measure: everything for some people first, so that a run that is stopped says most."""
    targets = range(min(extent.targets, users))
    yield from attacks(targets[:FIRST_WAVE], extent.draws)
    few = [person for person in range(users) if person % TENTHS == 0][: extent.few]
    yield from (Plan("whole", method, 0) for method in METHODS)
    for part in ("alone", "sizes"):
        yield from (Plan(part, method, person) for method in PAPERS for person in few)
    yield from attacks(targets[FIRST_WAVE:], extent.draws)


def attacks(targets: Iterable[int], draws: int) -> Iterator[Plan]:
    """List the attacks on some people, all draws of one way to cover one after the other."""
    return (Plan("attack", m, person, d) for person in targets for m in METHODS for d in range(draws))


class Runner:
    """Measures one plan after the other; what several of them need is made once."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self._target: Target | None = None
        self._sized: dict[tuple[str, int], Any] = {}

    def measured(self, plan: Plan) -> dict[str, Any]:
        """Measure one unit."""
        target = self._at(plan)
        if plan.part == "attack":
            found = target.attack(plan.draw)
        elif plan.part == "whole":
            everybody = range(len(self.study.people))
            found = {"worst": [Target(self.study, plan.method, one).unsorted() for one in everybody]}
        elif plan.part == "alone":
            found = target.alone()
        else:
            key = (plan.method, target.tenth)
            if key not in self._sized:
                self._sized = {key: list(self.study.sized(*key))}
            found = target.sizes(self._sized[key])
        return {"name": plan.name, **asdict(plan), **found}

    def _at(self, plan: Plan) -> Target:
        """Keep a person from draw to draw: her own pairs are scored once."""
        last = self._target
        if last is None or (last.method, last.person) != (plan.method, plan.person):
            self._target = last = Target(self.study, plan.method, plan.person)
        return last

    def made(self, method: str, draw: int) -> dict[str, Any]:
        """Describe the traces of one draw."""
        name = f"made {method} {draw}"
        return {
            "name": name,
            "part": "made",
            "method": method,
            "draw": draw,
            **self.study.made(method, draw),
        }

    def learned(self, method: str, tenth: int) -> dict[str, Any]:
        """Say what the functions that attack a tenth go by."""
        found = self.study.learned(method, tenth, self.study.setup.functions)
        ranked = training.importances(found.functions, relations.NAMES)
        about = {"name": f"learned {method} {tenth}", "part": "learned", "method": method, "tenth": tenth}
        return {**about, "importances": ranked, "cpu": {"learn": found.seconds}}

    def before(self, plan: Plan) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
        """Name the lines that come before a unit's own: the traces it is about, and what was learned."""
        for draw in (HIS_OWN, plan.draw):
            yield f"made {plan.method} {draw}", lambda draw=draw: self.made(plan.method, draw)
        if plan.part == "attack":
            tenth = self.study.tenth(plan.person)
            yield f"learned {plan.method} {tenth}", lambda: self.learned(plan.method, tenth)


def about(study: Study) -> dict[str, Any]:
    """Describe the log."""
    each = searches_of(study.log)
    return {
        **asdict(study.setup),
        "searches": int(each.sum()),
        "mean": round(float(each.mean()), 2),
        "deviation": round(float(each.std(ddof=1)), 2),
        "least": int(each.min()),
        "most": int(each.max()),
        "with_topic": round(share_with_topic(study.log, study.background(0)), 4),
    }


def loaded(path: Path) -> list[dict[str, Any]]:
    """Read the lines that are there; a last one that was cut off while it was written does not count."""
    lines = []
    for text in path.read_text().splitlines() if path.exists() else []:
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            break
    return lines


def refuse_other(lines: Iterable[dict[str, Any]], setup: Setup) -> None:
    """Do not put lines of two different studies together."""
    for line in lines:
        if "about" in line and any(line["about"][name] != value for name, value in asdict(setup).items()):
            raise SystemExit("the file holds a study with other settings: name another with --work")


def sweep(
    path: Path, setup: Setup, extent: Extent, say: Callable[[str], None] = print, study: Study | None = None
) -> None:
    """Measure every unit that the file does not have yet."""
    lines = loaded(path)
    refuse_other(lines, setup)
    done = {line.get("name"): line for line in lines}
    waiting = [plan for plan in plans(extent, setup.users) if plan.name not in done]
    if not waiting:
        return
    runner = Runner(study or Study(setup))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    begin = time.perf_counter()
    with path.open("a") as file:

        def keep(line: dict[str, Any]) -> None:
            file.write(json.dumps(line) + "\n")
            file.flush()
            done[line.get("name")] = line

        if not lines:
            keep({"name": None, "about": about(runner.study), "machine": machine()})
        checked: set[str] = set()
        for number, plan in enumerate(waiting, 1):
            for name, make in runner.before(plan):
                if name.startswith("made") and name not in checked:
                    refuse_changed(done.get(name), runner, *name.split()[1:])
                    checked.add(name)
                if name not in done:
                    keep(make())
            keep(runner.measured(plan))
            gone = time.perf_counter() - begin
            say(f"{number} of {len(waiting)}: {plan.name}, {gone / 60:.1f} min, "
                f"about {gone / number * (len(waiting) - number) / 60:.0f} to go")  # fmt: skip


def refuse_changed(line: dict[str, Any] | None, runner: Runner, method: str, draw: str) -> None:
    """Go on only if fakes are still drawn as when the file was begun."""
    if line is not None and line["fingerprint"] != runner.study.fingerprint(method, int(draw)):
        raise SystemExit(f"the fakes of {method} are not those with which the file was begun")


def chosen_setup(args: argparse.Namespace) -> tuple[Setup, Extent]:
    """Read the settings of a run."""
    if args.quick:
        return Setup(users=20, functions=2, singles=3, seed=args.seed), Extent(2, 2, 1)
    setup = Setup(users=args.users, functions=args.functions, singles=args.singles, seed=args.seed)
    return setup, Extent(args.targets or args.users, args.draws, args.few)


def main() -> None:
    """Measure, then write the page and its figures."""
    usual, extent = Setup(), Extent()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--users", type=int, default=usual.users, help="active people in the log")
    parser.add_argument("--targets", type=int, help="how many of them to attack (default: all)")
    parser.add_argument("--draws", type=int, default=extent.draws, help="draws of fakes for each of them")
    parser.add_argument("--functions", type=int, default=usual.functions, help="linkage functions")
    parser.add_argument("--singles", type=int, default=usual.singles, help="functions that attack alone too")
    parser.add_argument("--few", type=int, default=extent.few, help="people for that, and for Figure 4")
    parser.add_argument("--seed", type=int, default=usual.seed)
    parser.add_argument("--work", type=Path, help="keep lines in this file, and the page beside it")
    parser.add_argument("--quick", action="store_true", help="few people and functions")
    parser.add_argument("--only-draw", action="store_true", help="measure nothing")
    args = parser.parse_args()
    path = args.work or RESULTS / ("paper-004-quick.jsonl" if args.quick else "paper-004.jsonl")
    if not args.only_draw:
        sweep(path, *chosen_setup(args), say=lambda text: print(text, flush=True))
    from benchmarks import paper_004_page

    paper_004_page.write(path)


if __name__ == "__main__":
    main()
