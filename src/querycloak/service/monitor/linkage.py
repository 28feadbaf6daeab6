"""Attacks what was released last and says how often that succeeds, beside what is promised."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from querycloak.attacks.finding import ATTACKERS, Findings, Linkage, linkage
from querycloak.attacks.run import attack
from querycloak.engines.pipeline import Stage
from querycloak.errors import Gone
from querycloak.service.monitor.lines import parsed
from querycloak.service.monitor.window import Window
from querycloak.service.sinks.released_log import ReleasedLog

#: Attacks on labels from the release alone.
ATTACKS: Final = ("link-repeat", "link-window")
#: Fewer rows than these tell nothing worth showing.
FEWEST: Final = 200


def estimate(log: ReleasedLog, window: Window, stages: list[Stage], now: float) -> dict[str, Any] | None:
    """Return what the attacks link of the last released rows; None for too few, or labels without a bound."""
    truth = window.truth()
    if truth.height < FEWEST:
        return None
    offsets = truth["released_row"]
    try:
        release = parsed(log, int(offsets[0]), int(offsets[-1]))
    except Gone:
        return None
    release = release.filter(pl.col("released_row").is_in(offsets.implode()))
    findings = Findings(one for one in _attacked(release, truth, stages) if one.bound is not None)
    found = linkage(findings, ATTACKERS["release"])
    return None if found is None else _shown(found, findings, now)


def _attacked(release: pl.DataFrame, truth: pl.DataFrame, stages: list[Stage]) -> Findings:
    """Run the attacks as if these rows were a release of their own."""
    methods = [{"method": stage.method, "settings": stage.settings.as_dict()} for stage in stages]
    known = truth.drop_nulls("original_row").unique("original_row", maintain_order=True)
    original = known.select(row="original_row", user="original_user")
    return attack(release, {"release": {}, "methods": methods}, original, truth, ATTACKS)


def _shown(found: Linkage, findings: Findings, now: float) -> dict[str, Any]:
    named = next(one for one in findings if one.attack == found.attack)
    numbers = found.as_dict() | {"bound": named.bound}
    rounded = {name: round(float(numbers[name]), 6) for name in ("success", "low", "high", "bound")}
    return {"attack": found.attack} | rounded | {"n": named.n, "at": round(now, 3)}
