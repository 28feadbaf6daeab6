"""Numbers about privacy and utility, as pure functions of plain Python values."""

from __future__ import annotations

from querycloak.measures.distributions import jensen_shannon, tree_emd
from querycloak.measures.exposure import information_loss_ratio, profile_exposure
from querycloak.measures.histories import record_linkage, semantic_remain
from querycloak.measures.kept import release_rate, top_preserved
from querycloak.measures.live import delay, final_held, kolmogorov_smirnov, release_rate_over_time
from querycloak.measures.marketing import retention
from querycloak.measures.mining import partition_loss
from querycloak.measures.partitions import jaccard_index, partition_distance, rand_index
from querycloak.measures.profiles import profile_loss
from querycloak.measures.usable import clicks_kept, sessions_kept, terms_kept, unique_texts
from querycloak.measures.wording import meaning_kept, readability, topic_loss

__all__ = [
    "clicks_kept",
    "delay",
    "final_held",
    "information_loss_ratio",
    "jaccard_index",
    "jensen_shannon",
    "kolmogorov_smirnov",
    "meaning_kept",
    "partition_distance",
    "partition_loss",
    "profile_exposure",
    "profile_loss",
    "rand_index",
    "readability",
    "record_linkage",
    "release_rate",
    "release_rate_over_time",
    "retention",
    "semantic_remain",
    "sessions_kept",
    "terms_kept",
    "top_preserved",
    "topic_loss",
    "tree_emd",
    "unique_texts",
]
