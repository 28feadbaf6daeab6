"""Search settings for the release that keeps most while at most a given share can be linked."""

from __future__ import annotations

import shlex
import tempfile
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
import polars as pl

from querycloak import formats, temporary_files
from querycloak.attacks.finding import LINKING
from querycloak.compare.decide import ranked
from querycloak.compare.plan import Plan, ready_made
from querycloak.compare.result import ATTACKERS, CandidateResult, Comparison
from querycloak.compare.run import compare
from querycloak.compare.sampling import draw_sample
from querycloak.compare.spec import AttackSpec, Candidate, parse_attacks, parse_candidates, parse_measures
from querycloak.engines.source import Progress, silent
from querycloak.errors import UsageError
from querycloak.formats import ReadOptions
from querycloak.log import Log
from querycloak.measures.base import ALL_USES, KEEP

#: How many series are searched more closely, and how often the gap of each is halved.
_SERIES: Final = 2
_HALVINGS: Final = 3
#: How many of the best are confirmed with other users and other draws, so that no chance result is proposed.
_CONFIRMED: Final = 3


@dataclass(frozen=True)
class Goal:
    """The largest linked share that is allowed, the attacker, and the use of which most should be kept."""

    max_linkage: float
    keep: str = "topics"
    attacker: str = "any"

    def check(self) -> None:
        """Raise UsageError for a value that is not possible."""
        if not 0 < self.max_linkage < 1:
            raise UsageError(
                "`--max-linkage` must be a share between 0 and 1", hint="0.05 is five in a hundred"
            )
        if self.keep not in KEEP:
            raise UsageError(f"`--keep` cannot be `{self.keep}`", hint=f"it is one of {', '.join(KEEP)}")
        if self.attacker not in ATTACKERS:
            raise UsageError(
                f"`--attacker` cannot be `{self.attacker}`", hint=f"it is one of {', '.join(ATTACKERS)}"
            )

    def attacks(self) -> tuple[AttackSpec, ...]:
        """Return the default attacks that count for this attacker."""
        given = [(one, one.attack()) for one in parse_attacks(ready_made()["default"]["attacks"])]
        return tuple(
            spec for spec, one in given if one.game in LINKING and one.knowledge() in ATTACKERS[self.attacker]
        )

    def measures(self) -> tuple[str, ...]:
        """Return the measures that the search needs."""
        kept = ALL_USES[self.keep].measure.partition(".")[0]
        return parse_measures(["release_rate", kept, "unique_texts"])

    def value(self, candidate: CandidateResult) -> float:
        """Return the share of the use that a candidate keeps; -1 if it was not measured."""
        found = candidate.kept(self.keep)
        return -1.0 if found is None else found.value

    def best(self, comparison: Comparison) -> list[CandidateResult]:
        """Return the candidates that may be proposed, the one that keeps most first."""
        return ranked(comparison, self.max_linkage, self.keep, self.attacker)


@dataclass(frozen=True)
class Proposal:
    """The proposed release with its evidence; `chosen` is None if no candidate reaches the goal."""

    goal: Goal
    chosen: CandidateResult | None
    searched: Comparison
    confirmed: Comparison | None
    command: str | None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for `--json` and `proposal.json`."""
        again = {one.name: one for one in self.confirmed.succeeded} if self.confirmed else {}
        others = [one for one in self.goal.best(self.searched) if one is not self.chosen]
        return {
            "max_linkage": self.goal.max_linkage,
            "keep": self.goal.keep,
            "attacker": self.goal.attacker,
            "proposed": self.chosen and self._as_dict(self.chosen),
            "command": self.command,
            "tried": len(self.searched.candidates),
            "runners_up": [self._as_dict(one) for one in others[:5]],
            "confirmed_on_other_people": [self._as_dict(one) for one in again.values()],
            "log": self.searched.log.as_dict(),
        }

    def _as_dict(self, one: CandidateResult) -> dict[str, Any]:
        found = one.linked(self.goal.attacker)
        return {
            "name": one.name,
            "settings": one.settings,
            "keeps": self.goal.value(one),
            "linked": found and asdict(found),
            "does_not_protect_against": one.not_protected,
        }


def recommend(
    log: str | Log,
    goal: Goal,
    *,
    folder: Path | None = None,
    sample: int = 3_000,
    seed: int = 1,
    reading: ReadOptions | None = None,
    progress: Progress = silent,
) -> Proposal:
    """Search on a sample, coarsely and then more closely; confirm the best on other users; propose one."""
    goal.check()
    candidates = tuple(parse_candidates(ready_made()["recommend"]["candidates"]))
    plan = Plan(candidates, goal.attacks(), goal.measures(), seed=seed, seconds=300)
    with ExitStack() as cleanup:
        place = folder or Path(cleanup.enter_context(tempfile.TemporaryDirectory()))
        samples = _TwoSamples(log, place, sample, seed, reading, progress)
        found = samples.compare(samples.first, plan, "search")
        for _ in range(_HALVINGS):
            closer = _closer(found, goal, plan)
            if not closer:
                break
            plan = plan.with_(candidates=(*plan.candidates, *closer))
            found = samples.compare(samples.first, plan, "search")
        best = goal.best(found)[:_CONFIRMED]
        again = None
        if best:
            names = {one.name for one in best}
            few = tuple(one for one in plan.candidates if one.name in names)
            again = samples.compare(samples.second, plan.with_(candidates=few, seed=seed + 7919), "confirm")
        passed = {one.name for one in goal.best(again)} if again else set()
        chosen = next((one for one in best if one.name in passed), None)
        return Proposal(goal, chosen, found, again, _command(log, chosen, plan) if chosen else None)


class _TwoSamples:
    """Two disjoint samples of users: one for the search, one to confirm its best results."""

    def __init__(
        self, log: str | Log, place: Path, sample: int, seed: int, reading: ReadOptions | None,
        progress: Progress,
    ) -> None:  # fmt: skip
        self._place, self._progress = place, progress
        place.mkdir(parents=True, exist_ok=True)
        with temporary_files.new_folder() as temporary:
            path = temporary.path / "people.parquet"
            self.about = draw_sample(
                log, path, sample=2 * sample, seed=seed, progress=progress, reading=reading
            )
            whole = formats.read(str(path))
        users = whole.frame["user"].unique().sort().sample(fraction=1.0, shuffle=True, seed=seed)
        half = pl.col("user").is_in(users[: min(sample, users.len() // 2)].implode())
        self.first, self.second = (whole.with_frame(whole.frame.filter(part)) for part in (half, ~half))

    def compare(self, some: Log, plan: Plan, where: str) -> Comparison:
        """Run a plan on one of the samples; its figures are those of the whole log."""
        found = compare(
            some, plan, self._place / where, progress=self._progress,
            report=lambda done, total, rest: self._progress(where, done, total),
        )  # fmt: skip
        names = ("of_people", "of_records", "skipped", "categories")
        drawn = {name: getattr(self.about, name) for name in names}
        return msgspec.structs.replace(found, log=replace(found.log, sampled=True, **drawn))


def _closer(found: Comparison, goal: Goal, plan: Plan) -> list[Candidate]:
    """Return candidates that halve the gap between eligible and other ones, in the best series.

    More protection keeps less, so the best setting of a series lies between the last candidate that links
    too much and the first that does not.
    """
    fit = {one.name for one in goal.best(found)}
    by_series: dict[str, list[tuple[float, CandidateResult]]] = {}
    for one in found.succeeded:
        if one.varied and isinstance(one.varied.value, int | float):
            by_series.setdefault(one.series, []).append((one.varied.value, one))
    best_first = sorted(
        by_series.values(), key=lambda series: max(goal.value(one) for _, one in series), reverse=True
    )
    made: list[Candidate] = []
    known = {one.key() for one in plan.candidates}
    for series in best_first:
        series.sort(key=lambda entry: entry[0])
        for (low, one), (high, other) in pairwise(series):
            if (one.name in fit) == (other.name in fit):
                continue
            middle = _between(low, high)
            given = next(each for each in plan.candidates if each.name == one.name)
            if middle is not None and given.varied_setting is not None:
                settings = given.settings | {given.varied_setting: str(middle)}
                new = Candidate(given.methods, settings, given.varied_setting)
                made += [new] if new.key() not in known else []
        if len(made) >= _SERIES:
            break
    return made


def _between(low: float, high: float) -> float | None:
    """Return the geometric mean; None if no whole number lies between two whole numbers."""
    middle = (low * high) ** 0.5
    if isinstance(low, int) and isinstance(high, int):
        whole = round(middle)
        return whole if low < whole < high else None
    return float(f"{middle:.3g}") if high / low > 1.1 else None


def _command(log: str | Log, chosen: CandidateResult, plan: Plan) -> str:
    """Return the command that makes the proposed release of the whole log."""
    given = next(one for one in plan.candidates if one.name == chosen.name)
    parts = ["querycloak", "protect", "LOG" if isinstance(log, Log) else log]
    for method in given.methods:
        parts += ["-m", method]
    for setting, value in given.settings.items():
        parts += ["-s", f"{setting}={value}"]
    return shlex.join([*parts, "-o", "release.parquet"])
