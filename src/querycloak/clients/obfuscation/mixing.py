"""Mixes dummy searches into users' searches: one trace per user, and the ground truth; file to file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak import formats
from querycloak.clients.obfuscation.base import CoverMethod, DummySearches, choose
from querycloak.clients.obfuscation.borrowed import align_pool
from querycloak.clients.obfuscation.history import SearchHistory
from querycloak.clients.obfuscation.random_stream import KeyedStream
from querycloak.errors import UsageError
from querycloak.files import check_outputs
from querycloak.kernels import siphash
from querycloak.kernels.siphash import Words
from querycloak.keys import Secret, derive
from querycloak.log import IntArray
from querycloak.truth import check_truth_path, write_truth

Progress = Callable[[str, int, int | None], None]

#: Searches of whole users that are mixed at a time, dummy searches included.
CHUNK_SEARCHES: Final = 200_000
_TIE: Final = 1
_NO_TIES: Final = np.zeros(0, np.uint64)


@dataclass(frozen=True)
class TraceChunk:
    """Traces of some users and their ground truth; `released_row` continues from chunk to chunk."""

    trace: pl.DataFrame
    truth: pl.DataFrame
    fakes: int


def mix(method: CoverMethod, chunk_searches: int = CHUNK_SEARCHES) -> Iterator[TraceChunk]:
    """Yield the traces of all users, in the order of their names; at least one chunk."""
    history = method.history
    released = low = 0
    room = int(chunk_searches / (1 + method.settings.per_real))
    while low < history.users or not low:
        reach = history.begins[low] + room
        high = max(low + 1, int(np.searchsorted(history.begins, reach, "right")) - 1)
        chunk = _chunk(method, low, min(high, history.users), released)
        yield chunk
        released += chunk.trace.height
        low = high


def _chunk(method: CoverMethod, low: int, high: int, released: int) -> TraceChunk:
    history = method.history
    searches = slice(int(history.begins[low]), int(history.begins[high]))
    made = [_cover(method, user) for user in range(low, high)]
    dummies = DummySearches.joined([part for part, _, _ in made])
    whose = np.repeat(np.arange(low, high), [len(part) for part, _, _ in made])
    rows, which = history.rows_of(np.arange(searches.start, searches.stop))
    order = np.lexsort(
        (
            np.arange(rows.size + whose.size),  # clicks of one search keep their order
            np.concatenate([*(tie for _, tie, _ in made), *(tie for _, _, tie in made), _NO_TIES]),
            np.concatenate([history.time[searches][which], dummies.time - dummies.time % history.tick]),
            np.concatenate([history.user[searches][which], whose]),
        )
    )
    trace = _rows(method, rows, dummies, whose)[order.astype(np.uint32)]
    count = sum(int(part.search.max(initial=-1)) + 1 for part, _, _ in made)
    return TraceChunk(trace.drop("row"), _truth(trace, released), count)


def _cover(method: CoverMethod, user: int) -> tuple[DummySearches, Words, Words]:
    """Return one user's dummy searches, and the numbers that order real and dummy rows of equal times."""
    history = method.history
    key = derive(method.key, "person", history.names[user])
    dummies = method.fakes(user, KeyedStream(key, "fakes"))
    real = history.of_user(user)
    _, which = history.rows_of(real)
    tie = siphash.draw(derive(key, "order"), _TIE, np.concatenate([which, real.size + dummies.search]))
    return dummies, tie[: which.size], tie[which.size :]


def _rows(method: CoverMethod, rows: IntArray, dummies: DummySearches, whose: IntArray) -> pl.DataFrame:
    history = method.history
    real = history.frame[int(rows[0]) : int(rows[-1]) + 1] if rows.size else history.frame[:0]
    added = method.columns(dummies).with_columns(
        row=pl.lit(None, pl.Int64), user=pl.Series(history.names, dtype=pl.String).gather(whose)
    )
    if history.timed:
        moments = pl.Series(dummies.time - dummies.time % history.tick).cast(history.frame.schema["time"])
        added = added.with_columns(time=moments)
    return pl.concat([real, added.select(real.columns).cast(real.schema)])


def _truth(trace: pl.DataFrame, released: int) -> pl.DataFrame:
    """Return the origin of every row; for a dummy row, the row of the same user after which it was sent."""
    after = (pl.col("row") + 1).forward_fill().backward_fill().over("user")
    return trace.select(
        released_row=pl.int_range(released, released + trace.height, dtype=pl.Int64),
        original_row="row",
        original_user="user",
        released_after=after.cast(pl.Int64),
        fake=pl.col("row").is_null(),
    )


def cover(
    log: str,
    output: str,
    method: str,
    *,
    settings: Mapping[str, Any] | None = None,
    pool: str | None = None,
    truth: Path | None = None,
    seed: int | None = None,
    progress: Progress = lambda step, done, total: None,
    **reading: Any,
) -> dict[str, Any]:
    """Write the traces of all users and, for evaluation only, which rows are dummy searches.

    Settings that are None have the method's defaults; the log and the pool are read with the same options.
    """
    kind, chosen = choose(method, settings or {})
    if pool is not None and not kind.borrows:
        raise UsageError(
            f"`{method}` uses no searches of other users, so it takes no pool", hint="leave out `--pool`"
        )
    inputs = [log, pool, (settings or {}).get("bag")]
    check_outputs([output, truth], inputs)
    check_truth_path(truth)
    original = formats.read(log, **reading)
    formats.ReadOptions().check_usable(log, original.rows_read, original.skipped)
    others = align_pool(formats.read(pool, **reading).frame, original.frame) if pool else None
    history = SearchHistory.of(original.frame, others)
    covering = kind(history, chosen, derive(Secret.choose(seed).value, "obfuscate", method))
    layout = formats.Layout.for_output(output, like=original.layout, columns=original.frame.columns)
    fakes = records = 0
    truths = []
    with formats.Writer(output, layout, private=True, never_replace=inputs) as writer:
        for chunk in mix(covering):
            writer.write(chunk.trace)
            fakes += chunk.fakes
            records += chunk.trace.height
            truths += [chunk.truth] if truth else []
            progress("cover", records, None)
        if truth:  # the traces get their name last, as a release does
            write_truth(truth, pl.concat(truths))
        writer.commit()
    return {
        "method": method,
        "users": history.users,
        "searches": len(history),
        "fakes": fakes,
        "records": records,
        "timed": history.timed,
        "output": output,
        "truth": str(truth) if truth else None,
        "skipped": dict(original.skipped.counts),
    }
