"""Thresholds for pipelines: read from TOML, checked against a comparison."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from querycloak.compare.result import ATTACKERS, NOTHING_TO_LINK, CandidateResult, Comparison
from querycloak.errors import UnknownName, UsageError
from querycloak.formatting import percent
from querycloak.measures.base import ALL_USES

_HINT: Final = "docs/how-to/gate-a-pipeline.md shows one"
_TEXT, _FLAG, _SHARES = (str, "a text"), (bool, "true or false"), (dict, "a table of names and shares")
#: The type of each field of a check, and the words for it.
_TYPES: Final[dict[str, tuple[type[Any], str]]] = {
    "candidate": _TEXT,
    "attacker": _TEXT,
    "max_linked": (object, ""),
    "certain": _FLAG,
    "bounds": _FLAG,
    "promises": _FLAG,
    "attacks": _SHARES,
    "min_kept": _SHARES,
}


@dataclass(frozen=True)
class Check:
    """Thresholds for all candidates, or for those with a given name or series.

    `certain`: the upper end of the interval counts instead of the value.
    """

    candidate: str | None = None
    attacker: str = "any"
    max_linked: float | None = None
    certain: bool = False
    bounds: bool = False
    promises: bool = False
    attacks: Mapping[str, float] = field(default_factory=dict)
    min_kept: Mapping[str, float] = field(default_factory=dict)

    def applies_to(self, candidate: CandidateResult) -> bool:
        """Whether the check is about a candidate."""
        return self.candidate in (None, candidate.name, candidate.series)

    def faults(self, candidate: CandidateResult) -> Iterator[str]:
        """Yield a sentence for each threshold that a candidate misses.

        What was not measured does not pass, unless the release has nothing that could be linked.
        """
        if candidate.failed:
            yield f"it has no numbers: {candidate.failed}"
            return
        yield from self._linked(candidate)
        yield from self._attacks(candidate)
        if self.bounds:
            yield from self._bounds(candidate)
        if self.promises:
            broken = (one for one in candidate.promises if one.audit == "broken")
            yield from (f"the audit of {one.method} says {one.audit}" for one in broken)
        for name, least in self.min_kept.items():
            share = candidate.kept(name)
            if share is None:
                yield f"{ALL_USES[name].title} cannot be measured"
            elif share.value < least:
                yield f"{ALL_USES[name].title}: {percent(share.value, 2)}, less than {percent(least, 2)}"

    def _linked(self, candidate: CandidateResult) -> Iterator[str]:
        if self.max_linked is None:
            return
        found = candidate.linked(self.attacker)
        if found is None:
            if _linkable(candidate):
                yield f"no attack of the attacker `{self.attacker}` was measured"
            return
        value = found.high if self.certain else found.success
        if value > self.max_linked:
            yield f"{found.attack} links {percent(value, 2)}, more than {percent(self.max_linked, 2)}"

    def _attacks(self, candidate: CandidateResult) -> Iterator[str]:
        for label, most in self.attacks.items():
            found = candidate.findings.get(label)
            if found is None:
                yield f"{label} was not run"
                continue
            value = found.high if self.certain else found.success
            if value is None:
                if _linkable(candidate):
                    yield f"{label} has no numbers: {found.not_applicable}"
            elif value > most:
                yield f"{label} succeeds for {percent(value, 2)}, more than {percent(most, 2)}"

    def _bounds(self, candidate: CandidateResult) -> Iterator[str]:
        measured = [one for one in candidate.findings.values() if one.success is not None]
        if _linkable(candidate) and all(one.game == "control" for one in measured):
            yield "no attack was measured, so no bound was tested"
        for label, found in candidate.findings.items():
            if found.holds is False:
                share, bound = percent(found.success, 2), percent(found.bound, 2)
                yield f"{label} succeeds for {share}, above the bound {bound}"


def _linkable(candidate: CandidateResult) -> bool:
    return candidate.labels not in NOTHING_TO_LINK


@dataclass(frozen=True)
class Gate:
    """Checks that a comparison must pass."""

    checks: tuple[Check, ...]

    @classmethod
    def read(cls, path: Path) -> Gate:
        """Read a TOML file of `[[check]]` tables; raise for unknown names and wrong types."""
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
        """Return what does not pass: the candidate, and why."""
        found = []
        for check in self.checks:
            meant = [one for one in comparison.candidates if check.applies_to(one)]
            if not meant:
                found.append({"candidate": str(check.candidate), "why": "it is not in the comparison"})
            found += [{"candidate": one.name, "why": why} for one in meant for why in check.faults(one)]
        return found


def _check(table: Any) -> Check:
    """Return a check; raise for unknown names and values of another type."""
    if not isinstance(table, dict):
        raise UsageError("a gate has `[[check]]` tables and nothing else", hint=_HINT)
    for name, value in table.items():
        if name not in _TYPES:
            raise UnknownName(f"a check has no `{name}`", hint=f"it may have {', '.join(_TYPES)}")
        kind, meant = _TYPES[name]
        if not isinstance(value, kind):
            raise UsageError(f"`{name}` must be {meant}", hint=_HINT)
        shares: dict[str, Any] = value if kind is dict else {name: value} if name == "max_linked" else {}
        for part, share in shares.items():
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
                raise UsageError(f"`{part}` must be a share from 0 to 1", hint=_HINT)
    made = Check(**table)
    if made.attacker not in ATTACKERS:
        raise UnknownName(f"no attacker is called `{made.attacker}`", hint=f"they are {', '.join(ATTACKERS)}")
    for name in (name for name in made.min_kept if name not in ALL_USES):
        raise UnknownName(f"nothing that is kept is called `{name}`", hint=f"they are {', '.join(ALL_USES)}")
    return made
