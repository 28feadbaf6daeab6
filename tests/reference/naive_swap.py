"""Algorithm 1 and cohorts on plain lists, slowly: releases for tests that owe nothing to the methods."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

#: One released search: which one it was, and whose id it carries.
Freed = tuple[int, Any]


def swap(users: Sequence[Any], categories: Sequence[Hashable], k: int, seed: int) -> list[Freed]:
    """Algorithm 1 with `> k` and one draw per token: what leaves, in the order in which it leaves."""
    rng = random.Random(seed)
    held: dict[Hashable, list[int]] = defaultdict(list)
    tokens: dict[Hashable, list[Any]] = defaultdict(list)
    present: dict[Hashable, Counter[Any]] = defaultdict(Counter)
    freed = []
    for search, (user, category) in enumerate(zip(users, categories, strict=True)):
        held[category].append(search)
        tokens[category].append(user)
        present[category][user] += 1
        while len(present[category]) > k:
            query = _pop(held[category], rng.randrange(len(held[category])))
            label = _pop(tokens[category], _other(tokens[category], users[query], rng))
            present[category][label] -= 1
            if not present[category][label]:
                del present[category][label]
            freed.append((query, label))
    return freed


def _pop(things: list[Any], place: int) -> Any:
    things[place], things[-1] = things[-1], things[place]
    return things.pop()


def _other(tokens: list[Any], author: Any, rng: random.Random) -> int:
    while True:
        place = rng.randrange(len(tokens))
        if tokens[place] != author:
            return place


def cohort(users: Sequence[Any], k: int, seed: int) -> tuple[list[Freed], dict[Any, int]]:
    """Join users to cohorts of k as they come; label each search at random within its cohort."""
    rng = random.Random(seed)
    members: list[list[Any]] = [[]]
    number: dict[Any, int] = {}
    waiting: list[int] = []
    freed = []
    for search, user in enumerate(users):
        if user not in number:
            number[user] = len(members) - 1
            members[-1].append(user)
        waiting.append(search)
        if len(members[number[user]]) < k:
            continue
        now = [w for w in waiting if number[users[w]] == number[user]]
        waiting = [w for w in waiting if number[users[w]] != number[user]]
        freed += [(w, rng.choice(members[number[users[w]]])) for w in now]
        if len(members[-1]) == k:
            members.append([])
    return freed, number


@dataclass(frozen=True)
class NaiveRelease:
    """A release as an attacker sees it, and the truth as only the test knows it."""

    original: pl.DataFrame
    release: pl.DataFrame
    certificate: dict[str, Any]
    truth: pl.DataFrame

    @property
    def author(self) -> pl.Series:
        """Who wrote each released row."""
        return self.truth["original_user"]


def release(log: pl.DataFrame, method: str, *, k: int, level: int = 1, seed: int = 1) -> NaiveRelease:
    """Protect a made-up log: rows of one search are one unit, and leave together with one label."""
    searches = (
        log.sort("time", "row")
        .group_by("user", "query", "time", maintain_order=True)
        .agg(pl.col("category").first(), pl.col("row"))
    )
    freed, settings = _freed(searches, method, k, level, seed)
    shown = searches[[search for search, _ in freed]].with_columns(
        pl.Series("label", [label for _, label in freed], dtype=pl.String),
        pl.Series("released_after", range(len(freed)), dtype=pl.Int64),
    )
    rows = shown.explode("row").with_row_index("released_row").cast({"released_row": pl.Int64})
    return NaiveRelease(
        log,
        rows.select("released_row", pl.col("label").alias("user"), "query", "time", "category"),
        {"methods": [{"method": method, "settings": settings}]},
        rows.select(
            "released_row",
            pl.col("row").alias("original_row"),
            pl.col("user").alias("original_user"),
            "released_after",
        ),
    )


def _freed(
    searches: pl.DataFrame, method: str, k: int, level: int, seed: int
) -> tuple[list[Freed], dict[str, int]]:
    users = searches["user"].to_list()
    if method == "cohort":
        return cohort(users, k, seed)[0], {"k": k}
    cut = searches["category"].str.split("/").list.head(level).list.join("/")
    return swap(users, cut.to_list(), k, seed), {"k": k, "level": level}
