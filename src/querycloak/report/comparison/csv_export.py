"""Every number of a comparison as CSV, one to a line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any, Final

from msgspec import structs

from querycloak.compare.result import ATTACKERS, CandidateResult, Comparison
from querycloak.measures.base import ALL_USES

COLUMNS: Final = ("candidate", "line", "kind", "name", "value", "low", "high", "bound", "holds", "note")
Row = dict[str, Any]


def csv_text(comparison: Comparison) -> str:
    """Return the CSV text.

    `kind` is `linked` or `kept` (as in tables and charts), `attack`, `people` (quantiles of an attack over
    users), `measure` (as measured), `cost`, `failed` or `not run`.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n", restval="")
    writer.writeheader()
    for one in comparison.candidates:
        rows = [{"kind": "failed", "note": one.failed}] if one.failed else _rows(one)
        writer.writerows({"candidate": one.name, "line": one.series} | row for row in rows)
    for method in comparison.not_run:
        writer.writerow({"candidate": method["method"], "kind": "not run", "note": method["why"]})
    return out.getvalue()


def _rows(one: CandidateResult) -> Iterator[Row]:
    for attacker in ATTACKERS:
        row: Row = {"kind": "linked", "name": attacker}
        if found := one.linked(attacker):
            finding = one.findings[found.attack]
            yield row | {
                "value": found.success, "low": found.low, "high": found.high,
                "bound": finding.bound, "holds": finding.holds, "note": found.attack,
            }  # fmt: skip
        else:
            yield row | {"note": one.why_not_linked}
    for use in ALL_USES.values():
        share = one.kept(use.name)
        row = {"kind": "kept", "name": use.name}
        yield row | (share._asdict() if share else {"note": one.why_not_kept(use.name)})
    for label, finding in one.findings.items():
        yield {
            "kind": "attack", "name": label, "value": finding.success,
            "low": finding.low, "high": finding.high, "bound": finding.bound, "holds": finding.holds,
            "note": finding.not_applicable or f"share of {finding.n} {finding.unit}s",
        }  # fmt: skip
        for name in ("median_user", "worst_decile_user"):
            if (value := getattr(finding, name)) is not None:
                yield {"kind": "people", "name": f"{label}.{name}", "value": value}
    for name, measured in one.measures.items():
        note = measured.not_applicable or ""
        ends = {"value": measured.value, "low": measured.low, "high": measured.high}
        yield {"kind": "measure", "name": name, "note": note} | ends
    for name, value in structs.asdict(one.cost).items():
        yield {"kind": "cost", "name": name, "value": value}
