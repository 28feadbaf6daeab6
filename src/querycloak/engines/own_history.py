"""Looks at one person's own history as a stranger would, on the person's own machine."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak import formats, text
from querycloak.errors import DataError, MissingExtra, UsageError
from querycloak.formats.times import TIME
from querycloak.log import Log
from querycloak.text.entities import KINDS, find_entities
from querycloak.text.normalise import words

DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
#: Bits that tell one person from all others alive, and then some.
EVERYBODY: Final = 33
#: Known topics for which it is worked out who is left.
KNOWN: Final = (1, 2, 3, 5)
#: A query is a habit from so many times on.
REPEATED: Final = 3
#: Hours of the quietest stretch of a day.
NIGHT: Final = 6

#: What many people would not want told, by the topics that tell it. The first five are near to what European
#: law calls special categories; the choice is ours.
SENSITIVE: Final[Mapping[str, tuple[str, ...]]] = {
    "health": ("Health",),
    "sex life": ("Adult", "Health/Sexual Health"),
    "religion": ("Society/Religion",),
    "politics": ("News/Politics", "Society/Government", "Society/Issues"),
    "origin and ancestors": ("Society/Ethnicity", "Society/Genealogy", "Reference/Genealogy Records"),
    "crime and law": ("Society/Crime", "Society/Law", "Business/Law Firms"),
    "money": ("Business/Banking", "Business/Taxes", "Business/Insurance", "Business/Investing"),
    "looking for work": ("Business/Employment",),
    "relationships and family": ("Society/Relationships", "Home/Family", "Home/Weddings"),
    "death and crisis": ("Society/Death", "Society/Support Groups", "Health/Mental Health"),
}

_DEEP, _FEW, _EXAMPLES = 3, 0.05, 20
_PERSONAL: Final = tuple(kind for kind in KINDS if kind != "listed")


def read_history(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002 - the option's name
    mapping: Mapping[str, str] | None = None,
    strict: bool = False,
) -> Log:
    """Read a history: a log, Google's export, or a list of queries. More than one user is refused.

    The result has `query`, and `time` where it is known; several clicks are one search.
    """
    if str(path) == "-":
        raise UsageError("a history is read from a file, not from standard input")
    log = formats.read(
        path, format=format, mapping=mapping, strict=strict, required=("query",), single_person=not mapping
    )
    users = log.frame["user"].drop_nulls().n_unique() if "user" in log.frame.columns else 1
    if users > 1:
        raise DataError(
            f"`{Path(path).name}` holds the searches of {users:,} users, and a history is one person's",
            hint="for a log of many, use `protect`, `attack` and `measure RELEASE --original LOG`",
        )
    time = [] if "time" in log.frame.columns else [pl.lit(None, TIME).alias("time")]
    bare = log.frame.with_columns(time).select("query", "time")
    # the same words at the same moment are several clicks of one search
    once = pl.col("time").is_null() | pl.struct("query", "time").is_first_distinct()
    return log.with_frame(bare.filter(once))


def look(history: Log, crowd: pl.DataFrame, *, show: bool = False) -> dict[str, Any]:
    """Return what a history tells; `crowd` is a log of made-up people, who are there to compare with.

    With `show` the queries behind the counts are given too: they are for their owner only.
    """
    frame = history.frame
    if not frame.height:
        left_out = f"{history.skipped.total:,} entries were left out: {', '.join(history.skipped.counts)}"
        empty = "the file is empty; was the export made for searches?"
        hint = left_out if history.skipped.total else empty
        raise DataError("there is no search in this history", hint=hint)
    classified = text.classify_log(frame)
    others = text.classify_log(crowd.select("user", "query"))
    habits, habit_texts = _habits(frame["query"])
    personal, personal_texts = _personal(frame["query"])
    told, told_texts = _topics(classified, others)
    shown = {"habits": {"come back": habit_texts}, "personal": personal_texts, "sensitive": told_texts}
    return {
        "searches": frame.height,
        "distinct": frame["query"].n_unique(),
        "skipped": dict(history.skipped.counts),
        "time": _time(frame["time"].drop_nulls()),
        "topics": told,
        "personal": personal,
        "habits": habits,
        "singled_out": _singled_out(classified, others),
    } | ({"shown": shown} if show else {})


def _sure(classified: pl.DataFrame) -> pl.DataFrame:
    return classified.filter(pl.col("category").is_not_null() & (pl.col("confidence") >= text.CONFIDENT))


def _time(times: pl.Series) -> dict[str, Any] | None:
    """Count by hour and weekday, in UTC: no file says where its owner was."""
    if times.is_empty():
        return None
    hours, days = Counter(times.dt.hour().to_list()), Counter(times.dt.weekday().to_list())
    by_hour = [hours[hour] for hour in range(24)]
    first, share = quiet_hours(by_hour)
    office = ((times.dt.weekday() <= 5) & times.dt.hour().is_between(9, 16)).sum()
    return {
        "with_time": len(times),
        "first_day": str(times.dt.date().min()),
        "last_day": str(times.dt.date().max()),
        "days_with_searches": times.dt.date().n_unique(),
        "by_hour": by_hour,
        "by_weekday": {name: days[number] for number, name in enumerate(DAYS, start=1)},
        "quiet_from": first,
        "quiet_to": (first + NIGHT) % 24,
        "quiet_share": share,
        "office_hours_share": int(office) / len(times),
    }


def _topics(own: pl.DataFrame, others: pl.DataFrame) -> tuple[dict[str, Any], dict[str, list[str]]]:
    sure = _sure(own)
    paths = sure["category"].to_list()
    general = Counter(path.partition("/")[0] for path in paths)
    matters = sensitive(paths)
    counts = {
        "told": len(paths),
        "general": dict(sorted(general.items(), key=lambda pair: (-pair[1], pair[0]))),
        "unusual": _unusual(paths, _by_person(others, _DEEP)),
        "sensitive": matters,
    }
    asked = list(zip(sure["query"], paths, strict=True))
    return counts, {name: _some(q for q, path in asked if name in sensitive([path])) for name in matters}


def _by_person(classified: pl.DataFrame, level: int) -> list[set[str]]:
    rows = _sure(classified).group_by("user", maintain_order=True).agg("category")
    return [{c for path in paths if (c := cut(path, level))} for paths in rows["category"].to_list()]


def _unusual(paths: Sequence[str], crowd: Sequence[set[str]]) -> list[dict[str, Any]]:
    """Find narrow topics that come back here and that few of the crowd have."""
    here = Counter(c for path in paths if (c := cut(path, _DEEP)))
    found: list[dict[str, Any]] = [
        {"topic": topic, "searches": count, "made_up_people": having}
        for topic, count in here.items()
        if count >= 2 and (having := sum(topic in person for person in crowd)) <= _FEW * len(crowd)
    ]
    return sorted(found, key=lambda one: (-one["searches"], one["made_up_people"], one["topic"]))[:10]


def _personal(queries: pl.Series) -> tuple[dict[str, int], dict[str, list[str]]]:
    """Count the searches in which something personal stands, by what it is."""
    counts = Counter(queries.to_list())
    table = find_entities(pl.Series(list(counts), dtype=pl.String), _PERSONAL)
    texts = np.array(list(counts), object)
    found = {KINDS[kind]: texts[hits].tolist() for kind, hits in zip(_PERSONAL, table.T, strict=True)}
    return (
        {why: sum(counts[query] for query in hits) for why, hits in found.items()},
        {why: _some(hits) for why, hits in found.items() if hits},
    )


def _habits(queries: pl.Series) -> tuple[dict[str, Any], list[str]]:
    """Count the queries that come back, and how rare their words are."""
    often = repeated(queries)
    counts: dict[str, Any] = {
        "queries": len(often),
        "searches": sum(often.values()),
        "most": max(often.values(), default=0),
        "names": int(find_entities(pl.Series(list(often), dtype=pl.String), ["name"]).sum()),
        "bits": _bits(list(often)),
    }
    return counts, _some(often)


def _bits(queries: Sequence[str]) -> dict[str, Any] | None:
    """Return how rare queries are if their words came by chance, each as often as in English text.

    None without the extra `learn`, which knows how frequent words are.
    """
    from querycloak.attacks.link_learned.words import rarity

    try:
        split = words(pl.Series(queries, dtype=pl.String)).to_list()
        each = sorted(float(rarity(found).sum()) * math.log2(10) for found in split)
    except MissingExtra:
        return None
    if not each:
        return {"median": 0.0, "most": 0.0, "above_33": 0}
    above = sum(bits >= EVERYBODY for bits in each)
    return {"median": round(each[len(each) // 2], 1), "most": round(each[-1], 1), "above_33": above}


def _singled_out(own: pl.DataFrame, others: pl.DataFrame) -> dict[str, Any]:
    """Return how many made-up people are left to somebody who knows some of the owner's topics."""
    mine = {c for path in _sure(own)["category"] if (c := cut(path, 2))}
    crowd = _by_person(others, 2)
    left = {known: left_by_topics(mine, crowd, known) for known in KNOWN}
    return {
        "topics": len(mine),
        "made_up_people": others["user"].n_unique(),
        "left_if_known": {str(known): value for known, value in left.items() if value is not None},
    }


def _some(texts: Any) -> list[str]:
    return list(dict.fromkeys(texts))[:_EXAMPLES]


def cut(path: str, level: int) -> str | None:
    """Cut a category to a level; None if it is not that deep."""
    parts = path.split("/")
    return "/".join(parts[:level]) if len(parts) >= level else None


def sensitive(paths: Iterable[str]) -> dict[str, int]:
    """Count the searches about each sensitive matter; one search may count for several."""
    seen, found = Counter(paths), Counter[str]()
    for path, count in seen.items():
        for name, roots in SENSITIVE.items():
            if any(path == root or path.startswith(f"{root}/") for root in roots):
                found[name] += count
    return {name: found[name] for name in SENSITIVE if found[name]}


def repeated(queries: Iterable[str]) -> dict[str, int]:
    """Return the queries that come back, the most frequent first; upper and lower case are the same."""
    counts = Counter(" ".join(query.casefold().split()) for query in queries)
    often = [(query, count) for query, count in counts.items() if count >= REPEATED]
    return dict(sorted(often, key=lambda pair: (-pair[1], pair[0])))


def quiet_hours(by_hour: Sequence[int]) -> tuple[int, float]:
    """Return the first hour of the quietest stretch of the day, and its share of the searches.

    >>> quiet_hours([0] * 7 + [5] * 17)
    (0, 0.0)
    """
    sums = [sum(by_hour[(start + hour) % 24] for hour in range(NIGHT)) for start in range(24)]
    first = min(range(24), key=lambda start: (sums[start], start))
    return first, sums[first] / max(1, sum(by_hour))


def left_by_topics(own: Set[str], crowd: Sequence[Set[str]], known: int) -> float | None:
    """Return how many of the crowd have all of `known` random topics of a user: the exact mean.

    None if you have fewer topics than that.

    >>> left_by_topics({"a", "b"}, [{"a"}, {"a", "b"}], 1)
    1.5
    """
    if known > len(own):
        return None
    every = math.comb(len(own), known)
    return sum(math.comb(len(own & other), known) / every for other in crowd)
