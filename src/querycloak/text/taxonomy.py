"""The tree of categories: paths, ancestors, levels; loading one from a file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from querycloak.errors import DataError, UnknownName
from querycloak.text import taxonomy_files as stored
from querycloak.text.lexicon import Int32Array, Lexicon

#: In a package file, terms of categories down to this depth are curated, deeper ones are WordNet's.
_CURATED_DEPTH: Final = 2


class Taxonomy:
    """A tree of categories as integer arrays: node 0 is the root, parents come before their children."""

    def __init__(self, parent: Int32Array, names: Sequence[str], lexicon: Lexicon) -> None:
        self.parent = parent
        self.names = list(names)
        self.lexicon = lexicon
        self.depth = _depths(parent)

    @property
    def size(self) -> int:
        """Number of nodes, the root included."""
        return len(self.names)

    def path(self, node: int) -> str:
        """Return the path of a node from general to specific, `Sports/Soccer`; the root is the empty text."""
        return self.paths[node]

    def node(self, path: str) -> int:
        """Return the node with this path. Raise UnknownName if there is none."""
        try:
            return self._nodes[path]
        except KeyError:
            raise UnknownName("the taxonomy has no category of that path") from None

    def __contains__(self, path: object) -> bool:
        return path in self._nodes

    def common_ancestors(self, a: npt.NDArray[np.integer], b: npt.NDArray[np.integer]) -> Int32Array:
        """Return the deepest common ancestor of each pair, which can be one of them."""
        left, right = self._levels[a], self._levels[b]
        shared = ((left == right) & (left >= 0)).sum(axis=-1) - 1
        deepest: Int32Array = np.take_along_axis(left, shared[..., None], axis=-1)[..., 0]
        return deepest

    def at_level(self, nodes: npt.ArrayLike, level: int) -> Int32Array:
        """Return nodes cut at a level: the ancestor there of each deeper one, the others unchanged."""
        chosen = np.asarray(nodes)
        cut: Int32Array = self._levels[chosen, np.minimum(self.depth[chosen], level)]
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
    def _levels(self) -> Int32Array:
        """Row per node: its ancestor at level 0, 1, ..., itself at its own level, then -1."""
        table = np.full((self.size, int(self.depth.max()) + 1), -1, np.int32)
        for level in range(table.shape[1]):
            here = np.flatnonzero(self.depth == level)
            table[here] = table[self.parent[here]]
            table[here, level] = here
        return table


def _depths(parent: Int32Array) -> Int32Array:
    depth = np.zeros(len(parent), np.int32)
    above = parent
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, parent[above], -1)
    return depth


def build(parent: Sequence[int], names: Sequence[str], lexicon: Lexicon) -> Taxonomy:
    """Return a taxonomy. Raise DataError if a parent does not come before its child."""
    parents = np.array(parent, np.int32)
    if not len(parents) or parents[0] != -1 or (parents[1:] < 0).any():
        raise DataError("a taxonomy needs exactly one root, its first node")
    if (parents >= np.arange(len(parents))).any():
        raise DataError("a category stands before the one that it belongs to")
    return Taxonomy(parents, names, lexicon)


@lru_cache(maxsize=4)
def load(path: Path | None = None) -> Taxonomy:
    """Return the taxonomy of the package, or one that was written by `tools/build_taxonomy.py`."""
    arrays = stored.shipped() if path is None else stored.read(path)
    parent, node = arrays["parent"].astype(np.int32), arrays["term_node"].astype(np.int32)
    lexicon = Lexicon(
        stored.unpack(arrays["term_text"]),
        arrays["term_start"].astype(np.int32),
        node,
        arrays["term_weight"].astype(np.float32) / np.float32(100),
        _depths(parent)[node] <= _CURATED_DEPTH,
    )
    return Taxonomy(parent, stored.unpack(arrays["names"]), lexicon)


def load_taxonomy(path: str | Path) -> Taxonomy:
    """Return the taxonomy of a file, detected by its content, or of a folder with both ODP dumps.

    ODP: the categories of `structure.rdf.u8`, and the words of the pages in `content.rdf.u8`. Tables:
    `path[,terms]` or `id,parent,name[,terms]`. All can be compressed with gzip or zstandard.
    """
    place = Path(path)
    if place.is_file() and stored.is_package_file(place):
        return load(place)
    builder = stored.TreeBuilder()
    if place.is_dir():
        stored.read_odp(_dumps(place), builder)
    elif _is_xml(place):
        stored.read_odp([place], builder)
    else:
        stored.read_table(place, builder)
    return build(builder.parent, builder.names, builder.lexicon())


def _dumps(folder: Path) -> list[Path]:
    names = [name + end for name in stored.DUMPS for end in ("", ".gz", ".zst")]
    found = [folder / name for name in names if (folder / name).is_file()]
    if not found:
        raise DataError("the taxonomy folder holds no ODP dump", hint=f"it should hold `{names[0]}`")
    return found


def _is_xml(path: Path) -> bool:
    try:
        with stored.open_plain(path) as file:
            return file.read(64).lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<")
    except (OSError, EOFError) as error:
        raise DataError("the taxonomy file is damaged at its beginning") from error


def vocabulary() -> dict[str, list[str]]:
    """Return `{category path: words and phrases}` of which synthetic queries consist, common ones first.

    Each phrase occurs once, in the category of its main meaning: our own lists first, then WordNet's
    nouns without insults, people who lived, and Latin names of genera and families.
    """
    arrays = stored.shipped()
    words, node = stored.unpack(arrays["word_text"]), arrays["word_node"].astype(np.int64)
    starts = np.flatnonzero(np.diff(node, prepend=-1)).tolist()
    paths = load().paths
    return {paths[int(node[a])]: words[a:b] for a, b in zip(starts, [*starts[1:], len(words)], strict=True)}
