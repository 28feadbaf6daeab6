"""Numbers about privacy and utility, as pure functions of plain Python values."""

from __future__ import annotations

from querycloak.measures.distributions import jensen_shannon, tree_emd
from querycloak.measures.histories import record_linkage
from querycloak.measures.kept import release_rate, top_preserved
from querycloak.measures.live import delay, final_held, kolmogorov_smirnov, release_rate_over_time
from querycloak.measures.marketing import retention
from querycloak.measures.profiles import profile_loss
from querycloak.measures.wording import meaning_kept, readability, topic_loss

__all__ = [
    "delay",
    "final_held",
    "jensen_shannon",
    "kolmogorov_smirnov",
    "meaning_kept",
    "profile_loss",
    "readability",
    "record_linkage",
    "release_rate",
    "release_rate_over_time",
    "retention",
    "top_preserved",
    "topic_loss",
    "tree_emd",
]
