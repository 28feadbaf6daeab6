"""The tree of categories: paths, ancestors, common ancestors, cutting at a level."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from querycloak.errors import DataError, UnknownName
from querycloak.text import storage
from querycloak.text.terms import IntArray, Terms

ROOT = 0
#: What stands for `/` inside a name, so that a path can be split at every `/`.
SLASH = "\u2215"


class Taxonomy:
    """A tree of categories as integer arrays: node 0 is the root, parents come before their children."""

    def __init__(self, parent: IntArray, names: Sequence[str], terms: Terms) -> None:
        self.parent = parent
        self.names = list(names)
        self.terms = terms
        self.depth = _depths(parent)

    @property
    def size(self) -> int:
        """How many nodes there are, the root included."""
        return len(self.names)

    def name(self, node: int) -> str:
        """Give the last part of a node's path."""
        return self.names[node]

    def path(self, node: int) -> str:
        """Spell a node out from general to specific, `Sports/Soccer`; the root is the empty text."""
        return self.paths[node]

    def node(self, path: str) -> int:
        """Find the node with this path."""
        try:
            return self._nodes[path]
        except KeyError:
            raise UnknownName("the taxonomy has no category of that path") from None

    def __contains__(self, path: object) -> bool:
        return path in self._nodes

    def ancestors(self, node: int) -> list[int]:
        """List what lies above a node, the nearest first and the root last."""
        return [int(above) for above in self._levels[node, : self.depth[node]][::-1]]

    def lca(self, a: int, b: int) -> int:
        """Give the deepest node that holds both, which may be one of them."""
        return int(self.common_ancestors(np.array([a]), np.array([b]))[0])

    def common_ancestors(self, a: npt.NDArray[np.integer], b: npt.NDArray[np.integer]) -> IntArray:
        """Give the deepest common ancestor of each pair."""
        left, right = self._levels[a], self._levels[b]
        shared = ((left == right) & (left >= 0)).sum(axis=-1) - 1
        deepest: IntArray = np.take_along_axis(left, shared[..., None], axis=-1)[..., 0]
        return deepest

    def at_level(self, nodes: npt.ArrayLike, level: int) -> IntArray:
        """Cut nodes at a level: each deeper one becomes its ancestor there, the others stay."""
        chosen = np.asarray(nodes)
        cut: IntArray = self._levels[chosen, np.minimum(self.depth[chosen], level)]
        return cut

    @cached_property
    def paths(self) -> list[str]:
        """All paths, in the order of the nodes."""
        paths = [""]
        for above, name in zip(self.parent[1:].tolist(), self.names[1:], strict=True):
            paths.append(f"{paths[above]}/{name}" if above else name)
        return paths

    @cached_property
    def _nodes(self) -> dict[str, int]:
        return {path: node for node, path in enumerate(self.paths)}

    @cached_property
    def _levels(self) -> IntArray:
        """Row per node: its ancestor at level 0, 1, ..., itself at its own level, then -1."""
        table = np.full((self.size, int(self.depth.max()) + 1), -1, np.int32)
        for level in range(table.shape[1]):
            here = np.flatnonzero(self.depth == level)
            table[here] = table[self.parent[here]]
            table[here, level] = here
        return table


def _depths(parent: IntArray) -> IntArray:
    depth = np.zeros(len(parent), np.int32)
    above = parent
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, parent[above], -1)
    return depth


def build(parent: Sequence[int], names: Sequence[str], terms: Terms) -> Taxonomy:
    """Check that parents come first, then make a taxonomy of them."""
    parents = np.array(parent, np.int32)
    if not len(parents) or parents[0] != -1 or (parents[1:] < 0).any():
        raise DataError("a taxonomy needs exactly one root, its first node")
    if (parents >= np.arange(len(parents))).any():
        raise DataError("a category stands before the one that it belongs to")
    return Taxonomy(parents, names, terms)


@lru_cache(maxsize=4)
def load(path: Path | None = None) -> Taxonomy:
    """Load the taxonomy that ships with the package, or one written by `tools/build_taxonomy.py`."""
    arrays = storage.shipped() if path is None else storage.read(path)
    weight = arrays["term_weight"].astype(np.float32) / np.float32(100)
    terms = Terms(
        storage.unpack(arrays["term_text"]),
        arrays["term_start"].astype(np.int32),
        arrays["term_node"].astype(np.int32),
        weight,
    )
    return Taxonomy(arrays["parent"].astype(np.int32), storage.unpack(arrays["names"]), terms)
