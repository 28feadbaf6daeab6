"""Types plain records in one go: what nearly all requests hold. Anything odd is left to the careful way."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak.formats import validation
from querycloak.formats.times import TIME
from querycloak.log import IntArray

#: The one form of time that is read here, many of them joined by line ends.
_FORM: Final = "%Y-%m-%dT%H:%M:%SZ"
_PLAIN: Final = re.compile(r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z\n)*")
_ABSENT: Final = type(None)
#: The first moment of the year 1, in microseconds: Python knows no earlier one.
_YEAR_ONE: Final = -62_135_596_800_000_000


def frame(records: Sequence[Any], part: IntArray, stamps: IntArray) -> pl.DataFrame | None:
    """Give plain records as typed columns; None if any of them is not plain.

    Plain means: user and query are texts, and not empty; no NUL and nothing very long; times have one
    form, or are missing; ranks are whole numbers. The careful way would give the same.
    """
    users, queries = [one.user for one in records], [one.query for one in records]
    if not (_all_texts(users) and _all_texts(queries)):
        return None
    urls, categories = _optional([one.url for one in records]), _optional([one.category for one in records])
    ranks, texts = [one.rank for one in records], [one.time for one in records]
    if urls is None or categories is None or not set(map(type, ranks)) <= {int, _ABSENT}:
        return None
    times = _times(texts, stamps)
    if times is None or _has_nul(users, queries, urls, categories):
        return None
    try:
        rank = pl.Series("rank", ranks, pl.Int64)
    except (OverflowError, TypeError):
        return None
    back = _back(list(zip(part.tolist(), users, queries, texts, strict=True)))
    return pl.DataFrame(
        [
            pl.Series("user", users, pl.String),
            pl.Series("query", queries, pl.String),
            times,
            rank,
            pl.Series("url", urls, pl.String),
            pl.Series("category", categories, pl.String),
            pl.Series("back", back, pl.Int32),
        ]
    )


def _all_texts(values: list[Any]) -> bool:
    """Say whether all are texts, none empty or very long."""
    return set(map(type, values)) == {str} and "" not in values and _short(values)


def _short(values: list[str]) -> bool:
    return max(map(len, values)) * 4 <= validation.QUERY_LIMIT


def _optional(values: list[Any]) -> list[str | None] | None:
    """Give texts with None for empty ones; None if some are no texts."""
    kinds = set(map(type, values))
    if kinds == {_ABSENT}:
        return values
    if not kinds <= {str, _ABSENT} or not _short([value for value in values if value is not None]):
        return None
    return [value or None for value in values] if "" in values else values


def _times(texts: list[Any], stamps: IntArray) -> pl.Series | None:
    """Read times; where there are none, take the stamps."""
    when = np.broadcast_to(stamps, len(texts))
    kinds = set(map(type, texts))
    if kinds == {_ABSENT}:
        return pl.Series("time", when).cast(TIME)
    if not kinds <= {str, _ABSENT}:
        return None
    given = [text for text in texts if text is not None]
    if not _PLAIN.fullmatch("\n".join(given) + "\n"):
        return None
    read = pl.Series("time", texts, pl.String).str.to_datetime(_FORM, time_unit="us", strict=False)
    if read.null_count() != len(texts) - len(given):
        return None
    filled = read.to_physical().fill_null(0).to_numpy()
    missing = np.array([text is None for text in texts]) if len(given) < len(texts) else False
    if filled.min() < _YEAR_ONE:
        return None
    return pl.Series("time", np.where(missing, when, filled)).cast(TIME)


def _has_nul(*columns: Sequence[str | None]) -> bool:
    return any("\0" in "".join(filter(None, column)) for column in columns)


def _back(whose: list[tuple[int, str, str, str | None]]) -> list[int]:
    """Say how many rows before each row its search began: same message, user, query and time."""
    if len(set(whose)) == len(whose):
        return [0] * len(whose)
    first: dict[Any, int] = {}
    return [0 if key[3] is None else place - first.setdefault(key, place) for place, key in enumerate(whose)]
