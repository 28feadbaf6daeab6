"""Attacks what was released last and says how often that succeeds, beside what is promised."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from querycloak.attacks.finding import Finding
from querycloak.attacks.run import attack
from querycloak.engines.pipeline import Stage
from querycloak.errors import Gone
from querycloak.service.outlets.released import ReleasedLog
from querycloak.service.watch.lines import parsed
from querycloak.service.watch.window import Window

#: Attacks on labels from the release alone; the first that has something to work on is taken.
ATTACKS: Final = ("link-repeat", "link-window")
#: Fewer rows than these tell nothing worth showing.
FEWEST: Final = 200


def estimate(log: ReleasedLog, window: Window, stages: list[Stage], now: float) -> dict[str, Any] | None:
    """Attack the last released rows; None if there are too few, or if their labels promise no bound."""
    truth = window.truth()
    if truth.height < FEWEST:
        return None
    offsets = truth["released_row"]
    try:
        release = parsed(log, int(offsets[0]), int(offsets[-1]))
    except Gone:
        return None
    release = release.filter(pl.col("released_row").is_in(offsets.implode()))
    for name in ATTACKS:
        found = _attacked(name, release, truth, stages)
        if found.not_applicable is None and found.bound is not None:
            return _shown(found, now)
    return None


def _attacked(name: str, release: pl.DataFrame, truth: pl.DataFrame, stages: list[Stage]) -> Finding:
    """Run one attack as if these rows were a release of their own."""
    methods = [{"method": stage.method, "settings": stage.settings.as_dict()} for stage in stages]
    known = truth.drop_nulls("original_row").unique("original_row", maintain_order=True)
    original = known.select(row="original_row", user="original_user")
    return attack(release, {"release": {}, "methods": methods}, original, truth, [name])[0]


def _shown(found: Finding, now: float) -> dict[str, Any]:
    numbers = {name: getattr(found, name) for name in ("success", "low", "high", "bound")}
    rounded = {name: round(float(value), 6) for name, value in numbers.items()}
    return {"attack": found.attack} | rounded | {"n": found.n, "at": round(now, 3)}
