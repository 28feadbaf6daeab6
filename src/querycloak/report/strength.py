"""Which of two values of a setting protects more, where that can be said at all."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

#: Gives a larger number for a value that protects more; None where it cannot tell.
Rank = Callable[[Any], float | None]


def _larger(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return None if math.isnan(value) else float(value)
    except OverflowError:  # JSON can hold whole numbers that no float can
        return math.inf if value > 0 else -math.inf


def _smaller(value: Any) -> float | None:
    rank = _larger(value)
    return None if rank is None else -rank


def _switched_on(value: Any) -> float | None:
    return float(value) if isinstance(value, bool) else None


def _in_order(*values: str) -> Rank:
    """Rank named values, the weakest first."""
    return lambda value: float(values.index(value)) if isinstance(value, str) and value in values else None


def _guard(value: Any) -> float | None:
    return -math.inf if value == "off" else _smaller(value)


def _budget(value: Any) -> float | None:
    return -math.inf if value == 0 else _smaller(value)


#: What is ranked alike in every method that has it.
_ANYWHERE: Final[dict[str, Rank]] = {
    "k": _larger,
    "time": _in_order("keep", "coarsen", "drop"),
    "labels": _in_order("keep", "fresh"),
    "epsilon": _smaller,
    "budget": _budget,
}
#: What is ranked in one method; it stands before what is ranked anywhere.
_IN_METHOD: Final[dict[str, dict[str, Rank]]] = {
    "swap": {"guard": _guard},
    "cohort": {"scope": _in_order("category", "source")},
    "km": {"m": _larger, "window": _in_order("day", "week", "none")},
    "dp-semantic": {
        "per": _in_order("query", "history"),
        "domain": _in_order("topic", "all"),
        "rebuild": _in_order("paper", "form", "none"),
    },
    "dp-histogram": {"by": _in_order("history", "log")},
    "threshold-dp": {"output": _in_order("log", "counts")},
    "graph-suppress": {"sites": _larger, "targeted": _in_order("off", "host", "name")},
    "short-sessions": {
        "most": _smaller,
        "time": _in_order("hour", "day", "drop"),
        "clicks": _in_order("keep", "drop"),
    },
    "z-anonymity": {"z": _larger, "window": _smaller},
    "rules": dict.fromkeys(("digits", "emails", "phones", "cards", "names", "places"), _switched_on)
    | {"max_words": _smaller, "max_letters": _smaller},
}
#: What a method computed about its own promise.
_FACTS: Final[dict[str, Rank]] = {"epsilon": _smaller, "delta": _smaller}


def _microaggregation(setting: str) -> Rank | None:
    return {"diversity": _larger, "closeness": _smaller, "asked_by": _larger}.get(setting)


def _verdict(rank: Rank | None, before: Any, after: Any) -> str:
    if rank is None:
        return "changed"
    old, new = rank(before), rank(after)
    if old is None or new is None or old == new:
        return "changed"
    return "stronger" if new > old else "weaker"


def of_setting(method: str, setting: str, before: Any, after: Any) -> str:
    """Say whether a changed setting protects more (`stronger`), less (`weaker`), or cannot be ranked."""
    own = _microaggregation(setting) if method.startswith("microagg-") else None
    rank = own or _IN_METHOD.get(method, {}).get(setting) or _ANYWHERE.get(setting)
    return _verdict(rank, before, after)


def of_fact(name: str, before: Any, after: Any) -> str:
    """Say the same of a fact that a method stated about its promise."""
    return _verdict(_FACTS.get(name), before, after)
