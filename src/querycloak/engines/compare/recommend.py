"""Searches settings for the release that keeps most while at most a stated share can be linked."""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import polars as pl

from querycloak import io
from querycloak.engines.compare.asked import Candidate, parse
from querycloak.engines.compare.plan import Attacked, Plan, attacks_of, measures_of
from querycloak.engines.compare.prepare import prepare
from querycloak.engines.compare.presets import ATTACKS
from querycloak.engines.compare.run import Reading, compare
from querycloak.engines.request import Progress, silent
from querycloak.errors import UsageError
from querycloak.log import Log
from querycloak.registry import ATTACKS as REGISTERED
from querycloak.report.comparison import Comparison
from querycloak.report.comparison.axes import AXES, KEEP, kept
from querycloak.report.comparison.linked import ASKED, ATTACKERS, who
from querycloak.report.comparison.words import eligible

#: Where the search begins: each method that releases records, far apart along its main setting.
_FIRST: Final = (
    "cohort:k=5,20,100",
    "cohort:assign=similar:k=5,20,100",
    "rules+cohort:cohort.k=20",
    "swap:time=drop:k=10,100",
    "km:m=2:k=2,10,50",
    "dp-semantic:per=query:epsilon=1,10",
    "microagg-semantic:k=3,10,30",
    "microagg-topic:k=3,10,30",
    "z-anonymity:window=86400:z=2,5,20",
    "short-sessions:k=5,20",
)
#: How many lines are looked at more closely, and how often the gap on each is halved.
_LINES: Final = 2
_HALVINGS: Final = 3
#: How many of the best are tried again with other draws on other people, so that luck is not proposed.
_TRIED_AGAIN: Final = 3


@dataclass(frozen=True)
class Wish:
    """What a release must not exceed, and what it should keep most of."""

    max_linkage: float
    keep: str = "topics"
    attacker: str = "any"

    def check(self) -> None:
        """Refuse what cannot be asked."""
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

    def attacks(self) -> tuple[Attacked, ...]:
        """Give the attacks that count for this attacker."""
        meant = ("release", "knowing") if self.attacker == "any" else (self.attacker,)
        asked = attacks_of([text for text in ATTACKS if text != "bayes-concept"])
        return tuple(
            one
            for one in asked
            if REGISTERED.get(one.name).game in ASKED
            and who({"sees": ["release", *REGISTERED.get(one.name).knows]}) in meant
        )

    def measures(self) -> tuple[str, ...]:
        """Give the measures that tell what is kept."""
        asked = AXES[KEEP[self.keep]].measure.partition(".")[0]
        return measures_of(["release_rate", asked, "unique_texts"])

    def value(self, candidate: Mapping[str, Any]) -> float:
        """Say how much of what is wished for a candidate keeps."""
        found = kept(candidate, KEEP[self.keep])
        return -1.0 if found is None else found[0]

    def best(self, comparison: Comparison) -> list[dict[str, Any]]:
        """Give the candidates that may be proposed, the one that keeps most first."""
        fit = eligible(comparison, self.max_linkage, self.attacker)
        return sorted((one for one in fit if self.value(one) >= 0), key=self.value, reverse=True)


@dataclass(frozen=True)
class Proposal:
    """The release to make, or that there is none, with the evidence."""

    wish: Wish
    chosen: dict[str, Any] | None
    searched: Comparison
    confirmed: Comparison | None
    command: str | None

    def as_dict(self) -> dict[str, Any]:
        """Give it as plain values."""
        again = {one["name"]: one for one in self.confirmed.worked} if self.confirmed else {}
        return {
            "max_linkage": self.wish.max_linkage,
            "keep": self.wish.keep,
            "attacker": self.wish.attacker,
            "proposed": self.chosen and self._told(self.chosen),
            "command": self.command,
            "tried": len(self.searched.candidates),
            "runners_up": [
                self._told(one)
                for one in self.wish.best(self.searched)
                if one["name"] != (self.chosen or {}).get("name")
            ][:5],
            "confirmed_on_other_people": [self._told(one) for one in again.values()],
            "log": self.searched.data["log"],
        }

    def _told(self, one: Mapping[str, Any]) -> dict[str, Any]:
        found = one["linked"][self.wish.attacker]
        return {
            "name": one["name"],
            "settings": one["settings"],
            "keeps": self.wish.value(one),
            "linked": found,
            "does_not_protect_against": [
                line for promise in one["promises"] for line in promise["does_not_protect_against"]
            ],
        }


def recommend(
    log: str | Log,
    wish: Wish,
    *,
    folder: Path | None = None,
    sample: int = 3_000,
    seed: int = 1,
    reading: Reading | None = None,
    progress: Progress = silent,
) -> Proposal:
    """Search on a sample, far apart first, then closer; try the best again on other people; propose one."""
    wish.check()
    plan = Plan(tuple(parse(_FIRST)), wish.attacks(), wish.measures(), seed=seed, seconds=300)
    with ExitStack() as cleanup:
        place = folder or Path(cleanup.enter_context(tempfile.TemporaryDirectory()))
        people = _People(log, place, sample, seed, reading or Reading(), progress)
        cleanup.callback(people.forget)
        found = people.compare(people.first, plan, "search")
        for _ in range(_HALVINGS):
            closer = _closer(found, wish, plan)
            if not closer:
                break
            plan = plan.with_(candidates=(*plan.candidates, *closer))
            found = people.compare(people.first, plan, "search")
        best = wish.best(found)[:_TRIED_AGAIN]
        again = None
        if best:
            names = {one["name"] for one in best}
            few = tuple(one for one in plan.candidates if one.name in names)
            again = people.compare(people.second, plan.with_(candidates=few, seed=seed + 7919), "confirm")
        chosen = _confirmed(wish, best, again)
        return Proposal(wish, chosen, found, again, _command(log, chosen, plan) if chosen else None)


class _People:
    """Two samples of a log that share nobody: one to search on, one to try the best again."""

    def __init__(
        self, log: str | Log, place: Path, sample: int, seed: int, reading: Reading, progress: Progress
    ) -> None:
        self._place, self._progress = place, progress
        place.mkdir(parents=True, exist_ok=True)
        self._path = place / "people.parquet"
        self.about = prepare(
            log, self._path, sample=2 * sample, seed=seed, progress=progress,
            format=reading.format, mapping=reading.mapping, strict=reading.strict,
        )  # fmt: skip
        whole = io.read(str(self._path))
        users = whole.frame["user"].unique().sort().sample(fraction=1.0, shuffle=True, seed=seed)
        half = pl.col("user").is_in(users[: min(sample, users.len() // 2)].implode())
        self.first, self.second = (whole.with_frame(whole.frame.filter(part)) for part in (half, ~half))

    def compare(self, some: Log, plan: Plan, where: str) -> Comparison:
        """Run a plan on one of the samples; say what it was drawn from."""
        found = compare(
            some, plan, self._place / where, progress=self._progress,
            told=lambda done, total, rest: self._progress(where, done, total),
        )  # fmt: skip
        drawn = {"of_people": self.about.of_people, "of_records": self.about.of_records, "sampled": True}
        found.data["log"] |= drawn | {"skipped": self.about.skipped, "categories": self.about.categories}
        return found

    def forget(self) -> None:
        """Remove what is on disk of the log."""
        self._path.unlink(missing_ok=True)


def _closer(found: Comparison, wish: Wish, plan: Plan) -> list[Candidate]:
    """Halve the gap between what may be proposed and what may not, on the lines that promise most.

    Along a setting, more protection keeps less. So on each line the best setting lies between the last that
    links too much and the first that does not.
    """
    fit = {one["name"] for one in wish.best(found)}
    lines: dict[str, list[dict[str, Any]]] = {}
    for one in found.worked:
        if one["along"] is not None and isinstance(one["along"]["value"], int | float):
            lines.setdefault(one["line"], []).append(one)
    ranked = sorted(lines.values(), key=lambda line: max(map(wish.value, line)), reverse=True)
    made: list[Candidate] = []
    known = {one.key() for one in plan.candidates}
    for line in ranked:
        line.sort(key=lambda one: one["along"]["value"])
        for one, other in pairwise(line):
            if (one["name"] in fit) == (other["name"] in fit):
                continue
            middle = _between(one["along"]["value"], other["along"]["value"])
            asked = next(each for each in plan.candidates if each.name == one["name"])
            if middle is not None and asked.along is not None:
                new = Candidate(asked.methods, asked.settings | {asked.along: str(middle)}, asked.along)
                made += [new] if new.key() not in known else []
        if len(made) >= _LINES:
            break
    return made


def _between(low: float, high: float) -> float | None:
    """Give the value half-way by ratio; None when whole numbers have no room between them."""
    middle = (low * high) ** 0.5
    if isinstance(low, int) and isinstance(high, int):
        whole = round(middle)
        return whole if low < whole < high else None
    return float(f"{middle:.3g}") if high / low > 1.1 else None


def _confirmed(wish: Wish, best: list[dict[str, Any]], again: Comparison | None) -> dict[str, Any] | None:
    """Give the first of the best that also keeps to the limit on other people."""
    if again is None:
        return None
    passed = {one["name"] for one in wish.best(again)}
    return next((one for one in best if one["name"] in passed), None)


def _command(log: str | Log, chosen: Mapping[str, Any], plan: Plan) -> str:
    """Give the command that makes the proposed release of the whole log."""
    asked = next(one for one in plan.candidates if one.name == chosen["name"])
    name = "LOG" if isinstance(log, Log) else log
    parts = ["querycloak", "protect", name]
    for method in asked.methods:
        parts += ["-m", method]
    for setting, value in asked.settings.items():
        parts += ["-s", f"{setting}={value}"]
    return shlex.join([*parts, "-o", "release.parquet"])


def write(proposal: Proposal, folder: Path) -> Path:
    """Write the evidence: the proposal as JSON, and the report of everything that was tried."""
    from querycloak.report.comparison.files import write_all

    folder.mkdir(parents=True, exist_ok=True)
    write_all(proposal.searched, folder)
    path = folder / "proposal.json"
    path.write_text(json.dumps(proposal.as_dict(), indent=1, ensure_ascii=False) + "\n", "utf-8")
    return path
