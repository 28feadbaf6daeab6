"""`Comparison`: every candidate's promises, findings, measures and cost, put together over repeats."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Final, Self

from querycloak.errors import DataError
from querycloak.report.comparison.linked import linked

FORMAT: Final = "querycloak-comparison/1"
_T: Final = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}


@dataclass(frozen=True, repr=False)
class Comparison:
    """A comparison as plain values; everything that is shown anywhere is in `data`."""

    data: dict[str, Any]

    @property
    def candidates(self) -> list[dict[str, Any]]:
        """The candidates in the order in which they were asked for, those that failed too."""
        found: list[dict[str, Any]] = self.data["candidates"]
        return found

    @property
    def worked(self) -> list[dict[str, Any]]:
        """The candidates that have numbers."""
        return [one for one in self.candidates if not one["failed"]]

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read `comparison.json`, or the one in a folder."""
        path = Path(path)
        path = path / "comparison.json" if path.is_dir() else path
        try:
            found = json.loads(path.read_text("utf-8"))
            known = found["format"] == FORMAT
        except (OSError, ValueError, KeyError, TypeError):
            raise DataError(
                f"`{path.name}` is no comparison", hint="`querycloak compare` writes comparison.json"
            ) from None
        if not known:
            raise DataError(
                "this comparison was written in another format", hint=f"this version reads {FORMAT}"
            )
        return cls(found)

    def as_json(self) -> str:
        """Give the text of `comparison.json`."""
        return json.dumps(self.data, indent=1, ensure_ascii=False) + "\n"

    def __repr__(self) -> str:
        return f"Comparison({len(self.candidates)} candidates on {self.data['log']['people']:,} people)"

    def _repr_html_(self) -> str:
        """Show the table of candidates in a notebook."""
        from querycloak.report.comparison.notebook import table

        return table(self)


def candidate(
    about: Mapping[str, Any], runs: Sequence[Mapping[str, Any]], attacks: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Put the runs of one candidate together; if one of them failed, the candidate did."""
    failed = next((run for run in runs if run.get("failed")), None)
    found: dict[str, Any] = {**about, "failed": failed["failed"] if failed else None, "repeats": len(runs)}
    if failed or not runs:
        return found | {"failed": found["failed"] or "it was not run"}
    first = runs[0]
    found |= {
        "promises": first["promises"],
        "labels": first["labels"],
        "findings": {
            label: _finding([run["findings"][label] for run in runs]) for label in first["findings"]
        },
        "measures": _measures([run["measures"] for run in runs]),
        "cost": {
            "protect_seconds": fmean(run["seconds"]["protect"] for run in runs),
            "attack_seconds": fmean(run["seconds"]["attack"] for run in runs),
            "measure_seconds": fmean(run["seconds"]["measure"] for run in runs),
            "peak_mb": max(run["peak_mb"] for run in runs),
        },
    }
    return found | {"linked": linked(found, attacks)}


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Give mean and 95 % interval of the mean of repeated runs; of one run, only the value."""
    mean = fmean(values)
    if len(values) < 2:
        return mean, mean, mean
    half = _T.get(len(values), 2.0) * stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def _finding(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Put one attack's findings of all runs together.

    Each run has an interval of its own, for the people and records that it happened to meet. Runs differ by
    their draws as well; the wider of both is what is told.
    """
    first = found[0]
    kept = {name: first[name] for name in ("attack", "game", "unit", "bound", "n")}
    if any(one["not_applicable"] for one in found):
        reason = next(one["not_applicable"] for one in found if one["not_applicable"])
        return kept | {"success": None, "not_applicable": reason}
    mean, low, high = interval([one["success"] for one in found])
    low = max(0.0, min(low, _mean(one["low"] for one in found) or mean))
    high = min(1.0, max(high, _mean(one["high"] for one in found) or mean))
    bound = _mean(one["bound"] for one in found)
    return kept | {
        "success": mean,
        "low": low,
        "high": high,
        "bound": bound,
        "holds": None if bound is None else low <= bound,
        "median_user": _mean(one["median_user"] for one in found),
        "worst_decile_user": _mean(one["worst_decile_user"] for one in found),
        "seconds": fmean(one["seconds"] for one in found),
        "not_applicable": None,
    }


def _mean(values: Iterable[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return fmean(there) if there else None


def _measures(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Give each measure's number with its interval over runs, or why there is none."""
    names = dict.fromkeys(name for one in found for name in one)
    measured: dict[str, Any] = {}
    for name in names:
        values = [one[name] for one in found if name in one]
        reason = next((value["not_applicable"] for value in values if isinstance(value, dict)), None)
        if reason is not None:
            measured[name] = {"value": None, "not_applicable": reason}
            continue
        mean, low, high = interval(values)
        measured[name] = {"value": mean, "low": low, "high": high}
    return measured
