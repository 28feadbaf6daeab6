"""What a comparison is asked to run: methods with one or several values for their settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from querycloak.engines.compare.samples import SAMPLES
from querycloak.engines.pipeline import Stage, parse_stages
from querycloak.errors import UnknownName, UsageError
from querycloak.registry import METHODS

#: More candidates than this are a slip of the keyboard rather than a plan.
MOST = 2_000


@dataclass(frozen=True)
class Candidate:
    """One way to protect the log: methods in order, with the settings that were asked for.

    `line` says which candidates belong together in a picture, `along` the setting that tells them apart.
    """

    methods: tuple[str, ...]
    settings: dict[str, str] = field(default_factory=dict)
    along: str | None = None
    given: str | None = None
    sample: str | None = None  # what is handed out of the release, by its name in `SAMPLES`; None: all of it

    @property
    def name(self) -> str:
        """A name for people: `cohort k=10`."""
        if self.given:
            return self.given
        chosen = " ".join(f"{name}={value}" for name, value in self.settings.items())
        of_it = f" ({self.sample})" if self.sample else ""
        return f"{' + '.join(self.methods)} {chosen}".rstrip() + of_it

    @property
    def line(self) -> str:
        """What the candidates of one line have in common."""
        if self.given:
            return self.given
        fixed = {name: value for name, value in self.settings.items() if name != self.along}
        return Candidate(self.methods, fixed, sample=self.sample).name

    def stages(self) -> list[Stage]:
        """Give what the engine runs; wrong names and values are refused here."""
        return parse_stages(list(self.methods), self.settings)

    def full_settings(self) -> dict[str, dict[str, Any]]:
        """Give all settings of all stages, the defaults too."""
        return {stage.method: stage.settings.as_dict() for stage in self.stages()}

    def value(self) -> Any:
        """Give the value of the setting that the line goes along."""
        if self.along is None:
            return None
        method, _, short = self.along.rpartition(".")
        found = self.full_settings()
        owners = [method] if method else [name for name in self.methods if short in found[name]]
        return found[owners[0]][short]

    def key(self) -> str:
        """Give a short name for files: the same methods and settings have the same, however spelled."""
        whole = [self.methods, self.full_settings()]
        text = json.dumps([*whole, self.sample] if self.sample else whole, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def parse(texts: Sequence[str]) -> list[Candidate]:
    """Read `[TITLE::]METHOD[+METHOD…][:NAME=V1,V2…]…`; several values give all combinations."""
    found: dict[str, Candidate] = {}
    for text in texts:
        for candidate in _combinations(text):
            found.setdefault(candidate.key(), candidate)
            if len(found) > MOST:
                raise UsageError(
                    f"these are more than {MOST:,} ways to protect the log", hint="name fewer values"
                )
    return list(found.values())


def _combinations(text: str) -> list[Candidate]:
    given, _, text = text.rpartition("::")
    head, *parts = text.split(":")
    methods = tuple(name.strip() for name in head.split("+"))
    for name in methods:
        METHODS.get(name)
    choices = dict(_choice(part, text) for part in parts)
    samples = _samples(choices.pop("sample", None))
    several = [name for name, values in choices.items() if len(values) > 1]
    along = several[-1] if several else _usual(methods, choices)
    made = [
        Candidate(methods, dict(zip(choices, values, strict=True)), along, given or None, sample)
        for sample in samples
        for values in product(*choices.values())
    ]
    if given and len(made) > 1:
        raise UsageError("one name cannot stand for several settings", hint="leave out `NAME::`")
    for candidate in made:
        candidate.stages()
    return made


def _choice(part: str, text: str) -> tuple[str, list[str]]:
    name, equals, values = part.partition("=")
    chosen = [value.strip() for value in values.split(",")]
    if not equals or not name.strip() or not all(chosen):
        raise UsageError(
            f"`{text}` cannot be read", hint="write METHOD:NAME=V1,V2 and for more settings :NAME=… again"
        )
    return name.strip(), chosen


def _samples(names: list[str] | None) -> list[str | None]:
    """Read `sample=`, which says what is handed out of a release."""
    for name in names or []:
        if name not in SAMPLES:
            raise UnknownName(f"no sample is called `{name}`", hint=f"the samples are {', '.join(SAMPLES)}")
    return [*names] if names else [None]


#: The setting along which a method is usually varied, the first that is there.
_USUAL = ("k", "z", "epsilon", "Kp", "d")


def _usual(methods: tuple[str, ...], choices: dict[str, list[str]]) -> str | None:
    """Candidates that are asked for one by one still make a line, if their usual setting is named."""
    named = {name.rpartition(".")[2]: name for name in choices}
    return next((named[name] for name in _USUAL if name in named), None)
