"""The plan of a comparison: candidates, attacks and measures, and how often each is repeated."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from querycloak._version import __version__
from querycloak.attacks.run import prepare
from querycloak.engines.compare.asked import Candidate
from querycloak.errors import UsageError
from querycloak.registry import MEASURES


@dataclass(frozen=True)
class Attacked:
    """An attack by name, with settings of its own."""

    name: str
    settings: dict[str, str]

    @property
    def label(self) -> str:
        """A name for people: `link-overlap on=categories`."""
        return " ".join([self.name, *(f"{name}={value}" for name, value in self.settings.items())])

    @classmethod
    def parse(cls, text: str) -> Attacked:
        """Read `NAME[:SETTING=VALUE]…`, and refuse what there is not."""
        name, *parts = text.split(":")
        settings = {}
        for part in parts:
            setting, equals, value = part.partition("=")
            if not equals or not setting or not value:
                raise UsageError(f"`{text}` cannot be read", hint="write ATTACK:NAME=VALUE")
            settings[setting] = value
        prepare([name], settings)
        return cls(name, settings)


@dataclass(frozen=True)
class Job:
    """One candidate on one log with one seed: what a process is given, and what its result is kept under."""

    candidate: Candidate
    attacks: tuple[Attacked, ...]
    measures: tuple[str, ...]
    seed: int
    repeat: int = 0
    people: int | None = None  # fewer people than the log has, to see what size does

    def key(self, log: str) -> str:
        """Give the name of the result's file; it changes with anything that may change a number."""
        rest = [
            log,
            __version__,
            self.seed,
            self.people,
            [asdict(one) for one in self.attacks],
            self.measures,
        ]
        text = json.dumps([self.candidate.key(), *rest], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Plan:
    """Everything that decides the numbers of a comparison, the log aside."""

    candidates: tuple[Candidate, ...]
    attacks: tuple[Attacked, ...]
    measures: tuple[str, ...]
    seed: int = 1
    repeats: int = 1
    sample: int = 0
    seconds: float = 600.0
    preset: str | None = None
    asked: tuple[str, ...] = ()

    def jobs(self) -> list[Job]:
        """Give the work: each candidate once for every repeat, the first of all candidates first."""
        return [
            Job(candidate, self.attacks, self.measures, self._seed(repeat), repeat)
            for repeat in range(self.repeats)
            for candidate in self.candidates
        ]

    def halves(self) -> list[Job]:
        """Give the work that shows what the sample's size does: one candidate of each line on half of it."""
        lines: dict[str, list[Candidate]] = {}
        for candidate in self.candidates:
            lines.setdefault(candidate.line, []).append(candidate)
        middle = [line[len(line) // 2] for line in lines.values()]
        return [
            Job(candidate, self.attacks, self.measures, self._seed(0), people=self.sample // 2)
            for candidate in middle
        ]

    def _seed(self, repeat: int) -> int:
        return self.seed + 1_000_003 * repeat

    def with_(self, **changes: Any) -> Plan:
        """Give a plan with some things changed; what is None or empty changes nothing."""
        return replace(self, **{name: value for name, value in changes.items() if value not in (None, ())})


def attacks_of(texts: Sequence[str]) -> tuple[Attacked, ...]:
    """Read attacks; each may be named with several settings, but not twice with the same."""
    found = tuple(Attacked.parse(text) for text in texts)
    if len({one.label for one in found}) < len(found):
        raise UsageError("an attack is named twice", hint="name each attack once, or with other settings")
    return found


def measures_of(names: Sequence[str]) -> tuple[str, ...]:
    """Check names of measures."""
    for name in names:
        MEASURES.get(name)
    return tuple(dict.fromkeys(names))
