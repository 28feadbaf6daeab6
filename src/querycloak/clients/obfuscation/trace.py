"""Mixes fakes into people's searches: one trace for each, in which nothing but the truth tells them apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.clients.obfuscation.draws import Draws
from querycloak.clients.obfuscation.fakes import Fakes, Method
from querycloak.clients.obfuscation.searches import Searches
from querycloak.clients.obfuscation.settings import Settings
from querycloak.kernels import siphash
from querycloak.keys import derive
from querycloak.log import IntArray

Ties = npt.NDArray[np.uint64]

#: Searches of whole people that are mixed at a time, fakes included.
PIECE_SEARCHES: Final = 200_000
_TIE: Final = 1
_NO_TIES: Final = np.zeros(0, np.uint64)
_HOMES: Final = {"tmn": "tmn:Tmn", "usr": "people:Usr", "hybrid": "people:Hybrid", "shadow": "shadow:Shadow"}


@dataclass(frozen=True)
class Piece:
    """Some people's traces, and the truth about them; `released_row` counts on through the pieces."""

    trace: pl.DataFrame
    truth: pl.DataFrame
    people: int
    fakes: int


def cover(
    frame: pl.DataFrame, settings: Settings, key: bytes, pool: pl.DataFrame | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Cover everybody in a log; give the traces and the truth about them."""
    pieces = list(covered(Searches.of(frame, pool), settings, key))
    return pl.concat([piece.trace for piece in pieces]), pl.concat([piece.truth for piece in pieces])


def covered(
    searches: Searches, settings: Settings, key: bytes, piece_searches: int = PIECE_SEARCHES
) -> Iterator[Piece]:
    """Cover some people after the others, in the order of their names; there is at least one piece."""
    method = method_of(settings)(searches, settings, key)
    released = low = 0
    room = int(piece_searches / (1 + settings.per_real))
    while low < searches.people or not low:
        reach = searches.begins[low] + room
        high = max(low + 1, int(np.searchsorted(searches.begins, reach, "right")) - 1)
        piece = _piece(method, low, min(high, searches.people), released)
        yield piece
        released += piece.trace.height
        low = high


def method_of(settings: Settings) -> Callable[[Searches, Settings, bytes], Method]:
    """Load the way to cover that is wanted."""
    module, _, name = _HOMES[settings.method].partition(":")
    made: Callable[[Searches, Settings, bytes], Method] = getattr(
        import_module(f"querycloak.clients.obfuscation.{module}"), name
    )
    return made


def _piece(method: Method, low: int, high: int, released: int) -> Piece:
    searches = method.searches
    hers = slice(int(searches.begins[low]), int(searches.begins[high]))
    made = [_made(method, person) for person in range(low, high)]
    fakes = Fakes.joined([part for part, _, _ in made])
    whose = np.repeat(np.arange(low, high), [len(part) for part, _, _ in made])
    rows, which = searches.rows_of(np.arange(hers.start, hers.stop))
    order = np.lexsort(
        (
            np.arange(rows.size + whose.size),  # clicks of one search stay in their order
            np.concatenate([*(tie for _, tie, _ in made), *(tie for _, _, tie in made), _NO_TIES]),
            np.concatenate([searches.time[hers][which], fakes.time - fakes.time % searches.tick]),
            np.concatenate([searches.person[hers][which], whose]),
        )
    )
    trace = _mixed(method, rows, fakes, whose)[order.astype(np.uint32)]
    count = sum(int(part.search.max(initial=-1)) + 1 for part, _, _ in made)
    return Piece(trace.drop("row"), _truth(trace, released), high - low, count)


def _made(method: Method, person: int) -> tuple[Fakes, Ties, Ties]:
    """Make one person's fakes; give with them the numbers that order her rows and theirs at one moment."""
    searches = method.searches
    key = derive(method.key, "person", searches.names[person])
    fakes = method.fakes(person, Draws(key, "fakes"))
    hers = searches.of_person(person)
    _, which = searches.rows_of(hers)
    tie = siphash.draw(derive(key, "order"), _TIE, np.concatenate([which, hers.size + fakes.search]))
    return fakes, tie[: which.size], tie[which.size :]


def _mixed(method: Method, rows: IntArray, fakes: Fakes, whose: IntArray) -> pl.DataFrame:
    """Put real rows and fake ones into one frame, still one after the other."""
    searches = method.searches
    real = searches.frame[int(rows[0]) : int(rows[-1]) + 1] if rows.size else searches.frame[:0]
    added = method.spelled(fakes).with_columns(
        row=pl.lit(None, pl.Int64), user=pl.Series(searches.names, dtype=pl.String).gather(whose)
    )
    if searches.timed:
        moments = pl.Series(fakes.time - fakes.time % searches.tick).cast(searches.frame.schema["time"])
        added = added.with_columns(time=moments)
    return pl.concat([real, added.select(real.columns).cast(real.schema)])


def _truth(trace: pl.DataFrame, released: int) -> pl.DataFrame:
    """Say of every row where it is from; of a fake, after which row of the same person it was sent."""
    after = (pl.col("row") + 1).forward_fill().backward_fill().over("user")
    return trace.select(
        released_row=pl.int_range(released, released + trace.height, dtype=pl.Int64),
        original_row="row",
        original_user="user",
        released_after=after.cast(pl.Int64),
        fake=pl.col("row").is_null(),
    )
