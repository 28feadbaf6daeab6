"""Samples of a release that are published in its place: some of its users, or a synthetic log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from querycloak.log import IntArray

#: The samples by name, each with what it is.
SAMPLES: Final = {
    "small": "the sessions of 1 % of the people, and of 1,000 at most",
    "5%": "the sessions of 5 % of the people",
    "synthetic": "a log made up from the release and from nothing else",
}
_SHARE: Final = {"small": 0.01, "5%": 0.05}
_AT_MOST: Final = {"small": 1_000}
#: Stands for a query without a category.
_NO_TOPIC: Final = ""


@dataclass(frozen=True)
class ReleaseSample:
    """A sample of a release, the truth about its rows, and the users who were drawn, if any were."""

    release: pl.DataFrame
    truth: pl.DataFrame
    people: pl.Series | None = None

    def known_users(self, original: pl.DataFrame) -> pl.DataFrame:
        """Return the histories of the drawn users: an attacker of a sample may know who is in it."""
        if self.people is None:
            return original
        return original.filter(pl.col("user").is_in(self.people.implode()))


def draw_release_sample(
    kind: str, release: pl.DataFrame, truth: pl.DataFrame, people: pl.Series, seed: int
) -> ReleaseSample:
    """Draw a sample of a release, whose rows have numbers in `row`; `people` are the users of the log."""
    if kind == "synthetic":
        return synthesise(release, seed)
    every = people.unique().sort()
    number = min(max(1, round(_SHARE[kind] * every.len())), _AT_MOST.get(kind, every.len()))
    drawn = every.sample(number, seed=seed)
    rows = truth.filter(pl.col("original_user").is_in(drawn.implode()))
    shown = release.filter(pl.col("row").cast(pl.Int64).is_in(rows["released_row"].cast(pl.Int64).implode()))
    return ReleaseSample(shown, rows, drawn)


def synthesise(release: pl.DataFrame, seed: int) -> ReleaseSample:
    """Draw as many synthetic sessions as a release has, from the release alone.

    A session begins with a topic (level 1 of the category) as often as released ones do. From search to
    search it goes on to another topic, or ends, as often as released ones do. In each topic a query is drawn
    as often as it was released. Day and hour are those of some released session. Clicks are left out.
    """
    searches = _searches(release)
    draws = np.random.default_rng(seed)
    number = searches["session"].n_unique()
    session, topic = _walks(searches, number, draws)
    begins = searches.unique("session", keep="first", maintain_order=True)
    when = begins[pl.Series(draws.permutation(number)[session])]
    asked = searches[pl.Series(_drawn(searches["topic"].to_numpy(), topic, draws))]
    columns = {
        "row": pl.Series(np.arange(session.size)),
        "user": pl.Series([f"made-up-{n}" for n in session.tolist()], dtype=pl.String),
    }
    columns |= {name: when[name] for name in ("time",) if name in when.columns}
    columns |= {name: asked[name] for name in ("query", "category") if name in asked.columns}
    shown = pl.DataFrame({name: columns[name] for name in release.columns if name in columns})
    return ReleaseSample(shown, _truth(shown))


def _searches(release: pl.DataFrame) -> pl.DataFrame:
    """Return each released search once, sorted by session, with numbers of its `session` and `topic`."""
    search = [name for name in ("user", "query", "time") if name in release.columns]
    once = release.unique(search, keep="first", maintain_order=True)
    topic = pl.lit(_NO_TOPIC)
    if "category" in once.columns:
        topic = pl.col("category").str.split("/").list.first().fill_null(_NO_TOPIC)
    named = once.with_columns(
        session=pl.col("user").rank("dense").cast(pl.Int64) - 1, topic=topic.rank("dense").cast(pl.Int64) - 1
    )
    return named.sort("session", maintain_order=True)


def _walks(searches: pl.DataFrame, number: int, draws: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw sessions as Markov chains over topics; return the session and the topic of each search."""
    session, topic = (searches[name].to_numpy() for name in ("session", "topic"))
    first = np.diff(session, prepend=-1) != 0
    end = int(topic.max(initial=-1)) + 1
    following = np.where(np.append(first[1:], True), end, np.append(topic[1:], end))
    longest = int(np.bincount(session).max(initial=0))
    alive, now = np.arange(number), draws.permutation(topic[first])
    steps: list[tuple[IntArray, IntArray]] = []
    while alive.size and len(steps) < longest:
        steps.append((alive, now))
        after = following[_drawn(topic, now, draws)]
        alive, now = alive[after < end], after[after < end]
    found = [np.concatenate([np.empty(0, np.int64), *(step[part] for step in steps)]) for part in (0, 1)]
    order = np.argsort(found[0], kind="stable")
    return found[0][order], found[1][order]


def _drawn(topic: IntArray, wanted: IntArray, draws: np.random.Generator) -> IntArray:
    """Draw for each wanted topic the row of a search of that topic, with equal probability."""
    order = np.argsort(topic, kind="stable")
    sizes = np.bincount(topic, minlength=1)
    starts = np.cumsum(sizes) - sizes
    place = (draws.random(wanted.size) * sizes[wanted]).astype(np.int64)
    found: IntArray = order[starts[wanted] + place]
    return found


def _truth(shown: pl.DataFrame) -> pl.DataFrame:
    """Return the truth: no row has an author."""
    return shown.select(
        released_row="row",
        original_row=pl.lit(None, pl.Int64),
        original_user=pl.lit(None, pl.String),
        released_after=pl.lit(0, pl.Int64),
        made_up=pl.lit(value=True),
    )
