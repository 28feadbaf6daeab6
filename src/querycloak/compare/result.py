"""`Comparison`: the typed results of all candidates, as JSON and back; repeated runs are combined here."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Final, Self

import msgspec

from querycloak.attacks.finding import Finding, Linkage, linkage
from querycloak.compare.sampling import LogSample
from querycloak.errors import DataError
from querycloak.formatting import percent, table
from querycloak.intervals import Estimate, t_point
from querycloak.knowledge import Knowledge
from querycloak.measures.base import ALL_USES, KEEP
from querycloak.protector import Labels
from querycloak.registry import labels_of, stages_of, traits_of

FORMAT: Final = "querycloak-comparison/1"
#: What the attackers of this format know: nothing beside the release; anything. `knowing` and `any` are one.
ATTACKERS: Final = {
    "release": Knowledge.RELEASE,
    "knowing": Knowledge.EVERYTHING,
    "any": Knowledge.EVERYTHING,
}
#: Why nothing can be linked in a release with such labels.
NOTHING_TO_LINK: Final = {
    "empty": "nothing was released",
    "table": "a table of counts has no records to link; its promise is what there is",
    "made up": "every record was made up from the release, and is nobody's",
    "none": "records carry no label, so nothing ties two of them together but their texts",
}
#: What labels mean, in the words of this format.
_LABELS: Final = {
    Labels.OWN: "one person each",
    Labels.PARTS: "one person each",
    Labels.OTHERS: "mixed",
    Labels.GROUP: "mixed",
    Labels.NONE: "none",
}
#: Fields of a candidate that failed, and of a finding without and with figures, in `comparison.json`.
_FAILED: Final = ("name", "line", "methods", "settings", "along", "failed", "repeats")
_ALWAYS: Final = ("attack", "game", "unit", "bound", "n", "success", "not_applicable")
_FIGURES: Final = ("low", "high", "holds", "median_user", "worst_decile_user", "seconds")
_MEASURED: Final = (*_ALWAYS[:-1], *_FIGURES, _ALWAYS[-1])


def label_text(certificate: Mapping[str, Any]) -> str:
    """Return what a label of a release stands for: mixed, one person each, shared, none, or a table."""
    own = [traits for _, traits in stages_of(certificate) if traits]
    if certificate["release"].get("table"):
        return "table"
    if any("user" in one.empties for one in own):
        return "none"
    if any(one.creates_rows for one in own):
        return "shared"  # every row is made up of several users' rows
    return _LABELS[labels_of(certificate)]


class MeasureResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """One number of a measure over all runs, or the reason why there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None
    not_applicable: str | None = None


class PromiseResult(msgspec.Struct, frozen=True):
    """The promise of one method in words, the verdict of its audit, and what it does not cover."""

    method: str
    words: str
    audit: str
    facts: dict[str, Any]
    does_not_protect_against: list[str]


class Cost(msgspec.Struct, frozen=True):
    """Mean times of a run in seconds, and its peak memory in megabytes."""

    protect_seconds: float = 0.0
    attack_seconds: float = 0.0
    measure_seconds: float = 0.0
    peak_mb: float = 0.0


class VariedSetting(msgspec.Struct, frozen=True):
    """The setting in which the candidates of a series differ."""

    setting: str
    value: Any


class CandidateResult(
    msgspec.Struct, frozen=True, rename={"series": "line", "varied": "along", "linkage": "linked"}
):
    """The results of one candidate; one that failed has only the fields up to `repeats`.

    `labels` is what a label of the release stands for, which decides which games apply. `findings` are those
    of all runs together, by the label of the attack with its settings.
    """

    name: str
    series: str
    methods: list[str]
    settings: dict[str, dict[str, Any]]
    varied: VariedSetting | None
    failed: str | None = None
    repeats: int = 1
    promises: list[PromiseResult] = []
    labels: str = ""
    findings: dict[str, Finding] = {}
    measures: dict[str, MeasureResult] = {}
    cost: Cost = Cost()
    linkage: dict[str, Linkage | None] = {}

    def linked(self, attacker: str) -> Linkage | None:
        """Return what an attacker of this kind links; None if no attack applies."""
        return self.linkage.get(attacker)

    @property
    def why_not_linked(self) -> str:
        """The reason why there is no linked share."""
        return NOTHING_TO_LINK.get(self.labels, "no attack of this kind applies")

    def kept(self, use: str) -> Estimate | None:
        """Return the share of a use that is kept; None where it was not measured."""
        found = self.measures.get(ALL_USES[use].measure, MeasureResult(None))
        if found.value is None or found.low is None or found.high is None:
            return None
        ends = (found.value, found.low, found.high)
        if ALL_USES[use].reversed:
            ends = (1 - found.value, 1 - found.high, 1 - found.low)
        return Estimate(*(min(1.0, max(0.0, end)) for end in ends))

    def why_not_kept(self, use: str) -> str:
        """Return the reason why a use has no number."""
        figure = ALL_USES[use].measure
        for name in (figure, figure.partition(".")[0]):
            if name in self.measures and (reason := self.measures[name].not_applicable):
                return reason
        return "this was not measured, or the release lacks what it is measured by"

    @property
    def comparison_only(self) -> bool:
        """Whether a method of the candidate declares that its release must not be published."""
        parts = ({"method": name, "settings": settings} for name, settings in self.settings.items())
        return any(own.comparison_only for own in map(traits_of, parts) if own)

    @property
    def not_protected(self) -> list[str]:
        """What the methods do not protect against, in their own words."""
        return [line for promise in self.promises for line in promise.does_not_protect_against]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values under the names of `comparison.json`."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        if self.failed:
            return {name: found[name] for name in _FAILED}
        return found | {"findings": {label: _finding_as_dict(one) for label, one in self.findings.items()}}


class Comparison(msgspec.Struct, frozen=True, kw_only=True, rename={"arguments": "asked"}):
    """The results of a comparison; `comparison.json` holds the same values.

    `attacks` and `measures` describe what was run, `methods` what each method does, `not_run` which methods
    were left out and why. `arguments` are the command-line arguments of the plan.
    """

    version: str
    preset: str | None = None
    arguments: list[str] = []
    seed: int
    seeds: list[int]
    repeats: int
    log: LogSample
    attacks: list[dict[str, Any]]
    measures: list[dict[str, str]]
    methods: dict[str, str] = {}
    candidates: list[CandidateResult]
    not_run: list[dict[str, str]]

    @property
    def succeeded(self) -> list[CandidateResult]:
        """The candidates that have numbers."""
        return [one for one in self.candidates if not one.failed]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values under the names of `comparison.json`."""
        own = {"log": self.log.as_dict(), "candidates": [one.as_dict() for one in self.candidates]}
        return {"format": FORMAT, **msgspec.to_builtins(self), **own}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Self:
        """Return the comparison that `as_dict` made plain."""
        return msgspec.convert({"seeds": [found["seed"]], **found}, cls)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read `comparison.json`, or the one in a folder."""
        path = Path(path)
        path = path / "comparison.json" if path.is_dir() else path
        try:
            found = json.loads(path.read_text("utf-8"))
            if found["format"] != FORMAT:
                raise DataError(
                    "this comparison was written in another format", hint=f"this version reads {FORMAT}"
                )
            return cls.from_dict(found)
        except (OSError, ValueError, KeyError, TypeError):
            raise DataError(
                f"`{path.name}` is no comparison", hint="`querycloak compare` writes comparison.json"
            ) from None

    def as_json(self) -> str:
        """Return the text of `comparison.json`."""
        return json.dumps(self.as_dict(), indent=1, ensure_ascii=False) + "\n"

    def __repr__(self) -> str:
        return f"Comparison({len(self.candidates)} candidates on {self.log.people:,} people)"

    def _repr_html_(self) -> str:
        """Return the table of candidates for a notebook."""
        head = ["candidate", "linked, sees the release only", "linked, knows more"]
        head += [f"{title} kept" for title in KEEP.values()]
        rows = [_notebook_row(one) for one in self.candidates]
        return table(head, rows, f"{len(rows)} candidates on {self.log.people:,} people; 95 % intervals")


def _notebook_row(one: CandidateResult) -> list[str]:
    if one.failed:
        return [one.name, one.failed, *[""] * (1 + len(KEEP))]
    linked = [
        f"{percent(found.success)} ({100 * found.low:.1f} to {percent(found.high)})" if found else "–"
        for found in map(one.linked, ("release", "knowing"))
    ]
    return [one.name, *linked, *(percent(found and found.value) for found in map(one.kept, KEEP))]


# Repeated runs


def combine_runs(about: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> CandidateResult:
    """Return the result of a candidate over its runs; it failed if one of them did.

    `about` holds the fields of `CandidateResult` that are known before a run.
    """
    failed = next((str(run["failed"]) for run in runs if run.get("failed")), None)
    if failed or not runs:
        return CandidateResult(**about, failed=failed or "it was not run", repeats=len(runs))
    first = runs[0]
    findings = {
        label: _combine_findings([run["findings"][label] for run in runs]) for label in first["findings"]
    }
    parts = ("protect", "attack", "measure")
    protect, attack, measure = (fmean(run["seconds"][part] for run in runs) for part in parts)
    return CandidateResult(
        **about,
        repeats=len(runs),
        promises=msgspec.convert(first["promises"], list[PromiseResult]),
        labels=first["labels"],
        findings=findings,
        measures=_combine_measures([run["measures"] for run in runs]),
        cost=Cost(protect, attack, measure, max(run["peak_mb"] for run in runs)),
        linkage=_linkage(first["labels"], findings),
    )


def _linkage(labels: str, findings: Mapping[str, Finding]) -> dict[str, Linkage | None]:
    """Return what each kind of attacker links, with the attack by its label."""
    named = [replace(one, attack=label) for label, one in findings.items()]
    found = [] if labels in NOTHING_TO_LINK else named
    return {attacker: linkage(found, knows) for attacker, knows in ATTACKERS.items()}


def interval(values: Sequence[float]) -> Estimate:
    """Return the mean of repeated runs with its 95 % interval by Student's t; of one run, only the value."""
    mean = fmean(values)
    if len(values) < 2:
        return Estimate(mean, mean, mean)
    half = t_point(len(values) - 1.0) * stdev(values) / math.sqrt(len(values))
    return Estimate(mean, mean - half, mean + half)


def _combine_findings(found: Sequence[Mapping[str, Any]]) -> Finding:
    """Return one attack's result over all runs.

    Each run has an interval for its users and records. Runs differ by their random draws as well; the
    result has the wider of both intervals.
    """
    first = found[0]
    kept = {name: first[name] for name in ("attack", "game", "unit", "bound", "n")}
    if reason := next((one["not_applicable"] for one in found if one["not_applicable"]), None):
        return Finding(**kept, not_applicable=reason)
    mean, low, high = interval([one["success"] for one in found])
    low = max(0.0, min(low, fmean(one["low"] for one in found)))
    high = min(1.0, max(high, fmean(one["high"] for one in found)))
    return Finding(
        **kept | {"bound": _mean(one["bound"] for one in found)},
        success=mean,
        low=low,
        high=high,
        median_user=_mean(one["median_user"] for one in found),
        worst_decile_user=_mean(one["worst_decile_user"] for one in found),
        seconds=fmean(one["seconds"] for one in found),
        knowledge=Knowledge(first["knowledge"]),
        labels=Labels(first["labels"]),
    )


def _finding_as_dict(one: Finding) -> dict[str, Any]:
    return {name: getattr(one, name) for name in (_ALWAYS if one.success is None else _MEASURED)}


def _mean(values: Iterable[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return fmean(there) if there else None


def _combine_measures(found: Sequence[Mapping[str, Any]]) -> dict[str, MeasureResult]:
    """Return each measure's number with its interval over runs, or why there is none."""
    measured = {}
    for name in dict.fromkeys(name for one in found for name in one):
        values = [one[name] for one in found if name in one]
        reason = next((value["not_applicable"] for value in values if isinstance(value, dict)), None)
        without = MeasureResult(None, not_applicable=reason)
        measured[name] = without if reason else MeasureResult(*interval(values))
    return measured
