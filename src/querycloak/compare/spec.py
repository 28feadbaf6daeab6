"""Parse what a comparison runs: `METHOD:NAME=V1,V2` into candidates, `ATTACK:NAME=VALUE` into attacks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from querycloak.attacks.base import Attack
from querycloak.attacks.run import prepare
from querycloak.compare.release_samples import SAMPLES
from querycloak.engines.pipeline import Stage, parse_stages
from querycloak.errors import UnknownName, UsageError
from querycloak.registry import MEASURES, METHODS

#: A larger number of candidates is taken for a typing error.
MOST = 2_000


@dataclass(frozen=True)
class Candidate:
    """One way to protect the log: methods in order, with the settings that were given.

    Candidates of one `series` differ in `varied_setting` only; a chart joins them by a line. `title` replaces
    the generated name. `sample` is the part of the release that is published (a key of `SAMPLES`); None: all.
    """

    methods: tuple[str, ...]
    settings: dict[str, str] = field(default_factory=dict)
    varied_setting: str | None = None
    title: str | None = None
    sample: str | None = None

    @property
    def name(self) -> str:
        """Name for readers: `cohort k=10`."""
        if self.title:
            return self.title
        chosen = " ".join(f"{name}={value}" for name, value in self.settings.items())
        part = f" ({self.sample})" if self.sample else ""
        return f"{' + '.join(self.methods)} {chosen}".rstrip() + part

    @property
    def series(self) -> str:
        """Name without the varied setting, shared by all candidates of a series."""
        if self.title:
            return self.title
        fixed = {name: value for name, value in self.settings.items() if name != self.varied_setting}
        return Candidate(self.methods, fixed, sample=self.sample).name

    def stages(self) -> list[Stage]:
        """Return the stages for the engine; raise for unknown names and invalid values."""
        return parse_stages(list(self.methods), self.settings)

    def full_settings(self) -> dict[str, dict[str, Any]]:
        """Return all settings of all stages, with defaults."""
        return {stage.method: stage.settings.as_dict() for stage in self.stages()}

    def varied_value(self) -> Any:
        """Return the value of the varied setting."""
        if self.varied_setting is None:
            return None
        method, _, short = self.varied_setting.rpartition(".")
        found = self.full_settings()
        owners = [method] if method else [name for name in self.methods if short in found[name]]
        return found[owners[0]][short]

    def key(self) -> str:
        """Return a short digest: equal for equal methods and settings, however they are spelled."""
        whole = [self.methods, self.full_settings()]
        text = json.dumps([*whole, self.sample] if self.sample else whole, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class AttackSpec:
    """An attack by name, with settings of its own."""

    name: str
    settings: dict[str, str]

    @property
    def label(self) -> str:
        """Name for readers: `link-overlap on=categories`."""
        return " ".join([self.name, *(f"{name}={value}" for name, value in self.settings.items())])

    def attack(self, seed: int | None = None) -> Attack:
        """Return the attack; raise for unknown names and invalid values."""
        return prepare([self.name], self.settings, seed)[0]

    @classmethod
    def parse(cls, text: str) -> AttackSpec:
        """Parse `NAME[:SETTING=VALUE]…`; raise for unknown names and invalid values."""
        name, *parts = text.split(":")
        settings = {}
        for part in parts:
            setting, equals, value = part.partition("=")
            if not equals or not setting or not value:
                raise UsageError(f"`{text}` cannot be read", hint="write ATTACK:NAME=VALUE")
            settings[setting] = value
        made = cls(name, settings)
        made.attack()
        return made


def parse_candidates(texts: Sequence[str]) -> list[Candidate]:
    """Parse `[TITLE::]METHOD[+METHOD…][:NAME=V1,V2…]…`; several values give all combinations."""
    found: dict[str, Candidate] = {}
    for text in texts:
        for candidate in _combinations(text):
            found.setdefault(candidate.key(), candidate)
            if len(found) > MOST:
                raise UsageError(
                    f"these are more than {MOST:,} ways to protect the log", hint="name fewer values"
                )
    return list(found.values())


def parse_attacks(texts: Sequence[str]) -> tuple[AttackSpec, ...]:
    """Parse attacks; one attack may occur with different settings, but not twice with the same."""
    found = tuple(AttackSpec.parse(text) for text in texts)
    if len({one.label for one in found}) < len(found):
        raise UsageError("an attack is named twice", hint="name each attack once, or with other settings")
    return found


def parse_measures(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of measures without repeats; raise for unknown ones."""
    for name in names:
        MEASURES.get(name)
    return tuple(dict.fromkeys(names))


def _combinations(text: str) -> list[Candidate]:
    title, _, text = text.rpartition("::")
    head, *parts = text.split(":")
    methods = tuple(name.strip() for name in head.split("+"))
    for name in methods:
        METHODS.get(name)
    choices = dict(_choice(part, text) for part in parts)
    samples = _samples(choices.pop("sample", None))
    several = [name for name, values in choices.items() if len(values) > 1]
    varied = several[-1] if several else _main_setting(methods, choices)
    made = [
        Candidate(methods, dict(zip(choices, values, strict=True)), varied, title or None, sample)
        for sample in samples
        for values in product(*choices.values())
    ]
    if title and len(made) > 1:
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
    for name in names or []:
        if name not in SAMPLES:
            raise UnknownName(f"no sample is called `{name}`", hint=f"the samples are {', '.join(SAMPLES)}")
    return [*names] if names else [None]


def _main_setting(methods: tuple[str, ...], choices: dict[str, list[str]]) -> str | None:
    """Return the varied setting of candidates that are given one by one, so that they form a series.

    It is the main setting of the last method for which it is given.
    """
    stages = parse_stages(list(methods), {name: values[0] for name, values in choices.items()})
    mains = [(stage.method, stage.traits.main_setting) for stage in reversed(stages)]
    names = [name for method, main in mains for name in (f"{method}.{main}", main)]
    return next((name for name in names if name in choices), None)
