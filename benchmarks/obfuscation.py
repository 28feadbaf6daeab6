"""Covering users of about 1,000 searches each: processor time by method."""

from __future__ import annotations

from typing import Any

import polars as pl

from benchmarks.common import timed
from querycloak import generate
from querycloak.clients.obfuscation.searches import Searches
from querycloak.clients.obfuscation.settings import METHODS, Settings
from querycloak.clients.obfuscation.trace import covered

#: Users of the log whose searches make one busy user.
PEOPLE = 30


def busy_log(users: int) -> pl.DataFrame:
    """Return a log whose users have about 1,000 searches each."""
    frame = generate(users=users * PEOPLE, seed=1).frame
    return frame.with_columns(user=(pl.col("user").rank("dense") % users).cast(pl.String))


def measure(scale: float) -> dict[str, Any]:
    """Cover the same log by every method."""
    searches = Searches.of(busy_log(max(int(100 * scale), 2)))
    found = {}
    for method in METHODS:
        pieces = covered(searches, Settings(method=method, fakes=1.0), b"benchmark of covering people")
        fakes, spent = timed(lambda pieces=pieces: sum(piece.fakes for piece in pieces))
        found[method] = {"searches": len(searches), "fakes": fakes, "cpu_seconds": spent["cpu_seconds"]}
    return found
