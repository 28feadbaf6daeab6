"""Small logs, and a detector that looks at one figure alone."""

from __future__ import annotations

import numpy as np
import polars as pl

from querycloak.clients.obfuscation.base import choose
from querycloak.clients.obfuscation.history import SearchHistory
from querycloak.clients.obfuscation.mixing import mix
from querycloak.keys import Secret

KEY = Secret.from_seed(1).value


def method_of(frame, name, key=KEY, pool=None, **chosen):
    """Return a method with its settings, ready to cover a log."""
    kind, settings = choose(name, chosen)
    return kind(SearchHistory.of(frame, pool), settings, key)


def cover(frame, name, key=KEY, pool=None, **chosen):
    """Cover a log; return the traces and the ground truth."""
    chunks = list(mix(method_of(frame, name, key, pool, **chosen)))
    return pl.concat([chunk.trace for chunk in chunks]), pl.concat([chunk.truth for chunk in chunks])


def covered(frame, method, key=KEY, **chosen):
    """Cover a log; return its traces with `fake` and `original_row` beside them."""
    trace, truth = cover(frame, method, key, **chosen)
    assert truth["released_row"].to_list() == list(range(trace.height))
    assert truth["original_user"].equals(trace["user"], null_equal=True)
    return pl.concat([trace, truth.select("fake", "original_row")], how="horizontal")


def log_of(rows, **columns):
    """Return a log of (user, query, second)."""
    users, queries, seconds = zip(*rows, strict=True)
    time = (pl.Series(seconds).cast(pl.Int64) * 1_000_000).cast(pl.Datetime("us", "UTC"))
    return pl.DataFrame(
        {"row": range(len(rows)), "user": users, "query": queries, "time": time, **columns},
        schema_overrides={"row": pl.Int64},
    )


def searches(frame):
    """Return one row of each search."""
    keys = [name for name in ("user", "query", "time") if name in frame.columns]
    return frame.unique(keys, maintain_order=True)


def area(value, fake):
    """Return the probability that a dummy search has a larger value than a real one."""
    value, fake = np.asarray(value, float), np.asarray(fake, bool)
    order = np.argsort(value, kind="stable")
    _, inverse, counts = np.unique(value[order], return_inverse=True, return_counts=True)
    ranks = np.empty(value.size)
    ranks[order] = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    many = fake.sum()
    return (ranks[fake].sum() - many * (many + 1) / 2) / (many * (value.size - many))
