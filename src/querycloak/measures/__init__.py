"""Numbers about privacy and utility, as functions of plain Python values."""

from __future__ import annotations

from querycloak.measures.counts import jensen_shannon, release_rate, retention, top_preserved, tree_emd
from querycloak.measures.delay import delay
from querycloak.measures.histories import (
    information_loss_ratio,
    profile_exposure,
    record_linkage,
    semantic_remain,
)
from querycloak.measures.partitions import jaccard_index, partition_distance, rand_index

__all__ = [
    "delay",
    "information_loss_ratio",
    "jaccard_index",
    "jensen_shannon",
    "partition_distance",
    "profile_exposure",
    "rand_index",
    "record_linkage",
    "release_rate",
    "retention",
    "semantic_remain",
    "top_preserved",
    "tree_emd",
]
