"""Tests every stage's promise on the final release, and that the release is made of the original."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from querycloak import certificate
from querycloak.audits.cells import CellAudit, CellRules
from querycloak.audits.evidence import Evidence, Part
from querycloak.audits.lineage import LINEAGE
from querycloak.engines.pipeline import Stage
from querycloak.guarantee import NOTHING_RELEASED, Finding, Guarantee, NotCheckable
from querycloak.protector import Labels


@dataclass(frozen=True)
class AuditResult:
    """What an audit found: by method, and about the release as a whole.

    `waiting` is what the audit of a stream's next part must know of this one, if a method needs that.
    """

    methods: list[dict[str, Any]]
    lineage: list[Finding]
    waiting: pl.DataFrame | None = None

    def findings(self) -> Iterator[tuple[str, Finding]]:
        """List every check with what it is about: a method, or the release."""
        for part in self.methods:
            yield from ((part["method"], Finding(**check)) for check in part["checks"])
        yield from (("release", finding) for finding in self.lineage)

    def broken(self) -> list[str]:
        """Name the promises that are broken: `frequent-only: no query left early (2 rows …)`."""
        return [f"{who}: {f.check} ({f.detail})" for who, f in self.findings() if f.verdict == "broken"]


def audit(
    stages: list[Stage],
    release: pl.LazyFrame,
    original: pl.LazyFrame | None = None,
    truth: pl.LazyFrame | None = None,
    *,
    erased: pl.LazyFrame | None = None,
    part: Part | None = None,
    spell: Callable[[], pl.LazyFrame] | None = None,
    query_texts: Callable[[], pl.LazyFrame] | None = None,
    cells: CellAudit | None = None,
) -> AuditResult:
    """Test the promise of each stage on the final release, with whatever evidence there is.

    `cells` has seen every cell of the release.
    """
    parts, waiting = [], None
    given = Evidence(release, original, truth, erased=erased, part=part, spell=spell, query_texts=query_texts)
    made = any(stage.traits.creates_rows for stage in stages)
    whole = replace(given, rewritten=_rewrite(stages), makes_rows=made, table=is_table(stages))
    empty = part is None and release.limit(1).collect().is_empty()
    adapt = _not_applicable if empty else lambda finding: finding
    for place, stage in enumerate(stages):
        promise = stage.promise()
        later, earlier = stages[place + 1 :], stages[:place]
        seen = replace(
            whole,
            later=tuple(after.method for after in later),
            earlier=tuple(before.method for before in earlier),
            rewritten_earlier=_rewrite(earlier),
            rewritten_later=_rewrite(later),
            reworded_later=any(after.traits.replaces_words for after in later),
        )
        findings = [adapt(finding) for finding in promise.audit(seen)]
        if part is not None and promise.labels_waiting is not None:
            waiting = _remaining(promise.labels_waiting, seen)
        sentences = _sentences(promise, cell_rules(stages), cells)
        settings = stage.settings.as_dict()
        parts.append(certificate.method_part(stage.method, settings, promise, sentences, findings))
    lineage = [adapt(check(whole)) for check in LINEAGE]
    if cells is not None:
        lineage += [adapt(finding) for finding in cells.findings()]
    return AuditResult([certificate.judged(one, lineage) for one in parts], lineage, waiting)


def not_audited(stages: list[Stage]) -> AuditResult:
    """Return the guarantees of these stages without a result of any check."""
    parts = []
    for stage in stages:
        promise = stage.promise()
        sentences = _sentences(promise, cell_rules(stages), None)
        parts.append(certificate.method_part(stage.method, stage.settings.as_dict(), promise, sentences, []))
    return AuditResult([certificate.judged(one, []) for one in parts], [])


def _sentences(promise: Guarantee, rules: CellRules, cells: CellAudit | None) -> dict[str, list[str]]:
    """Return the names of the checks of each sentence, without columns that the release does not have."""
    return {
        one.text: [
            *(audit.check for audit in one.audits),
            *(rules.check(name) for name in one.columns if cells is None or name in cells.columns),
        ]
        for one in promise.sentences
    }


def cell_rules(stages: list[Stage]) -> CellRules:
    """Return what the cells of a release of these stages may contain."""
    traits = {stage.method: stage.traits for stage in stages}
    written = {name: method for method, one in traits.items() for name in one.rewrites - one.empties}
    truncated = all(one.time_unit for method, one in traits.items() if written.get("time") == method)
    pseudonyms = any(one.fresh_labels or one.labels is Labels.PARTS for one in traits.values())
    if truncated:
        written.pop("time", None)
    if pseudonyms or all(one.labels is Labels.OWN for one in traits.values()):
        written.pop("user", None)
    return CellRules(
        empty=frozenset[str]().union(*(one.empties for one in traits.values())),
        may_empty=frozenset[str]().union(*(one.may_empty for one in traits.values())),
        written=written,
        time_unit=max((one.time_unit for one in traits.values()), default=0),
        pseudonyms=pseudonyms,
    )


def _not_applicable(finding: Finding) -> Finding:
    """Return a finding about a release without records: it holds for none."""
    if finding.verdict in ("broken", "not applicable"):
        return finding
    return Finding(finding.check, "not applicable", NOTHING_RELEASED)


def cell_audit(
    stages: list[Stage], original: pl.LazyFrame | None, truth: pl.LazyFrame | None
) -> CellAudit | None:
    """Return the audit of the cells of a release of these stages; None for a table of counts."""
    return None if is_table(stages) else CellAudit(cell_rules(stages), original, truth)


def _remaining(remaining: Callable[[Evidence], pl.DataFrame], evidence: Evidence) -> pl.DataFrame | None:
    try:
        return remaining(evidence) if evidence.truth is not None else None
    except NotCheckable:
        return None


def is_table(stages: list[Stage]) -> bool:
    """Whether these stages give a table of counts."""
    return any(stage.traits.is_table for stage in stages)


def _rewrite(stages: list[Stage]) -> bool:
    return any("query" in stage.traits.rewrites for stage in stages)
