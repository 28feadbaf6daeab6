"""Ready-made plans, read from `presets.toml`, and the plan of command-line arguments."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from querycloak.compare.plan import Plan
from querycloak.compare.spec import parse_attacks, parse_candidates, parse_measures
from querycloak.errors import UnknownName, UsageError
from querycloak.registry import MEASURES


@dataclass(frozen=True)
class Preset:
    """A ready-made plan and its purpose; texts are written as on the command line."""

    about: str
    candidates: tuple[str, ...]
    attacks: tuple[str, ...]
    measures: tuple[str, ...]
    sample: int = 0
    repeats: int = 1
    seconds: float = 600.0

    def plan(self, name: str | None = None) -> Plan:
        """Return the plan."""
        return Plan(
            tuple(parse_candidates(self.candidates)),
            parse_attacks(self.attacks),
            parse_measures(self.measures),
            repeats=self.repeats,
            sample=self.sample,
            seconds=self.seconds,
            preset=name,
        )


@cache
def _content() -> dict[str, Any]:
    return tomllib.loads(files("querycloak.compare").joinpath("presets.toml").read_text("utf-8"))


@cache
def presets() -> dict[str, Preset]:
    """Return all presets by name."""
    default = _content()["default"]
    found = {}
    for name, table in _content()["preset"].items():
        values = default | table
        names = MEASURES.names() if values["measures"] == "all" else values["measures"]
        values |= {"measures": tuple(names)}
        found[name] = Preset(**values | {part: tuple(values[part]) for part in ("candidates", "attacks")})
    return found


def default_attacks() -> tuple[str, ...]:
    """Return the attacks of a comparison that names none."""
    return tuple(_content()["default"]["attacks"])


def first_candidates() -> tuple[str, ...]:
    """Return the candidates with which `recommend` begins."""
    return tuple(_content()["recommend"]["candidates"])


def preset_plan(name: str) -> Plan:
    """Return the plan of a preset; raise UnknownName with the list of presets."""
    known = presets()
    if name not in known:
        about = "".join(f"\n  {other}: {one.about}" for other, one in known.items())
        raise UnknownName(f"no preset is called `{name}`", hint=f"the presets are {', '.join(known)}{about}")
    return known[name].plan(name)


def make_plan(
    methods: Sequence[str] = (),
    preset: str | None = None,
    attacks: Sequence[str] = (),
    measures: Sequence[str] = (),
    sample: int | None = None,
    repeats: int | None = None,
    seconds: float | None = None,
    seed: int | None = None,
) -> Plan:
    """Return the plan of a preset, of given methods, or of both together."""
    if not methods and preset is None:
        raise UsageError("nothing to compare was named", hint="name methods with -m, or `--preset quick`")
    given = parse_candidates(methods)
    default = _content()["default"]
    plan = (
        preset_plan(preset)
        if preset
        else Plan((), parse_attacks(default["attacks"]), parse_measures(default["measures"]))
    )
    known = {one.key() for one in plan.candidates}
    return plan.with_(
        candidates=(*plan.candidates, *(one for one in given if one.key() not in known)),
        attacks=parse_attacks(attacks),
        measures=parse_measures(measures),
        sample=sample,
        repeats=repeats,
        seconds=seconds,
        seed=seed,
        arguments=_arguments(methods, preset, attacks, measures, sample, repeats, seconds),
    )


def _arguments(
    methods: Sequence[str],
    preset: str | None,
    attacks: Sequence[str],
    measures: Sequence[str],
    sample: int | None,
    repeats: int | None,
    seconds: float | None,
) -> tuple[str, ...]:
    """Return the arguments of a command that makes the same plan; the report prints them."""
    words = [] if preset is None else ["--preset", preset]
    for flag, texts in (("-m", methods), ("-a", attacks), ("-u", measures)):
        words += [word for text in texts for word in (flag, text)]
    for flag, number in (("--sample", sample), ("--repeats", repeats), ("--seconds", seconds)):
        words += [] if number is None else [flag, f"{number:g}"]
    return tuple(words)
