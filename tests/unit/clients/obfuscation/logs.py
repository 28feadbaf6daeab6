"""Small logs, and a detector that looks at one figure alone."""

from __future__ import annotations

import numpy as np
import polars as pl

from querycloak.clients.obfuscation.settings import Settings
from querycloak.clients.obfuscation.trace import cover
from querycloak.keys import Secret

KEY = Secret.from_seed(1).value


def covered(frame, method, key=KEY, **chosen):
    """Cover a log; give its traces with `fake` and `original_row` beside them."""
    trace, truth = cover(frame, Settings(method=method, **chosen), key)
    assert truth["released_row"].to_list() == list(range(trace.height))
    assert truth["original_user"].equals(trace["user"], null_equal=True)
    return pl.concat([trace, truth.select("fake", "original_row")], how="horizontal")


def log_of(rows, **columns):
    """Make a log of (user, query, second)."""
    users, queries, seconds = zip(*rows, strict=True)
    time = (pl.Series(seconds).cast(pl.Int64) * 1_000_000).cast(pl.Datetime("us", "UTC"))
    return pl.DataFrame(
        {"row": range(len(rows)), "user": users, "query": queries, "time": time, **columns},
        schema_overrides={"row": pl.Int64},
    )


def searches(frame):
    """Keep one row of each search."""
    keys = [name for name in ("user", "query", "time") if name in frame.columns]
    return frame.unique(keys, maintain_order=True)


def area(value, fake):
    """Say how well a figure tells fakes: the chance that a fake's is larger than a real one's."""
    value, fake = np.asarray(value, float), np.asarray(fake, bool)
    order = np.argsort(value, kind="stable")
    _, inverse, counts = np.unique(value[order], return_inverse=True, return_counts=True)
    ranks = np.empty(value.size)
    ranks[order] = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    many = fake.sum()
    return (ranks[fake].sum() - many * (many + 1) / 2) / (many * (value.size - many))
