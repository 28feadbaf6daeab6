"""How alike the members of groups are: by tree, by vectors, by plain texts, by chance; and what blocks cost.

python -m benchmarks.microagg_groups
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
from papers.p003.mining import by_person

import querycloak as qc
from querycloak.methods.microaggregation.by_text import SyntacticGrouping
from querycloak.methods.microaggregation.text_distance import distances

K = 5
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "tree": ("microagg-semantic", {}),
    "plain": ("microagg-plain", {}),
}


def groups_of(release: qc.Release, users: list[str]) -> np.ndarray:
    """Number people by what stands for them: those with the same history are in one group."""
    columns = [pl.col(name) for name in release.log.frame.columns if name not in ("row", "user")]
    rows = release.log.frame.with_columns(mark=pl.struct(columns).hash(1))
    marks = dict(rows.group_by("user").agg(pl.col("mark").sort()).iter_rows())
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(tuple(marks[user]), len(numbers)) for user in users])


def topics_of(log: qc.Log, users: list[str]) -> np.ndarray:
    """Give people's shares of planted topics."""
    topic = pl.col("category").str.split("/").list.first()
    counts = log.frame.group_by("user", topic=topic).len().pivot("topic", index="user", values="len")
    table = pl.DataFrame({"user": users}).join(counts, on="user", how="left", maintain_order="left")
    found = table.drop("user").fill_null(0).to_numpy().astype(np.float64)
    return found / found.sum(axis=1, keepdims=True)


def within(shares: np.ndarray, group: np.ndarray) -> float:
    """Give in percent how much of people's squared differences is within groups."""
    size = np.bincount(group)[:, None]
    means = np.stack([np.bincount(group, column) for column in shares.T], axis=1) / np.maximum(size, 1)
    whole = ((shares - shares.mean(axis=0)) ** 2).sum()
    return round(100 * float(((shares - means[group]) ** 2).sum() / whole), 1)


def likeness(users: int, seed: int) -> dict[str, Any]:
    """Compare ways of grouping among the people of whom the tree knows something."""
    log = qc.generate(users=users, seed=seed, categories=True)
    kept = qc.protect(log, "microagg-semantic", k=K, seed=1).log.frame["user"].unique().to_list()
    log = log.with_frame(log.frame.filter(pl.col("user").is_in(kept)))
    people = sorted(kept)
    shares = topics_of(log, people)
    found: dict[str, Any] = {"people": len(people)}
    for name, (method, settings) in WAYS.items():
        release = qc.protect(log, method, k=K, seed=1, **settings)
        found[name] = within(shares, groups_of(release, people))
    lot = np.random.default_rng(0).permutation(len(people)) // K
    return found | {"chance": within(shares, lot)}


def blocks(users: int, seed: int) -> dict[str, Any]:
    """Say how much of what all distances gain over chance blocks keep, for the syntactic method."""
    log = qc.generate(users=users, seed=seed)
    people = log.frame["user"].unique(maintain_order=True).to_list()
    apart = distances(by_person(log.frame, people))

    def inside(group: np.ndarray) -> float:
        same = group[:, None] == group
        np.fill_diagonal(same, val=False)
        return float(apart[same].mean())

    exact = inside(groups_of(qc.protect(log, "microagg-syntactic", k=K, seed=1), people))
    before, SyntacticGrouping.exact = SyntacticGrouping.exact, 1
    cut = inside(groups_of(qc.protect(log, "microagg-syntactic", k=K, seed=1), people))
    SyntacticGrouping.exact = before
    lot = inside(np.random.default_rng(1).permutation(np.arange(len(people)) // K))
    kept = round((lot - cut) / (lot - exact), 3)
    return {"people": len(people), "exact": round(exact, 4), "blocks": round(cut, 4), "chance": round(lot, 4),
            "kept_share_of_gain": kept}  # fmt: skip


def measure(scale: float = 1.0) -> dict[str, Any]:
    """Measure both."""
    return {
        "300 people": likeness(max(int(300 * scale), 60), 7),
        "1000 people": likeness(max(int(1000 * scale), 60), 1),
        "syntactic": blocks(max(int(2000 * scale), 60), 2),
    }


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
