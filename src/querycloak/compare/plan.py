"""The plan of a comparison and the jobs that it consists of; ready-made plans are in `presets.toml`."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

from querycloak._version import __version__
from querycloak.compare.spec import AttackSpec, Candidate, parse_attacks, parse_candidates, parse_measures
from querycloak.errors import UnknownName, UsageError
from querycloak.registry import ATTACKS, MEASURES, METHODS


@dataclass(frozen=True)
class Job:
    """One candidate on one log with one seed: the unit of work of a process, and of the stored results."""

    candidate: Candidate
    attacks: tuple[AttackSpec, ...]
    measures: tuple[str, ...]
    seed: int

    def key(self, log: str) -> str:
        """Return the name of the result's file; it depends on everything that can change a number.

        `log` is the digest of the log. The code counts too: results of other code are not used again.
        """
        parts = [METHODS.get(name) for name in self.candidate.methods]
        parts += [ATTACKS.get(one.name) for one in self.attacks]
        parts += [MEASURES.get(name) for name in self.measures]
        code = [__version__, code_digest(), [_plugin_digest(part) for part in parts]]
        work = [self.seed, [asdict(one) for one in self.attacks], self.measures]
        text = json.dumps([self.candidate.key(), log, *code, *work], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Plan:
    """Everything that decides the numbers of a comparison, apart from the log.

    `arguments` are the command-line arguments that give this plan again, without the seed.
    """

    candidates: tuple[Candidate, ...]
    attacks: tuple[AttackSpec, ...]
    measures: tuple[str, ...]
    seed: int = 1
    repeats: int = 1
    sample: int = 0
    seconds: float = 600.0
    preset: str | None = None
    arguments: tuple[str, ...] = ()

    def jobs(self) -> list[Job]:
        """Return the jobs: each candidate once per repeat, the first repeat of all candidates first."""
        return [
            Job(candidate, self.attacks, self.measures, self.seed + 1_000_003 * repeat)
            for repeat in range(self.repeats)
            for candidate in self.candidates
        ]

    def with_(self, **changes: Any) -> Plan:
        """Return a changed plan; a change that is None or empty is ignored."""
        return replace(self, **{name: value for name, value in changes.items() if value not in (None, ())})


@cache
def ready_made() -> dict[str, Any]:
    """Return the tables of `presets.toml`."""
    return tomllib.loads(files("querycloak.compare").joinpath("presets.toml").read_text("utf-8"))


def presets() -> dict[str, str]:
    """Return the purpose of each preset by its name."""
    return {name: table["about"] for name, table in ready_made()["preset"].items()}


def preset_plan(name: str | None) -> Plan:
    """Return the plan of a preset, or one without candidates; raise UnknownName with the list of presets."""
    if name is not None and name not in presets():
        about = "".join(f"\n  {other}: {purpose}" for other, purpose in presets().items())
        raise UnknownName(
            f"no preset is called `{name}`", hint=f"the presets are {', '.join(presets())}{about}"
        )
    values = ready_made()["default"] | (ready_made()["preset"][name] if name else {})
    return Plan(
        tuple(parse_candidates(values.get("candidates", ()))),
        parse_attacks(values["attacks"]),
        parse_measures(MEASURES.names() if values["measures"] == "all" else values["measures"]),
        preset=name,
        **{part: values[part] for part in ("sample", "repeats", "seconds") if part in values},
    )


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
    words = [] if preset is None else ["--preset", preset]
    for flag, texts in (("-m", methods), ("-a", attacks), ("-u", measures)):
        words += [word for text in texts for word in (flag, text)]
    for flag, number in (("--sample", sample), ("--repeats", repeats), ("--seconds", seconds)):
        words += [] if number is None else [flag, f"{number:g}"]
    plan = preset_plan(preset)
    known = {one.key() for one in plan.candidates}
    return plan.with_(
        candidates=(*plan.candidates, *(one for one in parse_candidates(methods) if one.key() not in known)),
        attacks=parse_attacks(attacks),
        measures=parse_measures(measures),
        sample=sample,
        repeats=repeats,
        seconds=seconds,
        seed=seed,
        arguments=tuple(words),
    )


@cache
def code_digest() -> str:
    """Return a digest of the package's source files and of the versions of its installed dependencies."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    digest.update(json.dumps(_installed()).encode())
    return digest.hexdigest()


def _installed() -> list[tuple[str, str | None]]:
    """Return the dependencies with their versions; None for one that is missing, such as one of an extra."""
    try:
        names = {re.split(r"[^\w.-]", text)[0] for text in metadata.requires("querycloak") or ()}
    except metadata.PackageNotFoundError:  # run from its source
        return []
    return [
        (name, next((one.version for one in metadata.distributions(name=name)), None))
        for name in sorted(names)
    ]


def _plugin_digest(part: type) -> str | None:
    """Return a digest of the file of a method, attack or measure that is not part of the package."""
    if part.__module__.partition(".")[0] == "querycloak":
        return None
    try:
        source = inspect.getsourcefile(part)
    except TypeError:  # defined in a notebook
        source = None
    return source and hashlib.sha256(Path(source).read_bytes()).hexdigest()
