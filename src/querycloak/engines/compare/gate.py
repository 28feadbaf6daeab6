"""Thresholds for pipelines: a comparison passes a gate or it does not, and says where."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from querycloak.errors import UnknownName, UsageError
from querycloak.report.comparison.axes import AXES, kept
from querycloak.report.comparison.linked import ATTACKERS
from querycloak.report.comparison.result import Comparison
from querycloak.shown import percent

_KNOWN: Final = (
    "candidate",
    "attacker",
    "max_linked",
    "certain",
    "bounds",
    "attacks",
    "min_kept",
    "promises",
)
_HINT: Final = "docs/how-to/gate-a-pipeline.md shows one"


@dataclass(frozen=True)
class Check:
    """What candidates must keep to: all of them, or those whose name or line is given."""

    candidate: str | None = None
    attacker: str = "any"
    max_linked: float | None = None
    certain: bool = False
    bounds: bool = False
    promises: bool = False
    attacks: Mapping[str, float] = field(default_factory=dict)
    min_kept: Mapping[str, float] = field(default_factory=dict)

    def about(self, candidate: Mapping[str, Any]) -> bool:
        """Say whether a candidate is meant."""
        return self.candidate in (None, candidate["name"], candidate["line"])

    def faults(self, candidate: Mapping[str, Any]) -> Iterator[str]:
        """Say what a candidate does not keep to."""
        if candidate["failed"]:
            yield f"it has no numbers: {candidate['failed']}"
            return
        yield from self._linked(candidate)
        for label, most in self.attacks.items():
            found = candidate["findings"].get(label)
            if found is None:
                yield f"{label} was not run"
            elif self._above(found, most):
                yield f"{label} succeeds for {percent(self._value(found), 2)}, more than {percent(most, 2)}"
        if self.bounds:
            for label, found in candidate["findings"].items():
                if found.get("holds") is False:
                    share, bound = percent(found["success"], 2), percent(found["bound"], 2)
                    yield f"{label} succeeds for {share}, above the bound {bound}"
        if self.promises:
            yield from (
                f"the audit of {one['method']} says {one['audit']}"
                for one in candidate["promises"]
                if one["audit"] == "broken"
            )
        for name, least in self.min_kept.items():
            value = kept(candidate, name)
            if value is None:
                yield f"{AXES[name].title} cannot be measured"
            elif value[0] < least:
                yield f"{AXES[name].title}: {percent(value[0], 2)}, less than {percent(least, 2)}"

    def _linked(self, candidate: Mapping[str, Any]) -> Iterator[str]:
        found = candidate["linked"][self.attacker]
        if self.max_linked is not None and found is not None and self._above(found, self.max_linked):
            share = percent(self._value(found), 2)
            yield f"{found['attack']} links {share}, more than {percent(self.max_linked, 2)}"

    def _value(self, found: Mapping[str, Any]) -> float:
        value: float = found["high"] if self.certain else found["success"]
        return value

    def _above(self, found: Mapping[str, Any], most: float) -> bool:
        return found["success"] is not None and self._value(found) > most


@dataclass(frozen=True)
class Gate:
    """Checks that a comparison must pass."""

    checks: tuple[Check, ...]

    @classmethod
    def read(cls, path: Path) -> Gate:
        """Read a TOML file of `[[check]]` tables."""
        try:
            found = tomllib.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            raise UsageError(
                f"the gate `{path.name}` cannot be read", hint=f"it is a TOML file; {_HINT}"
            ) from None
        tables = found.get("check")
        if not isinstance(tables, list) or not tables or set(found) != {"check"}:
            raise UsageError("a gate has `[[check]]` tables and nothing else", hint=_HINT)
        return cls(tuple(_check(table) for table in tables))

    def faults(self, comparison: Comparison) -> list[dict[str, str]]:
        """Give what does not pass: the candidate, and why."""
        found = []
        for check in self.checks:
            meant = [one for one in comparison.candidates if check.about(one)]
            if not meant:
                found.append({"candidate": str(check.candidate), "why": "it is not in the comparison"})
            found += [{"candidate": one["name"], "why": why} for one in meant for why in check.faults(one)]
        return found


def _check(table: dict[str, Any]) -> Check:
    for name in table:
        if name not in _KNOWN:
            raise UnknownName(f"a check has no `{name}`", hint=f"it may have {', '.join(_KNOWN)}")
    made = Check(**table)
    if made.attacker not in ATTACKERS:
        raise UnknownName(f"no attacker is called `{made.attacker}`", hint=f"they are {', '.join(ATTACKERS)}")
    shares = {"max_linked": made.max_linked, **made.attacks, **made.min_kept}
    for name, value in shares.items():
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1
        ):
            raise UsageError(f"`{name}` must be a share from 0 to 1", hint=_HINT)
    for name in made.min_kept:
        if name not in AXES:
            raise UnknownName(f"nothing that is kept is called `{name}`", hint=f"they are {', '.join(AXES)}")
    return made
