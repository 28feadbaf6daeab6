"""Microaggregation: distances, exact MDAV, MDAV in blocks, and a general MDAV from PyPI beside ours.

Loss is the mean distance of users to the most central one of their group; the kept share is the part of
the gain of exact groups over random ones that blocks keep.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import polars as pl
from papers.p003.mining import by_person

import querycloak as qc
from benchmarks.common import peak_gigabytes, timed
from querycloak import text
from querycloak.kernels.threads import each
from querycloak.methods.microaggregation import mdav, topic_groups
from querycloak.methods.microaggregation.by_text import MicroaggSyntactic
from querycloak.methods.microaggregation.text_distance import distances
from querycloak.methods.microaggregation.topic_groups import Counts, incidence
from querycloak.methods.microaggregation.tree_distance import UNIT, People, people

K = 5
#: Users of a block.
BLOCK = 8192
#: Users of a block, so that 10,000 users are cut into as many blocks (16) as 100,000 users.
SMALL_BLOCK = BLOCK // 10
#: Users at which ours and the peer run on the same vectors; the peer keeps a full matrix of floats.
PEER = (1000, 2000, 5000)


def entries(users: int, seed: int = 11) -> pl.DataFrame:
    """Generate users; return how often each one asked about each category."""
    tree = text.load()
    frame = qc.classify(qc.generate(users=users, seed=seed)).frame.drop_nulls("category")
    nodes = pl.DataFrame({"category": tree.paths, "node": np.arange(tree.size)})
    counts = frame.join(nodes, on="category").group_by("user", "node").len("times")
    return counts.with_columns(pl.col("user").rank("dense") - 1).sort("user", "node")


def prepared(counts: pl.DataFrame) -> People:
    """Make users ready for distances."""
    user = counts["user"].to_numpy().astype(np.int64)
    start = np.searchsorted(user, np.arange(user.max(initial=-1) + 2))
    return people(text.load().parent, start, counts["node"].to_numpy(), counts["times"].to_numpy())


def ranks(size: int) -> np.ndarray:
    return np.random.default_rng(1).permutation(size).astype(np.uint64)


def random_groups(size: int) -> np.ndarray:
    return np.random.default_rng(2).permutation(np.minimum(np.arange(size) // K, size // K - 1))


def loss(ready: People, labels: np.ndarray) -> float:
    spread = each(
        lambda own: int(ready.matrix(own, threads=1).sum(axis=0, dtype=np.int64).min()), mdav.split(labels)
    )
    return float(sum(spread) / ready.size / UNIT)


def exact(ready: People) -> dict[str, Any]:
    """Group by a full matrix."""
    matrix, distances = timed(ready.matrix)
    labels, grouping = timed(lambda: mdav.by_matrix(matrix, K, ranks(ready.size)))
    return {
        "users": ready.size,
        "matrix": distances,
        "mdav": grouping,
        "loss": round(loss(ready, labels), 4),
        "loss_random": round(loss(ready, random_groups(ready.size)), 4),
        "peak_gigabytes": peak_gigabytes(),
    }


def grouped_in_blocks(ready: People, most: int = BLOCK) -> dict[str, Any]:
    """Group without a full matrix."""
    labels, grouping = timed(lambda: mdav.group(ready, K, ranks(ready.size), most=most))
    return {"users": ready.size, "most": most, **grouping, "loss": round(loss(ready, labels), 4)}


def by_category(counts: pl.DataFrame) -> Counts:
    """Count each user's categories at all levels, as `microagg-topic` does."""
    tree, user = text.load(), counts["user"].to_numpy().astype(np.int64)
    person, node = (np.repeat(column, counts["times"]) for column in (user, counts["node"].to_numpy()))
    return topic_groups.count_categories(person, node, tree, int(tree.depth.max()), int(user.max()) + 1)


def common_topics(ready: Counts, most: int) -> dict[str, Any]:
    """Group users by common topics, exactly and in blocks; count what they have in common in their groups."""
    together = incidence(ready)

    def common(labels: np.ndarray) -> int:
        members = np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])
        return sum(int(together[np.ix_(own, own)].sum()) for own in members)

    size = len(together)
    full, exactly = timed(lambda: topic_groups.group(ready, K, ranks(size), size))
    cut, in_blocks = timed(lambda: topic_groups.group(ready, K, ranks(size), most))
    chance = common(random_groups(size))
    kept = (common(cut) - chance) / (common(full) - chance)
    timings = {"exact": exactly, "blocks": in_blocks, "most": most}
    return {"users": size, **timings, "kept_share_of_gain": round(kept, 3)}


def vectors_of(counts: pl.DataFrame) -> np.ndarray:
    """Return each user's shares of the level-1 topics."""
    tree = text.load()
    user, node = counts["user"].to_numpy().astype(np.int64), counts["node"].to_numpy()
    topic = tree.depth == 1
    table = np.zeros((int(user.max()) + 1, int(topic.sum())))
    np.add.at(table, (user, np.cumsum(topic)[tree.at_level(node, 1)] - 1), counts["times"].to_numpy())
    return table / table.sum(axis=1, keepdims=True)


def lines(vectors: np.ndarray) -> np.ndarray:
    """Return the straight-line distances of all vectors, as whole numbers."""
    squares = (vectors**2).sum(axis=1)
    gaps = np.sqrt(np.maximum(squares[:, None] + squares - 2 * vectors @ vectors.T, 0))
    return np.rint(gaps / gaps.max() * UNIT).astype(np.int32)


def standardised(vectors: np.ndarray) -> np.ndarray:
    """Do what the peer does to its input, so that both group the same vectors."""
    varied = vectors[:, vectors.std(axis=0) > 0]
    return np.asarray((varied - varied.mean(axis=0)) / varied.std(axis=0, ddof=1))


def lost_share(vectors: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of the vectors' variance that group averages lose, in percent (SSE / SST)."""
    size = np.bincount(labels)
    means = np.stack([np.bincount(labels, column) / size for column in vectors.T], axis=1)
    return round(float(100 * ((vectors - means[labels]) ** 2).sum() / (vectors**2).sum()), 3)


def peer(shares: np.ndarray) -> dict[str, Any]:
    """Run `anonypyx` and ours on the same vectors."""
    vectors = standardised(shares)
    mine, ours = timed(lambda: mdav.by_matrix(lines(vectors), K, ranks(len(vectors))))
    found: dict[str, Any] = {"users": len(vectors), "columns": vectors.shape[1]}
    found["ours"] = ours | {"lost_percent": lost_share(vectors, mine)}
    try:
        import pandas as pd
        from anonypyx.microaggregation import MDAVGeneric
    except ImportError:
        return found | {"anonypyx": "not installed"}
    warnings.simplefilter("ignore")  # the peer writes numbers into a column of categories
    columns = pd.DataFrame(vectors, columns=[f"c{i}" for i in range(vectors.shape[1])])
    # Without a categorical column anonypyx 0.2.11 takes the first record for the farthest one: it adds a
    # Hamming distance over no columns, which is not a number. One constant category mends that.
    for name, frame in {
        "anonypyx": columns,
        "anonypyx, mended": columns.assign(same=pd.Categorical(["x"] * len(columns))),
    }.items():
        groups, theirs = timed(lambda frame=frame: MDAVGeneric(frame, list(frame.columns)).partition(K))
        labels = np.empty(len(vectors), np.int64)
        for number, members in enumerate(groups):
            labels[np.asarray(members)] = number
        found[name] = theirs | {
            "lost_percent": lost_share(vectors, labels),
            "times_slower": round(theirs["seconds"] / max(ours["seconds"], 0.0001), 1),
        }
    return found


def measure(scale: float) -> dict[str, Any]:
    """Measure everything; at full scale up to 100,000 users."""
    counts = entries(int(10_000 * scale))
    warm = prepared(counts.filter(pl.col("user") < 300))  # compiles
    mdav.group(warm, K, ranks(warm.size), most=100)
    peer(vectors_of(counts)[:100])
    few = prepared(entries(int(1000 * scale)))
    found: dict[str, Any] = {f"exact {few.size}": exact(few)}
    ready = prepared(counts)
    full = found[f"exact {ready.size}"] = exact(ready)
    gain = full["loss_random"] - full["loss"]
    for most in (SMALL_BLOCK * 4, SMALL_BLOCK, SMALL_BLOCK // 2):
        cut = grouped_in_blocks(ready, int(most * scale))
        kept = (full["loss_random"] - cut["loss"]) / gain
        found[f"candidates {ready.size} in blocks of {int(most * scale)}"] = cut | {
            "kept_share_of_gain": round(kept, 3)
        }
    ready_topics = by_category(counts)
    for most in (SMALL_BLOCK * 4, SMALL_BLOCK):
        in_blocks = common_topics(ready_topics, int(most * scale))
        found[f"common topics of {in_blocks['users']} in blocks of {in_blocks['most']}"] = in_blocks
    many = prepared(entries(int(100_000 * scale)))
    found[f"candidates {many.size}"] = grouped_in_blocks(many, int(BLOCK * scale)) | {
        "loss_random": round(loss(many, random_groups(many.size)), 4),
        "peak_gigabytes": peak_gigabytes(),
    }
    found["general MDAV on the same vectors"] = {
        str(n): peer(vectors_of(counts)[: int(n * scale)]) for n in PEER
    }
    return found


def groups_of(release: qc.Release, users: list[str]) -> np.ndarray:
    """Return the group of each user: users with the same released history are in one."""
    columns = [pl.col(name) for name in release.log.frame.columns if name not in ("row", "user")]
    rows = release.log.frame.with_columns(mark=pl.struct(columns).hash(1))
    marks = dict(rows.group_by("user").agg(pl.col("mark").sort()).iter_rows())
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(tuple(marks[user]), len(numbers)) for user in users])


def topic_shares(log: qc.Log, users: list[str]) -> np.ndarray:
    """Return people's shares of planted topics."""
    topic = pl.col("category").str.split("/").list.first()
    counts = log.frame.group_by("user", topic=topic).len().pivot("topic", index="user", values="len")
    table = pl.DataFrame({"user": users}).join(counts, on="user", how="left", maintain_order="left")
    found = table.drop("user").fill_null(0).to_numpy().astype(np.float64)
    return found / found.sum(axis=1, keepdims=True)


def within(shares: np.ndarray, group: np.ndarray) -> float:
    """Return in percent how much of people's squared differences is within groups."""
    size = np.bincount(group)[:, None]
    means = np.stack([np.bincount(group, column) for column in shares.T], axis=1) / np.maximum(size, 1)
    whole = ((shares - shares.mean(axis=0)) ** 2).sum()
    return round(100 * float(((shares - means[group]) ** 2).sum() / whole), 1)


def homogeneity(users: int, seed: int) -> dict[str, Any]:
    """Compare ways of grouping among the people of whom the tree knows something."""
    log = qc.generate(users=users, seed=seed, categories=True)
    kept = qc.protect(log, "microagg-semantic", k=K, seed=1).log.frame["user"].unique().to_list()
    log = log.with_frame(log.frame.filter(pl.col("user").is_in(kept)))
    people = sorted(kept)
    shares = topic_shares(log, people)
    found: dict[str, Any] = {"people": len(people)}
    for name, method in (("tree", "microagg-semantic"), ("plain", "microagg-plain")):
        release = qc.protect(log, method, k=K, seed=1)
        found[name] = within(shares, groups_of(release, people))
    lot = np.random.default_rng(0).permutation(len(people)) // K
    return found | {"chance": within(shares, lot)}


def blocks(users: int, seed: int) -> dict[str, Any]:
    """Return how much of what all distances gain over chance blocks keep, for the syntactic method."""
    log = qc.generate(users=users, seed=seed)
    people = log.frame["user"].unique(maintain_order=True).to_list()
    apart = distances(by_person(log.frame, people))

    def inside(group: np.ndarray) -> float:
        same = group[:, None] == group
        np.fill_diagonal(same, val=False)
        return float(apart[same].mean())

    exact = inside(groups_of(qc.protect(log, "microagg-syntactic", k=K, seed=1), people))
    before, MicroaggSyntactic.exact = MicroaggSyntactic.exact, 1
    cut = inside(groups_of(qc.protect(log, "microagg-syntactic", k=K, seed=1), people))
    MicroaggSyntactic.exact = before
    lot = inside(np.random.default_rng(1).permutation(np.arange(len(people)) // K))
    kept = round((lot - cut) / (lot - exact), 3)
    return {"people": len(people), "exact": round(exact, 4), "blocks": round(cut, 4), "chance": round(lot, 4),
            "kept_share_of_gain": kept}  # fmt: skip


def groups(scale: float) -> dict[str, Any]:
    """Compare groups by tree, by texts and at random, and the gain that blocks keep."""
    return {
        "300 people": homogeneity(max(int(300 * scale), 60), 7),
        "1000 people": homogeneity(max(int(1000 * scale), 60), 1),
        "syntactic": blocks(max(int(2000 * scale), 60), 2),
    }
