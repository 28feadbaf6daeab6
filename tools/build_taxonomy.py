"""Builds the taxonomy that ships with QueryCloak from a WordNet 3.0 `dict` folder and our own tables.

Usage: python tools/build_taxonomy.py WORDNET_DICT [-o FILE]

Nothing is downloaded. The folder needs `data.noun` (or `data.noun1` and `data.noun2`), `index.noun`,
`index.sense` and the licence. Equal inputs give equal bytes.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from itertools import accumulate
from pathlib import Path

import numpy as np
import numpy.typing as npt

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

from querycloak.text import taxonomy_files as storage  # noqa: E402
from querycloak.text.lexicon import Lexicon  # noqa: E402
from taxonomy import domains, placement, tree, wordnet, words  # noqa: E402

Arrays = dict[str, npt.NDArray[np.generic]]


def main() -> None:
    """Build, write, and say what came out."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="WordNet's `dict` folder")
    parser.add_argument("-o", "--output", type=Path, default=storage.SHIPPED)
    asked = parser.parse_args()
    arrays = build(asked.folder, HERE / "taxonomy")
    storage.write(asked.output, arrays)
    shutil.copyfile(asked.folder / "LICENSE.txt", asked.output.parent / "LICENSE-wordnet.txt")
    print(f"{arrays['parent'].size:,} nodes, {arrays['term_start'].size - 1:,} phrases,")
    print(f"{asked.output.stat().st_size:,} bytes")


def build(folder: Path, tables: Path) -> Arrays:
    """Put WordNet's nouns below our topics and domains."""
    nouns = wordnet.read(folder)
    placer = placement.Placer(nouns, placement.read_anchors(tables / "anchors.csv", nouns))
    lexicon = domains.read_lexicon(tables / "lexicon")
    grown, nodes = tree.plant(domains.all_domains(tables / "domains.txt", lexicon))
    node = tree.grow(grown, nodes, nouns, placer)
    said = words.Words(nouns, placer, node, lexicon, nodes)
    return (
        {"parent": np.array(grown.parent, np.int32), "names": storage.pack(grown.names)}
        | _terms(said)
        | _vocabulary(said, grown)
        | _graph(nouns, node)
    )


def _terms(said: words.Words) -> Arrays:
    texts, nodes, weights = zip(*said.terms(), strict=True)
    number = np.arange(len(texts), dtype=np.int32)
    curated = np.zeros(len(texts), bool)  # not stored
    terms = Lexicon.gather(texts, number, np.array(nodes, np.int32), np.array(weights), curated)
    weight = np.rint(terms.weight * 100).astype(np.uint16)
    return {
        "term_text": storage.pack(terms.texts),
        "term_start": terms.start,
        "term_node": terms.node,
        "term_weight": weight,
    }


def _vocabulary(said: words.Words, grown: tree.Tree) -> Arrays:
    """Words by category, the common and short ones first."""
    usual = sorted(said.usual(set(grown.parent), grown.parent), key=lambda w: (w[0], -w[2], len(w[1]), w[1]))
    return {
        "word_node": np.array([node for node, _, _ in usual], np.int32),
        "word_text": storage.pack([text for _, text, _ in usual]),
    }


def _graph(nouns: wordnet.WordNet, node: list[int]) -> Arrays:
    """WordNet's own graph, with every hypernym, for methods that need more than a tree."""
    lemmas = list(nouns.senses)
    number = {lemma: i for i, lemma in enumerate(lemmas)}
    keys = [[number[word.replace(" ", "_").lower()] for word in synset.lemmas] for synset in nouns.synsets]
    return (
        {"synset_node": np.array(node, np.int32), "lemma": storage.pack(lemmas)}
        | _ragged("hypernym", [synset.parents for synset in nouns.synsets])
        | _ragged("synset_lemma", keys)
        | _ragged("sense", list(nouns.senses.values()))
    )


def _ragged(name: str, rows: list[list[int]]) -> Arrays:
    flat = [item for row in rows for item in row]
    bounds = list(accumulate(map(len, rows), initial=0))
    return {name: np.array(flat, np.int32), f"{name}_start": np.array(bounds, np.int32)}


if __name__ == "__main__":
    main()
