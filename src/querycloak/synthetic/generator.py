"""Generate a synthetic log, whole or in chunks, in memory or into a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from querycloak import formats
from querycloak.errors import ParameterError
from querycloak.files import check_outputs
from querycloak.log import Log
from querycloak.synthetic.clicks import draw_clicks
from querycloak.synthetic.marketing import marketing as marketing_data
from querycloak.synthetic.people import draw_people
from querycloak.synthetic.queries import (
    HEAD,
    LOCAL,
    TOPIC,
    Intents,
    Wording,
    draw_intents,
    fill_templates,
    write_queries,
)
from querycloak.synthetic.rng import BLOCK_USERS, BoolArray, IntArray
from querycloak.synthetic.sessions import Plan, activity_times, plan_searches
from querycloak.synthetic.world import Block, world

#: Called with the number of users that are done, and of all.
Progress = Callable[[int, int], None]


def generate(
    users: int,
    seed: int = 0,
    *,
    days: int = 92,
    start: str | date = "2006-03-01",
    categories: bool = False,
    progress: Progress | None = None,
) -> Log:
    """Return a synthetic log modelled on AOL 2006; the same arguments always give the same log.

    Rows come by user, then by time; several clicks of one search are several rows with the same user,
    query and time. `days` and `start` set the period over which the searches are spread. With
    `categories`, each row says which category its author had in mind.

    >>> from querycloak.synthetic import generate
    >>> generate(20, seed=1).frame.columns
    ['row', 'user', 'query', 'time', 'rank', 'url']
    """
    made = list(pieces(users, seed, days=days, start=start, categories=categories, progress=progress))
    frame = pl.concat([piece.frame for piece in made], rechunk=True)
    return Log(frame, rows_read=frame.height)


def pieces(
    users: int,
    seed: int = 0,
    *,
    piece_users: int = 16 * BLOCK_USERS,
    days: int = 92,
    start: str | date = "2006-03-01",
    categories: bool = False,
    progress: Progress | None = None,
) -> Iterator[Log]:
    """Yield the same log as `generate`, some users at a time; `row` continues through the pieces."""
    first_day = _checked(users, seed, days, piece_users, start)
    rows = partial(_rows, days=days, start=first_day, categories=categories)
    return _cut(users, piece_users, lambda number: rows(Block(seed, number, world())), progress)


def _checked(users: int, seed: int, days: int, piece_users: int, start: str | date) -> date:
    for name, value in {"users": users, "seed": seed, "days": days, "piece_users": piece_users}.items():
        least = 0 if name == "seed" else 1
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ParameterError(f"`{name}` must be int, at least {least}; got {value!r}")
    try:
        return start if isinstance(start, date) else date.fromisoformat(start)
    except ValueError:
        raise ParameterError(f"`start` must be a day like 2006-03-01; got {start!r}") from None


def _cut(
    users: int, piece_users: int, make: Callable[[int], pl.DataFrame], progress: Progress | None
) -> Iterator[Log]:
    """Draw whole blocks, and hand out of them what each piece asks for."""
    rows = 0
    block, held = -1, pl.DataFrame()
    for low in range(0, users, piece_users):
        high = min(low + piece_users, users)
        parts = []
        for wanted in range(low // BLOCK_USERS, (high - 1) // BLOCK_USERS + 1):
            if wanted != block:
                block, held = wanted, make(wanted)
            parts.append(held.filter(pl.col("number").is_between(low, high - 1)).drop("number"))
            if progress:
                progress(min(high, (wanted + 1) * BLOCK_USERS), users)
        frame = pl.concat(parts, rechunk=True)
        frame = frame.insert_column(0, pl.Series("row", np.arange(rows, rows + frame.height)))
        rows += frame.height
        yield Log(frame, rows_read=frame.height)


def _rows(block: Block, *, days: int, start: date, categories: bool) -> pl.DataFrame:
    """Make all rows of one block of users."""
    people = draw_people(block)
    plan = plan_searches(block, people)
    times = activity_times(block, people, plan, days, start)
    intents = draw_intents(block, people, plan)
    wording = fill_templates(block, people, plan, intents)
    queries = write_queries(block, people, plan, intents, wording)
    clicks = draw_clicks(block, plan, intents, wording)
    columns = {
        "number": pl.Series(block.first_user + plan.user[clicks.search]),
        "user": pl.Series(people.ident).cast(pl.String).gather(plan.user[clicks.search]),
        "query": queries.gather(clicks.search),
        "time": _moments(times[clicks.search], start),
        "rank": pl.Series(clicks.rank).replace(0, None),
        "url": block.world.urls.gather(_or_null(clicks.site, clicks.rank > 0)),
    }
    if categories:
        columns["category"] = _meant(block, plan, intents, wording).gather(clicks.search)
    return pl.DataFrame(columns)


def _meant(block: Block, plan: Plan, intents: Intents, wording: Wording) -> pl.Series:
    """Name the category of each search: that of its main word, or of its site, person or place."""
    topics = block.world.topics
    main_word = wording.slots[plan.copy_of, HEAD]
    by_word = topics.category_of_word[np.clip(main_word, 0, topics.category_of_word.size - 1)]
    topical = np.isin(intents.kind, (TOPIC, LOCAL))
    return topics.paths.gather(np.where(topical, by_word, intents.category))


def _or_null(numbers: IntArray, known: BoolArray) -> pl.Series:
    return pl.Series(np.where(known, numbers, -1)).replace(-1, None)


def _moments(seconds: IntArray, start: date) -> pl.Series:
    begin = int(datetime(start.year, start.month, start.day, tzinfo=UTC).timestamp())
    return pl.Series((begin + seconds) * 1_000_000).cast(pl.Datetime("us", "UTC"))


#: Users that are generated at a time when a log is written.
PIECE_USERS = 50_000


def write_log(
    users: int,
    output: str,
    *,
    seed: int = 0,
    days: int = 92,
    categories: bool = False,
    marketing: str | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> dict[str, Any]:
    """Write a synthetic log, a `.tsv` in AOL's layout; return the number of its records."""
    columns = ["user", "query", "time", "rank", "url", *(["category"] if categories else [])]
    check_outputs([output, marketing])
    records, queries = 0, []
    with formats.Writer(output, _layout(output, columns, categories)) as writer:
        for piece in pieces(users, seed, piece_users=PIECE_USERS, days=days, categories=categories):
            writer.write(piece.frame)
            records += piece.frame.height
            if marketing:
                queries.append(piece.frame.select("user", "query"))
            if progress:
                progress("generate", records, None)
        if marketing:
            marketing_data(pl.concat(queries), seed).write_csv(marketing)
        writer.commit()
    return {"users": users, "records": records, "output": output, "marketing": marketing}


def _layout(output: str, columns: list[str], categories: bool) -> formats.Layout:
    if categories:
        return formats.Layout.for_output(output, columns=columns)
    aol = formats.Layout.default("aol")  # AOL's look if the name fits
    return formats.Layout.for_output(output, like=aol)
