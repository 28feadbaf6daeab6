"""What `link-learned` costs for one target with many searches: processor seconds of each step.

python -m benchmarks.link_learned
"""

from __future__ import annotations

import json
import resource
import time
from functools import partial
from typing import Any

import numpy as np
import polars as pl

import querycloak as qc
from querycloak.attacks.link_learned import features, pair_scores, relations, training
from querycloak.attacks.link_learned.term_frequencies import TermFrequencies

FUNCTIONS = 4


class Clock:
    """Notes how much processor time each step took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.process_time()

    def note(self, name: str) -> None:
        """End a step."""
        now = time.process_time()
        self.seconds[name], self._last = round(now - self._last, 2), now


def busiest(searches: int) -> pl.DataFrame:
    """Join the histories of the busiest made-up people to one of so many rows, half of which we call real."""
    frame = qc.generate(users=3000, seed=3).frame
    order = frame.group_by("user").len().sort("len", "user", descending=True)["user"].head(4)
    rows = frame.filter(pl.col("user").is_in(order.implode())).with_columns(person="user", user=pl.lit("one"))
    return rows.unique(["query", "time"], keep="first", maintain_order=True).sort("time").head(searches)


def measure(searches: int = 1790) -> dict[str, Any]:
    """Read, relate, learn, score and cut; then score again with half of the searches known."""
    rows = busiest(searches)
    known = TermFrequencies.of(rows)
    features.read(rows.head(50), known)  # words and trees are loaded once
    pair_scores.cut(np.zeros(45, np.float32), 10, 2, 0)  # and kernels compiled
    clock = Clock()
    read = features.read(rows, known)
    clock.note("features")
    size, relate = len(read), partial(relations.relate, read)
    fake = (rows["person"].rank("dense").to_numpy() % 2 == 0)[read.searches.first_row]
    lessons = training.lessons(np.zeros(size, np.int64), fake, searches)
    functions = training.learn(relate, lessons, FUNCTIONS, seed=0)
    clock.note(f"learn {FUNCTIONS} functions")
    pair_scores.scores(relate, size, functions[:1], "median")
    clock.note("relations of all pairs, and 1 function")
    scores = pair_scores.scores(relate, size, functions, "median")
    clock.note(f"the same with {FUNCTIONS} functions")
    own = np.flatnonzero(~fake)
    pair_scores.scores(relate, size, functions, "median", (own, pair_scores.among(scores, size, own)))
    clock.note("the same, her own pairs known")
    for parts in (2, pair_scores.MANY):
        pair_scores.cut(scores, size, parts, 0)
        clock.note(f"cut into {parts}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"searches": size, "pairs": scores.size, "processor": clock.seconds, "memory_gb": round(memory, 2)}


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
