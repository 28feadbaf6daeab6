"""How long covering takes: users of about 1,000 searches each, put together from several made-up people."""

from __future__ import annotations

import sys
import time

import polars as pl

from querycloak import generate
from querycloak.clients.obfuscation.searches import Searches
from querycloak.clients.obfuscation.settings import METHODS, Settings
from querycloak.clients.obfuscation.trace import covered

#: Made-up people who make one busy user.
PEOPLE = 30


def busy_log(users: int) -> pl.DataFrame:
    """Give some people's searches one name, so that each user has about 1,000 of them."""
    frame = generate(users=users * PEOPLE, seed=1).frame
    return frame.with_columns(user=(pl.col("user").rank("dense") % users).cast(pl.String))


def measure(users: int = 100) -> dict[str, dict[str, float]]:
    """Cover the same log in every way; give processor time and how many searches and fakes there are."""
    searches = Searches.of(busy_log(users))
    found = {}
    for method in METHODS:
        start = time.process_time()
        pieces = covered(searches, Settings(method=method, fakes=1.0), b"benchmark of covering people")
        fakes = sum(piece.fakes for piece in pieces)
        seconds = time.process_time() - start
        found[method] = {"searches": len(searches), "fakes": fakes, "processor_seconds": seconds}
    return found


if __name__ == "__main__":
    for method, figures in measure(*map(int, sys.argv[1:])).items():
        print(method, figures)
