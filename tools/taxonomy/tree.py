"""Grows the tree: root, topics, domains, then one node for each synset, at most thirteen levels."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain

from querycloak.text.taxonomy_files import SLASH
from taxonomy.placement import NO_PARENT, Placer
from taxonomy.wordnet import WordNet

DEEPEST = 13


@dataclass
class Tree:
    """Nodes in the order of growth, so that parents come first."""

    parent: list[int] = field(default_factory=lambda: [-1])
    names: list[str] = field(default_factory=lambda: [""])
    depth: list[int] = field(default_factory=lambda: [0])
    _children: dict[tuple[int, str], int] = field(default_factory=dict)

    def add(self, parent: int, name: str) -> int:
        """Add a node below another."""
        node = self._children[parent, name] = len(self.names)
        self.parent.append(parent)
        self.names.append(name)
        self.depth.append(self.depth[parent] + 1)
        return node

    def get(self, parent: int, name: str) -> int | None:
        """Find a child by name."""
        return self._children.get((parent, name))

    def free_name(self, parent: int, options: list[str]) -> str:
        """Take the first name that no sibling has, or number the first one."""
        readable = [option.replace("/", SLASH) for option in options]
        numbered = (f"{readable[0]} ({i})" for i in range(2, len(self.names)))
        return next(name for name in chain(readable, numbered) if (parent, name) not in self._children)


def plant(domains: list[str]) -> tuple[Tree, dict[str, int]]:
    """Make the two upper levels."""
    tree, nodes = Tree(), {"": 0}
    for topic in dict.fromkeys(path.partition("/")[0] for path in domains):
        nodes[topic] = tree.add(0, topic)
    for path in domains:
        topic, _, name = path.partition("/")
        nodes[path] = tree.add(nodes[topic], name)
    return tree, nodes


def grow(tree: Tree, domains: dict[str, int], wordnet: WordNet, placer: Placer) -> list[int]:
    """Add a node per synset and give them in the order of the synsets."""
    found: dict[int, int] = {}

    def node_of(index: int) -> int:
        if index not in found:
            place = placer.place(index)
            above = domains[place.category] if place.parent == NO_PARENT else node_of(place.parent)
            while tree.depth[above] >= DEEPEST:  # long chains lose their middle
                above = tree.parent[above]
            found[index] = tree.add(above, tree.free_name(above, wordnet.synsets[index].lemmas))
        return found[index]

    return [node_of(index) for index in range(len(wordnet.synsets))]
