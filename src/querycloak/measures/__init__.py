"""Numbers about privacy and utility, as pure functions of plain Python values."""

from __future__ import annotations

from querycloak.measures.distributions import jensen_shannon, tree_emd
from querycloak.measures.kept import release_rate, top_preserved
from querycloak.measures.marketing import retention

__all__ = ["jensen_shannon", "release_rate", "retention", "top_preserved", "tree_emd"]
