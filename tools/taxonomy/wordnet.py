"""Reads the noun part of a WordNet 3.0 `dict` folder: synsets, links, senses and how often each was seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

HYPERNYMS = ("@", "@i")
TOPIC, USAGE, PART_OF = ";c", ";u", "#p"
LICENCE_INDENT = "  "
#: Explanations that say: this word insults. They are only looked at here; no explanation is shipped.
RUDE = re.compile(
    r"\b(offensive|derogatory|disparaging|obscene|vulgar|insulting|contemptuous)\b[^;]*"
    r"\b(terms?|names?|words?|slang|expression|address)\b|ethnic slur"
)


@dataclass
class Synset:
    """One meaning: its words in print, and its links as offsets until `read` turns them into indices."""

    offset: int
    file: int
    lemmas: list[str]
    parents: list[int] = field(default_factory=list)
    topics: list[int] = field(default_factory=list)
    usages: list[int] = field(default_factory=list)
    wholes: list[int] = field(default_factory=list)
    instance: bool = False
    rude: bool = False


@dataclass
class WordNet:
    """All noun synsets, the senses of each lemma in WordNet's order, and their counts in tagged texts."""

    synsets: list[Synset]
    senses: dict[str, list[int]]
    counts: dict[tuple[str, int], int]

    def find(self, name: str) -> int:
        """Give the index of a sense by its name, `dog.n.01`."""
        lemma, _, number = name.rsplit(".", 2)
        return self.senses[lemma][int(number) - 1]


def read(folder: Path) -> WordNet:
    """Read the noun files of a WordNet dictionary, whole or split in two."""
    synsets = [_synset(line) for line in _lines(folder)]
    index = {synset.offset: i for i, synset in enumerate(synsets)}
    for synset in synsets:
        synset.parents = [index[offset] for offset in synset.parents]
        synset.topics = [index[offset] for offset in synset.topics]
        synset.usages = [index[offset] for offset in synset.usages]
        synset.wholes = [index[offset] for offset in synset.wholes]
    return WordNet(synsets, dict(_senses(folder, index)), _counts(folder))


def _lines(folder: Path) -> Iterator[str]:
    whole = folder / "data.noun"
    for path in [whole] if whole.exists() else sorted(folder.glob("data.noun[12]")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.startswith(LICENCE_INDENT):
                yield line


def _synset(line: str) -> Synset:
    links_part, _, gloss = line.partition(" | ")
    fields = links_part.split()
    size = int(fields[3], 16)
    lemmas = [word.replace("_", " ") for word in fields[4 : 4 + 2 * size : 2]]
    synset = Synset(int(fields[0]), int(fields[1]), lemmas, rude=bool(RUDE.search(gloss)))
    links = fields[5 + 2 * size :]
    for kind, offset, part in zip(links[0::4], links[1::4], links[2::4], strict=True):
        if part == "n":
            _link(synset, kind, int(offset))
    return synset


def _link(synset: Synset, kind: str, offset: int) -> None:
    if kind in HYPERNYMS:
        synset.parents.append(offset)
        synset.instance |= kind == "@i"
    elif kind == TOPIC:
        synset.topics.append(offset)
    elif kind == USAGE:
        synset.usages.append(offset)
    elif kind == PART_OF:
        synset.wholes.append(offset)


def _senses(folder: Path, index: dict[int, int]) -> Iterator[tuple[str, list[int]]]:
    for line in (folder / "index.noun").read_text(encoding="utf-8").splitlines():
        if not line.startswith(LICENCE_INDENT):
            fields = line.split()
            yield fields[0], [index[int(offset)] for offset in fields[-int(fields[2]) :]]


def _counts(folder: Path) -> dict[tuple[str, int], int]:
    """How often each noun sense was met in the texts that WordNet's authors tagged by hand."""
    counts = {}
    for line in (folder / "index.sense").read_text(encoding="utf-8").splitlines():
        key, _, number, count = line.split()
        lemma, _, rest = key.partition("%")
        if rest.startswith("1:") and count != "0":
            counts[lemma, int(number)] = int(count)
    return counts
