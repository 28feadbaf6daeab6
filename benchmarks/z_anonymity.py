"""z-anonymity here and in `zanon` from PyPI, on the same log in the same run."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import polars as pl

from querycloak.dictionary import Dictionaries
from querycloak.engines import local
from querycloak.engines.pipeline import Pipeline, parse_stages
from querycloak.engines.time_order import whole
from querycloak.log import Log
from querycloak.synthetic import generate

#: The peer gets the first so many records: it slows down as its window fills.
PEER_RECORDS = 40_000
WINDOW, Z = 3600, 3


def ours(log: Log, generalise: bool) -> tuple[float, int]:
    """Replay, encode, protect and spell out again, once everything is compiled."""
    settings = {"z": str(Z), "window": str(WINDOW), "generalise": "yes" if generalise else "no"}
    stages, key = parse_stages(["z-anonymity"], settings), b"k" * 32
    for part in (log.with_frame(log.frame.head(1000)), log):
        begin = time.perf_counter()
        released = sum(
            r.frame.height for r in local.run(Pipeline(stages, key, Dictionaries()), whole(part, key))
        )
        seconds = time.perf_counter() - begin
    return seconds, released


@contextlib.contextmanager
def somewhere_else() -> Iterator[None]:
    """Let the peer write its files into a folder that goes away."""
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(here)


def peer(log: Log, generalise: bool) -> float:
    """Feed the same records to `zanon`, one by one, as its documentation does."""
    import matplotlib as mpl

    mpl.use("Agg")
    from zanonymity import zanon

    what = (
        pl.concat_str(pl.col("category").str.replace_all("/", "*"), pl.lit("*"), "query")
        if generalise
        else pl.col("query")
    )
    table = log.frame.sort("time", "row").select(pl.col("time").dt.epoch("s"), "user", what.alias("what"))
    records = table.rows()
    with somewhere_else():
        anonymizer = zanon.zanon(WINDOW, 0.8, 2)
        begin = time.perf_counter()
        for record in records:
            anonymizer.anonymize(record)
        anonymizer.endFiles()
        return time.perf_counter() - begin


def measure(users: int = 12_000) -> dict[str, Any]:
    """Compare records per second, with and without the hierarchy of categories."""
    log = generate(users, seed=7, categories=True)
    first = log.with_frame(log.frame.sort("time", "row").head(PEER_RECORDS))
    found: dict[str, Any] = {"records": len(log), "peer_records": len(first)}
    for name, generalise in (("queries", False), ("hierarchy", True)):
        seconds, _ = ours(log, generalise)
        theirs = peer(first, generalise)
        rate, peer_rate = len(log) / seconds, len(first) / theirs
        found[name] = {
            "records_per_second": round(rate),
            "zanon_records_per_second": round(peer_rate),
            "ratio": round(rate / peer_rate, 1),
        }
    return found
