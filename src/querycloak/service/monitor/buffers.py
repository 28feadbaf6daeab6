"""What is held, by category and age; the worker counts it now and then, and spends little time on that."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak.service.stream import Stream

#: Seconds between two counts, at least.
PAUSE: Final = 3.0
#: Of the worker's time, counting takes one part in so many at most.
SHARE: Final = 100
#: Level-1 categories that are listed, and parts of each; the rest is summed up.
LISTED: Final = 100
OTHERS: Final = "(others)"
NONE: Final = "(none)"


@dataclass(frozen=True)
class Held:
    """What the worker counted: by category, by age, and what was dropped, by reason."""

    buffers: list[dict[str, Any]] = field(default_factory=list)
    age: dict[str, Any] | None = None
    dropped: dict[str, int] = field(default_factory=dict)


class Pacing:
    """Says when to count again: after a pause, and longer the longer counting took."""

    def __init__(self) -> None:
        self._next = 0.0

    def due(self, now: float) -> bool:
        """Say whether it is time."""
        return now >= self._next

    def took(self, now: float, seconds: float) -> None:
        """Note how long a count took."""
        self._next = now + max(PAUSE, SHARE * seconds)


def count(stream: Stream, now: float) -> tuple[Held, float]:
    """Count what is held, in the worker's thread; also give the seconds that it took."""
    start = time.perf_counter()
    held = stream.waiting.columns("category", "_at")
    found = Held(dropped=dict(stream.reasons()))
    if held is not None and held.height:
        found = Held(by_category(held["category"]), age(held["_at"], now), found.dropped)
    return found, time.perf_counter() - start


def by_category(category: pl.Series) -> list[dict[str, Any]]:
    """Sum up what is held by level 1, and within that by level 2; the largest first."""
    counts = pl.DataFrame({"path": category}).group_by("path").len("held")
    steps = pl.col("path").cast(pl.String).fill_null(NONE).str.splitn("/", 3)
    top, second = steps.struct.field("field_0"), steps.struct.field("field_1")
    part = pl.concat_str(top, pl.lit("/") + second, ignore_nulls=True)
    parts = counts.group_by(top.alias("top"), part.alias("part")).agg(pl.col("held").sum())
    parts = parts.sort("held", "part", descending=[True, False])
    listed = [
        {"category": name, "held": int(rows["held"].sum()), "parts": _shortened(_parts(rows))}
        for (name,), rows in parts.group_by("top", maintain_order=True)
    ]
    return _shortened(sorted(listed, key=lambda one: (-one["held"], one["category"])))


def _parts(rows: pl.DataFrame) -> list[dict[str, Any]]:
    return rows.select(category="part", held="held").to_dicts()


def _shortened(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if len(listed) <= LISTED:
        return listed
    rest = sum(item["held"] for item in listed[LISTED:])
    last = {"category": OTHERS, "held": rest} | ({"parts": []} if "parts" in listed[0] else {})
    return [*listed[:LISTED], last]


def age(at: pl.Series, now: float) -> dict[str, Any]:
    """Say how long what is held has waited, in seconds."""
    oldest, median = np.quantile(at.to_numpy(), (0.0, 0.5)).tolist()
    waited = [max(0.0, round(now - moment / 1e6, 1)) for moment in (oldest, median)]
    return {"unit": "seconds", "oldest": waited[0], "median": waited[1]}
