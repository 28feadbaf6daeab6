"""What a release keeps, as shares from 0 to 1 with plain names: the higher, the more of it is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Axis:
    """One use of a log: which measure tells how much of it is left, and what to call it.

    A measure of loss is turned round. `apart` marks what tells about privacy rather than use.
    """

    name: str
    title: str
    measure: str
    about: str
    loss: bool = False
    apart: bool = False


_ALL: Final = (
    Axis("records", "records kept", "release_rate", "records that were released"),
    Axis(
        "topics",
        "topics kept",
        "jensen_shannon.topics",
        "how alike the topics of the whole log are before and after: 100 % is the same shares of all topics",
        loss=True,
    ),
    Axis(
        "profiles",
        "people's topic profiles kept",
        "profile_loss.topics",
        "how alike each person's own mix of topics is before and after, on average over people",
        loss=True,
    ),
    Axis("terms", "words kept", "terms_kept", "words that people typed and that can still be counted"),
    Axis(
        "top_queries",
        "top 100 queries kept",
        "top_preserved.queries_100",
        "queries that were among the hundred most frequent and still are",
    ),
    Axis(
        "sessions",
        "sessions kept",
        "sessions_kept",
        "steps from one search to the same person's next that can still be seen as such",
    ),
    Axis("clicks", "clicks kept", "clicks_kept", "clicks that can still be put to their query"),
    Axis(
        "shared_texts",
        "texts not unique",
        "unique_texts",
        "released records whose text more than one person typed: another may tell by itself whose it is",
        loss=True,
        apart=True,
    ),
)
AXES: Final[dict[str, Axis]] = {axis.name: axis for axis in _ALL}
#: The axes that are about use.
USES: Final = tuple(axis for axis in _ALL if not axis.apart)
#: What may be asked for by `--keep`, and the axis that tells how much of it is left.
KEEP: Final[dict[str, str]] = {
    "topics": "topics",
    "terms": "terms",
    "sessions": "sessions",
    "clicks": "clicks",
}


def kept(candidate: Mapping[str, Any], axis: str | Axis) -> tuple[float, float, float] | None:
    """Give how much a candidate keeps on an axis, with its interval; None where that was not measured."""
    asked = AXES[axis] if isinstance(axis, str) else axis
    found = candidate.get("measures", {}).get(asked.measure)
    if found is None or found["value"] is None:
        return None
    value, low, high = (float(found[part]) for part in ("value", "low", "high"))
    if asked.loss:
        value, low, high = 1 - value, 1 - high, 1 - low
    return _share(value), _share(low), _share(high)


def why_not_kept(candidate: Mapping[str, Any], axis: str | Axis) -> str:
    """Say why there is no number on an axis."""
    asked = AXES[axis] if isinstance(axis, str) else axis
    measures = candidate.get("measures", {})
    for name in (asked.measure, asked.measure.partition(".")[0]):
        if reason := measures.get(name, {}).get("not_applicable"):
            return str(reason)
    return "this was not measured, or the release lacks what it is measured by"


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))
