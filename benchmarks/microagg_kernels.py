"""Groups of alike users: distances, exact MDAV, MDAV in blocks, and a general MDAV from PyPI beside ours.

Loss is the mean distance of users to the most central one of their group; the kept share says how much of
what exact groups gain over random ones is left with blocks.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import querycloak as qc
from querycloak import text
from querycloak.kernels.threads import each
from querycloak.methods.microaggregation import mdav, topic_groups
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
    """Make up users; give how often each one asked about each category, as numbers."""
    tree = text.load()
    frame = qc.classify(qc.generate(users=users, seed=seed)).frame.drop_nulls("category")
    nodes = pl.DataFrame({"category": tree.paths, "node": np.arange(tree.size)})
    counts = frame.join(nodes, on="category").group_by("user", "node").len("times")
    return counts.with_columns(pl.col("user").rank("dense") - 1).sort("user", "node")


def made(counts: pl.DataFrame) -> People:
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


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Do it once; give the result, and the seconds by the clock and of the processor (cores are shared)."""
    clock, busy = time.perf_counter(), time.process_time()
    result = work()
    seconds, cpu = time.perf_counter() - clock, time.process_time() - busy
    return result, {"seconds": round(seconds, 4), "cpu_seconds": round(cpu, 4)}


def gigabytes() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2)


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
        "peak_gigabytes": gigabytes(),
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
    """Give each user's shares of the level-1 topics."""
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
    """Give the share of the vectors' variance that group averages lose, in percent (SSE / SST)."""
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


def measure(scale: float = 1.0) -> dict[str, Any]:
    """Measure everything; at full scale up to 100,000 users."""
    counts = entries(int(10_000 * scale))
    warm = made(counts.filter(pl.col("user") < 300))  # compiles
    mdav.group(warm, K, ranks(warm.size), most=100)
    peer(vectors_of(counts)[:100])
    few = made(entries(int(1000 * scale)))
    found: dict[str, Any] = {f"exact {few.size}": exact(few)}
    ready = made(counts)
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
    many = made(entries(int(100_000 * scale)))
    found[f"candidates {many.size}"] = grouped_in_blocks(many, int(BLOCK * scale)) | {
        "loss_random": round(loss(many, random_groups(many.size)), 4),
        "peak_gigabytes": gigabytes(),
    }
    found["general MDAV on the same vectors"] = {
        str(n): peer(vectors_of(counts)[: int(n * scale)]) for n in PEER
    }
    return found


if __name__ == "__main__":
    print(json.dumps(measure(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0), indent=2))
