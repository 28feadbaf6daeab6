"""Covering users of about 1,000 searches each: processor time by method."""

from __future__ import annotations

from functools import partial
from typing import Any

import polars as pl

from benchmarks.common import timed
from querycloak import generate
from querycloak.clients.obfuscation.base import choose
from querycloak.clients.obfuscation.history import SearchHistory
from querycloak.clients.obfuscation.mixing import mix
from querycloak.registry import COVERS

#: Users of the log whose searches make one busy user.
PEOPLE = 30


def busy_log(users: int) -> pl.DataFrame:
    """Return a log whose users have about 1,000 searches each."""
    frame = generate(users=users * PEOPLE, seed=1).frame
    return frame.with_columns(user=(pl.col("user").rank("dense") % users).cast(pl.String))


def cover_all(kind: Any, history: SearchHistory, settings: Any) -> int:
    """Cover all users; return the number of dummy searches."""
    return sum(chunk.fakes for chunk in mix(kind(history, settings, b"benchmark of covering people")))


def measure(scale: float) -> dict[str, Any]:
    """Cover the same log by every method."""
    history = SearchHistory.of(busy_log(max(int(100 * scale), 2)))
    found = {}
    for method in COVERS.built_in:
        kind, settings = choose(method, {"fakes": 1.0})
        cover = partial(cover_all, kind, history, settings)
        fakes, spent = timed(cover)
        found[method] = {"searches": len(history), "fakes": fakes, "cpu_seconds": spent["cpu_seconds"]}
    return found
